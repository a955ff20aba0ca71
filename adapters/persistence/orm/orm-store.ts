import type { EntityManager, MikroORM } from '@mikro-orm/core';
import type { Cipher } from '../../../application/ports/cipher.ts';
import {
  type Beats,
  type Chores,
  preconditionOf,
  type ServiceReader,
  type ServiceRepositories,
  Store,
  type TenantReader,
  type TenantRepositories,
  type TenantWriting,
  type Writing,
} from '../../../application/ports/store.ts';
import type { Macs } from '../../../domain/audit/macs.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { auditedService, auditedTenant } from '../audited-repositories.ts';
import { Journal } from '../journal.ts';
import { assertHolds, assertTenantHolds } from '../preconditions.ts';
import { PostgresChains } from './audit-chain.postgres.ts';
import { sqliteChain } from './audit-chain.sqlite.ts';
import { appendEntries, beginLog, settleChain } from './audit-chain.ts';
import { postgresBeats } from './beats.postgres.ts';
import { sqliteBeats } from './beats.sqlite.ts';
import { postgresChores, sqliteChores } from './chores.ts';
import { type DatabaseSettings, dialectOf, openDatabase } from './database.ts';
import { reaching } from './database-faults.ts';
import { RecentSessions } from './recent-sessions.ts';
import {
  checkCipher,
  lockTenant,
  raiseRevision,
  serviceRepositories,
  tenantRepositories,
} from './repositories.ts';
import { postgresSql, sqliteSql } from './sql.ts';
import { lockSqlite } from './sqlite-lock.ts';

type Hot = {
  readonly beats: (tenantId: TenantId) => Beats;
  readonly chores: Chores;
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
  readonly #beats = new Map<TenantId, Beats>();

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
    const recent = new RecentSessions();
    if (dialectOf(settings.url) === 'sqlite') {
      const sql = await sqliteSql(orm);
      return new OrmStore(
        orm,
        cipher,
        {
          beats: (tenantId) => sqliteBeats(sql, cipher, recent, sqliteChain(macs, tenantId), tenantId),
          chores: sqliteChores(sql),
          exclusively: sql.exclusively,
          // There is one transaction at a time anyway.
          lock: async () => {},
          moved: () => {},
        },
        letGo,
      );
    }
    const sql = await postgresSql(orm);
    const chains = new PostgresChains(sql, macs, (tenantId) =>
      reaching(() => orm.em.fork({ clear: true }).transactional((em) => settleChain(em, macs, tenantId))),
    );
    return new OrmStore(
      orm,
      cipher,
      {
        beats: (tenantId) => postgresBeats(sql, cipher, recent, chains, tenantId),
        chores: postgresChores(sql),
        exclusively: (work) => work(),
        lock: lockTenant,
        moved: (scopes) => chains.forget(scopes),
      },
      letGo,
    );
  }

  override get chores(): Chores {
    return this.#hot.chores;
  }

  override beats(tenantId: TenantId): Beats {
    let beats = this.#beats.get(tenantId);
    if (beats === undefined) {
      // Tenant ids come from outside; a scan over invented names must not fill the memory.
      if (this.#beats.size >= 10_000) this.#beats.clear();
      beats = this.#hot.beats(tenantId);
      this.#beats.set(tenantId, beats);
    }
    return beats;
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
      let raised: Promise<void> | undefined;
      // Before the first write: whoever writes to a tenant locks its row before any other of its own.
      const touch = () => {
        raised ??= raiseRevision(em, tenantId);
        return raised;
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
