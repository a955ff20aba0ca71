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
  type TenantWriting,
  type Writing,
} from '../../../application/ports/repositories.ts';
import type { Macs } from '../../../domain/audit/macs.ts';
import { resourceOf } from '../../../domain/resources.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { Quotas } from '../../../domain/tenants/quotas.ts';
import type { ConfiguredKind } from '../../../domain/tenants/revisions.ts';
import type { ClientMacs } from '../client-macs.ts';
import { reaching } from '../database-faults.ts';
import type { Dialect } from '../opening/opened.ts';
import type { SeldomRead } from '../readers.ts';
import { appendEntries, auditLog, serviceAuditLog } from './audit-chain.ts';
import { auditedService, auditedTenant } from './audited-repositories.ts';
import { unlessMissing } from './existing.ts';
import { Journal } from './journal.ts';
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

  forTenant<T>(tenantId: TenantId, work: (own: TenantRepositories) => Promise<T>, writing: TenantWriting): Promise<T> {
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
  async #transaction<T>(writing: Writing, work: (em: EntityManager, journal: Journal) => Promise<T>): Promise<T> {
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

/**
 * Looks in the transaction that is about to write. Nobody else can write in between: what asks for this runs alone,
 * and every other write of the tenant waits for the end of the transaction before its own.
 * @throws Failure `conflict`.
 */
async function assertHolds(writing: Writing | undefined, own: TenantReader): Promise<void> {
  const precondition = preconditionOf(writing);
  if (precondition === undefined) return;
  const { repository } = resourceOf(precondition.kind);
  assertAffected(precondition, await findIn(own[repository as keyof TenantReader], precondition.id));
}

/** The same for an account that manages tenants, which removes one. */
async function assertTenantHolds(writing: Writing | undefined, all: ServiceReader): Promise<void> {
  const precondition = preconditionOf(writing);
  if (precondition === undefined) return;
  if (precondition.kind !== 'tenant') throw new Error('Only tenants are edited for the whole service.');
  assertAffected(precondition, await all.tenants.find(precondition.id as never));
}

function assertAffected({ holds }: Precondition, found: object | undefined): void {
  if (holds(found)) return;
  throw new Failure(
    'conflict',
    found === undefined
      ? 'there is nothing here that If-Match could mean; leave it out to make something'
      : 'somebody changed this since you read it; read it again and repeat the change',
  );
}

/** A repository finds what may be missing, or gets what is there. */
function findIn(repository: object, id: string): Promise<object | undefined> {
  const { find, get } = repository as { find?: Read; get: Read };
  return unlessMissing((find ?? get).call(repository, id));
}

type Read = (id: string) => Promise<object | undefined>;
