import { StoreUnavailable } from '../../../application/ports/store.ts';
import type { AuditChange, AuditEntry, TenantActor } from '../../../domain/audit/audit-entry.ts';
import { type AuditHead, append, headFault } from '../../../domain/audit/chain.ts';
import type { Macs } from '../../../domain/audit/macs.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { Turns } from '../../../domain/shared/turns.ts';
import { isUnexpected } from '../database-faults.ts';
import { readHead } from '../rows/audit-head.ts';
import type { Fields } from '../rows/columns.ts';
import type { Row, Statement } from '../statement.ts';
import type { PostgresSql } from './sql.ts';

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

/**
 * Adds entries to chains within the one statement that they tell of. A writer must know the hash before its own, so
 * each process remembers where the chains ended, and its writers to one chain come one after the other; the one who was
 * overtaken by another process reads the head and tries again.
 */
export class PostgresChains {
  readonly #sql: PostgresSql;
  readonly #macs: Macs;
  readonly #settle: (tenantId: TenantId) => Promise<void>;
  readonly #heads = new Map<string, AuditHead>();
  readonly #turns = new Turns(1_000);

  /** @param settle makes the chain of a tenant one that has a sound head. */
  constructor(sql: PostgresSql, macs: Macs, settle: (tenantId: TenantId) => Promise<void>) {
    this.#sql = sql;
    this.#macs = macs;
    this.#settle = settle;
  }

  /**
   * @param write applies the change with this addition to the chain; it throws when nothing happened.
   * @returns what `write` returned; undefined as well when the tenant is gone.
   * @throws StoreUnavailable when its turn does not come in time.
   */
  record(
    tenantId: TenantId,
    by: TenantActor,
    change: AuditChange,
    write: (entry: AuditAddition) => Promise<Row | undefined>,
  ): Promise<Row | undefined> {
    const asked = performance.now();
    return this.#turns.take(tenantId, async () => {
      // Each of those before may have waited for a database that is silent; together they are not waited for any longer.
      if (performance.now() - asked > this.#sql.patienceMs) {
        throw new StoreUnavailable('too many wait to change the tenant');
      }
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const before = this.#heads.get(tenantId) ?? (await this.#read(tenantId));
        if (before === undefined) return undefined;
        const { entries, head } = append(this.#macs, tenantId, before, [{ by, at: new Date(), change }]);
        // Whatever happens to the statement, its outcome is not known before it has answered.
        this.#heads.delete(tenantId);
        try {
          const row = await write(additionOf(before, head, entries[0] as AuditEntry));
          this.#remember(tenantId, row === undefined ? before : head);
          return row;
        } catch (error) {
          if (hasMoved(error)) continue;
          if (isUnexpected(error)) this.#remember(tenantId, before);
          throw error;
        }
      }
      throw new Failure('unavailable', { message: 'too many others are changing the tenant; try again' });
    });
  }

  /** Others have written to these chains. */
  forget(scopes: readonly string[]): void {
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
