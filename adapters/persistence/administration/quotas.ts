import type { EntityManager } from '@mikro-orm/core';
import type { DocumentKind } from '../../../domain/resources.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { assertBytes, assertCount, isCounted, isWeighed, type Quotas, WEIGHED } from '../../../domain/tenants/quotas.ts';
import { tableOf } from '../rows/document-tables.ts';

/**
 * Looks after a write whether the tenant has more than it may. Every writer holds the row of its tenant by then, so what
 * is counted is all there is; the one who has too much is rolled back.
 */
export class QuotaKeeper {
  readonly #em: EntityManager;
  readonly #tenantId: TenantId;
  readonly #quotas: Quotas | undefined;

  /** @param quotas undefined where nothing is kept from growing. */
  constructor(em: EntityManager, tenantId: TenantId, quotas: Quotas | undefined) {
    this.#em = em;
    this.#tenantId = tenantId;
    this.#quotas = quotas;
  }

  /** Bytes of a document before it is written anew; undefined when there is none. */
  async lengthOf(kind: DocumentKind, id: string): Promise<number | undefined> {
    if (this.#quotas === undefined) return undefined;
    const sql = `select octet_length(body) as n from ${tableOf(kind)} where tenant_id = ? and id = ?`;
    const [found] = await this.#query(sql, [this.#tenantId, id]);
    return found && Number(found.n);
  }

  /**
   * Whoever has too much may still write what is smaller.
   * @throws Failure `conflict`.
   */
  async assertBytesFit(kind: DocumentKind, length: number, before: number | undefined): Promise<void> {
    const quotas = this.#quotas;
    if (quotas === undefined) return;
    if (before === undefined && isCounted(kind)) assertCount(kind, await this.#count(tableOf(kind)), quotas);
    if (isWeighed(kind) && length > (before ?? 0)) assertBytes(await this.#bytes(), quotas);
  }

  /** @throws Failure `conflict`. */
  async assertClientsFit(): Promise<void> {
    if (this.#quotas !== undefined) assertCount('client', await this.#count('clients'), this.#quotas);
  }

  async #count(table: string): Promise<number> {
    const [found] = await this.#query(`select count(*) as n from ${table} where tenant_id = ?`, [this.#tenantId]);
    return Number(found?.n ?? 0);
  }

  async #bytes(): Promise<number> {
    const sums = WEIGHED.map((kind) => `select coalesce(sum(octet_length(body)), 0) as n from ${tableOf(kind)} where tenant_id = ?`);
    const found = await this.#query(
      sums.join(' union all '),
      WEIGHED.map(() => this.#tenantId),
    );
    return found.reduce((sum, { n }) => sum + Number(n), 0);
  }

  #query(sql: string, parameters: readonly string[]): Promise<{ readonly n: unknown }[]> {
    const transaction = this.#em.getTransactionContext();
    return this.#em.getConnection().execute(sql, [...parameters], 'all', transaction);
  }
}
