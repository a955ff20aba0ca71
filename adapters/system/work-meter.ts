/** Thrown when a check was given up; the document counts as refused. */
export class WorkExhausted extends Error {}

/** Counts the steps of one check and ends it when there are too many: the check runs on the thread that serves all. */
export class WorkMeter {
  readonly #limit: number;
  #spent = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  begin(): void {
    this.#spent = 0;
  }

  /** @throws WorkExhausted beyond the limit. */
  spend(steps: number): void {
    this.#spent += steps;
    if (this.#spent > this.#limit) throw new WorkExhausted('the document takes too much work to check');
  }
}
