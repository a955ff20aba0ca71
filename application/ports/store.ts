import type { Change, CommitResult } from '../../domain/changes/change.ts';
import type { DeferredTransaction } from '../../domain/issuance/deferred.ts';
import type { Authorization } from '../../domain/oauth/authorization.ts';
import type { AuthorizationSummary } from '../../domain/oauth/authorization-summary.ts';
import type { ConsumedValue } from '../../domain/oauth/consumed-value.ts';
import type { Grant } from '../../domain/oauth/grant.ts';
import type { IdempotentResponse } from '../../domain/sessions/idempotent-response.ts';
import type { Session, SessionKind, SessionRequest, SessionStatus, SessionTransition, SessionUse } from '../../domain/sessions/session.ts';
import type { SessionSearchKeys } from '../../domain/sessions/session-search.ts';
import type { Profile } from '../../domain/shared/finding.ts';
import type { PublicId, SessionId, TenantId } from '../../domain/shared/ids.ts';
import type { IssuedBatch, StatusList } from '../../domain/status-lists/status-list.ts';
import type { StoredRevisions } from '../../domain/tenants/revisions.ts';
import type { TenantStatus } from '../../domain/tenants/tenant.ts';
import type { DatedListVersion, SeenListVersion } from '../../domain/trust-lists/freshness.ts';
import type { PublishedList } from '../../domain/trust-lists/published-list.ts';
import type { Maintenance } from './maintenance.ts';
import type {
  ServiceReader,
  ServiceRepositories,
  TenantReader,
  TenantRepositories,
  TenantWriteOptions,
  WriteOptions,
} from './repositories.ts';
import type { SessionRateReads } from './session-rates.ts';
import type { StoredTrustLists } from './stored-trust-lists.ts';

/**
 * The database cannot be reached or written at present; `cause` gives the reason to the operator. It is not a `Failure`, since it neither
 * is the caller's fault nor means that nothing happened: a statement on a lost connection may have been committed.
 */
export class StoreUnavailableError extends Error {}

/** The database can be read but not written: a standby, a full disk, a read-only file. The write did not happen. */
export class StoreUnwritableError extends StoreUnavailableError {}

/**
 * The only access to stored data. `forTenant` and `forService` run one transaction of the administration; all other use cases write
 * with `commit` and read with `read`. Only these entry points take a tenant, so the methods behind them cannot mix up tenants. All of
 * them throw `StoreUnavailableError` when the database does not work.
 *
 * Every write through the repositories adds an entry to the audit log in the same transaction: to the chain of the tenant, or to that
 * of the service for data that belong to no tenant. A change of a tenant by an account without tenant is added to both, so that the
 * record outlives the tenant.
 */
export abstract class Store {
  /** Runs `work` in one transaction that sees this tenant's rows only. A throw rolls everything back. */
  abstract forTenant<T>(tenantId: TenantId, work: (repositories: TenantReader) => Promise<T>): Promise<T>;
  abstract forTenant<T>(
    tenantId: TenantId,
    work: (repositories: TenantRepositories) => Promise<T>,
    writing: TenantWriteOptions,
  ): Promise<T>;
  /** Runs `work` in one transaction over tenants and clients. It never sees a session. */
  abstract forService<T>(work: (repositories: ServiceReader) => Promise<T>): Promise<T>;
  abstract forService<T>(work: (repositories: ServiceRepositories) => Promise<T>, writing: WriteOptions): Promise<T>;
  /** Applies a change atomically, without decisions of its own. @param now the time as of which it was decided. */
  abstract commit(tenantId: TenantId, change: Change, now: Date): Promise<CommitResult>;
  /**
   * Moves those sessions that allow it, without any other effect; a session that is being changed may be skipped. A crash may undo
   * the last writes, so this is only for moves that are not reported to callers.
   */
  abstract note(tenantId: TenantId, sessions: readonly SessionId[], move: SessionTransition, now: Date): Promise<readonly NotedSession[]>;
  abstract read(tenantId: TenantId): TenantReads;
  abstract lists(tenantId: TenantId): TenantLists;
  /** Jobs over all tenants, each in bounded batches. */
  abstract readonly maintenance: Maintenance;
  /** Time of the last fence: values issued before are invalid, since the database was restored. Undefined if there was none. */
  abstract readonly fencedAt: Date | undefined;
  /** @param forget called whenever caches of this process may hold data that the database has lost in a rollback. */
  abstract onRewind(forget: () => void): void;
  abstract ping(): Promise<void>;
}

export type SessionState = Pick<Session, 'status' | 'version' | 'updatedAt' | 'expiresAt' | 'claimedAt'>;

/** A session that moved, with its new version. */
export type NotedSession = { readonly id: SessionId; readonly version: number };

/** Status and revisions of a tenant, which every decision starts from. */
export type TenantState = {
  readonly id: TenantId;
  readonly status: TenantStatus;
  readonly endsAt?: Date;
  readonly revision: number;
  readonly revisions: StoredRevisions;
  readonly profile: Profile | null;
};

export type SessionQuery = {
  readonly kinds: readonly SessionKind[];
  readonly status?: SessionStatus;
  readonly since?: Date;
  readonly until?: Date;
  /** Matches sessions with one of these names. */
  readonly named?: SessionSearchKeys;
  readonly ascending: boolean;
  readonly limit: number;
  /** Last session of the previous page. */
  readonly after?: SessionCursor;
  /** Last position that may be read, in the order of the list. */
  readonly through?: SessionCursor;
};
/** A position in creation order. */
export type SessionCursor = { readonly createdAt: Date; readonly id: string };
export type SessionRange = Pick<SessionQuery, 'since' | 'until' | 'after' | 'ascending'>;

export type DeferredQuery = { readonly sessionId?: SessionId; readonly limit: number };

/** A session for its operator: with the request of its wallet to the built-in authorization server. */
export type SessionWithAuthorization = { readonly session: Session; readonly authorization: AuthorizationSummary | undefined };

/** A value together with the state of its tenant, in one read; undefined if there is no such tenant. */
export type WithTenant<T> = Promise<(T & { readonly tenant: TenantState }) | undefined>;

/** Reads of one tenant outside its configuration; each is one round trip. */
export type TenantReads = SessionRateReads & {
  /** Callers in the same turn of the event loop share one read. */
  state(): Promise<TenantState | undefined>;
  session(id: SessionId): WithTenant<{ readonly session: Session | undefined }>;
  /** @param request of that session if it is cached: it never changes. */
  sessionWithAuthorization(
    id: SessionId,
    request?: SessionRequest,
  ): WithTenant<{ readonly session: Session | undefined; readonly authorization: AuthorizationSummary | undefined }>;
  sessionByPublicId(publicId: PublicId): WithTenant<{ readonly session: Session | undefined }>;
  /** The mutable properties of an open session, without its content. */
  sessionState(publicId: PublicId): WithTenant<{ readonly sessionState: SessionState | undefined }>;
  /** A session for a credential request, and whether the values of the request are still usable. */
  issuing(
    publicId: PublicId,
    uses: readonly ConsumedValue[],
    grantId: string | undefined,
  ): WithTenant<{
    readonly session: Session | undefined;
    readonly use: SessionUse | undefined;
    readonly used: ConsumedValue['kind'] | undefined;
    /** True if the grant was revoked; false for a grant that was removed. */
    readonly revoked: boolean;
  }>;
  sessions(query: SessionQuery): Promise<Session[]>;
  /** Position of the `count`th session of a range; undefined if it has fewer. It bounds the cost of a filtered list. */
  sessionCursorAt(range: SessionRange, count: number): Promise<SessionCursor | undefined>;
  /** Sessions of a user of an external authorization server, newest first, at most 20. */
  sessionsOfSubject(subjectHash: string): Promise<Session[]>;
  /** Versions of many sessions in one read, for event streams. */
  sessionVersions(ids: readonly SessionId[]): Promise<{ id: SessionId; version: number }[]>;
  /** Event log of one session after a sequence number, oldest first, at most `limit`. */
  sessionEvents(id: SessionId, after: number, limit: number): Promise<SessionLogEntry[]>;
  grantByCode(codeHash: string): WithTenant<{ readonly grant: Grant | undefined }>;
  grant(id: string): WithTenant<{ readonly grant: Grant | undefined }>;
  authorization(id: string): WithTenant<{ readonly authorization: Authorization | undefined }>;
  idempotentResponse(id: string, now: Date): WithTenant<{ readonly response: IdempotentResponse | undefined }>;
  deferred(id: string): Promise<DeferredTransaction | undefined>;
  /** Newest first. */
  deferredTransactions(query: DeferredQuery): Promise<DeferredTransaction[]>;
  /** Credentials that a session issued, oldest first; the record outlives the session. */
  issued(sessionId: SessionId): WithTenant<{
    /** Configurations of the session, in the order of its bits; undefined when the session was removed. */
    readonly configurationIds: readonly string[] | undefined;
    readonly batches: IssuedBatch[];
  }>;
  statusList(id: string): Promise<StatusList | undefined>;
  /** Versions from different terms of the database cannot be compared. */
  statusListVersions(ids: readonly string[]): Promise<(ListState & { readonly id: string; readonly keyChainId: string | null })[]>;
  /** Entries changed after `version`; with 0 all entries that are not valid or once were not. */
  statusEntries(listId: string, afterVersion: number): Promise<{ index: number; status: number }[]>;
  /** Statuses of entries that ever had another status than valid; in no order. */
  statusesAt(listId: string, indices: readonly number[]): Promise<number[]>;
  statusEntriesAt(listId: string, indices: readonly number[]): Promise<{ readonly index: number; readonly status: number }[]>;
  /** A published trust list; also of a suspended tenant. */
  trustList(id: string): Promise<Pick<PublishedList, 'jwt' | 'nextUpdate'> | undefined>;
};

/** A version of a list's entries; the pair with the term (`domain/rewinds/term.ts`) is unique. */
export type ListState = { readonly version: number; readonly term: number };

/** Counters and stored copies of a tenant's lists; each method is one conditional statement. */
export type TenantLists = StoredTrustLists & {
  /**
   * Allocates `count` consecutive counters of a status list.
   * @param usedCounters number of counters that are known to be used, regardless of the database, which may have lost that.
   * @returns the first, or undefined when the list has no such room left or is signed by another key chain now.
   */
  allocateStatusRun(list: Pick<StatusList, 'id' | 'keyChainId'>, count: number, usedCounters?: number): Promise<number | undefined>;
  /**
   * Stores a signed token (with null only its expiry), unless a newer one is stored.
   * @param state of the list that the token shows; nothing is stored for a version that the database does not know, or may have lost.
   */
  saveStatusToken(listId: string, token: string | null, state: ListState, issuedAt: Date, expiresAt: Date): Promise<void>;
  /** The newest version that was seen of an external trust list. @param id of the list. */
  newestListVersion(id: string): Promise<DatedListVersion | undefined>;
  /**
   * Records a version of an external trust list if it is newer than the recorded one.
   * @param id of the list.
   * @returns the newest version that was seen, which is this one or another.
   */
  recordListVersion(id: string, release: SeenListVersion, now: Date): Promise<SeenListVersion>;
};

export type SessionLogEntry = { readonly sequence: number; readonly version: number; readonly status: SessionStatus; readonly at: Date };
