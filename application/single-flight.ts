/** Work that several want at the same time is done once, and all of them get what comes of it. */
export class SingleFlight<T> {
  readonly #underWay = new Map<string, Promise<T>>();

  run(key: string, work: () => Promise<T>): Promise<T> {
    const underWay = this.#underWay.get(key);
    if (underWay !== undefined) return underWay;
    const working = work().finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, working);
    return working;
  }
}
