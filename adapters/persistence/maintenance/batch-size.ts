/** SQLite works on the main thread, so a batch of a job should hold it for no longer than this. */
const TARGET_MS = 8;
const FIRST = 100;
const MIN = 10;
/** By how much the next batch may grow: one quick batch says little. */
const MAX_GROWTH = 1.5;

/** Fits the number of rows of a batch to the time that the rows took. */
export class BatchSize {
  #rows: number;
  #milliseconds = 0;
  #touched: number | undefined;
  readonly #clock: () => number;

  constructor(first = FIRST, clock = () => performance.now()) {
    this.#rows = first;
    this.#clock = clock;
  }

  /** Runs a part of the batch that holds the thread. What the batch waits for in between does not count. */
  timed<T>(work: () => T): T {
    const before = this.#clock();
    try {
      return work();
    } finally {
      this.#milliseconds += this.#clock() - before;
    }
  }

  /**
   * Runs a transaction that has timed parts. Its commit counts, but for no longer than these parts: it writes what they changed,
   * which fewer rows shorten, and waits for the disk, which they do not.
   */
  transaction<T>(step: () => T): T {
    const before = this.#clock();
    const partsBefore = this.#milliseconds;
    try {
      return step();
    } finally {
      const parts = this.#milliseconds - partsBefore;
      const commit = this.#clock() - before - parts;
      this.#milliseconds += Math.min(parts, commit);
    }
  }

  /** States how many rows the batch touched, where these are fewer than it could have: the time says nothing of more rows. */
  touched(rows: number): void {
    this.#touched = rows;
  }

  /** @param limit the most rows that a batch may have. */
  async run<T>(limit: number, work: (rows: number) => Promise<T>): Promise<T> {
    const rows = Math.min(limit, Math.round(this.#rows));
    this.#milliseconds = 0;
    this.#touched = undefined;
    const result = await work(rows);
    const touched = this.#touched ?? rows;
    const milliseconds = Math.max(0.1, this.#milliseconds);
    const fitting = touched * Math.min(MAX_GROWTH, TARGET_MS / milliseconds);
    // A batch that was smaller than allowed says nothing of larger ones, unless it took too long.
    if (fitting > this.#rows || milliseconds > TARGET_MS) this.#rows = Math.max(MIN, fitting);
    return result;
  }
}
