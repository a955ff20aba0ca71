const FIRST_MS = 200;
const LONGEST_MS = 60_000;
/** A worker that lived for so long did not end because of how it starts. */
const LIVED_MS = 60_000;

/** How long to wait until a worker is started in place of one that ended: twice as long each time that one ends early. */
export class RestartPause {
  #milliseconds = FIRST_MS;

  /** @param livedMs how long the one that ended has lived. @returns milliseconds. */
  after(livedMs: number): number {
    if (livedMs >= LIVED_MS) this.#milliseconds = FIRST_MS;
    const pause = this.#milliseconds;
    this.#milliseconds = Math.min(2 * pause, LONGEST_MS);
    return pause;
  }
}
