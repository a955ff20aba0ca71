import type { Cipher } from '../../application/ports/cipher.ts';
import type { Fencing } from '../../application/ports/fencing.ts';
import type { Maintenance } from '../../application/ports/maintenance.ts';
import type {
  ServiceReader,
  ServiceRepositories,
  TenantReader,
  TenantRepositories,
  TenantWriteOptions,
  WriteOptions,
} from '../../application/ports/repositories.ts';
import { type NotedSession, Store, StoreUnavailableError, type TenantLists, type TenantReads } from '../../application/ports/store.ts';
import type { Terms } from '../../application/ports/terms.ts';
import type { RewindWatch } from '../../application/rewinds/rewind-watch.ts';
import type { Macs } from '../../domain/audit/macs.ts';
import { type Change, type CommitResult, onlyRevokes } from '../../domain/changes/change.ts';
import { type ConsumedValue, findNonceCreatedBefore } from '../../domain/oauth/consumed-value.ts';
import type { SessionTransition } from '../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import type { Quotas } from '../../domain/tenants/quotas.ts';
import type { UnitsOfWork } from './administration/units-of-work.ts';
import { mapDatabaseErrors } from './database-faults.ts';
import { type DialectPaths, onPostgres, onSqlite } from './dialect-paths.ts';
import { fencing } from './maintenance/fencing.ts';
import { bytesToReserve, OpenSessionBytes } from './open-session-bytes.ts';
import { assertCipherFits } from './opening/assert-cipher-fits.ts';
import { type DatabaseSettings, openDatabase } from './opening/database.ts';
import type { Database } from './opening/open-driver.ts';
import { serviceReader, tenantReader } from './readers.ts';
import { listKeeping, tenantReads } from './reads.ts';
import { type Parts, partsOf } from './rows/change-columns.ts';
import { lockDatabaseFile } from './sqlite/lock.ts';
import { storedTrustLists } from './stored-trust-lists.ts';
import { LastChanges, termsOf } from './terms.ts';

/** Limit of deferred transactions whose bytes are released with their session; further ones count until they expire. */
const MAX_REMOVED_DEFERRED = 1_000;

/** The store on PostgreSQL or SQLite. */
export class OrmStore extends Store {
  readonly #database: Database;
  readonly #cipher: Cipher;
  /** MACs of the audit log. */
  readonly macs: Macs;
  readonly #dialect: DialectPaths;
  readonly #reads = new Map<TenantId, TenantReads>();
  readonly #quotas: Quotas | undefined;
  readonly #releaseLock: () => void;
  #units: Promise<UnitsOfWork> | undefined;
  readonly rewinds = new Rewinds();
  /** Terms of the database's history. */
  readonly terms: Terms;
  readonly fencing: Fencing;
  readonly connections: Database['connections'];
  /** Undefined without quotas. */
  readonly sessionBytes: OpenSessionBytes | undefined;
  /** Called with the id of each session that is read or changed by its id, for the log. */
  touched: (sessionId: SessionId) => void = () => {};

  private constructor(
    database: Database,
    cipher: Cipher,
    { macs, ...dialect }: DialectPaths & { readonly macs: Macs },
    {
      quotas,
      sessionBytes,
      releaseLock: letGo,
    }: { readonly quotas: Quotas | undefined; readonly sessionBytes: OpenSessionBytes | undefined; readonly releaseLock: () => void },
  ) {
    super();
    this.#quotas = quotas;
    this.sessionBytes = sessionBytes;
    this.#database = database;
    this.connections = database.connections;
    this.#releaseLock = letGo;
    this.#cipher = cipher;
    this.macs = macs;
    this.#dialect = dialect;
    this.terms = termsOf(dialect.jobs, database.terms, this.rewinds.changes);
    this.fencing = fencing(dialect.jobs);
    this.onRewind(() => dialect.moved());
    this.onRewind(() => this.sessionBytes?.forget());
  }

  /** Registers a check that runs on each new connection before it is used; PostgreSQL only. */
  onConnection(check: (terms: Terms) => Promise<void>): void {
    this.#database.onConnection?.((sql) => check(termsOf(sql, this.#database.terms, this.rewinds.changes)));
  }

  /**
   * Opens the database, migrated.
   * @param settings `alone`: locks other services out of a database for a single one, before anything is written.
   * @throws Error if `cipher` cannot open the stored data, since a service with another secret would fail every request; also if another
   * service uses the database.
   */
  static async open({ alone = false, ...settings }: DatabaseSettings & { readonly alone?: boolean }, cipher: Cipher): Promise<OrmStore> {
    let releaseLock = () => {};
    const onConnected = async (database: Database) => {
      if (alone) releaseLock = lockDatabaseFile(settings.url, database.native);
    };
    try {
      return await OrmStore.#open(await openDatabase({ ...settings, onConnected }), settings, cipher, () => releaseLock());
    } catch (error) {
      releaseLock();
      throw error;
    }
  }

  static async #open(database: Database, settings: DatabaseSettings, cipher: Cipher, letGo: () => void): Promise<OrmStore> {
    // A process that does not migrate the tables only reads.
    const writes = settings.migrates !== false;
    try {
      const open = database.dialect === 'sqlite' ? onSqlite : onPostgres;
      const paths = await open(database, cipher, (sql) => assertCipherFits(sql, cipher, writes), writes);
      const { quotas } = settings;
      const sessionBytes = quotas && (await OpenSessionBytes.open(paths.sessionBytes, quotas.sessionBytes));
      return new OrmStore(database, cipher, paths, { quotas, sessionBytes, releaseLock: letGo });
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  /** True if the tables are spread over several machines, by tenant. */
  get isCluster(): boolean {
    return this.#database.isCluster === true;
  }

  override get maintenance(): Maintenance {
    return this.#dialect.maintenance;
  }

  override async commit(tenantId: TenantId, change: Change, now: Date): Promise<CommitResult> {
    const sessionId = change.session?.id ?? change.opens?.session?.id ?? change.removes;
    if (sessionId !== undefined) this.touched(sessionId);
    const stale = this.rewinds.staleOf(change);
    if (stale !== undefined) return { done: false, part: 'uses', kind: stale.kind };
    const parts = partsOf(this.#cipher, tenantId, change);
    const committed = await this.#commitWithinQuota(tenantId, change, parts, now);
    this.rewinds.changes.note(tenantId, change, committed);
    return committed;
  }

  /** @throws Failure `session_quota_exceeded`; then nothing was committed. */
  async #commitWithinQuota(tenantId: TenantId, change: Change, parts: Parts, now: Date): Promise<CommitResult> {
    const { commit } = this.#dialect;
    const { sessionBytes } = this;
    if (sessionBytes === undefined) return commit.apply(tenantId, change, parts, now);
    // Deferred transactions are removed with their session; each is counted by itself.
    const deferred =
      change.removes === undefined
        ? []
        : await this.read(tenantId).deferredTransactions({ sessionId: change.removes, limit: MAX_REMOVED_DEFERRED });
    const bytes = bytesToReserve(change, parts);
    const reserving = bytes > 0 ? sessionBytes.reserve(tenantId, bytes, now) : undefined;
    if (reserving !== undefined) await reserving;
    try {
      const committed = await commit.apply(tenantId, change, parts, now);
      sessionBytes.record(tenantId, change, parts, committed);
      if (committed.done) for (const { id } of deferred) sessionBytes.removedDeferred(tenantId, id);
      return committed;
    } finally {
      if (bytes > 0) sessionBytes.release(tenantId, bytes);
    }
  }

  override async note(
    tenantId: TenantId,
    sessions: readonly SessionId[],
    move: SessionTransition,
    now: Date,
  ): Promise<readonly NotedSession[]> {
    const noted = await this.#dialect.note(tenantId, sessions, move, now);
    this.sessionBytes?.moved(
      tenantId,
      noted.map(({ id }) => id),
      move.to,
    );
    return noted;
  }

  override read(tenantId: TenantId): TenantReads {
    let reads = this.#reads.get(tenantId);
    if (reads === undefined) {
      // Callers choose the tenant ids, so a scan with invented names must not fill the memory.
      if (this.#reads.size >= 10_000) this.#reads.clear();
      const touched = (id: SessionId) => this.touched(id);
      const query = this.#dialect.query(tenantId);
      reads = tenantReads(query, this.#cipher, this.#dialect.listing, { touched, sessionBytes: this.sessionBytes });
      this.#reads.set(tenantId, reads);
    }
    return reads;
  }

  override lists(tenantId: TenantId): TenantLists {
    const query = this.#dialect.query(tenantId);
    const { allocateStatusRun: takeStatusRun, ...otherOperations } = listKeeping(query);
    return {
      ...otherOperations,
      allocateStatusRun: async (...parameters) => {
        this.rewinds.assertWhole();
        const firstIndex = await takeStatusRun(...parameters);
        this.rewinds.changes.count++;
        return firstIndex;
      },
      ...storedTrustLists(query, this.#cipher, tenantId),
    };
  }

  override forTenant<T>(tenantId: TenantId, work: (repositories: TenantReader) => Promise<T>): Promise<T>;
  override forTenant<T>(
    tenantId: TenantId,
    work: (repositories: TenantRepositories) => Promise<T>,
    writing: TenantWriteOptions,
  ): Promise<T>;
  override async forTenant<T>(
    tenantId: TenantId,
    work: (repositories: TenantRepositories) => Promise<T>,
    writing?: TenantWriteOptions,
  ): Promise<T> {
    if (writing !== undefined) return this.#write((units) => units.forTenant(tenantId, work, writing));
    const { read, documents, exclusively } = this.#dialect;
    const seldom = async () => (await this.#writing()).seldomRead(tenantId);
    const reader = tenantReader(read, documents, { cipher: this.#cipher, clientMacs: this.#dialect.clientMacs, tenantId }, seldom);
    // The overloads above give read-only callers the type of a reader.
    return exclusively(() => mapDatabaseErrors(() => work(reader as TenantRepositories)));
  }

  override forService<T>(work: (repositories: ServiceReader) => Promise<T>): Promise<T>;
  override forService<T>(work: (repositories: ServiceRepositories) => Promise<T>, writing: WriteOptions): Promise<T>;
  override async forService<T>(work: (repositories: ServiceRepositories) => Promise<T>, writing?: WriteOptions): Promise<T> {
    if (writing !== undefined) return this.#write((units) => units.forService(work, writing));
    const reader = serviceReader(this.#dialect.read, this.#dialect.clientMacs, async () => (await this.#writing()).ofService());
    return this.#dialect.exclusively(() => mapDatabaseErrors(() => work(reader as ServiceRepositories)));
  }

  override get fencedAt(): Date | undefined {
    return this.rewinds.watch.fencedAt;
  }

  override onRewind(forget: () => void): void {
    this.rewinds.onRewind(forget);
  }

  override async ping(): Promise<void> {
    await mapDatabaseErrors(() => this.#database.ping());
    await this.#dialect.writes.assertWritable();
  }

  /** Ids of clients whose rows the service did not write. */
  forgedClients(): Promise<readonly string[]> {
    return this.#dialect.clientMacs.forged(this.#dialect.jobs);
  }

  async close(): Promise<void> {
    this.#dialect.clientMacs.stop();
    await this.sessionBytes?.close();
    await this.#database.close();
    this.#releaseLock();
  }

  async #write<T>(work: (units: UnitsOfWork) => Promise<T>): Promise<T> {
    this.rewinds.assertWhole();
    const result = await work(await this.#writing());
    this.rewinds.changes.count++;
    return result;
  }

  /** Loaded when configuration is written: wallets and backends do without it. */
  #writing(): Promise<UnitsOfWork> {
    this.#units ??= this.#loadUnits().catch((error) => {
      this.#units = undefined;
      throw error;
    });
    return this.#units;
  }

  async #loadUnits(): Promise<UnitsOfWork> {
    const [orm, { UnitsOfWork: Units }] = await Promise.all([this.#database.orm(), import('./administration/units-of-work.ts')]);
    return new Units({
      dialect: this.#database.dialect,
      orm,
      cipher: this.#cipher,
      macs: this.macs,
      clientMacs: this.#dialect.clientMacs,
      quotas: this.#quotas,
      exclusively: this.#dialect.exclusively,
      moved: this.#dialect.moved,
    });
  }
}

/** Protects the store against a database that was rolled back. */
class Rewinds {
  readonly changes = new LastChanges();
  /** Gives the reason why nothing may be issued at this moment, and the time of the last fence. */
  watch: Pick<RewindWatch, 'refusal' | 'fencedAt'> = { refusal: undefined, fencedAt: undefined };
  readonly #forgetters: (() => void)[] = [];

  onRewind(forget: () => void): void {
    this.#forgetters.push(forget);
  }

  forget(): void {
    this.changes.last = undefined;
    for (const forget of this.#forgetters) forget();
  }

  /** @throws StoreUnavailableError while the database may have lost what was issued. */
  assertWhole(): void {
    const { refusal } = this.watch;
    if (refusal !== undefined) throw new StoreUnavailableError(refusal);
  }

  /** @returns the single-use value of the change that is older than the last fence. @throws StoreUnavailableError see `assertWhole`. */
  staleOf(change: Change): ConsumedValue | undefined {
    if (!onlyRevokes(change)) this.assertWhole();
    return findNonceCreatedBefore(this.watch.fencedAt, change.uses ?? []);
  }
}
