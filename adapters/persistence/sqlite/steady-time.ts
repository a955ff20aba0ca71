/** The machine's two clocks, in milliseconds. */
export type MachineClocks = {
  /** The time of day, which somebody may set. */
  readonly wall: () => number;
  /** Time that has passed since some moment; nobody sets it. */
  readonly elapsed: () => number;
};

const MACHINE: MachineClocks = { wall: () => Date.now(), elapsed: () => performance.now() };

/** Difference that is no jump, but a clock that is being corrected little by little. */
const SLEW_MS = 5_000;
/** For so long the time of day must have stood by a jump until it is believed. */
const CONFIRMED_MS = 15 * 60_000;

/** A jump that is not believed yet: where the time of day is since when, measured against the time that has passed. */
type Doubt = { readonly offset: number; readonly since: number };

/**
 * The time by which a database of one process (SQLite) judges what is over for good: values that count once and are forgotten, leases, data
 * that is removed. It goes on with the time that has passed, and follows the time of day only where that moves little, or has stood by its
 * jump for a quarter of an hour. So a clock that is hours wrong for a minute changes nothing, and one that was set right is believed. The
 * same goes for the time that passed before the process started: a machine often learns the right time only a while after its start, so the
 * first reading goes out from the last one that was stored.
 *
 * What follows when a jump is real (a virtual machine that slept): everything is forgotten a quarter of an hour later than it could be. The
 * clock goes back only after a quarter of an hour, too; until then what is shown with an earlier end is refused.
 */
export class SteadyTime {
  readonly #clocks: MachineClocks;
  #offset: number;
  #doubt: Doubt | undefined;
  #isSettled = false;
  #latest = Number.NEGATIVE_INFINITY;

  /** @param stored the last reading of the process before. */
  constructor(stored: number | undefined, clocks = MACHINE) {
    this.#clocks = clocks;
    this.#offset = (stored ?? clocks.wall()) - clocks.elapsed();
  }

  /** Whether what passed before the process started is not believed yet, as after every rest. */
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

const isNear = (one: number, other: number) => Math.abs(one - other) <= SLEW_MS;
