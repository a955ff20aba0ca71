import { StoreUnavailableError } from '../../../application/ports/store.ts';
import { toStoreError } from '../database-faults.ts';

/** Limit of changes per group, because a group blocks the thread. */
const MAX_MEMBERS = 64;
/** Characters that the changes of one group bind; the change that exceeds it is its last. */
const MAX_BOUND = 1024 * 1024;
const MAX_WAITING = 10_000;
/** Single statements that may pass a waiting group: statements that only wait for each other would never let the loop turn. */
const MAX_PASSING = 100;

/** Statements of one connection around the members of a group. */
export type GroupSteps = {
  begin(): void;
  commit(): void;
  rollback(): void;
  /** Returns true if the transaction is still open: SQLite ends it by itself if it cannot write. */
  isOpen(): boolean;
  /** Savepoint around a change that shares its group. */
  mark(): void;
  keep(): void;
  undo(): void;
  /** Number of characters that were bound since the connection was opened. */
  bound(): number;
};

/** Admits a group as soon as no other transaction is open. */
type Gate = { pass<T>(step: () => T): Promise<T>; assertNotNested(): void };

type Member = { readonly work: () => unknown; readonly done: (value: unknown) => void; readonly fail: (error: unknown) => void };

/** Settles the promise of a change, once the group is on the disk. */
type Outcome = () => void;

/**
 * Writes the changes of one turn of the event loop in one transaction, because waiting for the disk is most of the cost of a change and
 * blocks the thread. A change that fails is undone by itself. All wait for the commit, and all fail with it.
 */
export class ChangeGroups {
  readonly #steps: GroupSteps;
  readonly #gate: Gate;
  readonly #waiting: Member[] = [];
  /** Pending until the waiting group has been written. */
  #turn: Promise<void> | undefined;
  #passed = 0;

  constructor(steps: GroupSteps, gate: Gate) {
    this.#steps = steps;
    this.#gate = gate;
  }

  /** Runs `work` synchronously in a transaction that other changes may share; it leaves nothing when it throws. */
  async join<T>(work: () => T): Promise<T> {
    this.#gate.assertNotNested();
    if (this.#waiting.length >= MAX_WAITING) throw new StoreUnavailableError('too many changes wait for the database');
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ work, done: (value) => resolve(value as T), fail: reject });
      this.#schedule();
    });
  }

  /** @returns the promise for which a single statement has to wait, if any. */
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
    // Remaining changes go in the next turn, after new events of the sockets.
    if (this.#waiting.length > 0) this.#schedule();
  }

  #write(): void {
    const members: Member[] = [];
    try {
      this.#steps.begin();
      const outcomes = this.#applyAll(members);
      this.#steps.commit();
      for (const settle of outcomes) settle();
    } catch (error) {
      const reason = toStoreError(error);
      try {
        if (this.#steps.isOpen()) this.#steps.rollback();
      } finally {
        // A group that could not begin took no change, and all waiting ones would fail like it.
        for (const { fail } of members.length > 0 ? members : this.#waiting.splice(0)) fail(reason);
      }
    }
  }

  #applyAll(members: Member[]): readonly Outcome[] {
    const outcomes: Outcome[] = [];
    const { bound } = this.#steps;
    const end = bound() + MAX_BOUND;
    const isAlone = this.#waiting.length === 1;
    while (members.length < MAX_MEMBERS && bound() < end) {
      const member = this.#waiting.shift();
      if (member === undefined) break;
      members.push(member);
      outcomes.push(isAlone ? resolveMember(member, member.work()) : this.#applyBeside(member));
    }
    return outcomes;
  }

  #applyBeside(member: Member): Outcome {
    this.#steps.mark();
    try {
      const value = member.work();
      this.#steps.keep();
      return resolveMember(member, value);
    } catch (error) {
      if (!this.#steps.isOpen()) throw error;
      this.#steps.undo();
      return () => member.fail(toStoreError(error));
    }
  }
}

const resolveMember =
  ({ done }: Member, value: unknown) =>
  () =>
    done(value);
