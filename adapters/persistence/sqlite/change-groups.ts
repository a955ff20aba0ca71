import { StoreUnavailableError } from '../../../application/ports/store.ts';
import { toStoreError } from '../database-faults.ts';

/** Limit of changes per group, because a group blocks the thread. */
const MAX_CHANGES = 64;
/** Limit of characters that the changes of one group bind as parameters; the change that exceeds it is the last one of its group. */
const MAX_BOUND_CHARACTERS = 1024 * 1024;
const MAX_WAITING_CHANGES = 10_000;
/**
 * Limit of single statements that run before a waiting group. Without it, statements that only wait for each other would keep the event
 * loop from reaching the group.
 */
const MAX_STATEMENTS_BEFORE_GROUP = 100;

/** Statements of one connection around the changes of a group. */
export type GroupSteps = {
  begin(): void;
  commit(): void;
  rollback(): void;
  /** Returns true if the transaction is still open: SQLite ends it by itself if it cannot write. */
  isOpen(): boolean;
  /** Begins a savepoint for a change that shares its group with other changes. */
  savepoint(): void;
  releaseSavepoint(): void;
  /** Undoes the change and releases its savepoint. */
  rollbackToSavepoint(): void;
  /** Number of characters that were bound as parameters since the connection was opened. */
  boundCharacters(): number;
};

/** Runs a group as soon as no other transaction is open. */
type Gate = { pass<T>(step: () => T): Promise<T>; assertNotNested(): void };

type WaitingChange = { readonly work: () => unknown; readonly done: (value: unknown) => void; readonly fail: (error: unknown) => void };

/** Settles the promise of a change, after the commit of its group. */
type Outcome = () => void;

/**
 * Group commit: writes the changes of one turn of the event loop in one transaction, because most of the cost of a change is waiting for
 * the disk, which blocks the thread. Changes that share a group have a savepoint each, so a change that fails is undone alone. All changes
 * wait for the commit, and fail if it fails.
 */
export class ChangeGroups {
  readonly #steps: GroupSteps;
  readonly #gate: Gate;
  readonly #waiting: WaitingChange[] = [];
  /** Pending until the waiting group has been written. */
  #written: Promise<void> | undefined;
  #statementsBeforeGroup = 0;

  constructor(steps: GroupSteps, gate: Gate) {
    this.#steps = steps;
    this.#gate = gate;
  }

  /** Runs `work` synchronously in a transaction that other changes may share; nothing of it is written if it throws. */
  async join<T>(work: () => T): Promise<T> {
    this.#gate.assertNotNested();
    if (this.#waiting.length >= MAX_WAITING_CHANGES) throw new StoreUnavailableError('too many changes wait for the database');
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ work, done: (value) => resolve(value as T), fail: reject });
      this.#schedule();
    });
  }

  /** Counts a single statement. @returns the promise of the waiting group if the statement has to run after it, otherwise undefined. */
  groupToWaitFor(): Promise<void> | undefined {
    return this.#written !== undefined && ++this.#statementsBeforeGroup > MAX_STATEMENTS_BEFORE_GROUP ? this.#written : undefined;
  }

  #schedule(): void {
    this.#written ??= new Promise((resolve) => setImmediate(() => resolve(this.#flush())));
  }

  async #flush(): Promise<void> {
    try {
      await this.#gate.pass(() => this.#write());
    } catch (error) {
      for (const { fail } of this.#waiting.splice(0)) fail(error);
    }
    this.#written = undefined;
    this.#statementsBeforeGroup = 0;
    // Remaining changes go in the next turn, after new events of the sockets.
    if (this.#waiting.length > 0) this.#schedule();
  }

  #write(): void {
    const changes: WaitingChange[] = [];
    try {
      this.#steps.begin();
      const outcomes = this.#applyAll(changes);
      this.#steps.commit();
      for (const settle of outcomes) settle();
    } catch (error) {
      const reason = toStoreError(error);
      try {
        if (this.#steps.isOpen()) this.#steps.rollback();
      } finally {
        // If the transaction could not begin, all waiting changes would fail in the same way.
        for (const { fail } of changes.length > 0 ? changes : this.#waiting.splice(0)) fail(reason);
      }
    }
  }

  #applyAll(changes: WaitingChange[]): readonly Outcome[] {
    const outcomes: Outcome[] = [];
    const { boundCharacters } = this.#steps;
    const limit = boundCharacters() + MAX_BOUND_CHARACTERS;
    const isAlone = this.#waiting.length === 1;
    while (changes.length < MAX_CHANGES && boundCharacters() < limit) {
      const change = this.#waiting.shift();
      if (change === undefined) break;
      changes.push(change);
      outcomes.push(isAlone ? resolveChange(change, change.work()) : this.#applyInSavepoint(change));
    }
    return outcomes;
  }

  #applyInSavepoint(change: WaitingChange): Outcome {
    this.#steps.savepoint();
    try {
      const value = change.work();
      this.#steps.releaseSavepoint();
      return resolveChange(change, value);
    } catch (error) {
      if (!this.#steps.isOpen()) throw error;
      this.#steps.rollbackToSavepoint();
      return () => change.fail(toStoreError(error));
    }
  }
}

const resolveChange =
  ({ done }: WaitingChange, value: unknown) =>
  () =>
    done(value);
