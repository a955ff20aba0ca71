/**
 * The last seconds of a process: it says that it is not ready, so that whoever shares out requests sends it no new ones, and
 * serves what comes as before.
 */
export class Draining {
  #isUnderWay = false;

  begin(): void {
    this.#isUnderWay = true;
  }

  get isUnderWay(): boolean {
    return this.#isUnderWay;
  }
}
