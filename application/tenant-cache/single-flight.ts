/** Concurrent callers with the same key share one execution and its result. */
export class SingleFlight<T> {
  readonly #running = new Map<string, Promise<T>>();

  /** @param work gets a function that is false once its result was forgotten. */
  run(key: string, work: (isCurrent: () => boolean) => Promise<T>): Promise<T> {
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    let promise: Promise<T> | undefined;
    const isCurrent = () => this.#running.get(key) === promise;
    promise = work(isCurrent).finally(() => {
      if (isCurrent()) this.#running.delete(key);
    });
    this.#running.set(key, promise);
    return promise;
  }

  isRunning(key: string): boolean {
    return this.#running.has(key);
  }

  /** Later callers do not get a result that began before. */
  forget(matches: (key: string) => boolean): void {
    for (const key of this.#running.keys()) if (matches(key)) this.#running.delete(key);
  }
}
