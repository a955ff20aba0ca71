import { StoreUnavailableError } from '../../../application/ports/store.ts';
import type { AuditChange, AuditEntry, TenantActor } from '../../../domain/audit/audit-entry.ts';
import { appendEntries } from '../../../domain/audit/chain.ts';
import type { Macs } from '../../../domain/audit/macs.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { isExpectationFailure, toStoreError } from '../database-faults.ts';
import type { Row } from '../statement.ts';
import { type AuditAddition, additionOf } from './audit-addition.ts';
import type { Call, Outcome } from './call-groups.ts';
import { ChainEnds } from './chain-ends.ts';
import { type OneConnection, type PostgresSql, SHARED_LOCK } from './sql.ts';

/** SQLSTATE and table by which PostgreSQL reports that the chain has moved on. */
const UNIQUE_VIOLATION = '23505';
const ENTRIES = 'audit_entries';

/** Attempts while the lock is held: transactions of the administrative interface can still overtake. */
const MAX_ATTEMPTS_WITH_LOCK = 50;
/** After a lost race for the head of the chain, a process takes the lock of the chain for this long. */
const SHARED_MS = 1_000;
const MAX_SHARED = 10_000;

/** Changes of one tenant that may wait; further ones are rejected. */
const MAX_WAITING = 1_000;
/** Entries that one message adds, each with its change. */
const MAX_BATCH = 16;

/** Change that waits for its position in a chain. `callWith` returns its call with the entry added. */
type Addition = {
  readonly by: TenantActor;
  readonly change: AuditChange;
  readonly callWith: (entry: AuditAddition) => Call;
  /** Other writers may wait for a row of this change while it waits for the end of the chain. */
  readonly goesAlone: boolean;
};
type WaitingAddition = Addition & {
  readonly requestedAt: number;
  readonly resolve: (row: Row | undefined) => void;
  readonly reject: (error: unknown) => void;
};

/**
 * Adds entries to chains within the statement that they describe. A writer must know the hash before its own, so each process caches the
 * ends of the chains and serializes its writers to one chain; waiting writers are written together, each with the hash of the one before. A
 * writer that another process overtook takes the lock of the chain for a while, so that it is not overtaken again and again.
 */
export class PostgresChains {
  readonly #sql: PostgresSql;
  readonly #macs: Macs;
  readonly #ends: ChainEnds;
  /** Time until which other processes are assumed to write to the chain of a tenant, too. */
  readonly #shared = new Map<string, number>();
  /** Waiting changes by tenant, while there is a writer. */
  readonly #waiting = new Map<string, WaitingAddition[]>();

  /** @param settle gives the chain of a tenant a valid head. */
  constructor(sql: PostgresSql, macs: Macs, settle: (tenantId: TenantId) => Promise<void>) {
    this.#sql = sql;
    this.#macs = macs;
    this.#ends = new ChainEnds(macs, settle);
  }

  /**
   * @returns the first row that the change returns; undefined also if the tenant is gone.
   * @throws StoreUnavailableError if its turn does not come in time; the error of the change if it was rejected and nothing happened.
   */
  record(tenantId: TenantId, addition: Addition): Promise<Row | undefined> {
    const queue = this.#waiting.get(tenantId);
    if (queue !== undefined && queue.length >= MAX_WAITING) return Promise.reject(tooMany());
    return new Promise((resolve, reject) => {
      const waiting = { ...addition, requestedAt: performance.now(), resolve, reject };
      if (queue !== undefined) {
        queue.push(waiting);
        return;
      }
      this.#waiting.set(tenantId, [waiting]);
      void this.#writeAll(tenantId);
    });
  }

  /** Runs one writer per tenant while changes wait. It throws nothing: each change gets its own error. */
  async #writeAll(tenantId: TenantId): Promise<void> {
    const queue = this.#waiting.get(tenantId) ?? [];
    while (queue.length > 0) {
      const batch = queue.splice(0, MAX_BATCH).filter((waiting) => this.#isInTime(waiting));
      await this.#write(tenantId, batch);
    }
    this.#waiting.delete(tenantId);
  }

  async #write(tenantId: TenantId, batch: readonly WaitingAddition[]): Promise<void> {
    try {
      const isShared = (this.#shared.get(tenantId) ?? 0) > performance.now();
      const overtaken = isShared ? batch : await this.#writeWith(this.#sql, tenantId, batch);
      if (overtaken.length === 0) return;
      if (!isShared) this.#noteShared(tenantId);
      const unwritten = await this.#sql.exclusively(lockKeyOf(tenantId), (connection) =>
        this.#writeWithLock(connection, tenantId, overtaken),
      );
      for (const { reject } of unwritten) reject(tooMany());
    } catch (error) {
      // Promises that are settled already are not affected.
      for (const { reject } of batch) reject(toStoreError(error));
    }
  }

  async #writeWithLock(
    connection: OneConnection,
    tenantId: TenantId,
    additions: readonly WaitingAddition[],
  ): Promise<readonly WaitingAddition[]> {
    let unwritten = additions;
    for (let attempt = 0; attempt < MAX_ATTEMPTS_WITH_LOCK && unwritten.length > 0; attempt++) {
      this.#ends.forget(tenantId);
      unwritten = await this.#writeWith(connection, tenantId, unwritten);
    }
    return unwritten;
  }

  /** @returns the changes that another process overtook, of which nothing happened. */
  async #writeWith(sql: OneConnection, tenantId: TenantId, additions: readonly WaitingAddition[]): Promise<readonly WaitingAddition[]> {
    const [alone, together] = [true, false].map((isAlone) => additions.filter(({ goesAlone }) => goesAlone === isAlone)) as [
      WaitingAddition[],
      WaitingAddition[],
    ];
    const undone = together.length > 1 ? await this.#writeTogether(sql, tenantId, together) : together;
    const overtaken: WaitingAddition[] = [];
    for (const waiting of [...undone, ...alone]) {
      if (!this.#isInTime(waiting)) continue;
      await this.#writeAlone(sql, tenantId, waiting).then(waiting.resolve, (error: unknown) => {
        if (hasMoved(error)) overtaken.push(waiting);
        else waiting.reject(toStoreError(error));
      });
    }
    return overtaken;
  }

  /** Each earlier change may have waited for a database that does not respond; their total waiting time is bounded. */
  #isInTime({ requestedAt, reject }: WaitingAddition): boolean {
    if (performance.now() - requestedAt <= this.#sql.patienceMs) return true;
    reject(new StoreUnavailableError('too many changes of the tenant wait'));
    return false;
  }

  /** @returns the changes that were not applied and may be written one by one. */
  async #writeTogether(sql: OneConnection, tenantId: TenantId, additions: readonly WaitingAddition[]): Promise<readonly WaitingAddition[]> {
    const previousHead = await this.#ends.find(sql, tenantId);
    // Each change then finds out by itself if the tenant is gone or the chain has no valid end.
    if (previousHead === undefined) return additions;
    let head = previousHead;
    const calls = additions.map(({ by, change, callWith }) => {
      const added = appendEntries(this.#macs, tenantId, head, [{ by, at: new Date(), change }]);
      const call = callWith(additionOf(head, added.head, added.entries[0] as AuditEntry));
      head = added.head;
      return call;
    });
    // The outcome of the statements is unknown until they have answered.
    this.#ends.forget(tenantId);
    let outcomes: readonly Outcome[];
    try {
      outcomes = await this.#besideTurns(sql, tenantId, calls);
    } catch (error) {
      for (const { reject } of additions) reject(toStoreError(error));
      return [];
    }
    const unapplied = additions.filter(({ resolve, reject }, index) => {
      const outcome = outcomes[index];
      if (outcome === undefined || 'undone' in outcome) return true;
      if ('rows' in outcome) resolve(outcome.rows[0]);
      else if (isExpectationFailure(outcome.error) || hasMoved(outcome.error)) return true;
      else reject(toStoreError(outcome.error));
      return false;
    });
    if (outcomes.every((outcome) => 'rows' in outcome)) this.#ends.remember(tenantId, head);
    return unapplied;
  }

  async #writeAlone(sql: OneConnection, tenantId: TenantId, { by, change, callWith }: Addition): Promise<Row | undefined> {
    const previousHead = await this.#ends.get(sql, tenantId);
    if (previousHead === undefined) return undefined;
    const { entries, head } = appendEntries(this.#macs, tenantId, previousHead, [{ by, at: new Date(), change }]);
    this.#ends.forget(tenantId);
    try {
      const call = callWith(additionOf(previousHead, head, entries[0] as AuditEntry));
      const [outcome] = await this.#besideTurns(sql, tenantId, [call]);
      if (outcome !== undefined && 'error' in outcome) throw outcome.error;
      // A call that was undone is repeated alone, which gives its error.
      const answered = outcome !== undefined && 'rows' in outcome ? outcome.rows : undefined;
      const [row] = answered ?? (await sql.query(call.statement, call.values));
      this.#ends.remember(tenantId, row === undefined ? previousHead : head);
      return row;
    } catch (error) {
      if (!hasMoved(error) && isExpectationFailure(error)) this.#ends.remember(tenantId, previousHead);
      throw error;
    }
  }

  /** A writer that was not overtaken waits for the holder of the lock. */
  async #besideTurns(sql: OneConnection, tenantId: TenantId, calls: readonly Call[]): Promise<readonly Outcome[]> {
    if (sql !== this.#sql) return sql.together(calls);
    const [, ...outcomes] = await sql.together([{ statement: SHARED_LOCK, values: [lockKeyOf(tenantId)] }, ...calls]);
    return outcomes;
  }

  /** Invalidates these chain ends, or all, after other writers have changed them. */
  forget(scopes?: readonly string[]): void {
    if (scopes === undefined) this.#ends.clear();
    else for (const scope of scopes) this.#ends.forget(scope);
  }

  #noteShared(tenantId: TenantId): void {
    if (this.#shared.size >= MAX_SHARED) this.#shared.clear();
    this.#shared.set(tenantId, performance.now() + SHARED_MS);
  }
}

const lockKeyOf = (tenantId: TenantId) => `audit log of ${tenantId}`;

function tooMany(): Failure {
  const message = 'too many concurrent changes of the same object; try again';
  return new Failure('unavailable', { message, retryAfterSeconds: 1 });
}

function hasMoved(error: unknown): boolean {
  const { code, table, message } = error as { code?: unknown; table?: unknown; message?: unknown };
  return (table === ENTRIES && code === UNIQUE_VIOLATION) || (isExpectationFailure(error) && message === 'audit');
}
