import type { EntityManager, MikroORM } from '@mikro-orm/core';
import type { Cipher } from '../../../application/ports/cipher.ts';
import {
  type Beats,
  type Chores,
  type ServiceRepositories,
  Store,
  type TenantRepositories,
} from '../../../application/ports/store.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { postgresBeats } from './beats.postgres.ts';
import { sqliteBeats } from './beats.sqlite.ts';
import { postgresChores, sqliteChores } from './chores.ts';
import { type DatabaseSettings, dialectOf, openDatabase } from './database.ts';
import { RecentSessions } from './recent-sessions.ts';
import {
  checkCipher,
  lockTenant,
  raiseRevision,
  serviceRepositories,
  tenantRepositories,
} from './repositories.ts';
import { postgresSql, sqliteSql } from './sql.ts';

type Hot = {
  readonly beats: (tenantId: TenantId) => Beats;
  readonly chores: Chores;
  readonly exclusively: <T>(work: () => Promise<T>) => Promise<T>;
  /** Lets one transaction of the tenant on; the others that lock wait for its end. */
  readonly lock: (em: EntityManager, tenantId: TenantId) => Promise<void>;
};

/** The store on PostgreSQL or SQLite. */
export class OrmStore extends Store {
  readonly #orm: MikroORM;
  readonly #cipher: Cipher;
  readonly #hot: Hot;
  readonly #beats = new Map<TenantId, Beats>();

  private constructor(orm: MikroORM, cipher: Cipher, hot: Hot) {
    super();
    this.#orm = orm;
    this.#cipher = cipher;
    this.#hot = hot;
  }

  /**
   * Opens the database, migrated.
   * @throws Error when `cipher` does not open what is stored: a service with another secret would fail every request.
   */
  static async open(settings: DatabaseSettings, cipher: Cipher): Promise<OrmStore> {
    const orm = await openDatabase(settings);
    try {
      await checkCipher(orm.em.fork(), cipher);
    } catch (error) {
      await orm.close();
      throw error;
    }
    if (dialectOf(settings.url) === 'sqlite') {
      const recent = new RecentSessions();
      const sql = await sqliteSql(orm);
      return new OrmStore(orm, cipher, {
        beats: (tenantId) => sqliteBeats(sql, cipher, recent, tenantId),
        chores: sqliteChores(sql),
        exclusively: sql.exclusively,
        // There is one transaction at a time anyway.
        lock: async () => {},
      });
    }
    const recent = new RecentSessions();
    const sql = await postgresSql(orm);
    return new OrmStore(orm, cipher, {
      beats: (tenantId) => postgresBeats(sql, cipher, recent, tenantId),
      chores: postgresChores(sql),
      exclusively: (work) => work(),
      lock: lockTenant,
    });
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

  override forTenant<T>(
    tenantId: TenantId,
    work: (repositories: TenantRepositories) => Promise<T>,
    options: { readonly alone?: boolean } = {},
  ): Promise<T> {
    return this.#transaction(async (em) => {
      if (options.alone) await this.#hot.lock(em, tenantId);
      em.setFilterParams('tenant', { tenantId });
      let touched = false;
      const result = await work(
        tenantRepositories(em, this.#cipher, tenantId, () => {
          touched = true;
        }),
      );
      if (touched) await raiseRevision(em, tenantId);
      return result;
    });
  }

  override forService<T>(work: (repositories: ServiceRepositories) => Promise<T>): Promise<T> {
    return this.#transaction((em) => work(serviceRepositories(em, this.#cipher)));
  }

  override async ping(): Promise<void> {
    await this.#orm.em.fork().getConnection().execute('select 1');
  }

  async close(): Promise<void> {
    await this.#orm.close();
  }

  #transaction<T>(work: (em: EntityManager) => Promise<T>): Promise<T> {
    return this.#hot.exclusively(() => this.#orm.em.fork({ clear: true }).transactional((em) => work(em)));
  }
}
