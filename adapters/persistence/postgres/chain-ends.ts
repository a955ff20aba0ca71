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

const MAX_CACHED_HEADS = 10_000;
const MAX_REPAIR_ATTEMPTS = 50;

export class ChainEnds {
  readonly #macs: Macs;
  readonly #settle: (tenantId: TenantId) => Promise<void>;
  readonly #heads = new Map<string, AuditHead>();

  /** @param settle gives the chain of a tenant a valid head. */
  constructor(macs: Macs, settle: (tenantId: TenantId) => Promise<void>) {
    this.#macs = macs;
    this.#settle = settle;
  }

  /** @returns undefined if there is no tenant, or no valid end. */
  async find(sql: OneConnection, tenantId: TenantId): Promise<AuditHead | undefined> {
    const cachedHead = this.#heads.get(tenantId);
    if (cachedHead !== undefined) return cachedHead;
    const [row] = await sql.query(READ_CHAIN, [tenantId]);
    const head = row && readHead(row);
    const storedChain = { head, lastSequence: Number(row?.['last']) };
    return findHeadProblem(this.#macs, tenantId, storedChain) === undefined ? head : undefined;
  }

  /** @returns a valid end; undefined if there is no such tenant. */
  async get(sql: OneConnection, tenantId: TenantId): Promise<AuditHead | undefined> {
    for (let attempt = 0; attempt < MAX_REPAIR_ATTEMPTS; attempt++) {
      const head = await this.find(sql, tenantId);
      if (head !== undefined) return head;
      if ((await sql.query(READ_CHAIN, [tenantId])).length === 0) return undefined;
      await this.#settle(tenantId);
    }
    throw new Error('The head of the audit log was changed after it was written.');
  }

  remember(tenantId: TenantId, head: AuditHead): void {
    if (this.#heads.size >= MAX_CACHED_HEADS) this.#heads.clear();
    this.#heads.set(tenantId, head);
  }

  /** Discards the heads after the database may have been rolled back. */
  clear(): void {
    this.#heads.clear();
  }

  /** Discards a head after another process may have written to the chain. */
  forget(scope: string): void {
    this.#heads.delete(scope);
  }
}
