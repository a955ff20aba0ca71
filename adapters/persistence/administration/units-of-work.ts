import type { EntityManager, MikroORM } from '@mikro-orm/core';
import type { Cipher } from '../../../application/ports/cipher.ts';
import {
  type Precondition,
  preconditionOf,
  type ServiceAuditLog,
  type ServiceReader,
  type ServiceRepositories,
  type TenantReader,
  type TenantRepositories,
  type TenantWriteOptions,
  type WriteOptions,
} from '../../../application/ports/repositories.ts';
import type { Macs } from '../../../domain/audit/macs.ts';
import { resourceOf } from '../../../domain/resources.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { Quotas } from '../../../domain/tenants/quotas.ts';
import type { ConfiguredKind } from '../../../domain/tenants/revisions.ts';
import type { ClientMacs } from '../client-macs.ts';
import { mapDatabaseErrors } from '../database-faults.ts';
import type { Dialect } from '../opening/open-driver.ts';
import type { SeldomRead } from '../readers.ts';
import { appendEntries, auditLog, serviceAuditLog } from './audit-chain.ts';
import { auditedService, auditedTenant } from './audited-repositories.ts';
import { Journal } from './journal.ts';
import { undefinedIfNotFound } from './not-found.ts';
import { tenantRepositories } from './repositories.ts';
import { lockTenant, raiseRevision } from './revisions.ts';
import { serviceRepositories } from './service-repositories.ts';
import { trustListRepository } from './trust-list-repository.ts';

type Dependencies = {
  readonly dialect: Dialect;
  readonly orm: MikroORM;
  readonly cipher: Cipher;
  readonly macs: Macs;
  readonly clientMacs: ClientMacs;
  readonly quotas: Quotas | undefined;
  readonly exclusively: <T>(work: () => Promise<T>) => Promise<T>;
  /** Invalidates the cached ends of these chains. */
  readonly moved: (scopes: readonly string[]) => void;
};

/** Transactions of the administrative interface over the repositories, with the audit log. */
export class UnitsOfWork {
  readonly #dependencies: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
  }

  forTenant<T>(tenantId: TenantId, work: (repositories: TenantRepositories) => Promise<T>, writing: TenantWriteOptions): Promise<T> {
    const { cipher, clientMacs, quotas } = this.#dependencies;
    return this.#transaction(writing, async (em, journal) => {
      const condition = preconditionOf(writing);
      if (writing.exclusive || condition !== undefined) await this.#lock(em, tenantId);
      em.setFilterParams('tenant', { tenantId });
      const raised = new Map<ConfiguredKind, Promise<void>>();
      // Runs before the first write: a writer locks the tenant's row before any other row of the tenant.
      const touch = (kind: ConfiguredKind) => {
        const raising = raised.get(kind) ?? raiseRevision(em, tenantId, kind, { isFirst: raised.size === 0 });
        raised.set(kind, raising);
        return raising;
      };
      const plain = tenantRepositories(em, { cipher, clientMacs }, tenantId, touch, quotas);
      await assertPrecondition(writing, plain);
      return work(auditedTenant(plain, tenantId, journal, now));
    });
  }

  forService<T>(work: (repositories: ServiceRepositories) => Promise<T>, writing: WriteOptions): Promise<T> {
    const { cipher, clientMacs, quotas } = this.#dependencies;
    return this.#transaction(writing, async (em, journal) => {
      const plain = serviceRepositories(em, { cipher, clientMacs }, quotas);
      const condition = preconditionOf(writing);
      if (condition !== undefined) await this.#lock(em, condition.id as TenantId);
      await assertTenantPrecondition(writing, plain);
      return work(auditedService(plain, journal, now));
    });
  }

  /** Repositories outside of transactions, for reading only. */
  seldomRead(tenantId: TenantId): SeldomRead {
    const em = this.#dependencies.orm.em.fork({ clear: true });
    em.setFilterParams('tenant', { tenantId });
    const neverWrites = () => Promise.reject(new Error('A read-only unit of work must not write.'));
    return { trustLists: trustListRepository(em, this.#dependencies.cipher, tenantId, neverWrites), audit: auditLog(em, tenantId) };
  }

  ofService(): { readonly audit: ServiceAuditLog } {
    return { audit: serviceAuditLog(this.#dependencies.orm.em.fork({ clear: true })) };
  }

  /** Serializes the transactions of the tenant that lock. SQLite runs one transaction at a time anyway. */
  async #lock(em: EntityManager, tenantId: TenantId): Promise<void> {
    if (this.#dependencies.dialect === 'postgres') await lockTenant(em, tenantId);
  }

  /** The audit log is written last, so that its rows are not locked while the work runs. */
  async #transaction<T>(writing: WriteOptions, work: (em: EntityManager, journal: Journal) => Promise<T>): Promise<T> {
    const { dialect, orm, macs, exclusively, moved } = this.#dependencies;
    const journal = new Journal(writing.by);
    const transaction = () =>
      orm.em.fork({ clear: true }).transactional(async (em) => {
        if (dialect === 'sqlite') await beginWriting(em);
        const done = await work(em, journal);
        await journal.write(now(), (scope, additions) => appendEntries(em, macs, scope, additions));
        return done;
      });
    const result = await exclusively(() => mapDatabaseErrors(transaction));
    moved(journal.scopes);
    return result;
  }
}

const now = () => new Date();

/** SQLite cannot upgrade a transaction that has read after another process wrote, so the write lock is taken first. */
async function beginWriting(em: EntityManager): Promise<void> {
  await em.getConnection().execute('delete from leases where 0', [], 'run', em.getTransactionContext());
}

/**
 * Checks the precondition in the transaction that is about to write. Nothing can be written in between: such a transaction runs alone, and
 * all other writes of the tenant wait for its end.
 * @throws Failure `conflict`.
 */
async function assertPrecondition(writing: WriteOptions | undefined, repositories: TenantReader): Promise<void> {
  const precondition = preconditionOf(writing);
  if (precondition === undefined) return;
  const { repository } = resourceOf(precondition.kind);
  assertConditionHolds(precondition, await findIn(repositories[repository as keyof TenantReader], precondition.id));
}

/** Checks the precondition of an account that manages tenants, which removes one. */
async function assertTenantPrecondition(writing: WriteOptions | undefined, repositories: ServiceReader): Promise<void> {
  const precondition = preconditionOf(writing);
  if (precondition === undefined) return;
  if (precondition.kind !== 'tenant') throw new Error('Only tenants are edited for the whole service.');
  assertConditionHolds(precondition, await repositories.tenants.find(precondition.id as never));
}

function assertConditionHolds({ holds }: Precondition, resource: object | undefined): void {
  if (holds(resource)) return;
  throw new Failure(
    'conflict',
    resource === undefined
      ? 'there is no object for If-Match; remove the header to create the object'
      : 'this was changed since you read it; read it again and repeat the change',
  );
}

/** Repositories have `find` for resources that may be missing; otherwise they have `get`. */
function findIn(repository: object, id: string): Promise<object | undefined> {
  const { find, get } = repository as { find?: ReadById; get: ReadById };
  return undefinedIfNotFound((find ?? get).call(repository, id));
}

type ReadById = (id: string) => Promise<object | undefined>;
