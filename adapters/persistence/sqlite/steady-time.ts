/** The machine's two clocks, in milliseconds. */
export type MachineClocks = {
  /** Time of day, which may be set. */
  readonly wall: () => number;
  /** Time that has passed since some moment; it cannot be set. */
  readonly elapsed: () => number;
};

const MACHINE: MachineClocks = { wall: () => Date.now(), elapsed: () => performance.now() };

/** Difference that counts as a gradual correction of the clock, not as a jump. */
const SLEW_MS = 5_000;
/** A jump of the time of day is accepted after it has lasted for this long. */
const CONFIRMED_MS = 15 * 60_000;

/** Jump that is not accepted yet: the difference of the time of day to the monotonic time, and when it appeared. */
type Doubt = { readonly offset: number; readonly since: number };

/**
 * Time by which a database of one process (SQLite) decides that data has expired for good: single-use values, leases, data to delete. It
 * advances with monotonic time, and follows the time of day only where that moves little or has kept its jump for a quarter of an hour. So
 * a clock that is hours wrong for a minute changes nothing, and one that was set right is accepted. The same applies to the time that
 * passed before the process started: a machine often learns the right time only a while after its start, so the first reading continues
 * from the last one that was stored.
 *
 * If a jump is real (a virtual machine that slept), everything is deleted a quarter of an hour later than it could be. The clock goes back
 * only after a quarter of an hour, too; until then values with an earlier expiry are rejected.
 */
export class SteadyTime {
  readonly #clocks: MachineClocks;
  #offset: number;
  #doubt: Doubt | undefined;
  #isSettled = false;
  #latest = Number.NEGATIVE_INFINITY;

  /** @param storedTime the last reading of the previous process. */
  constructor(storedTime: number | undefined, clocks = MACHINE) {
    this.#clocks = clocks;
    this.#offset = (storedTime ?? clocks.wall()) - clocks.elapsed();
  }

  /** True if the time that passed before the process started is not accepted yet, as after every pause. */
  get isCatchingUp(): boolean {
    return !this.#isSettled && this.#doubt !== undefined && this.#doubt.offset > this.#offset;
  }

  now(): number {
    const elapsed = this.#clocks.elapsed();
    const offset = this.#clocks.wall() - elapsed;
    if (isNear(offset, this.#offset)) {
      this.#offset = offset;
      this.#doubt = undefined;
      this.#isSettled = true;
    } else if (this.#doubt === undefined || !isNear(offset, this.#doubt.offset)) this.#doubt = { offset, since: elapsed };
    else if (elapsed - this.#doubt.since >= CONFIRMED_MS) {
      this.#offset = offset;
      this.#doubt = undefined;
      this.#isSettled = true;
      this.#latest = Number.NEGATIVE_INFINITY;
    }
    this.#latest = Math.max(this.#latest, Math.floor(elapsed + this.#offset));
    return this.#latest;
  }
}

const isNear = (a: number, b: number) => Math.abs(a - b) <= SLEW_MS;
