import { SqliteConnection } from '@mikro-orm/sqlite';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import type { Maintenance } from '../../application/ports/maintenance.ts';
import type {
  ServiceReader,
  ServiceRepositories,
  TenantReader,
  TenantRepositories,
  TenantWriteOptions,
  WriteOptions,
} from '../../application/ports/repositories.ts';
import { Store, type TenantLists, type TenantReads } from '../../application/ports/store.ts';
import type { Change, CommitResult } from '../../domain/changes/change.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { onCleanup } from './lifetimes.ts';

/** All rows of a database, by their tables. */
export type Rows = ReadonlyMap<string, readonly Row[]>;
type Row = readonly unknown[];

export type MemoryDatabase = {
  readonly store: OrmStore;
  readonly rows: () => Rows;
  /** Restores these rows, or without them the state after opening. */
  readonly restore: (rows?: Rows) => void;
};

/** Databases of closed stores, for reuse. */
export const TEST_CIPHER = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });

/** Opening a database takes as long as a hundred tests. */
const FREE_DATABASES: MemoryDatabase[] = [];

/** @param rows rows of another database. */
export async function openMemory(rows?: Rows): Promise<MemoryDatabase> {
  const freeDatabase = FREE_DATABASES.pop();
  const database = freeDatabase ?? (await open());
  if (freeDatabase !== undefined || rows !== undefined) database.restore(rows);
  return database;
}

/** No operation may be running on it. */
export function recycle(database: MemoryDatabase): void {
  FREE_DATABASES.push(database);
}

type Statement = { all(): unknown[]; raw(): Statement; run(...values: unknown[]): unknown };
type NativeDatabase = {
  exec(text: string): void;
  prepare(text: string): Statement;
  transaction<T>(work: (parameter: T) => void): (parameter: T) => void;
};

let previousOpening: Promise<unknown> = Promise.resolve();

/** Databases open one after the other, so that each finds its own connection. */
function open(): Promise<MemoryDatabase> {
  const openingDatabase = previousOpening.then(openNext);
  previousOpening = openingDatabase.catch(() => {});
  return openingDatabase;
}

async function openNext(): Promise<MemoryDatabase> {
  const openedDatabases: NativeDatabase[] = [];
  const { createKyselyDialect } = SqliteConnection.prototype;
  // The store does not show its connection.
  SqliteConnection.prototype.createKyselyDialect = function (options) {
    const dialect = createKyselyDialect.call(this, options);
    const { database } = this as unknown as { database: NativeDatabase };
    keepPrepared(database);
    openedDatabases.push(database);
    return dialect;
  };
  try {
    const store = await OrmStore.open({ url: 'sqlite::memory:', poolSize: 2 }, TEST_CIPHER);
    const [native] = openedDatabases;
    if (native === undefined) throw new Error('the store opened no connection');
    return { store, ...rowAccess(native) };
  } finally {
    SqliteConnection.prototype.createKyselyDialect = createKyselyDialect;
  }
}

/** Most statements contain values and are used only once. */
const MAX_PREPARED = 300;

/** The driver below MikroORM would prepare each statement again. */
function keepPrepared(database: NativeDatabase): void {
  const prepare = database.prepare.bind(database);
  const cachedStatement = new Map<string, Statement>();
  database.prepare = (text) => {
    const statement = cachedStatement.get(text) ?? prepare(text);
    cachedStatement.delete(text);
    cachedStatement.set(text, statement);
    if (cachedStatement.size > MAX_PREPARED) {
      const [oldest = ''] = cachedStatement.keys();
      cachedStatement.delete(oldest);
    }
    return statement;
  };
}

/** There are no foreign keys, so tables can be written in any order. */
function rowAccess(database: NativeDatabase): Pick<MemoryDatabase, 'rows' | 'restore'> {
  const names = database.prepare("select name from sqlite_master where type = 'table'").raw().all() as string[][];
  const tables = names.map(([name = '']) => {
    const width = database.prepare(`pragma table_info(${name})`).all().length;
    const select = database.prepare(`select * from ${name}`).raw();
    const clear = database.prepare(`delete from ${name}`);
    const insert = database.prepare(`insert into ${name} values (${Array(width).fill('?').join(', ')})`);
    return { name, read: select, clear, insert };
  });
  const rows = (): Rows => new Map(tables.map(({ name, read: select }) => [name, select.all() as Row[]]));
  const initialRows = rows();
  const replaceRows = database.transaction((newRows: Rows) => {
    for (const { name, clear, insert } of tables) {
      clear.run();
      for (const row of newRows.get(name) ?? []) insert.run(...row);
    }
  });
  return { rows, restore: (newRows = initialRows) => replaceRows(newRows) };
}

/** Rows after a chain of preparation steps, and the result of the last step. */
const PREPARED_STATES = new Map<string, { readonly rows: Rows; readonly result: unknown }>();

/**
 * The store on `sqlite::memory:`, opened at its first use, so that a world of ports can be made in one expression. When
 * the test that made it is over, the database goes on to the next one, empty again.
 */
export class MemoryStore extends Store {
  override fencedAt: Date | undefined;
  #opening: Promise<MemoryDatabase> | undefined;
  #underWay = 0;
  /** The preparation steps behind the stored rows; undefined after any other write. */
  #steps: string | undefined = '';
  #isInStep = false;
  #lastStep: Promise<unknown> = Promise.resolve();
  #first: Rows | undefined;

  constructor() {
    super();
    onCleanup(() => this.#giveBack());
  }

  /**
   * Prepares this store by `work`, whose result depends only on the step name and the stored rows. Later stores with the
   * same steps copy the rows.
   */
  prepare<T>(stepName: string, work: () => Promise<T>): Promise<T> {
    const prepared = this.#lastStep.then(() => this.#prepare(stepName, work));
    this.#lastStep = prepared.catch(() => {});
    return prepared;
  }

  async #prepare<T>(stepName: string, work: () => Promise<T>): Promise<T> {
    const steps = this.#steps === undefined || this.#underWay > 0 ? undefined : `${this.#steps}\n${stepName}`;
    if (steps === undefined) return work();
    const cachedStatement = PREPARED_STATES.get(steps);
    if (cachedStatement !== undefined) {
      this.#steps = steps;
      if (this.#opening === undefined) this.#first = cachedStatement.rows;
      else (await this.#opening).restore(cachedStatement.rows);
      return cachedStatement.result as T;
    }
    this.#isInStep = true;
    try {
      const result = await work();
      const { rows } = await this.#open();
      PREPARED_STATES.set(steps, { rows: rows(), result });
      this.#steps = steps;
      return result;
    } catch (error) {
      this.#steps = undefined;
      throw error;
    } finally {
      this.#isInStep = false;
    }
  }

  #giveBack(): void {
    const openingDatabase = this.#opening;
    this.#opening = Promise.reject(new Error('this store belonged to a test that is over'));
    this.#opening.catch(() => {});
    // Work that continues after its test may still write.
    if (this.#underWay === 0) openingDatabase?.then(recycle, () => {});
  }

  async #use<T>(work: (store: OrmStore) => Promise<T>): Promise<T> {
    this.#underWay++;
    try {
      return await work((await this.#open()).store);
    } finally {
      this.#underWay--;
    }
  }

  #open(): Promise<MemoryDatabase> {
    this.#opening ??= openMemory(this.#first);
    return this.#opening;
  }

  #write<T>(work: (store: OrmStore) => Promise<T>): Promise<T> {
    if (!this.#isInStep) this.#steps = undefined;
    return this.#use(work);
  }

  override forTenant<T>(tenantId: TenantId, work: (reader: TenantReader) => Promise<T>): Promise<T>;
  override forTenant<T>(tenantId: TenantId, work: (reader: TenantRepositories) => Promise<T>, writing: TenantWriteOptions): Promise<T>;
  override forTenant<T>(tenantId: TenantId, work: (reader: TenantRepositories) => Promise<T>, writing?: TenantWriteOptions): Promise<T> {
    return writing === undefined
      ? this.#use((store) => store.forTenant(tenantId, work as (reader: TenantReader) => Promise<T>))
      : this.#write((store) => store.forTenant(tenantId, work, writing));
  }

  override forService<T>(work: (reader: ServiceReader) => Promise<T>): Promise<T>;
  override forService<T>(work: (reader: ServiceRepositories) => Promise<T>, writing: WriteOptions): Promise<T>;
  override forService<T>(work: (reader: ServiceRepositories) => Promise<T>, writing?: WriteOptions): Promise<T> {
    return writing === undefined
      ? this.#use((store) => store.forService(work as (reader: ServiceReader) => Promise<T>))
      : this.#write((store) => store.forService(work, writing));
  }

  override commit(tenantId: TenantId, change: Change, now: Date): Promise<CommitResult> {
    return this.#write((store) => store.commit(tenantId, change, now));
  }

  override note(...parameters: Parameters<Store['note']>): ReturnType<Store['note']> {
    return this.#write((store) => store.note(...parameters));
  }

  override read(tenantId: TenantId): TenantReads {
    return this.#later(READS, (store) => store.read(tenantId), false);
  }

  override lists(tenantId: TenantId): TenantLists {
    return this.#later(LISTS, (store) => store.lists(tenantId));
  }

  override readonly maintenance: Maintenance = this.#later(MAINTENANCE, (store) => store.maintenance);

  /** A memory store is never restored from a backup. */
  override onRewind(): void {}

  override ping(): Promise<void> {
    return this.#use((store) => store.ping());
  }

  /** Methods that wait for the store to be open. */
  #later<T extends object>(names: readonly (keyof T & string)[], choose: (store: OrmStore) => T, writes = true): T {
    const call =
      (name: keyof T) =>
      (...parameters: unknown[]) => {
        const run = (store: OrmStore) => {
          const target = choose(store);
          return (target[name] as (...reader: unknown[]) => Promise<unknown>)(...parameters);
        };
        return writes ? this.#write(run) : this.#use(run);
      };
    return Object.fromEntries(names.map((name) => [name, call(name)])) as T;
  }
}

const propertyNames = <T>(names: Record<keyof T & string, true>) => Object.keys(names) as (keyof T & string)[];

const READS = propertyNames<TenantReads>({
  state: true,
  session: true,
  sessionWithAuthorization: true,
  sessionByPublicId: true,
  sessionState: true,
  issuing: true,
  sessions: true,
  sessionCursorAt: true,
  sessionCounts: true,
  sessionOutcomes: true,
  sessionsOfSubject: true,
  statusesAt: true,
  statusEntriesAt: true,
  sessionVersions: true,
  sessionEvents: true,
  grantByCode: true,
  idempotentResponse: true,
  grant: true,
  authorization: true,
  deferred: true,
  deferredTransactions: true,
  issued: true,
  statusList: true,
  statusListVersions: true,
  statusEntries: true,
  trustList: true,
});
const LISTS = propertyNames<TenantLists>({
  allocateStatusRun: true,
  saveStatusToken: true,
  newestListVersion: true,
  recordListVersion: true,
  goodCopy: true,
  keepCopy: true,
  confirmCopy: true,
  recordProblem: true,
  storedLists: true,
  forgetList: true,
  distrustCopies: true,
  dropCopies: true,
});
const MAINTENANCE = propertyNames<Maintenance>({
  markWalletRevocationNotified: true,
  subjectKey: true,
  countBatches: true,
  orderRevocations: true,
  noteRevoked: true,
  revokeGrants: true,
  revokeGrant: true,
  revocationOrdersOf: true,
  dueRevocationOrders: true,
  batchesOf: true,
  servesOthers: true,
  fulfilOrder: true,
  postponeOrder: true,
  time: true,
  isCatchingUp: true,
  expireSessions: true,
  oldAuditLogs: true,
  removeAuditEntries: true,
  dueDeliveries: true,
  forgetDelivery: true,
  postponeDelivery: true,
  forgetExpired: true,
  cleanUpSessions: true,
  expireDeferred: true,
  endedTenants: true,
  removeRemainingRows: true,
  tenantRemovals: true,
  forgetPickUps: true,
  endingTrustLists: true,
  tenantVersions: true,
  listFill: true,
  refreshStatistics: true,
  tryLease: true,
  retiredKeys: true,
  pendingReseals: true,
  reseal: true,
  endReseal: true,
  keepSealing: true,
  resealedKeys: true,
  forgetRetiredKey: true,
  postponeRetiredKey: true,
  startRelay: true,
  nextEvents: true,
  advanceRelay: true,
  renumber: true,
  releaseRelay: true,
  dueFollowedLists: true,
  noteFollowedList: true,
  followers: true,
  revokeFollowers: true,
  walletRevokedBatches: true,
  forgetWalletRevoked: true,
  forgetEndedFollowers: true,
  forgetIdleLists: true,
  followedLists: true,
  failingLists: true,
  countHeldTrustLists: true,
  unreportedProblems: true,
  markProblemReported: true,
  forgetStoredTrustLists: true,
});
