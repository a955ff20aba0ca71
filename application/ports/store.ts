import type { Change, Committed } from '../../domain/changes/change.ts';
import type { DeferredTransaction } from '../../domain/issuance/deferred.ts';
import type { AskedAuthorization } from '../../domain/oauth/asked-authorization.ts';
import type { Authorization } from '../../domain/oauth/authorization.ts';
import type { Grant } from '../../domain/oauth/grant.ts';
import type { UsedValue } from '../../domain/oauth/used-value.ts';
import type { KeptAnswer } from '../../domain/sessions/kept-answer.ts';
import type { Session, SessionKind, SessionRequest, SessionStatus, SessionTransition, SessionUse } from '../../domain/sessions/session.ts';
import type { SessionNames } from '../../domain/sessions/session-search.ts';
import type { Profile } from '../../domain/shared/finding.ts';
import type { PublicId, SessionId, TenantId } from '../../domain/shared/ids.ts';
import type { IssuedBatch, StatusList } from '../../domain/status-lists/status-list.ts';
import type { StoredRevisions } from '../../domain/tenants/revisions.ts';
import type { TenantStatus } from '../../domain/tenants/tenant.ts';
import type { DatedRelease, SeenRelease } from '../../domain/trust-lists/freshness.ts';
import type { PublishedList } from '../../domain/trust-lists/published-list.ts';
import type { KeptTrustLists } from './kept-trust-lists.ts';
import type { Maintenance } from './maintenance.ts';
import type { ServiceReader, ServiceRepositories, TenantReader, TenantRepositories, TenantWriting, Writing } from './repositories.ts';
import type { SessionRateReads } from './session-rates.ts';

/**
 * The database cannot be reached or written at present; `cause` says why, for the operator alone. No `Failure`: nobody
 * who asked for something is to be told that they did it wrong, nor that nothing happened: when a connection is lost, what
 * was under way on it may have been done.
 */
export class StoreUnavailable extends Error {}

/** It can be read and takes no writes: a standby, a full disk, a file that nobody may write. Nothing of the write happened. */
export class StoreUnwritable extends StoreUnavailable {}

/**
 * The only door to stored data. `forTenant` and `forService` run one transaction of the administration; `commit` and
 * `read` are the way in and the way out of everything else. No method takes a tenant besides the doors themselves, so
 * none can get it wrong. All of them throw `StoreUnavailable` when the database does not work.
 *
 * Every write through the repositories leaves an entry in the audit log in the same transaction: in the chain of the
 * tenant, and in that of the service for what belongs to no tenant. What an account without tenant does to a tenant
 * stands in both, so that it is known after the tenant is gone.
 */
export abstract class Store {
  /** Runs `work` in one transaction that sees this tenant's rows only. A throw rolls everything back. */
  abstract forTenant<T>(tenantId: TenantId, work: (own: TenantReader) => Promise<T>): Promise<T>;
  abstract forTenant<T>(tenantId: TenantId, work: (own: TenantRepositories) => Promise<T>, writing: TenantWriting): Promise<T>;
  /** Runs `work` in one transaction over tenants and clients. It never sees a session. */
  abstract forService<T>(work: (all: ServiceReader) => Promise<T>): Promise<T>;
  abstract forService<T>(work: (all: ServiceRepositories) => Promise<T>, writing: Writing): Promise<T>;
  /** Applies a change whole or not at all; it decides nothing. @param now the time as of which it was decided. */
  abstract commit(tenantId: TenantId, change: Change, now: Date): Promise<Committed>;
  /**
   * Moves those sessions that can, without a word of what else happens to them; one that is being changed may be passed
   * over. A crash may undo what it wrote a moment ago, so it is for what nobody is told of.
   */
  abstract note(tenantId: TenantId, sessions: readonly SessionId[], move: SessionTransition, now: Date): Promise<readonly NotedSession[]>;
  abstract read(tenantId: TenantId): TenantReads;
  abstract lists(tenantId: TenantId): ListKeeping;
  /** Over all tenants, each in bounded batches. */
  abstract readonly maintenance: Maintenance;
  /** What was handed out until then counts no more: the database was put back. Undefined where that never happened. */
  abstract readonly fencedAt: Date | undefined;
  /** @param forget is called whenever what this process remembers may be of a past that the database has lost. */
  abstract onRewind(forget: () => void): void;
  /** Resolves when the database answers and takes writes. */
  abstract ping(): Promise<void>;
}

export type SessionStanding = Pick<Session, 'status' | 'version' | 'updatedAt' | 'expiresAt' | 'claimedAt'>;

/** A session that moved, and its version since. */
export type NotedSession = { readonly id: SessionId; readonly version: number };

/** What everybody must know about a tenant before anything else: how it stands, and as of which revision. */
export type TenantState = {
  readonly id: TenantId;
  readonly status: TenantStatus;
  /** When it ends by itself, if it does. */
  readonly endsAt?: Date;
  readonly revision: number;
  readonly revisions: StoredRevisions;
  readonly profile: Profile | null;
};

export type SessionQuery = {
  readonly kinds: readonly SessionKind[];
  readonly status?: SessionStatus;
  readonly since?: Date;
  /** Only sessions that were created until then. */
  readonly until?: Date;
  /** One of these names is the session's. */
  readonly named?: SessionNames;
  readonly ascending: boolean;
  readonly limit: number;
  /** The last session of the page before. */
  readonly after?: SessionPlace;
  /** The last place that may be read, in the order of the list. */
  readonly through?: SessionPlace;
};
/** A place in the order of creation. */
export type SessionPlace = { readonly createdAt: Date; readonly id: string };
/** A part of all sessions of a tenant, whatever they are. */
export type SessionRange = Pick<SessionQuery, 'since' | 'until' | 'after' | 'ascending'>;

export type DeferredQuery = { readonly sessionId?: SessionId; readonly limit: number };

/** A session as its operator sees it: with what its wallet asked for at an authorization server of ours. */
export type AskedSession = { readonly session: Session; readonly asked: AskedAuthorization | undefined };

/** Something together with how its tenant stands, in one read; undefined where there is no such tenant. */
export type WithTenant<T> = Promise<(T & { readonly tenant: TenantState }) | undefined>;

/** What can be found of one tenant outside its configuration; each is one round trip. */
export type TenantReads = SessionRateReads & {
  /** Everybody who asks in the same turn of the event loop shares one read. */
  state(): Promise<TenantState | undefined>;
  session(id: SessionId): WithTenant<{ readonly session: Session | undefined }>;
  /** @param request of that session, where it is known already: it never changes. */
  seenSession(
    id: SessionId,
    request?: SessionRequest,
  ): WithTenant<{ readonly session: Session | undefined; readonly asked: AskedAuthorization | undefined }>;
  sessionByPublicId(publicId: PublicId): WithTenant<{ readonly session: Session | undefined }>;
  /** Of a session what others may change while it is open, without its contents. */
  sessionStanding(publicId: PublicId): WithTenant<{ readonly standing: SessionStanding | undefined }>;
  /** A session for a credential request, and whether what the request brought counts still. */
  issuing(
    publicId: PublicId,
    uses: readonly UsedValue[],
    grantId: string | undefined,
  ): WithTenant<{
    readonly session: Session | undefined;
    readonly use: SessionUse | undefined;
    /** The kind of a value that was used before. */
    readonly used: UsedValue['kind'] | undefined;
    /** Whether the grant was revoked; one that is gone was not. */
    readonly revoked: boolean;
  }>;
  sessions(query: SessionQuery): Promise<Session[]>;
  /** The place of the `count`th session of a range; undefined where it has fewer. It bounds what a filtered list costs. */
  sessionPlace(range: SessionRange, count: number): Promise<SessionPlace | undefined>;
  /** Sessions of a user of a foreign authorization server, the newest first, at most 20. */
  sessionsOfSubject(subjectHash: string): Promise<Session[]>;
  /** Of many sessions at once, for event streams. */
  sessionVersions(ids: readonly SessionId[]): Promise<{ id: SessionId; version: number }[]>;
  /** Event log of one session after a sequence number, oldest first, at most `limit`. */
  sessionEvents(id: SessionId, after: number, limit: number): Promise<SessionLogEntry[]>;
  grantByCode(codeHash: string): WithTenant<{ readonly grant: Grant | undefined }>;
  grant(id: string): WithTenant<{ readonly grant: Grant | undefined }>;
  authorization(id: string): WithTenant<{ readonly authorization: Authorization | undefined }>;
  /** What a client was answered before, unless that is over. */
  keptAnswer(id: string, now: Date): WithTenant<{ readonly kept: KeptAnswer | undefined }>;
  deferred(id: string): Promise<DeferredTransaction | undefined>;
  /** The newest first. */
  deferredTransactions(query: DeferredQuery): Promise<DeferredTransaction[]>;
  /** What a session issued, oldest first; the record outlives the session. */
  issued(sessionId: SessionId): WithTenant<{
    /** Of the session, in the order of its bits; undefined when it is gone. */
    readonly configurationIds: readonly string[] | undefined;
    readonly batches: IssuedBatch[];
  }>;
  statusList(id: string): Promise<StatusList | undefined>;
  /** Of different terms of the database, versions say nothing of each other. */
  statusListVersions(ids: readonly string[]): Promise<(ListState & { readonly id: string; readonly keyChainId: string | null })[]>;
  /** Entries changed after `version`; from 0 on all that are not valid or once were not. */
  statusEntries(listId: string, afterVersion: number): Promise<{ index: number; status: number }[]>;
  /** Of entries of a list that ever had another status than valid; in no order. */
  statusesAt(listId: string, indices: readonly number[]): Promise<number[]>;
  /** The same with the entries that they are of. */
  statusEntriesAt(listId: string, indices: readonly number[]): Promise<{ readonly index: number; readonly status: number }[]>;
  /** A trust list as it is published; also of a tenant that is suspended. */
  trustList(id: string): Promise<Pick<PublishedList, 'jwt' | 'nextUpdate'> | undefined>;
};

/** A version of a list's entries; together with the term (`domain/rewinds/term.ts`) it never comes again. */
export type ListState = { readonly version: number; readonly term: number };

/** Counters and copies that belong to lists; each is one conditional statement. */
export type ListKeeping = KeptTrustLists & {
  /**
   * A run of `count` counters of a status list.
   * @param seen counters that are known to be taken, whatever the database says: it may have lost that. @returns the first, or undefined when the list has no such room left or is signed by another key chain now.
   */
  takeStatusRun(list: Pick<StatusList, 'id' | 'keyChainId'>, count: number, seen?: number): Promise<number | undefined>;
  /**
   * Keeps a signed token, or with null only when it ends, unless a newer one is there already. @param state of the list that it
   * shows; nothing is kept of a version that the database does not know, or that it may have lost.
   */
  saveStatusToken(listId: string, token: string | null, state: ListState, issuedAt: Date, expiresAt: Date): Promise<void>;
  /** The newest release that was seen of somebody else's list. @param id of the list. */
  release(id: string): Promise<DatedRelease | undefined>;
  /**
   * Remembers a release of somebody else's list when it is newer than the one that was seen before.
   * @param id of the list.
   * @returns the newest release that was seen, which is this one or another.
   */
  noteRelease(id: string, release: SeenRelease, now: Date): Promise<SeenRelease>;
};

export type SessionLogEntry = { readonly sequence: number; readonly version: number; readonly status: SessionStatus; readonly at: Date };
