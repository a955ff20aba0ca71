import { LRUCache } from 'lru-cache';
import { boundedBytes } from '../../application/tenant-cache/cache-memory.ts';
import type { Change, CommitResult } from '../../domain/changes/change.ts';
import { DEFERRED_ENDS, DEFERRED_MOVES } from '../../domain/issuance/deferred.ts';
import { isTerminal, type SessionStatus } from '../../domain/sessions/session.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { estimateJsonLength } from '../../domain/shared/json.ts';
import { expiryBucket, sessionQuotaError } from '../../domain/tenants/session-quota.ts';
import { MAX_KEPT_REQUEST } from './erased-requests.ts';
import { DEFERRED } from './rows/authorization-codec.ts';
import { CHANGED_CREDENTIALS, CHANGED_OUTCOME, type Parts } from './rows/change-columns.ts';
import type { Fields } from './rows/columns.ts';
import { GRANTS, SESSIONS } from './rows/session-codec.ts';
import type { BytesDelta, EndedSession, SessionBytesSql } from './session-bytes-sql.ts';
import type { Row } from './statement.ts';

/** Time for which changes are collected before they are written. A process that crashes loses them. */
const FLUSH_MS = 1_000;
/** Maximum age of the sums on which a rejection is based, by the time of the request. */
const FRESH_MS = 1_000;
/** Metrics leave out a tenant that was not counted here for this long. */
const MEASURED_MS = 60_000;
const MAX_TENANTS_BYTES = 8 * 1024 * 1024;
const MAX_SIZES_BYTES = 16 * 1024 * 1024;
const SIZE_BYTES = 64;
/** Limit of ended sessions of unknown size that wait for a flush; the bytes of further ones count until they expire. */
const MAX_ENDED = 2_000;

/** Size of a session with its grant, events and index entries, besides the parts that callers can make large. */
const SESSION_ROW_BYTES = 1_024;
const ROW_BYTES = 512;
/** Sealing makes a text a third longer, and adds a key id, a nonce and a tag. */
const sealedLength = (length: number) => Math.ceil((length * 4) / 3) + 64;

type OpenSize = {
  readonly createdAt: number;
  readonly expiresAt: number;
  /** Size of the data with which it was created. */
  readonly requestBytes: number;
  /** Size of the data added since: an outcome, or credentials that wait for the wallet. */
  readonly resultBytes: number;
  /** Size of a response that is stored under an Idempotency-Key, unless it is large. */
  readonly answerBytes: number;
};

type Bytes = { net: number; readonly buckets: Map<number, number> };
type TenantBytes = {
  /** Sum of the last read. */
  storedBytes: number;
  /** Bytes of changes that are being committed. */
  reserved: number;
  /** Time of the request. */
  readAt: number;
  /** Monotonic clock of the process. */
  measuredAt: number;
};

/**
 * Bytes of all rows that live as long as an open session of a tenant, and their quota. A process counts in memory what it commits, by
 * tenant and expiry. Once a second it adds that to a table which all processes share and reads back the sums of the tenants concerned,
 * unless it is the only process. So a creation costs no statement, and a tenant may exceed its quota by what the other processes create
 * within about a second. Expired rows count nothing without being written.
 */
export class OpenSessionBytes {
  readonly quota: number;
  readonly #sql: SessionBytesSql;
  readonly #countedSince: number;
  readonly #tenants = new LRUCache<string, TenantBytes>(boundedBytes<TenantBytes>(MAX_TENANTS_BYTES, () => SIZE_BYTES));
  readonly #sizes = new LRUCache<string, OpenSize>(boundedBytes<OpenSize>(MAX_SIZES_BYTES, () => SIZE_BYTES));
  #pending = new Map<string, Bytes>();
  #inFlight = new Map<string, Bytes>();
  #endedSessions: EndedSession[] = [];
  #staleTenants = new Set<string>();
  #now = 0;
  #rewinds = 0;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;

  /** @param countedSince sessions that were created before this time, in milliseconds, were never counted. */
  constructor(sql: SessionBytesSql, quota: number, countedSince: number) {
    this.#sql = sql;
    this.quota = quota;
    this.#countedSince = countedSince;
  }

  static async open(sql: SessionBytesSql, quota: number): Promise<OpenSessionBytes> {
    return new OpenSessionBytes(sql, quota, await sql.countedSince());
  }

  /**
   * Reserves bytes for a change until `release` is called.
   * @returns a promise only for a tenant that is not counted here yet, or that seems to have reached its quota.
   * @throws Failure `session_quota_exceeded`.
   */
  reserve(tenantId: TenantId, bytes: number, now: Date): Promise<void> | undefined {
    this.#now = now.getTime();
    const tenant = this.#tenants.get(tenantId);
    if (tenant === undefined || this.#used(tenantId, tenant) + bytes > this.quota) return this.#reserveFresh(tenantId, bytes);
    tenant.reserved += bytes;
    return undefined;
  }

  release(tenantId: TenantId, bytes: number): void {
    const tenant = this.#tenants.get(tenantId);
    if (tenant !== undefined) tenant.reserved = Math.max(0, tenant.reserved - bytes);
  }

  async #reserveFresh(tenantId: TenantId, bytes: number): Promise<void> {
    const now = this.#now;
    const isFresh = () => Math.abs(now - (this.#tenants.get(tenantId)?.readAt ?? Number.NaN)) < FRESH_MS;
    // A running flush may have begun without this tenant.
    for (let flushes = 0; flushes < 2 && !isFresh(); flushes++) {
      this.#staleTenants.add(tenantId);
      await this.flush();
    }
    const tenant = this.#tenants.get(tenantId);
    if (tenant === undefined) return;
    if (this.#used(tenantId, tenant) + bytes > this.quota) throw sessionQuotaError(this.quota);
    tenant.reserved += bytes;
  }

  record(tenantId: TenantId, change: Change, parts: Parts, committed: CommitResult): void {
    if (!committed.done) return;
    const { opens } = change;
    const [session, deferred] = [opens?.session, opens?.deferred];
    if (session !== undefined && !isTerminal(session.status))
      this.#put(tenantId, session.id, {
        ...newSession(session, parts),
        answerBytes: storedResponseBytes(change) - largeResponseBytes(change),
      });
    if (change.keeps !== undefined)
      this.#add(tenantId, expiryBucket(this.#now, change.keeps.expiresAt.getTime()), largeResponseBytes(change));
    if (opens?.grant !== undefined) {
      const bucket = expiryBucket(this.#now, opens.grant.expiresAt.getTime());
      this.#add(tenantId, bucket, grantBytes(parts));
    }
    if (deferred !== undefined) this.#put(tenantId, deferred.id, newSize(deferred, deferredBytes(parts)));
    if (change.deferred !== undefined) this.#recordDeferred(tenantId, change.deferred, parts);
    if (change.session !== undefined) this.#recordSession(tenantId, change.session, parts, committed.session);
    if (change.removes !== undefined) this.#end(tenantId, change.removes);
  }

  /** Releases a deferred transaction that was read before and removed with its session. */
  removedDeferred(tenantId: TenantId, id: string): void {
    this.#end(tenantId, id);
  }

  /** Releases sessions that changed their status without a change of their own. */
  moved(tenantId: TenantId, ids: readonly string[], to: SessionStatus): void {
    if (isTerminal(to)) for (const id of ids) this.#endSession(tenantId, id);
  }

  /** Records the size of a session from its row, before the session ends here: another process may have created it. */
  observeSession(row: Row): void {
    const [id, createdAt] = [String(row['id']), Number(row['created_at'])];
    if (isTerminal(row['status'] as SessionStatus)) this.#sizes.delete(id);
    else if (this.#isCounted(createdAt))
      this.#sizes.set(id, {
        createdAt,
        expiresAt: Number(row['expires_at']),
        requestBytes: SESSION_ROW_BYTES + lengthIn(row, 'request') + lengthIn(row, 'configuration_ids'),
        resultBytes: lengthIn(row, 'outcome'),
        answerBytes: this.#sizes.peek(id)?.answerBytes ?? 0,
      });
  }

  /**
   * Records the size of a deferred transaction from its row. A read and a change of this process can be recorded in either order, so a
   * recorded size only learns of credentials that another process added. A transaction of an earlier release counts the credentials that
   * this process adds to it.
   */
  observeDeferred(row: Row): void {
    if ((DEFERRED_ENDS as readonly unknown[]).includes(row['status'])) return;
    const [id, createdAt] = [String(row['id']), Number(row['created_at'])];
    const isCounted = this.#isCounted(createdAt);
    const size = this.#sizes.get(id) ?? {
      createdAt,
      expiresAt: Number(row['expires_at']),
      requestBytes: isCounted ? ROW_BYTES + lengthIn(row, 'holder_keys') : 0,
      resultBytes: 0,
      answerBytes: 0,
    };
    const credentialBytes = isCounted ? lengthIn(row, 'credentials') : 0;
    this.#sizes.set(id, { ...size, resultBytes: size.resultBytes || credentialBytes });
  }

  /** Bytes of the open sessions of a tenant, as far as this process has counted and read them. */
  usedBy(tenantId: TenantId): number {
    const tenant = this.#tenants.get(tenantId);
    return tenant === undefined ? 0 : this.#used(tenantId, tenant);
  }

  /** Bytes of the open sessions of the largest tenant among those that were counted in the last minute. */
  highest(): number {
    const measuredSince = performance.now() - MEASURED_MS;
    let highest = 0;
    for (const [tenantId, tenant] of this.#tenants)
      if (tenant.measuredAt >= measuredSince) highest = Math.max(highest, this.#used(tenantId, tenant));
    return highest;
  }

  /** Writes the collected changes and reads the sums of the tenants concerned. @throws StoreUnavailableError; then nothing is lost. */
  async flush(): Promise<void> {
    this.#running ??= this.#write().finally(() => {
      this.#running = undefined;
    });
    await this.#running;
  }

  /**
   * Discards all counts after the database was rolled back or promoted. The fence has ended every open session and deleted the table, so
   * counting restarts at zero. After a promotion the table continues without the unwritten changes of the last second. Documents of grants
   * that were ended do not count any more, although they stay until they expire.
   */
  forget(): void {
    this.#tenants.clear();
    this.#sizes.clear();
    this.#staleTenants.clear();
    [this.#pending, this.#inFlight, this.#endedSessions] = [new Map(), new Map(), []];
    this.#rewinds++;
  }

  /** Writes the collected changes for the last time. */
  async close(): Promise<void> {
    await this.#running?.catch(() => {});
    await this.flush().catch(() => {});
    clearTimeout(this.#timer);
  }

  async #write(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#pending.size + this.#endedSessions.length + this.#staleTenants.size === 0) return;
    const [now, rewinds] = [this.#now, this.#rewinds];
    const [endedSessions, staleTenants] = [this.#endedSessions, this.#staleTenants];
    [this.#endedSessions, this.#staleTenants] = [[], new Set()];
    try {
      await this.#releaseStored(endedSessions);
      endedSessions.length = 0;
      [this.#inFlight, this.#pending] = [this.#pending, new Map()];
      // Sums that only this process changes need not be read back.
      if (this.#sql.isShared) for (const tenantId of this.#inFlight.keys()) staleTenants.add(tenantId);
      const sums = await this.#sql.add(toDeltas(this.#inFlight), [...staleTenants], now);
      if (rewinds !== this.#rewinds) return;
      for (const [tenantId, { net }] of this.#inFlight) {
        const tenant = this.#tenants.get(tenantId);
        if (tenant !== undefined && !staleTenants.has(tenantId) && !sums.has(tenantId)) {
          tenant.storedBytes += net;
          tenant.measuredAt = performance.now();
        }
      }
      this.#inFlight = new Map();
      for (const tenantId of new Set([...staleTenants, ...sums.keys()])) this.#note(tenantId, sums.get(tenantId) ?? 0, now);
    } catch (error) {
      if (rewinds !== this.#rewinds) throw error;
      // The sessions are not released yet, unless their sizes were read.
      this.#endedSessions.unshift(...endedSessions);
      for (const [tenantId, { buckets }] of this.#inFlight) for (const [bucket, bytes] of buckets) this.#addTo(tenantId, bucket, bytes);
      this.#inFlight = new Map();
      throw error;
    } finally {
      if (this.#pending.size > 0 || this.#endedSessions.length > 0) this.#schedule();
    }
  }

  /** Releases sessions that ended here and whose size was not recorded. A session whose request was erased counts until it expires. */
  async #releaseStored(sessions: readonly EndedSession[]): Promise<void> {
    if (sessions.length === 0) return;
    const rewinds = this.#rewinds;
    const sizes = await this.#sql.sizes(sessions);
    if (rewinds !== this.#rewinds) return;
    for (const { tenantId, createdAt, expiresAt, bytes } of sizes)
      if (this.#isCounted(createdAt)) this.#addTo(tenantId, expiryBucket(createdAt, expiresAt), -(bytes + SESSION_ROW_BYTES));
  }

  #note(tenantId: string, storedBytes: number, now: number): void {
    const tenant = this.#tenants.get(tenantId);
    const measured = { storedBytes, readAt: now, measuredAt: performance.now() };
    if (tenant === undefined) this.#tenants.set(tenantId, { ...measured, reserved: 0 });
    else Object.assign(tenant, measured);
  }

  #used(tenantId: string, { storedBytes, reserved }: TenantBytes): number {
    const [pending, inFlight] = [this.#pending.get(tenantId)?.net ?? 0, this.#inFlight.get(tenantId)?.net ?? 0];
    return Math.max(0, storedBytes + pending + inFlight) + reserved;
  }

  /** Sessions of earlier releases were never counted, so their end releases nothing. */
  #isCounted(createdAt: number): boolean {
    return createdAt >= this.#countedSince;
  }

  #recordSession(
    tenantId: TenantId,
    { id, outcome, lastsUntil, endsAt }: NonNullable<Change['session']>,
    { session: fields }: Parts,
    committedSession: Extract<CommitResult, { done: true }>['session'],
  ): void {
    if (committedSession === undefined) return;
    if (isTerminal(committedSession.status)) {
      // If the session had ended before, the process that ended it has released its bytes.
      if (committedSession.moved) this.#endSession(tenantId, id);
      else this.#sizes.delete(id);
      return;
    }
    const size = this.#sizes.get(id);
    if (size === undefined || (outcome ?? lastsUntil ?? endsAt) === undefined) return;
    const expiresAt = endsAt?.getTime() ?? Math.max(size.expiresAt, lastsUntil?.getTime() ?? 0);
    const resultBytes = outcome === undefined ? size.resultBytes : lengthAt(fields, CHANGED_OUTCOME);
    this.#put(tenantId, id, { ...size, expiresAt, resultBytes });
  }

  #recordDeferred(tenantId: TenantId, { id, act }: NonNullable<Change['deferred']>, parts: Parts): void {
    if (DEFERRED_ENDS.includes(DEFERRED_MOVES[act].to)) this.#end(tenantId, id);
    else {
      // The transaction was read before its completion, so its size is unknown only after a failover in between.
      const size = this.#sizes.get(id);
      if (size === undefined) return;
      // A transaction is completed once, so its credentials are added once, whatever was read meanwhile.
      const resultBytes = lengthAt(parts.deferred, CHANGED_CREDENTIALS);
      this.#sizes.set(id, { ...size, resultBytes });
      this.#add(tenantId, expiryBucket(size.createdAt, size.expiresAt), resultBytes);
    }
  }

  /** Replaces the counted size of a session or transaction. */
  #put(tenantId: string, id: string, size: OpenSize): void {
    this.#end(tenantId, id);
    this.#sizes.set(id, size);
    this.#add(tenantId, expiryBucket(size.createdAt, size.expiresAt), bytesOf(size));
  }

  /** @returns true if its size was recorded. */
  #end(tenantId: string, id: string): boolean {
    const size = this.#sizes.get(id);
    if (size === undefined) return false;
    this.#sizes.delete(id);
    this.#add(tenantId, expiryBucket(size.createdAt, size.expiresAt), -bytesOf(size));
    return true;
  }

  #endSession(tenantId: string, id: string): void {
    if (this.#end(tenantId, id) || this.#endedSessions.length >= MAX_ENDED) return;
    this.#endedSessions.push({ tenantId, id });
    this.#schedule();
  }

  #add(tenantId: string, bucket: number, bytes: number): void {
    // Expired bytes count nothing.
    if (bytes === 0 || bucket <= this.#now) return;
    this.#addTo(tenantId, bucket, bytes);
    this.#schedule();
  }

  #addTo(tenantId: string, bucket: number, bytes: number): void {
    let bytesOfTenant = this.#pending.get(tenantId);
    if (bytesOfTenant === undefined) {
      bytesOfTenant = { net: 0, buckets: new Map() };
      this.#pending.set(tenantId, bytesOfTenant);
    }
    bytesOfTenant.net += bytes;
    bytesOfTenant.buckets.set(bucket, (bytesOfTenant.buckets.get(bucket) ?? 0) + bytes);
  }

  #schedule(): void {
    // Callers notice a database that does not respond; the next flush tries again.
    this.#timer ??= setTimeout(() => void this.flush().catch(() => {}), FLUSH_MS).unref();
  }
}

/**
 * Bytes that a change needs from the quota. Requests that wallets push before a login do not count: anonymous callers could use up the
 * quota of the tenant. Rate limits bound them.
 */
export function bytesToReserve(change: Change, parts: Parts): number {
  const { opens, deferred } = change;
  return (
    (opens?.session === undefined ? 0 : bytesOf(newSession(opens.session, parts)) + storedResponseBytes(change)) +
    (opens?.deferred === undefined ? 0 : deferredBytes(parts)) +
    (deferred?.act === 'complete' ? lengthAt(parts.deferred, CHANGED_CREDENTIALS) : 0)
  );
}

function toDeltas(bytesByTenant: ReadonlyMap<string, Bytes>): BytesDelta[] {
  return Array.from(bytesByTenant, ([tenantId, { buckets }]) =>
    Array.from(buckets, ([expiresAt, bytes]) => ({ tenantId, expiresAt, bytes })),
  )
    .flat()
    .filter(({ bytes }) => bytes !== 0);
}

const bytesOf = ({ requestBytes, resultBytes, answerBytes }: OpenSize) => requestBytes + resultBytes + answerBytes;

type Lifetime = { readonly createdAt: Date; readonly expiresAt: Date };

function newSize({ createdAt, expiresAt }: Lifetime, requestBytes: number): OpenSize {
  return { createdAt: createdAt.getTime(), expiresAt: expiresAt.getTime(), requestBytes, resultBytes: 0, answerBytes: 0 };
}

function newSession(session: Lifetime, { newSession: fields }: Parts): OpenSize {
  const requestBytes = SESSION_ROW_BYTES + lengthAt(fields, REQUEST) + lengthAt(fields, CONFIGURATION_IDS);
  return { ...newSize(session, requestBytes), resultBytes: lengthAt(fields, OUTCOME) };
}

const [REQUEST, CONFIGURATION_IDS, OUTCOME] = ['request', 'configuration_ids', 'outcome'].map((column) =>
  SESSIONS.columns.indexOf(column),
) as [number, number, number];
const GRANT_DOCUMENT = GRANTS.columns.indexOf('document');
const HOLDER_KEYS = DEFERRED.columns.indexOf('holder_keys');

/** The row of the grant itself counts with its session. */
const grantBytes = ({ newGrant }: Parts) => lengthAt(newGrant, GRANT_DOCUMENT);
const deferredBytes = ({ newDeferred }: Parts) => ROW_BYTES + lengthAt(newDeferred, HOLDER_KEYS);
const storedResponseBytes = ({ keeps }: Change) => (keeps === undefined ? 0 : ROW_BYTES + sealedLength(estimateJsonLength(keeps.said)));
/** A stored response outlives its session, so a large one counts until it expires. */
function largeResponseBytes(change: Change): number {
  const bytes = storedResponseBytes(change);
  return bytes > MAX_KEPT_REQUEST ? bytes : 0;
}

function lengthAt(fields: Fields | undefined, index: number): number {
  const field = fields?.[index];
  return typeof field === 'string' ? field.length : 0;
}

function lengthIn(row: Row, column: string): number {
  const value = row[column];
  return typeof value === 'string' ? value.length : 0;
}
