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
import { type ListKeeping, Store, type TenantReads } from '../../application/ports/store.ts';
import type { Macs } from '../../domain/audit/macs.ts';
import type { Change, Committed } from '../../domain/changes/change.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { ConfiguredKind } from '../../domain/tenants/revisions.ts';
import { appendEntries, beginLog, settleChain } from './administration/audit-chain.ts';
import { auditedService, auditedTenant } from './administration/audited-repositories.ts';
import { checkCipher } from './administration/check-cipher.ts';
import { Journal } from './administration/journal.ts';
import { assertHolds, assertTenantHolds } from './administration/preconditions.ts';
import { tenantRepositories } from './administration/repositories.ts';
import { lockTenant, raiseRevision } from './administration/revisions.ts';
import { serviceRepositories } from './administration/service-repositories.ts';
import { type DatabaseSettings, dialectOf, openDatabase } from './database.ts';
import { reaching } from './database-faults.ts';
import { postgresMaintenance, sqliteMaintenance } from './maintenance/maintenance.ts';
import { PostgresChains } from './postgres/audit-chain.ts';
import { PostgresCommit } from './postgres/commit.ts';
import { postgresSql } from './postgres/sql.ts';
import { listKeeping, POSTGRES_LISTING, SQLITE_LISTING, type TenantQuery, tenantReads } from './reads.ts';
import { sqliteChain } from './sqlite/audit-chain.ts';
import { SqliteCommit } from './sqlite/commit.ts';
import { lockSqlite } from './sqlite/lock.ts';
import { sqliteSql } from './sqlite/sql.ts';

type Hot = {
  readonly commit: { apply(tenantId: TenantId, change: Change, now: Date): Promise<Committed> };
  readonly reads: (tenantId: TenantId) => TenantReads;
  readonly lists: (tenantId: TenantId) => ListKeeping;
  readonly maintenance: Maintenance;
  readonly exclusively: <T>(work: () => Promise<T>) => Promise<T>;
  /** Lets one transaction of the tenant on; the others that lock wait for its end. */
  readonly lock: (em: EntityManager, tenantId: TenantId) => Promise<void>;
  /** What is remembered of the end of these chains is out of date. */
  readonly moved: (scopes: readonly string[]) => void;
};

/** Purpose of the key under which the audit log is chained. */
export const AUDIT_LOG = 'vidimus/audit-log';

/** The store on PostgreSQL or SQLite. */
export class OrmStore extends Store {
  readonly #orm: MikroORM;
  readonly #cipher: Cipher;
  readonly #macs: Macs;
  readonly #hot: Hot;
  readonly #reads = new Map<TenantId, TenantReads>();
  readonly #letGo: () => void;

  private constructor(orm: MikroORM, cipher: Cipher, hot: Hot, letGo: () => void) {
    super();
    this.#orm = orm;
    this.#letGo = letGo;
    this.#cipher = cipher;
    this.#macs = cipher.macs(AUDIT_LOG);
    this.#hot = hot;
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
      if (settings.migrates !== false) await beginLog(orm.em.fork({ clear: true }), cipher.macs(AUDIT_LOG));
    } catch (error) {
      await orm.close();
      throw error;
    }
    const macs = cipher.macs(AUDIT_LOG);
    if (dialectOf(settings.url) === 'sqlite') {
      const sql = await sqliteSql(orm);
      const queryOf =
        (tenantId: TenantId): TenantQuery =>
        (statement, ...parameters) =>
          sql.single((run) => run.all(statement, tenantId, ...parameters));
      return new OrmStore(
        orm,
        cipher,
        {
          commit: new SqliteCommit(sql, cipher, (tenantId) => sqliteChain(macs, tenantId)),
          reads: (tenantId) => tenantReads(queryOf(tenantId), cipher, SQLITE_LISTING),
          lists: (tenantId) => listKeeping(queryOf(tenantId)),
          maintenance: sqliteMaintenance(sql),
          exclusively: sql.exclusively,
          // There is one transaction at a time anyway.
          lock: async () => {},
          moved: () => {},
        },
        letGo,
      );
    }
    const sql = await postgresSql(orm);
    const queryOf =
      (tenantId: TenantId): TenantQuery =>
      (statement, ...parameters) =>
        sql.query(statement, [tenantId, ...parameters]);
    const chains = new PostgresChains(sql, macs, (tenantId) =>
      reaching(() => orm.em.fork({ clear: true }).transactional((em) => settleChain(em, macs, tenantId))),
    );
    return new OrmStore(
      orm,
      cipher,
      {
        commit: new PostgresCommit(sql, cipher, chains),
        reads: (tenantId) => tenantReads(queryOf(tenantId), cipher, POSTGRES_LISTING),
        lists: (tenantId) => listKeeping(queryOf(tenantId)),
        maintenance: postgresMaintenance(sql),
        exclusively: (work) => work(),
        lock: lockTenant,
        moved: (scopes) => chains.forget(scopes),
      },
      letGo,
    );
  }

  override get maintenance(): Maintenance {
    return this.#hot.maintenance;
  }

  override commit(tenantId: TenantId, change: Change, now: Date): Promise<Committed> {
    return this.#hot.commit.apply(tenantId, change, now);
  }

  override read(tenantId: TenantId): TenantReads {
    let reads = this.#reads.get(tenantId);
    if (reads === undefined) {
      // Tenant ids come from outside; a scan over invented names must not fill the memory.
      if (this.#reads.size >= 10_000) this.#reads.clear();
      reads = this.#hot.reads(tenantId);
      this.#reads.set(tenantId, reads);
    }
    return reads;
  }

  override lists(tenantId: TenantId): ListKeeping {
    return this.#hot.lists(tenantId);
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
      if (writing?.alone || condition !== undefined) await this.#hot.lock(em, tenantId);
      em.setFilterParams('tenant', { tenantId });
      const raised = new Map<ConfiguredKind, Promise<void>>();
      // Before the first write: whoever writes to a tenant locks its row before any other of its own.
      const touch = (kind: ConfiguredKind) => {
        const raising = raised.get(kind) ?? raiseRevision(em, tenantId, kind, { isFirst: raised.size === 0 });
        raised.set(kind, raising);
        return raising;
      };
      const plain = tenantRepositories(em, this.#cipher, tenantId, touch);
      await assertHolds(writing, plain);
      return work(auditedTenant(plain, tenantId, journal, now));
    });
  }

  override forService<T>(work: (all: ServiceReader) => Promise<T>): Promise<T>;
  override forService<T>(work: (all: ServiceRepositories) => Promise<T>, writing: Writing): Promise<T>;
  override forService<T>(work: (all: ServiceRepositories) => Promise<T>, writing?: Writing): Promise<T> {
    return this.#transaction(writing, async (em, journal) => {
      const plain = serviceRepositories(em, this.#cipher);
      const condition = preconditionOf(writing);
      if (condition !== undefined) await this.#hot.lock(em, condition.id as TenantId);
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
        const done = await work(em, journal);
        await journal.write(now(), (scope, additions) => appendEntries(em, this.#macs, scope, additions));
        return done;
      });
    const result = await this.#hot.exclusively(() => reaching(transaction));
    this.#hot.moved(journal.scopes);
    return result;
  }
}

const now = () => new Date();

/** @returns what lets go of it. */
async function hold(url: string, orm: MikroORM): Promise<() => void> {
  if (dialectOf(url) !== 'sqlite') return () => {};
  return lockSqlite(url.slice('sqlite:'.length), (await orm.em.getConnection().getNativeClient()) as object);
}
