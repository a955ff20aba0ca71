/** SQLite works on the main thread, so a batch of a job should block it for no longer than this. */
const TARGET_MS = 8;
const INITIAL_ROWS = 100;
const MIN_ROWS = 10;
/** Largest growth from one batch to the next: a single fast batch is weak evidence. */
const MAX_GROWTH = 1.5;

/** Adapts the number of rows of a batch to the time that the rows take. */
export class BatchSize {
  #rows: number;
  #milliseconds = 0;
  #touched: number | undefined;
  readonly #clock: () => number;

  constructor(initialRows = INITIAL_ROWS, clock = () => performance.now()) {
    this.#rows = initialRows;
    this.#clock = clock;
  }

  /** Runs a part of the batch that blocks the thread. Waiting in between does not count. */
  timed<T>(work: () => T): T {
    const startedAt = this.#clock();
    try {
      return work();
    } finally {
      this.#milliseconds += this.#clock() - startedAt;
    }
  }

  /**
   * Runs a transaction that has timed parts. Its commit counts, but for no longer than these parts: it writes their changes, which fewer
   * rows shorten, and waits for the disk, which they do not.
   */
  transaction<T>(step: () => T): T {
    const startedAt = this.#clock();
    const partsBefore = this.#milliseconds;
    try {
      return step();
    } finally {
      const parts = this.#milliseconds - partsBefore;
      const commit = this.#clock() - startedAt - parts;
      this.#milliseconds += Math.min(parts, commit);
    }
  }

  /** Reports how many rows the batch touched if these are fewer than it could have: its time says nothing about more rows. */
  touched(rows: number): void {
    this.#touched = rows;
  }

  /** @param limit the maximum number of rows. */
  async run<T>(limit: number, work: (rows: number) => Promise<T>): Promise<T> {
    const rows = Math.min(limit, Math.round(this.#rows));
    this.#milliseconds = 0;
    this.#touched = undefined;
    const result = await work(rows);
    const touched = this.#touched ?? rows;
    const milliseconds = Math.max(0.1, this.#milliseconds);
    const fitting = touched * Math.min(MAX_GROWTH, TARGET_MS / milliseconds);
    // A batch that was smaller than allowed says nothing about larger ones, unless it took too long.
    if (fitting > this.#rows || milliseconds > TARGET_MS) this.#rows = Math.max(MIN_ROWS, fitting);
    return result;
  }
}
