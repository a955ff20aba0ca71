import { StoreUnavailable } from '../../../application/ports/store.ts';
import type { AuditChange, AuditEntry, TenantActor } from '../../../domain/audit/audit-entry.ts';
import { append } from '../../../domain/audit/chain.ts';
import type { Macs } from '../../../domain/audit/macs.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { isUnexpected, unavailableFor } from '../database-faults.ts';
import type { Row } from '../statement.ts';
import { type AuditAddition, additionOf } from './audit-addition.ts';
import type { Call, Outcome } from './call-groups.ts';
import { ChainEnds } from './chain-ends.ts';
import { BESIDE_TURNS, type OneConnection, type PostgresSql } from './sql.ts';

/** SQLSTATEs and the table by which PostgreSQL says that the chain has moved on. */
const UNIQUE_VIOLATION = '23505';
const ENTRIES = 'audit_entries';

/** In a turn: transactions of the administration can overtake it. */
const ATTEMPTS = 50;
/** Whoever was overtaken asks for a turn among all processes, for so long. */
const SHARED_MS = 1_000;
const MAX_SHARED = 10_000;

/** Changes of one tenant that wait; further ones are refused. */
const MOST_WAITING = 1_000;
/** Entries that are added by one message, each with its change. */
const MOST_TOGETHER = 16;

/** A change that waits for its place in a chain. @returns its call with the entry added. */
type Addition = {
  readonly by: TenantActor;
  readonly change: AuditChange;
  readonly callWith: (entry: AuditAddition) => Call;
  /** Others may wait for a row of it while it waits for the end of the chain. */
  readonly goesAlone: boolean;
};
type Waiting = Addition & {
  readonly asked: number;
  readonly resolve: (row: Row | undefined) => void;
  readonly reject: (error: unknown) => void;
};

/**
 * Adds entries to chains within the one statement that they tell of. A writer must know the hash before its own, so
 * each process remembers where the chains ended, and its writers to one chain come one after the other; those that wait
 * together are written together, each with the hash of the one before. The one who was overtaken by another process takes turns
 * with it from then on, for a while, so that nobody is overtaken again and again.
 */
export class PostgresChains {
  readonly #sql: PostgresSql;
  readonly #macs: Macs;
  readonly #ends: ChainEnds;
  /** Until when other processes are taken to write to the chain of a tenant, too. */
  readonly #shared = new Map<string, number>();
  /** By tenant, while there is a writer. */
  readonly #waiting = new Map<string, Waiting[]>();

  /** @param settle makes the chain of a tenant one that has a sound head. */
  constructor(sql: PostgresSql, macs: Macs, settle: (tenantId: TenantId) => Promise<void>) {
    this.#sql = sql;
    this.#macs = macs;
    this.#ends = new ChainEnds(macs, settle);
  }

  /**
   * @returns the first row of what the change answers; undefined as well when the tenant is gone.
   * @throws StoreUnavailable when its turn does not come in time; what the change is refused with, when nothing happened.
   */
  record(tenantId: TenantId, addition: Addition): Promise<Row | undefined> {
    const line = this.#waiting.get(tenantId);
    if (line !== undefined && line.length >= MOST_WAITING) return Promise.reject(tooMany());
    return new Promise((resolve, reject) => {
      const waiting = { ...addition, asked: performance.now(), resolve, reject };
      if (line !== undefined) {
        line.push(waiting);
        return;
      }
      this.#waiting.set(tenantId, [waiting]);
      void this.#writeAll(tenantId);
    });
  }

  /** One writer for each tenant, as long as anybody waits. It throws nothing: each is told of its own. */
  async #writeAll(tenantId: TenantId): Promise<void> {
    const line = this.#waiting.get(tenantId) ?? [];
    while (line.length > 0) {
      const next = line.splice(0, MOST_TOGETHER).filter((waiting) => this.#isInTime(waiting));
      await this.#write(tenantId, next);
    }
    this.#waiting.delete(tenantId);
  }

  async #write(tenantId: TenantId, next: readonly Waiting[]): Promise<void> {
    try {
      const isShared = (this.#shared.get(tenantId) ?? 0) > performance.now();
      const overtaken = isShared ? next : await this.#writeWith(this.#sql, tenantId, next);
      if (overtaken.length === 0) return;
      if (!isShared) this.#noteShared(tenantId);
      const left = await this.#sql.exclusively(turnOf(tenantId), (own) => this.#insist(own, tenantId, overtaken));
      for (const { reject } of left) reject(tooMany());
    } catch (error) {
      // Nothing happens to those that were told already.
      for (const { reject } of next) reject(unavailableFor(error));
    }
  }

  async #insist(own: OneConnection, tenantId: TenantId, all: readonly Waiting[]): Promise<readonly Waiting[]> {
    let left = all;
    for (let attempt = 0; attempt < ATTEMPTS && left.length > 0; attempt++) {
      this.#ends.forget(tenantId);
      left = await this.#writeWith(own, tenantId, left);
    }
    return left;
  }

  /** @returns those that others were quicker than, to whom nothing has happened. */
  async #writeWith(sql: OneConnection, tenantId: TenantId, all: readonly Waiting[]): Promise<readonly Waiting[]> {
    const [alone, together] = [true, false].map((wanted) => all.filter(({ goesAlone }) => goesAlone === wanted)) as [Waiting[], Waiting[]];
    const undone = together.length > 1 ? await this.#writeTogether(sql, tenantId, together) : together;
    const overtaken: Waiting[] = [];
    for (const waiting of [...undone, ...alone]) {
      if (!this.#isInTime(waiting)) continue;
      await this.#writeAlone(sql, tenantId, waiting).then(waiting.resolve, (error: unknown) => {
        if (hasMoved(error)) overtaken.push(waiting);
        else waiting.reject(unavailableFor(error));
      });
    }
    return overtaken;
  }

  /** Each of those before may have waited for a database that is silent; together they are not waited for any longer. */
  #isInTime({ asked, reject }: Waiting): boolean {
    if (performance.now() - asked <= this.#sql.patienceMs) return true;
    reject(new StoreUnavailable('too many wait to change the tenant'));
    return false;
  }

  /** @returns those that did not happen, and may by themselves. */
  async #writeTogether(sql: OneConnection, tenantId: TenantId, all: readonly Waiting[]): Promise<readonly Waiting[]> {
    const before = await this.#ends.find(sql, tenantId);
    // Each of them finds out by itself that the tenant is gone, or that the chain has no sound end.
    if (before === undefined) return all;
    let head = before;
    const calls = all.map(({ by, change, callWith }) => {
      const added = append(this.#macs, tenantId, head, [{ by, at: new Date(), change }]);
      const call = callWith(additionOf(head, added.head, added.entries[0] as AuditEntry));
      head = added.head;
      return call;
    });
    // Whatever happens to the statements, their outcome is not known before they have answered.
    this.#ends.forget(tenantId);
    let outcomes: readonly Outcome[];
    try {
      outcomes = await this.#besideTurns(sql, tenantId, calls);
    } catch (error) {
      for (const { reject } of all) reject(unavailableFor(error));
      return [];
    }
    const left = all.filter(({ resolve, reject }, index) => {
      const outcome = outcomes[index];
      if (outcome === undefined || 'undone' in outcome) return true;
      if ('rows' in outcome) resolve(outcome.rows[0]);
      else if (isUnexpected(outcome.error) || hasMoved(outcome.error)) return true;
      else reject(unavailableFor(outcome.error));
      return false;
    });
    if (outcomes.every((outcome) => 'rows' in outcome)) this.#ends.remember(tenantId, head);
    return left;
  }

  async #writeAlone(sql: OneConnection, tenantId: TenantId, { by, change, callWith }: Addition): Promise<Row | undefined> {
    const before = await this.#ends.get(sql, tenantId);
    if (before === undefined) return undefined;
    const { entries, head } = append(this.#macs, tenantId, before, [{ by, at: new Date(), change }]);
    this.#ends.forget(tenantId);
    try {
      const call = callWith(additionOf(before, head, entries[0] as AuditEntry));
      const [outcome] = await this.#besideTurns(sql, tenantId, [call]);
      if (outcome !== undefined && 'error' in outcome) throw outcome.error;
      // One that was refused tells why when it is asked by itself.
      const answered = outcome !== undefined && 'rows' in outcome ? outcome.rows : undefined;
      const [row] = answered ?? (await sql.query(call.statement, call.values));
      this.#ends.remember(tenantId, row === undefined ? before : head);
      return row;
    } catch (error) {
      if (!hasMoved(error) && isUnexpected(error)) this.#ends.remember(tenantId, before);
      throw error;
    }
  }

  /** Who has not been overtaken yet waits for the one who was. */
  async #besideTurns(sql: OneConnection, tenantId: TenantId, calls: readonly Call[]): Promise<readonly Outcome[]> {
    if (sql !== this.#sql) return sql.together(calls);
    const [, ...outcomes] = await sql.together([{ statement: BESIDE_TURNS, values: [turnOf(tenantId)] }, ...calls]);
    return outcomes;
  }

  /** Others have written to these chains. */
  forget(scopes?: readonly string[]): void {
    if (scopes === undefined) this.#ends.clear();
    else for (const scope of scopes) this.#ends.forget(scope);
  }

  #noteShared(tenantId: TenantId): void {
    if (this.#shared.size >= MAX_SHARED) this.#shared.clear();
    this.#shared.set(tenantId, performance.now() + SHARED_MS);
  }
}

const turnOf = (tenantId: TenantId) => `audit log of ${tenantId}`;

function tooMany(): Failure {
  const message = 'too many are changing the same at this moment; try again';
  return new Failure('unavailable', { message, retryAfterSeconds: 1 });
}

function hasMoved(error: unknown): boolean {
  const { code, table, message } = error as { code?: unknown; table?: unknown; message?: unknown };
  return (table === ENTRIES && code === UNIQUE_VIOLATION) || (isUnexpected(error) && message === 'audit');
}
