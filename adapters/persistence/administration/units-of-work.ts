import type { EntityManager, MikroORM } from '@mikro-orm/core';
import type { Cipher } from '../../../application/ports/cipher.ts';
import {
  preconditionOf,
  type ServiceAuditLog,
  type ServiceRepositories,
  type TenantRepositories,
  type TenantWriting,
  type Writing,
} from '../../../application/ports/repositories.ts';
import type { Macs } from '../../../domain/audit/macs.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { Quotas } from '../../../domain/tenants/quotas.ts';
import type { ConfiguredKind } from '../../../domain/tenants/revisions.ts';
import type { ClientMacs } from '../client-macs.ts';
import { reaching } from '../database-faults.ts';
import type { Dialect } from '../opened.ts';
import type { SeldomRead } from '../readers.ts';
import { appendEntries, auditLog, serviceAuditLog } from './audit-chain.ts';
import { auditedService, auditedTenant } from './audited-repositories.ts';
import { Journal } from './journal.ts';
import { assertHolds, assertTenantHolds } from './preconditions.ts';
import { tenantRepositories } from './repositories.ts';
import { lockTenant, raiseRevision } from './revisions.ts';
import { serviceRepositories } from './service-repositories.ts';
import { trustListRepository } from './trust-list-repository.ts';

type Parts = {
  readonly dialect: Dialect;
  readonly orm: MikroORM;
  readonly cipher: Cipher;
  readonly macs: Macs;
  readonly clientMacs: ClientMacs;
  readonly quotas: Quotas | undefined;
  readonly exclusively: <T>(work: () => Promise<T>) => Promise<T>;
  /** What is remembered of the end of these chains is out of date. */
  readonly moved: (scopes: readonly string[]) => void;
};

/** What administrators write: transactions over the repositories, with the audit log. */
export class UnitsOfWork {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  forTenant<T>(
    tenantId: TenantId,
    work: (own: TenantRepositories) => Promise<T>,
    writing: TenantWriting,
  ): Promise<T> {
    const { cipher, clientMacs, quotas } = this.#parts;
    return this.#transaction(writing, async (em, journal) => {
      const condition = preconditionOf(writing);
      if (writing.alone || condition !== undefined) await this.#lock(em, tenantId);
      em.setFilterParams('tenant', { tenantId });
      const raised = new Map<ConfiguredKind, Promise<void>>();
      // Before the first write: the one who writes to a tenant locks its row before any other of its own.
      const touch = (kind: ConfiguredKind) => {
        const raising = raised.get(kind) ?? raiseRevision(em, tenantId, kind, { isFirst: raised.size === 0 });
        raised.set(kind, raising);
        return raising;
      };
      const plain = tenantRepositories(em, { cipher, clientMacs }, tenantId, touch, quotas);
      await assertHolds(writing, plain);
      return work(auditedTenant(plain, tenantId, journal, now));
    });
  }

  forService<T>(work: (all: ServiceRepositories) => Promise<T>, writing: Writing): Promise<T> {
    const { cipher, clientMacs, quotas } = this.#parts;
    return this.#transaction(writing, async (em, journal) => {
      const plain = serviceRepositories(em, { cipher, clientMacs }, quotas);
      const condition = preconditionOf(writing);
      if (condition !== undefined) await this.#lock(em, condition.id as TenantId);
      await assertTenantHolds(writing, plain);
      return work(auditedService(plain, journal, now));
    });
  }

  /** Outside of transactions. */
  seldomRead(tenantId: TenantId): SeldomRead {
    const em = this.#parts.orm.em.fork({ clear: true });
    em.setFilterParams('tenant', { tenantId });
    const neverWrites = () => Promise.reject(new Error('Who only reads does not write.'));
    return {
      trustLists: trustListRepository(em, this.#parts.cipher, tenantId, neverWrites),
      audit: auditLog(em, tenantId),
    };
  }

  ofService(): { readonly audit: ServiceAuditLog } {
    return { audit: serviceAuditLog(this.#parts.orm.em.fork({ clear: true })) };
  }

  /** Lets one transaction of the tenant on; the others that lock wait for its end. SQLite has one at a time anyway. */
  async #lock(em: EntityManager, tenantId: TenantId): Promise<void> {
    if (this.#parts.dialect === 'postgres') await lockTenant(em, tenantId);
  }

  /** The audit log comes last, so that its entries lock nothing while the work goes on. */
  async #transaction<T>(
    writing: Writing,
    work: (em: EntityManager, journal: Journal) => Promise<T>,
  ): Promise<T> {
    const { dialect, orm, macs, exclusively, moved } = this.#parts;
    const journal = new Journal(writing.by);
    const transaction = () =>
      orm.em.fork({ clear: true }).transactional(async (em) => {
        if (dialect === 'sqlite') await beginWriting(em);
        const done = await work(em, journal);
        await journal.write(now(), (scope, additions) => appendEntries(em, macs, scope, additions));
        return done;
      });
    const result = await exclusively(() => reaching(transaction));
    moved(journal.scopes);
    return result;
  }
}

const now = () => new Date();

/** A transaction that has read cannot go on to write after a command has, so it takes its place before. */
async function beginWriting(em: EntityManager): Promise<void> {
  await em.getConnection().execute('delete from leases where 0', [], 'run', em.getTransactionContext());
}
