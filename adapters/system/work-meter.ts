/** Thrown when a validation was aborted; the document counts as rejected. */
export class WorkExhausted extends Error {}

/** Counts the steps of one validation and aborts it when there are too many, because it runs on the main thread. */
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
    if (this.#spent > this.#limit) throw new WorkExhausted('the document takes too much work to validate');
  }
}
