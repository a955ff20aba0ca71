/** Work that several want at the same time is done once, and all of them get what comes of it. */
export class SingleFlight<T> {
  readonly #underWay = new Map<string, Promise<T>>();

  /** @param work is told whether its outcome is still wanted, or was forgotten meanwhile. */
  run(key: string, work: (isWanted: () => boolean) => Promise<T>): Promise<T> {
    const underWay = this.#underWay.get(key);
    if (underWay !== undefined) return underWay;
    let working: Promise<T> | undefined;
    const isWanted = () => this.#underWay.get(key) === working;
    working = work(isWanted).finally(() => {
      if (isWanted()) this.#underWay.delete(key);
    });
    this.#underWay.set(key, working);
    return working;
  }

  isUnderWay(key: string): boolean {
    return this.#underWay.has(key);
  }

  /** The one who asks from here on gets nothing that began before. */
  forget(isMeant: (key: string) => boolean): void {
    for (const key of this.#underWay.keys()) if (isMeant(key)) this.#underWay.delete(key);
  }
}
