/** The machine's two clocks, in milliseconds. */
export type MachineClocks = {
  /** Time of day, which may be set. */
  readonly wall: () => number;
  /** Time that has passed since some moment; it cannot be set. */
  readonly elapsed: () => number;
};

const MACHINE: MachineClocks = { wall: () => Date.now(), elapsed: () => performance.now() };

/** Difference up to which a change of the time of day counts as a gradual correction, not as a jump. */
const SLEW_MS = 5_000;
/** A jump of the time of day is accepted after it has lasted for this long. */
const MIN_JUMP_AGE_MS = 15 * 60_000;

/** Jump that is not accepted yet: the difference of the time of day to the monotonic time, and the monotonic time of its first reading. */
type PendingJump = { readonly offset: number; readonly since: number };

/**
 * Clock that tolerates jumps of the time of day. The database of a single process (SQLite) decides by it that data has expired and can be
 * deleted: single-use values, leases, old rows. It advances with monotonic time. It follows small corrections of the time of day at once,
 * and a jump only after the jump has lasted for a quarter of an hour: a clock that is hours wrong for a minute changes nothing, and a clock
 * that was corrected is accepted. The time between two processes is treated like a jump, because a machine often synchronizes its clock a
 * while after it started: the first reading continues from the stored last reading of the previous process.
 *
 * After a real jump (a virtual machine that was paused), data is deleted a quarter of an hour later than possible. A jump back is also
 * accepted after a quarter of an hour; until then, values that expire before the time of this clock are rejected.
 */
export class SteadyTime {
  readonly #clocks: MachineClocks;
  #offset: number;
  #pendingJump: PendingJump | undefined;
  /** True once a reading of the time of day was accepted. */
  #isSettled = false;
  #latest = Number.NEGATIVE_INFINITY;

  /** @param storedTime the last reading of the previous process. */
  constructor(storedTime: number | undefined, clocks = MACHINE) {
    this.#clocks = clocks;
    this.#offset = (storedTime ?? clocks.wall()) - clocks.elapsed();
  }

  /** True while the time between the previous process and this one counts as a jump forward that is not accepted yet. */
  get isCatchingUp(): boolean {
    return !this.#isSettled && this.#pendingJump !== undefined && this.#pendingJump.offset > this.#offset;
  }

  now(): number {
    const elapsed = this.#clocks.elapsed();
    const offset = this.#clocks.wall() - elapsed;
    if (isNear(offset, this.#offset)) {
      this.#offset = offset;
      this.#pendingJump = undefined;
      this.#isSettled = true;
    } else if (this.#pendingJump === undefined || !isNear(offset, this.#pendingJump.offset)) this.#pendingJump = { offset, since: elapsed };
    else if (elapsed - this.#pendingJump.since >= MIN_JUMP_AGE_MS) {
      this.#offset = offset;
      this.#pendingJump = undefined;
      this.#isSettled = true;
      this.#latest = Number.NEGATIVE_INFINITY;
    }
    this.#latest = Math.max(this.#latest, Math.floor(elapsed + this.#offset));
    return this.#latest;
  }
}

const isNear = (a: number, b: number) => Math.abs(a - b) <= SLEW_MS;
