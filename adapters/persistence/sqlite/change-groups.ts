import { StoreUnavailable } from '../../../application/ports/store.ts';
import { unavailableFor } from '../database-faults.ts';

/** Members of one group at most, since the thread does nothing else meanwhile. */
const MAX_MEMBERS = 64;
/** Characters that the members of one group bind; the one that exceeds it is its last. */
const MAX_BOUND = 1024 * 1024;
/** Members that wait. */
const MAX_WAITING = 10_000;
/** Single statements that may pass a group that waits: those who only wait for each other would never let the loop turn. */
const MAX_PASSING = 100;

/** Statements of one connection around the members of a group. */
export type GroupSteps = {
  begin(): void;
  commit(): void;
  /** Undoes the group. */
  rollback(): void;
  /** Whether the transaction is still there: SQLite ends it by itself when it cannot write. */
  isOpen(): boolean;
  /** Around a member that has neighbours. */
  mark(): void;
  keep(): void;
  undo(): void;
  /** How many characters were bound since the connection was opened. */
  bound(): number;
};

/** Lets a group in as soon as nobody else is in a transaction. */
type Gate = { pass<T>(step: () => T): Promise<T>; assertNotNested(): void };

type Member = { readonly work: () => unknown; readonly done: (value: unknown) => void; readonly fail: (error: unknown) => void };

/** What became of a member; it is told once the group is on the disk. */
type Outcome = () => void;

/**
 * Writes what comes in the same turn of the event loop in one transaction, since waiting for the disk is most of what one costs, and it
 * holds up the thread. A member that fails is undone by itself. All wait for the commit, and all fail with it.
 */
export class ChangeGroups {
  readonly #steps: GroupSteps;
  readonly #gate: Gate;
  readonly #waiting: Member[] = [];
  /** Until the group that waits has been written. */
  #turn: Promise<void> | undefined;
  #passed = 0;

  constructor(steps: GroupSteps, gate: Gate) {
    this.#steps = steps;
    this.#gate = gate;
  }

  /** Runs `work` synchronously in a transaction that others may share; it leaves nothing when it throws. */
  async join<T>(work: () => T): Promise<T> {
    this.#gate.assertNotNested();
    if (this.#waiting.length >= MAX_WAITING) throw new StoreUnavailable('too much waits for the database');
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ work, done: (value) => resolve(value as T), fail: reject });
      this.#schedule();
    });
  }

  /** @returns what a single statement has to wait for, if anything. */
  passing(): Promise<void> | undefined {
    return this.#turn !== undefined && ++this.#passed > MAX_PASSING ? this.#turn : undefined;
  }

  #schedule(): void {
    this.#turn ??= new Promise((resolve) => setImmediate(() => resolve(this.#flush())));
  }

  async #flush(): Promise<void> {
    try {
      await this.#gate.pass(() => this.#write());
    } catch (error) {
      for (const { fail } of this.#waiting.splice(0)) fail(error);
    }
    this.#turn = undefined;
    this.#passed = 0;
    // What is left goes in the next turn, after what the sockets have brought meanwhile.
    if (this.#waiting.length > 0) this.#schedule();
  }

  #write(): void {
    const taken: Member[] = [];
    try {
      this.#steps.begin();
      const outcomes = this.#applyAll(taken);
      this.#steps.commit();
      for (const tell of outcomes) tell();
    } catch (error) {
      const reason = unavailableFor(error);
      try {
        if (this.#steps.isOpen()) this.#steps.rollback();
      } finally {
        // The one that could not begin has taken nobody, and all that wait would not fare better.
        for (const { fail } of taken.length > 0 ? taken : this.#waiting.splice(0)) fail(reason);
      }
    }
  }

  #applyAll(taken: Member[]): readonly Outcome[] {
    const outcomes: Outcome[] = [];
    const { bound } = this.#steps;
    const end = bound() + MAX_BOUND;
    const isAlone = this.#waiting.length === 1;
    while (taken.length < MAX_MEMBERS && bound() < end) {
      const member = this.#waiting.shift();
      if (member === undefined) break;
      taken.push(member);
      outcomes.push(isAlone ? tellDone(member, member.work()) : this.#applyBeside(member));
    }
    return outcomes;
  }

  #applyBeside(member: Member): Outcome {
    this.#steps.mark();
    try {
      const value = member.work();
      this.#steps.keep();
      return tellDone(member, value);
    } catch (error) {
      if (!this.#steps.isOpen()) throw error;
      this.#steps.undo();
      return () => member.fail(unavailableFor(error));
    }
  }
}

const tellDone =
  ({ done }: Member, value: unknown) =>
  () =>
    done(value);
