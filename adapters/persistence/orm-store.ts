import type { Cipher } from '../../application/ports/cipher.ts';
import type { Fencing } from '../../application/ports/fencing.ts';
import type { Maintenance } from '../../application/ports/maintenance.ts';
import type {
  ServiceReader,
  ServiceRepositories,
  TenantReader,
  TenantRepositories,
  TenantWriting,
  Writing,
} from '../../application/ports/repositories.ts';
import { type ListKeeping, type NotedSession, Store, StoreUnavailable, type TenantReads } from '../../application/ports/store.ts';
import type { Terms } from '../../application/ports/terms.ts';
import type { RewindWatch } from '../../application/rewinds/rewind-watch.ts';
import type { Macs } from '../../domain/audit/macs.ts';
import { type Change, type Committed, onlyTakesBack } from '../../domain/changes/change.ts';
import { madeBefore, type UsedValue } from '../../domain/oauth/used-value.ts';
import type { SessionTransition } from '../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import type { Quotas } from '../../domain/tenants/quotas.ts';
import type { UnitsOfWork } from './administration/units-of-work.ts';
import { reaching } from './database-faults.ts';
import { type DialectPaths, onPostgres, onSqlite } from './dialect-paths.ts';
import { keptTrustLists } from './kept-trust-lists.ts';
import { fencing } from './maintenance/fencing.ts';
import { bytesToReserve, OpenSessionBytes } from './open-session-bytes.ts';
import { assertCipherFits } from './opening/assert-cipher-fits.ts';
import { type DatabaseSettings, openDatabase } from './opening/database.ts';
import type { Database } from './opening/opened.ts';
import { serviceReader, tenantReader } from './readers.ts';
import { listKeeping, tenantReads } from './reads.ts';
import { type Parts, partsOf } from './rows/change-columns.ts';
import { holdFile } from './sqlite/lock.ts';
import { LastChanges, termsOf } from './terms.ts';

/** Deferred transactions of one session whose bytes are released with it; the rest count until they expire. */
const MAX_REMOVED_DEFERRED = 1_000;

/** The store on PostgreSQL or SQLite. */
export class OrmStore extends Store {
  readonly #database: Database;
  readonly #cipher: Cipher;
  /** Of the audit log. */
  readonly macs: Macs;
  readonly #dialect: DialectPaths;
  readonly #reads = new Map<TenantId, TenantReads>();
  readonly #quotas: Quotas | undefined;
  readonly #letGo: () => void;
  #units: Promise<UnitsOfWork> | undefined;
  readonly rewinds = new Rewinds();
  /** What the database knows of its past. */
  readonly terms: Terms;
  readonly fencing: Fencing;
  readonly connections: Database['connections'];
  /** Undefined without quotas. */
  readonly sessionBytes: OpenSessionBytes | undefined;
  /** Is told of each session that is read or changed by its id, for the log. */
  touched: (sessionId: SessionId) => void = () => {};

  private constructor(
    database: Database,
    cipher: Cipher,
    { macs, ...dialect }: DialectPaths & { readonly macs: Macs },
    {
      quotas,
      sessionBytes,
      letGo,
    }: { readonly quotas: Quotas | undefined; readonly sessionBytes: OpenSessionBytes | undefined; readonly letGo: () => void },
  ) {
    super();
    this.#quotas = quotas;
    this.sessionBytes = sessionBytes;
    this.#database = database;
    this.connections = database.connections;
    this.#letGo = letGo;
    this.#cipher = cipher;
    this.macs = macs;
    this.#dialect = dialect;
    this.terms = termsOf(dialect.jobs, database.terms, this.rewinds.changes);
    this.fencing = fencing(dialect.jobs);
    this.onRewind(() => dialect.moved());
    this.onRewind(() => this.sessionBytes?.forget());
  }

  /** Has each new connection looked over before anybody works on it, where there are several. */
  onConnection(look: (terms: Terms) => Promise<void>): void {
    this.#database.onConnection?.((sql) => look(termsOf(sql, this.#database.terms, this.rewinds.changes)));
  }

  /**
   * Opens the database, migrated.
   * @param settings `alone`: keeps other services from a database that is for a single one, before anything is written.
   * @throws Error when `cipher` does not open what is stored: a service with another secret would fail every request; and
   *   when another service has the database.
   */
  static async open({ alone = false, ...settings }: DatabaseSettings & { readonly alone?: boolean }, cipher: Cipher): Promise<OrmStore> {
    let letGo = () => {};
    const onConnected = async (opened: Database) => {
      if (alone) letGo = holdFile(settings.url, opened.native);
    };
    try {
      return await OrmStore.#open(await openDatabase({ ...settings, onConnected }), settings, cipher, () => letGo());
    } catch (error) {
      letGo();
      throw error;
    }
  }

  static async #open(database: Database, settings: DatabaseSettings, cipher: Cipher, letGo: () => void): Promise<OrmStore> {
    // What leaves the tables as they are only reads.
    const writes = settings.migrates !== false;
    try {
      const open = database.dialect === 'sqlite' ? onSqlite : onPostgres;
      const paths = await open(database, cipher, (sql) => assertCipherFits(sql, cipher, writes), writes);
      const { quotas } = settings;
      const sessionBytes = quotas && (await OpenSessionBytes.open(paths.sessionBytes, quotas.sessionBytes));
      return new OrmStore(database, cipher, paths, { quotas, sessionBytes, letGo });
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  /** Whether the tables are spread over several machines, by tenant. */
  get isCluster(): boolean {
    return this.#database.isCluster === true;
  }

  override get maintenance(): Maintenance {
    return this.#dialect.maintenance;
  }

  override async commit(tenantId: TenantId, change: Change, now: Date): Promise<Committed> {
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
  async #commitWithinQuota(tenantId: TenantId, change: Change, parts: Parts, now: Date): Promise<Committed> {
    const { commit } = this.#dialect;
    const { sessionBytes } = this;
    if (sessionBytes === undefined) return commit.apply(tenantId, change, parts, now);
    // They are removed with their session, each counted by itself.
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
      // Tenant ids come from outside; a scan over invented names must not fill the memory.
      if (this.#reads.size >= 10_000) this.#reads.clear();
      const touched = (id: SessionId) => this.touched(id);
      const query = this.#dialect.query(tenantId);
      reads = tenantReads(query, this.#cipher, this.#dialect.listing, { touched, sessionBytes: this.sessionBytes });
      this.#reads.set(tenantId, reads);
    }
    return reads;
  }

  override lists(tenantId: TenantId): ListKeeping {
    const query = this.#dialect.query(tenantId);
    const { takeStatusRun, ...rest } = listKeeping(query);
    return {
      ...rest,
      takeStatusRun: async (...asked) => {
        this.rewinds.assertWhole();
        const first = await takeStatusRun(...asked);
        this.rewinds.changes.count++;
        return first;
      },
      ...keptTrustLists(query, this.#cipher, tenantId),
    };
  }

  override forTenant<T>(tenantId: TenantId, work: (own: TenantReader) => Promise<T>): Promise<T>;
  override forTenant<T>(tenantId: TenantId, work: (own: TenantRepositories) => Promise<T>, writing: TenantWriting): Promise<T>;
  override async forTenant<T>(tenantId: TenantId, work: (own: TenantRepositories) => Promise<T>, writing?: TenantWriting): Promise<T> {
    if (writing !== undefined) return this.#write((units) => units.forTenant(tenantId, work, writing));
    const { read, documents, exclusively } = this.#dialect;
    const seldom = async () => (await this.#writing()).seldomRead(tenantId);
    const reader = tenantReader(read, documents, { cipher: this.#cipher, clientMacs: this.#dialect.clientMacs, tenantId }, seldom);
    // Who only reads was given its type by the declarations above.
    return exclusively(() => reaching(() => work(reader as TenantRepositories)));
  }

  override forService<T>(work: (all: ServiceReader) => Promise<T>): Promise<T>;
  override forService<T>(work: (all: ServiceRepositories) => Promise<T>, writing: Writing): Promise<T>;
  override async forService<T>(work: (all: ServiceRepositories) => Promise<T>, writing?: Writing): Promise<T> {
    if (writing !== undefined) return this.#write((units) => units.forService(work, writing));
    const reader = serviceReader(this.#dialect.read, this.#dialect.clientMacs, async () => (await this.#writing()).ofService());
    return this.#dialect.exclusively(() => reaching(() => work(reader as ServiceRepositories)));
  }

  override get fencedAt(): Date | undefined {
    return this.rewinds.watch.fencedAt;
  }

  override onRewind(forget: () => void): void {
    this.rewinds.onRewind(forget);
  }

  override async ping(): Promise<void> {
    await reaching(() => this.#database.ping());
    await this.#dialect.writes.assertWritable();
  }

  /** Ids of clients whose rows something else than the service wrote. */
  forgedClients(): Promise<readonly string[]> {
    return this.#dialect.clientMacs.forged(this.#dialect.jobs);
  }

  async close(): Promise<void> {
    this.#dialect.clientMacs.stop();
    await this.sessionBytes?.close();
    await this.#database.close();
    this.#letGo();
  }

  async #write<T>(work: (units: UnitsOfWork) => Promise<T>): Promise<T> {
    this.rewinds.assertWhole();
    const result = await work(await this.#writing());
    this.rewinds.changes.count++;
    return result;
  }

  /** Loaded when somebody writes what is configured: what wallets and their issuers ask for does without. */
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

/** What a store has to do with a database that may go back in time. */
class Rewinds {
  readonly changes = new LastChanges();
  /** Says why nothing may be given away at this moment, and since when what counts once counts. */
  watch: Pick<RewindWatch, 'refusal' | 'fencedAt'> = { refusal: undefined, fencedAt: undefined };
  readonly #forgetters: (() => void)[] = [];

  onRewind(forget: () => void): void {
    this.#forgetters.push(forget);
  }

  forget(): void {
    this.changes.last = undefined;
    for (const forget of this.#forgetters) forget();
  }

  /** @throws StoreUnavailable while the database may have forgotten what was given away. */
  assertWhole(): void {
    const { refusal } = this.watch;
    if (refusal !== undefined) throw new StoreUnavailable(refusal);
  }

  /** @returns what it uses that is from before what was ended. @throws StoreUnavailable see `assertWhole`. */
  staleOf(change: Change): UsedValue | undefined {
    if (!onlyTakesBack(change)) this.assertWhole();
    return madeBefore(this.watch.fencedAt, change.uses ?? []);
  }
}
