import { type AuditHead, findHeadProblem } from '../../../domain/audit/chain.ts';
import type { Macs } from '../../../domain/audit/macs.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { readHead } from '../rows/audit-head.ts';
import type { Statement } from '../statement.ts';
import type { OneConnection } from './sql.ts';

const READ_CHAIN: Statement = {
  name: 'read_chain',
  text: `select h.sequence, h.hash, h.seal,
     coalesce((select max(sequence) from audit_entries e where e.tenant_id = t.id), 0) as last
   from tenants t left join audit_heads h on h.tenant_id = t.id where t.id = $1`,
};

/** Tenants whose head a process remembers. */
const MAX_KNOWN = 10_000;
/** Times that a chain whose end somebody has altered is made sound again. */
const ATTEMPTS = 50;

/** Where the chains of tenants end, as far as this process knows. */
export class ChainEnds {
  readonly #macs: Macs;
  readonly #settle: (tenantId: TenantId) => Promise<void>;
  readonly #heads = new Map<string, AuditHead>();

  /** @param settle makes the chain of a tenant one that has a sound head. */
  constructor(macs: Macs, settle: (tenantId: TenantId) => Promise<void>) {
    this.#macs = macs;
    this.#settle = settle;
  }

  /** @returns undefined where there is no tenant, or no end that anybody may go on from. */
  async find(sql: OneConnection, tenantId: TenantId): Promise<AuditHead | undefined> {
    const known = this.#heads.get(tenantId);
    if (known !== undefined) return known;
    const [row] = await sql.query(READ_CHAIN, [tenantId]);
    const head = row && readHead(row);
    const found = { head, lastSequence: Number(row?.['last']) };
    return findHeadProblem(this.#macs, tenantId, found) === undefined ? head : undefined;
  }

  /** @returns an end that one may go on from; undefined when there is no such tenant. */
  async get(sql: OneConnection, tenantId: TenantId): Promise<AuditHead | undefined> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const head = await this.find(sql, tenantId);
      if (head !== undefined) return head;
      if ((await sql.query(READ_CHAIN, [tenantId])).length === 0) return undefined;
      await this.#settle(tenantId);
    }
    throw new Error('The head of the audit log does not stay as it is written.');
  }

  remember(tenantId: TenantId, head: AuditHead): void {
    if (this.#heads.size >= MAX_KNOWN) this.#heads.clear();
    this.#heads.set(tenantId, head);
  }

  /** The database may not be what it was. */
  clear(): void {
    this.#heads.clear();
  }

  /** Somebody else may have written to the chain. */
  forget(scope: string): void {
    this.#heads.delete(scope);
  }
}
