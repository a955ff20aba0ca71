import type { EntityManager, MikroORM } from '@mikro-orm/core';
import type { Cipher } from '../../application/ports/cipher.ts';
import type { Maintenance } from '../../application/ports/maintenance.ts';
import {
  preconditionOf,
  type ServiceReader,
  type ServiceRepositories,
  type TenantReader,
  type TenantRepositories,
  type TenantWriting,
  type Writing,
} from '../../application/ports/repositories.ts';
import {
  type ListKeeping,
  type NotedSession,
  Store,
  type TenantReads,
} from '../../application/ports/store.ts';
import type { Macs } from '../../domain/audit/macs.ts';
import type { Change, Committed } from '../../domain/changes/change.ts';
import type { SessionTransition } from '../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import type { Quotas } from '../../domain/tenants/quotas.ts';
import type { ConfiguredKind } from '../../domain/tenants/revisions.ts';
import { appendEntries, beginLog } from './administration/audit-chain.ts';
import { auditMacs } from './administration/audit-keys.ts';
import { auditedService, auditedTenant } from './administration/audited-repositories.ts';
import { checkCipher } from './administration/check-cipher.ts';
import { Journal } from './administration/journal.ts';
import { assertHolds, assertTenantHolds } from './administration/preconditions.ts';
import { tenantRepositories } from './administration/repositories.ts';
import { raiseRevision } from './administration/revisions.ts';
import { serviceRepositories } from './administration/service-repositories.ts';
import { type DatabaseSettings, dialectOf, openDatabase } from './database.ts';
import { reaching } from './database-faults.ts';
import { type DialectPaths, onPostgres, onSqlite } from './dialect-paths.ts';
import { listKeeping, tenantReads } from './reads.ts';
import { lockSqlite } from './sqlite/lock.ts';

/** The store on PostgreSQL or SQLite. */
export class OrmStore extends Store {
  readonly #orm: MikroORM;
  readonly #cipher: Cipher;
  /** Of the audit log. */
  readonly macs: Macs;
  readonly #dialect: DialectPaths;
  readonly #reads = new Map<TenantId, TenantReads>();
  readonly #quotas: Quotas | undefined;
  readonly #letGo: () => void;
  /** Is told of each session that is read or changed by its id, for the log. */
  touched: (sessionId: SessionId) => void = () => {};

  private constructor(
    orm: MikroORM,
    cipher: Cipher,
    macs: Macs,
    dialect: DialectPaths,
    { quotas, letGo }: { readonly quotas: Quotas | undefined; readonly letGo: () => void },
  ) {
    super();
    this.#quotas = quotas;
    this.#orm = orm;
    this.#letGo = letGo;
    this.#cipher = cipher;
    this.macs = macs;
    this.#dialect = dialect;
  }

  /**
   * Opens the database, migrated.
   * @param settings `alone`: keeps other services from a database that is for a single one, before anything is written.
   * @throws Error when `cipher` does not open what is stored: a service with another secret would fail every request; and
   *   when another service has the database.
   */
  static async open(
    { alone = false, ...settings }: DatabaseSettings & { readonly alone?: boolean },
    cipher: Cipher,
  ): Promise<OrmStore> {
    let letGo = () => {};
    const onConnected = async (opened: MikroORM) => {
      if (alone) letGo = await hold(settings.url, opened);
    };
    try {
      return await OrmStore.#open(await openDatabase({ ...settings, onConnected }), settings, cipher, () =>
        letGo(),
      );
    } catch (error) {
      letGo();
      throw error;
    }
  }

  static async #open(
    orm: MikroORM,
    settings: DatabaseSettings,
    cipher: Cipher,
    letGo: () => void,
  ): Promise<OrmStore> {
    try {
      // What leaves the tables as they are only reads.
      await checkCipher(orm.em.fork(), cipher, settings.migrates !== false);
      const macs = await auditMacs(orm.em.fork({ clear: true }), cipher);
      if (settings.migrates !== false) await beginLog(orm.em.fork({ clear: true }), macs);
      const open = dialectOf(settings.url) === 'sqlite' ? onSqlite : onPostgres;
      return new OrmStore(orm, cipher, macs, await open(orm, cipher, macs), {
        quotas: settings.quotas,
        letGo,
      });
    } catch (error) {
      await orm.close();
      throw error;
    }
  }

  override get maintenance(): Maintenance {
    return this.#dialect.maintenance;
  }

  override commit(tenantId: TenantId, change: Change, now: Date): Promise<Committed> {
    const sessionId = change.session?.id ?? change.opens?.session?.id ?? change.removes;
    if (sessionId !== undefined) this.touched(sessionId);
    return this.#dialect.commit.apply(tenantId, change, now);
  }

  override note(
    tenantId: TenantId,
    sessions: readonly SessionId[],
    move: SessionTransition,
    now: Date,
  ): Promise<readonly NotedSession[]> {
    return this.#dialect.note(tenantId, sessions, move, now);
  }

  override read(tenantId: TenantId): TenantReads {
    let reads = this.#reads.get(tenantId);
    if (reads === undefined) {
      // Tenant ids come from outside; a scan over invented names must not fill the memory.
      if (this.#reads.size >= 10_000) this.#reads.clear();
      const touched = (id: SessionId) => this.touched(id);
      reads = tenantReads(this.#dialect.query(tenantId), this.#cipher, this.#dialect.listing, touched);
      this.#reads.set(tenantId, reads);
    }
    return reads;
  }

  override lists(tenantId: TenantId): ListKeeping {
    return listKeeping(this.#dialect.query(tenantId));
  }

  override forTenant<T>(tenantId: TenantId, work: (own: TenantReader) => Promise<T>): Promise<T>;
  override forTenant<T>(
    tenantId: TenantId,
    work: (own: TenantRepositories) => Promise<T>,
    writing: TenantWriting,
  ): Promise<T>;
  override forTenant<T>(
    tenantId: TenantId,
    work: (own: TenantRepositories) => Promise<T>,
    writing?: TenantWriting,
  ): Promise<T> {
    return this.#transaction(writing, async (em, journal) => {
      const condition = preconditionOf(writing);
      if (writing?.alone || condition !== undefined) await this.#dialect.lock(em, tenantId);
      em.setFilterParams('tenant', { tenantId });
      const raised = new Map<ConfiguredKind, Promise<void>>();
      // Before the first write: the one who writes to a tenant locks its row before any other of its own.
      const touch = (kind: ConfiguredKind) => {
        const raising = raised.get(kind) ?? raiseRevision(em, tenantId, kind, { isFirst: raised.size === 0 });
        raised.set(kind, raising);
        return raising;
      };
      const plain = tenantRepositories(em, this.#cipher, tenantId, touch, this.#quotas);
      await assertHolds(writing, plain);
      return work(auditedTenant(plain, tenantId, journal, now));
    });
  }

  override forService<T>(work: (all: ServiceReader) => Promise<T>): Promise<T>;
  override forService<T>(work: (all: ServiceRepositories) => Promise<T>, writing: Writing): Promise<T>;
  override forService<T>(work: (all: ServiceRepositories) => Promise<T>, writing?: Writing): Promise<T> {
    return this.#transaction(writing, async (em, journal) => {
      const plain = serviceRepositories(em, this.#cipher, this.#quotas);
      const condition = preconditionOf(writing);
      if (condition !== undefined) await this.#dialect.lock(em, condition.id as TenantId);
      await assertTenantHolds(writing, plain);
      return work(auditedService(plain, journal, now));
    });
  }

  override async ping(): Promise<void> {
    await reaching(() => this.#orm.em.fork().getConnection().execute('select 1'));
  }

  async close(): Promise<void> {
    await this.#orm.close();
    this.#letGo();
  }

  /** The audit log comes last, so that its entries lock nothing while the work goes on. */
  async #transaction<T>(
    writing: Writing | undefined,
    work: (em: EntityManager, journal: Journal) => Promise<T>,
  ): Promise<T> {
    const journal = new Journal(writing?.by);
    const transaction = () =>
      this.#orm.em.fork({ clear: true }).transactional(async (em) => {
        if (writing !== undefined) await this.#dialect.beginWriting(em);
        const done = await work(em, journal);
        await journal.write(now(), (scope, additions) => appendEntries(em, this.macs, scope, additions));
        return done;
      });
    const result = await this.#dialect.exclusively(() => reaching(transaction));
    this.#dialect.moved(journal.scopes);
    return result;
  }
}

const now = () => new Date();

/** @returns what lets go of it. */
async function hold(url: string, orm: MikroORM): Promise<() => void> {
  if (dialectOf(url) !== 'sqlite') return () => {};
  return lockSqlite(url.slice('sqlite:'.length), (await orm.em.getConnection().getNativeClient()) as object);
}
