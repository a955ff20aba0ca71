import type { EntityManager } from '@mikro-orm/core';
import type { DocumentKind } from '../../../domain/resources.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { assertCountQuota, assertSizeQuota, isCountedKind, isSizedKind, type Quotas, SIZED_KINDS } from '../../../domain/tenants/quotas.ts';
import { tableOf } from '../rows/document-tables.ts';

/**
 * Checks after each write that the tenant is within its quotas. The writer holds the tenant's row lock, so the count is exact; a write that
 * exceeds a quota is rolled back.
 */
export class QuotaGuard {
  readonly #em: EntityManager;
  readonly #tenantId: TenantId;
  readonly #quotas: Quotas | undefined;

  /** @param quotas undefined if nothing is limited. */
  constructor(em: EntityManager, tenantId: TenantId, quotas: Quotas | undefined) {
    this.#em = em;
    this.#tenantId = tenantId;
    this.#quotas = quotas;
  }

  /** Returns the size of the document in bytes before the write; undefined if there is none. */
  async lengthOf(kind: DocumentKind, id: string): Promise<number | undefined> {
    if (this.#quotas === undefined) return undefined;
    const sql = `select octet_length(body) as n from ${tableOf(kind)} where tenant_id = ? and id = ?`;
    const [row] = await this.#query(sql, [this.#tenantId, id]);
    return row && Number(row.n);
  }

  /**
   * A tenant over its quota may still write a document that is smaller than before.
   * @throws Failure `conflict`.
   */
  async assertBytesFit(kind: DocumentKind, length: number, previousLength: number | undefined): Promise<void> {
    const quotas = this.#quotas;
    if (quotas === undefined) return;
    if (previousLength === undefined && isCountedKind(kind)) assertCountQuota(kind, await this.#count(tableOf(kind)), quotas);
    if (isSizedKind(kind) && length > (previousLength ?? 0)) assertSizeQuota(await this.#bytes(), quotas);
  }

  /** @throws Failure `conflict`. */
  async assertClientsFit(): Promise<void> {
    if (this.#quotas !== undefined) assertCountQuota('client', await this.#count('clients'), this.#quotas);
  }

  async #count(table: string): Promise<number> {
    const [row] = await this.#query(`select count(*) as n from ${table} where tenant_id = ?`, [this.#tenantId]);
    return Number(row?.n ?? 0);
  }

  async #bytes(): Promise<number> {
    const sums = SIZED_KINDS.map((kind) => `select coalesce(sum(octet_length(body)), 0) as n from ${tableOf(kind)} where tenant_id = ?`);
    const rows = await this.#query(
      sums.join(' union all '),
      SIZED_KINDS.map(() => this.#tenantId),
    );
    return rows.reduce((sum, { n }) => sum + Number(n), 0);
  }

  #query(sql: string, parameters: readonly string[]): Promise<{ readonly n: unknown }[]> {
    const transaction = this.#em.getTransactionContext();
    return this.#em.getConnection().execute(sql, [...parameters], 'all', transaction);
  }
}
