import { StoreUnavailable } from '../../../application/ports/store.ts';
import type { AuditChange, AuditEntry, TenantActor } from '../../../domain/audit/audit-entry.ts';
import { type AuditHead, append, headFault } from '../../../domain/audit/chain.ts';
import type { Macs } from '../../../domain/audit/macs.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { Turns } from '../../../domain/shared/turns.ts';
import { isUnexpected, unavailableFor } from '../database-faults.ts';
import { readHead } from '../rows/audit-head.ts';
import type { Fields } from '../rows/columns.ts';
import type { Row, Statement } from '../statement.ts';
import type { Outcome } from './call-groups.ts';
import type { Call, PostgresSql } from './sql.ts';

/** SQLSTATEs and the table by which PostgreSQL says that the chain has moved on. */
const UNIQUE_VIOLATION = '23505';
const ENTRIES = 'audit_entries';

/** `audit_addition`: where its writer takes the chain to end, the entry, and where the chain ends with it. */
export type AuditAddition = Fields;

function additionOf(before: AuditHead, after: AuditHead, entry: AuditEntry): AuditAddition {
  const { at, actor, action, kind, target, detail } = entry;
  const { sequence, hash, seal } = after;
  return [
    before.sequence,
    before.hash,
    sequence,
    hash,
    seal,
    at.getTime(),
    actor,
    action,
    kind,
    target,
    detail,
  ];
}

const READ_CHAIN: Statement = {
  name: 'read_chain',
  text: `select h.sequence, h.hash, h.seal,
     coalesce((select max(sequence) from audit_entries e where e.tenant_id = t.id), 0) as last
   from tenants t left join audit_heads h on h.tenant_id = t.id where t.id = $1`,
};

/** Tenants whose head a process remembers. */
const MAX_KNOWN = 10_000;
/** Others who write to the chain at the same moment, in other processes. */
const ATTEMPTS = 50;

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
 * together are written together, each with the hash of the one before. The one who was overtaken by another process reads the head
 * and tries again.
 */
export class PostgresChains {
  readonly #sql: PostgresSql;
  readonly #macs: Macs;
  readonly #settle: (tenantId: TenantId) => Promise<void>;
  readonly #heads = new Map<string, AuditHead>();
  readonly #turns = new Turns(1_000);
  /** By tenant. */
  readonly #waiting = new Map<string, Waiting[]>();

  /** @param settle makes the chain of a tenant one that has a sound head. */
  constructor(sql: PostgresSql, macs: Macs, settle: (tenantId: TenantId) => Promise<void>) {
    this.#sql = sql;
    this.#macs = macs;
    this.#settle = settle;
  }

  /**
   * @returns the first row of what the change answers; undefined as well when the tenant is gone.
   * @throws StoreUnavailable when its turn does not come in time; what the change is refused with, when nothing happened.
   */
  record(tenantId: TenantId, addition: Addition): Promise<Row | undefined> {
    return new Promise((resolve, reject) => {
      const waiting = { ...addition, asked: performance.now(), resolve, reject };
      const line = this.#waiting.get(tenantId) ?? [];
      this.#waiting.set(tenantId, line);
      line.push(waiting);
      this.#turns
        .take(tenantId, () => this.#writeNext(tenantId))
        .catch((error: unknown) => {
          // It did not get into line, or is not in it any more and was told already.
          const place = line.indexOf(waiting);
          if (place !== -1) line.splice(place, 1);
          reject(error);
        });
    });
  }

  /** Whoever waits when a turn comes goes with it; the turns of those find nothing left to do. */
  async #writeNext(tenantId: TenantId): Promise<void> {
    const line = this.#waiting.get(tenantId) ?? [];
    const next = line.splice(0, MOST_TOGETHER).filter((waiting) => this.#isInTime(waiting));
    if (line.length === 0) this.#waiting.delete(tenantId);
    const [alone, together] = [true, false].map((wanted) =>
      next.filter(({ goesAlone }) => goesAlone === wanted),
    ) as [Waiting[], Waiting[]];
    const undone = together.length > 1 ? await this.#writeTogether(tenantId, together) : together;
    const left = [...undone, ...alone];
    for (const waiting of left) {
      if (!this.#isInTime(waiting)) continue;
      await this.#writeAlone(tenantId, waiting).then(waiting.resolve, waiting.reject);
    }
  }

  /** Each of those before may have waited for a database that is silent; together they are not waited for any longer. */
  #isInTime({ asked, reject }: Waiting): boolean {
    if (performance.now() - asked <= this.#sql.patienceMs) return true;
    reject(new StoreUnavailable('too many wait to change the tenant'));
    return false;
  }

  /** @returns those that did not happen, and may by themselves. */
  async #writeTogether(tenantId: TenantId, all: readonly Waiting[]): Promise<readonly Waiting[]> {
    const before = this.#heads.get(tenantId);
    // Who does not know where the chain ends writes one entry first.
    if (before === undefined) return all;
    let head = before;
    const calls = all.map(({ by, change, callWith }) => {
      const added = append(this.#macs, tenantId, head, [{ by, at: new Date(), change }]);
      const call = callWith(additionOf(head, added.head, added.entries[0] as AuditEntry));
      head = added.head;
      return call;
    });
    // Whatever happens to the statements, their outcome is not known before they have answered.
    this.#heads.delete(tenantId);
    let outcomes: readonly Outcome[];
    try {
      outcomes = await this.#sql.together(calls);
    } catch (error) {
      for (const { reject } of all) reject(error);
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
    if (outcomes.every((outcome) => 'rows' in outcome)) this.#remember(tenantId, head);
    return left;
  }

  async #writeAlone(tenantId: TenantId, { by, change, callWith }: Addition): Promise<Row | undefined> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const before = this.#heads.get(tenantId) ?? (await this.#read(tenantId));
      if (before === undefined) return undefined;
      const { entries, head } = append(this.#macs, tenantId, before, [{ by, at: new Date(), change }]);
      this.#heads.delete(tenantId);
      try {
        const { statement, values } = callWith(additionOf(before, head, entries[0] as AuditEntry));
        const [row] = await this.#sql.query(statement, values);
        this.#remember(tenantId, row === undefined ? before : head);
        return row;
      } catch (error) {
        if (hasMoved(error)) continue;
        if (isUnexpected(error)) this.#remember(tenantId, before);
        throw error;
      }
    }
    throw new Failure('unavailable', { message: 'too many others are changing the tenant; try again' });
  }

  /** Others have written to these chains. */
  forget(scopes: readonly string[] = [...this.#heads.keys()]): void {
    for (const scope of scopes) this.#heads.delete(scope);
  }

  /** @returns undefined when there is no such tenant. */
  async #read(tenantId: TenantId): Promise<AuditHead | undefined> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const [row] = await this.#sql.query(READ_CHAIN, [tenantId]);
      if (row === undefined) return undefined;
      const head = readHead(row);
      const isSound =
        headFault(this.#macs, tenantId, { head, lastSequence: Number(row['last']) }) === undefined;
      if (head !== undefined && isSound) return head;
      await this.#settle(tenantId);
    }
    throw new Error('The head of the audit log does not stay as it is written.');
  }

  #remember(tenantId: TenantId, head: AuditHead): void {
    if (this.#heads.size >= MAX_KNOWN) this.#heads.clear();
    this.#heads.set(tenantId, head);
  }
}

function hasMoved(error: unknown): boolean {
  const { code, table, message } = error as { code?: unknown; table?: unknown; message?: unknown };
  return (table === ENTRIES && code === UNIQUE_VIOLATION) || (isUnexpected(error) && message === 'audit');
}
