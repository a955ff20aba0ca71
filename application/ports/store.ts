import type {
  Actor,
  AuditAction,
  AuditChange,
  AuditEntry,
  AuditKind,
} from '../../domain/audit/audit-entry.ts';
import type { AuditHead } from '../../domain/audit/chain.ts';
import type { Change, Committed } from '../../domain/changes/change.ts';
import type { Client } from '../../domain/clients/client.ts';
import type { DeferredTransaction } from '../../domain/issuance/deferred.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { Authorization } from '../../domain/oauth/authorization.ts';
import type { Grant } from '../../domain/oauth/grant.ts';
import type { UsedValue } from '../../domain/oauth/used-value.ts';
import type { DocumentKind, EditedKind, RepositoryOf, Stored } from '../../domain/resources.ts';
import type { Session, SessionKind, SessionStatus, SessionUse } from '../../domain/sessions/session.ts';
import type { PublicId, SessionId, TenantId } from '../../domain/shared/ids.ts';
import type { IssuedBatch, StatusList } from '../../domain/status-lists/status-list.ts';
import type { StoredRevisions } from '../../domain/tenants/revisions.ts';
import type { Tenant, TenantStatus } from '../../domain/tenants/tenant.ts';
import type { SeenRelease } from '../../domain/trust-lists/freshness.ts';
import type { ListVersion, PublishedList } from '../../domain/trust-lists/published-list.ts';

/** What a writer takes to be stored. */
export type Precondition = {
  readonly kind: EditedKind;
  readonly id: string;
  /** Whether that is what the writer goes out from; undefined when there is nothing. */
  readonly holds: (stored: object | undefined) => boolean;
};

/**
 * Who writes, for the audit log: without it a transaction only reads. A caller may bring a precondition; the store looks
 * in the same transaction whether it holds, and writes nothing otherwise.
 */
export type Writing = {
  readonly by: Actor | (Exclude<Actor, string> & { readonly precondition?: Precondition });
};

export function preconditionOf(writing: Writing | undefined): Precondition | undefined {
  const by = writing?.by;
  return typeof by === 'object' && 'precondition' in by ? by.precondition : undefined;
}

export type TenantWriting = Writing & {
  /**
   * After all others of the tenant that ask for it, for what reads one thing and writes another, such as a key chain
   * that goes only while nothing names it.
   */
  readonly alone?: boolean;
};

/**
 * The database cannot be reached or written at present; `cause` says why, for the operator alone. No `Failure`: nobody
 * who asked for something is to be told that they did it wrong, nor that nothing happened: when a connection is lost, what
 * was under way on it may have been done.
 */
export class StoreUnavailable extends Error {}

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
  abstract forTenant<T>(
    tenantId: TenantId,
    work: (own: TenantRepositories) => Promise<T>,
    writing: TenantWriting,
  ): Promise<T>;
  /** Runs `work` in one transaction over tenants and clients. It never sees a session. */
  abstract forService<T>(work: (all: ServiceReader) => Promise<T>): Promise<T>;
  abstract forService<T>(work: (all: ServiceRepositories) => Promise<T>, writing: Writing): Promise<T>;
  /** Applies a change whole or not at all; it decides nothing. @param now the time as of which it was decided. */
  abstract commit(tenantId: TenantId, change: Change, now: Date): Promise<Committed>;
  abstract read(tenantId: TenantId): TenantReads;
  abstract lists(tenantId: TenantId): ListKeeping;
  /** Over all tenants, each in bounded batches. */
  abstract readonly chores: Chores;
  /** Resolves when the database answers. */
  abstract ping(): Promise<void>;
}

/** Documents of one kind, found by their id within the tenant. */
export type Documents<T> = {
  /** @throws Failure `not_found`. */
  get(id: string): Promise<T>;
  find(id: string): Promise<T | undefined>;
  /** In order of their ids. */
  list(): Promise<T[]>;
  /** @throws Failure `conflict` when the id is taken. */
  add(document: T): Promise<void>;
  /** Creates or replaces. */
  put(document: T): Promise<void>;
  /** @throws Failure `not_found`. */
  remove(id: string): Promise<void>;
};

/** The repositories of kinds that are kept as a whole. */
export type DocumentRepositories = {
  readonly [Kind in DocumentKind as RepositoryOf<Kind>]: Documents<Stored<Kind>>;
};

/** Every write through these repositories raises the tenant's revision in the same transaction. */
export type TenantRepositories = DocumentRepositories & {
  readonly tenant: {
    get(): Promise<Tenant>;
    /** @throws Failure `conflict` when `tenant.version` is not the stored one. */
    save(tenant: Tenant): Promise<Tenant>;
  };
  readonly clients: {
    get(clientId: string): Promise<Client>;
    list(): Promise<Client[]>;
    /** @throws Failure `conflict` when the id is taken, by whichever tenant. */
    add(client: Client): Promise<void>;
    /** @throws Failure `conflict` when `client.version` is not the stored one. */
    save(client: Client): Promise<Client>;
    /** The tenant remembers the id until a client is made of it anew. */
    remove(clientId: string): Promise<void>;
  };
  readonly statusLists: {
    get(id: string): Promise<StatusList>;
    list(): Promise<StatusList[]>;
    add(list: StatusList): Promise<void>;
    /**
     * Changes whose credentials a list serves and who signs it, and raises its version. One conditional statement, so
     * that nobody gets an entry of a list whose readers are about to change.
     * @param state with `unused`, only as long as no entry was handed out.
     * @returns undefined, with nothing changed, when one was.
     * @throws Failure `not_found`.
     */
    rebind(
      id: string,
      binding: Pick<StatusList, 'credentialConfigurationId' | 'keyChainId'>,
      state: { readonly unused: boolean },
    ): Promise<StatusList | undefined>;
    /**
     * One conditional statement, so that nobody gets an entry of a list that goes.
     * @returns false, with nothing changed, when entries were handed out, or there is no such list.
     */
    removeUnused(id: string): Promise<boolean>;
  };
  readonly trustLists: TrustListRepository;
  /** Releases of lists of others, see `noteRelease`. */
  readonly seenReleases: { removeAll(): Promise<void> };
  readonly audit: AuditLog & {
    /** Notes what is no write of these repositories, in the same transaction. */
    note(change: AuditChange): void;
  };
};

/** One chain of the audit log. */
export type AuditLog = {
  list(query: AuditQuery): Promise<AuditEntry[]>;
  head(): Promise<AuditHead | undefined>;
};

export type AuditQuery = {
  readonly actor?: string;
  readonly kind?: AuditKind;
  readonly target?: string;
  readonly action?: AuditAction;
  readonly since?: Date;
  /** Only entries before this time. */
  readonly until?: Date;
  /** By sequence; the newest first otherwise. */
  readonly ascending?: boolean;
  /** The sequence of the last entry of the page before. */
  readonly after?: number;
  readonly limit: number;
};

type Reading =
  | 'get'
  | 'find'
  | 'list'
  | 'listOf'
  | 'isRemoved'
  | 'lastNumber'
  | 'versions'
  | 'version'
  | 'head'
  | 'nextScope';
type ReaderOf<Repositories> = {
  readonly [Name in keyof Repositories]: Pick<Repositories[Name], Extract<keyof Repositories[Name], Reading>>;
};

/** The repositories without what writes. */
export type TenantReader = ReaderOf<TenantRepositories>;
export type ServiceReader = ReaderOf<ServiceRepositories>;

/** `before`: only releases with a lower number. */
export type VersionPortion = { readonly limit: number; readonly before: number | undefined };

/** Trust lists that the tenant publishes. Who writes one does so `alone`. */
export type TrustListRepository = {
  /** @throws Failure `not_found`. */
  get(id: string): Promise<PublishedList>;
  find(id: string): Promise<PublishedList | undefined>;
  /** In order of their ids. */
  list(): Promise<PublishedList[]>;
  /** @throws Failure `conflict` when the id is taken. */
  add(list: PublishedList): Promise<void>;
  /**
   * Puts a release in the place of the one that `former` is, and keeps that as a version.
   * @returns false, with nothing changed, when the list has another release by now, or is gone.
   */
  replace(list: PublishedList, former: ListVersion): Promise<boolean>;
  /**
   * Takes a list away with all that it was. Only the number of its last release stays, so that a list of the same id
   * goes on from there.
   * @returns as `replace`.
   */
  remove(former: ListVersion): Promise<boolean>;
  /** The highest number that a release of this id ever had, also before the list was removed; 0 without any. */
  lastNumber(id: string): Promise<number>;
  /** Releases that were replaced, newest first, at most `MAX_VERSIONS`. */
  versions(id: string, portion?: VersionPortion): Promise<ListVersion[]>;
  /** @throws Failure `not_found`. */
  version(id: string, versionId: string): Promise<ListVersion>;
};

/** What a tenant starts with. */
export type TenantBelongings = {
  readonly keyChains: readonly KeyChain[];
  readonly clients: readonly Client[];
};

export type ServiceRepositories = {
  readonly tenants: {
    get(id: TenantId): Promise<Tenant>;
    find(id: TenantId): Promise<Tenant | undefined>;
    list(): Promise<Tenant[]>;
    /**
     * Adds a tenant together with what it starts with, so that none exists without its keys.
     * @throws Failure `conflict` when its id, or that of a client, is taken.
     */
    add(tenant: Tenant, belongings?: TenantBelongings): Promise<void>;
    /**
     * Removes the tenant: nothing of it can be found any more. Its keys, clients and configuration go at once, what may be
     * much goes by `removeRemains`.
     */
    remove(id: TenantId): Promise<void>;
  };
  readonly clients: {
    find(clientId: string): Promise<Client | undefined>;
    listOf(tenantId: TenantId): Promise<Client[]>;
    /** Whether the tenant removed a client of this id and has not made another one since. */
    isRemoved(tenantId: TenantId, clientId: string): Promise<boolean>;
    add(client: Client): Promise<void>;
    save(client: Client): Promise<Client>;
  };
  /** The chain of the service. */
  readonly audit: AuditLog & {
    /** The first tenant after `after`, in an order of the store's own, that is there or has a chain. */
    nextScope(after: string): Promise<TenantId | undefined>;
  };
};

/** What everybody must know about a tenant before anything else: how it stands, and as of which revision. */
export type TenantState = {
  readonly id: TenantId;
  readonly status: TenantStatus;
  readonly revision: number;
  readonly revisions: StoredRevisions;
};

export type SessionQuery = {
  readonly kinds: readonly SessionKind[];
  readonly status?: SessionStatus;
  readonly since?: Date;
  readonly ascending: boolean;
  readonly limit: number;
  /** The last session of the page before. */
  readonly after?: { readonly createdAt: Date; readonly id: string };
};

export type DeferredQuery = {
  readonly sessionId?: SessionId;
  readonly limit: number;
};

/** Something together with how its tenant stands, in one read; undefined where there is no such tenant. */
export type WithTenant<T> = Promise<(T & { readonly tenant: TenantState }) | undefined>;

/** What can be found of one tenant outside its configuration; each is one round trip. */
export type TenantReads = {
  /** Everybody who asks in the same turn of the event loop shares one read. */
  state(): Promise<TenantState | undefined>;
  session(id: SessionId): WithTenant<{ readonly session: Session | undefined }>;
  sessionByPublicId(publicId: PublicId): WithTenant<{ readonly session: Session | undefined }>;
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
  /** Sessions of a user of a foreign authorization server, the newest first, at most 20. */
  sessionsOfSubject(subjectHash: string): Promise<Session[]>;
  /** Of many sessions at once, for event streams. */
  sessionVersions(ids: readonly SessionId[]): Promise<{ id: SessionId; version: number }[]>;
  /** Event log of one session after a sequence number, oldest first, at most `limit`. */
  sessionEvents(id: SessionId, after: number, limit: number): Promise<SessionLogEntry[]>;
  grantByCode(codeHash: string): WithTenant<{ readonly grant: Grant | undefined }>;
  grant(id: string): WithTenant<{ readonly grant: Grant | undefined }>;
  authorization(id: string): WithTenant<{ readonly authorization: Authorization | undefined }>;
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
  statusListVersions(
    ids: readonly string[],
  ): Promise<{ id: string; version: number; keyChainId: string | null }[]>;
  /** Entries changed after `version`; from 0 on all that are not valid or once were not. */
  statusEntries(listId: string, afterVersion: number): Promise<{ index: number; status: number }[]>;
  /** A trust list as it is published; also of a tenant that is suspended. */
  trustList(id: string): Promise<Pick<PublishedList, 'jwt' | 'nextUpdate'> | undefined>;
};

/** Counters and copies that belong to lists; each is one conditional statement. */
export type ListKeeping = {
  /**
   * A run of `count` counters of a status list.
   * @returns the first, or undefined when the list has no such room left or is signed by another key chain now.
   */
  takeStatusRun(list: Pick<StatusList, 'id' | 'keyChainId'>, count: number): Promise<number | undefined>;
  /** Keeps a signed token unless a newer one is there already. */
  saveStatusToken(
    listId: string,
    token: string,
    version: number,
    issuedAt: Date,
    expiresAt: Date,
  ): Promise<void>;
  /**
   * Remembers a release of somebody else's list when it is newer than the one that was seen before.
   * @param id of the list.
   * @returns the newest release that was seen, which is this one or another.
   */
  noteRelease(id: string, release: SeenRelease, now: Date): Promise<SeenRelease>;
};

export type SessionLogEntry = {
  readonly sequence: number;
  readonly version: number;
  readonly status: SessionStatus;
  readonly at: Date;
};

export type EndingTrustList = {
  readonly tenantId: TenantId;
  readonly id: string;
  readonly nextUpdate: Date;
};

/**
 * What jobs do. `now` comes from `time`, since it decides about what cannot be taken back; it is a parameter so that many
 * parts of one run have the same, and tests their own.
 */
export type Chores = {
  /**
   * The time of the database, which all processes share: none of them, when its clock is wrong, forgets or removes what
   * others still need, or keeps a lease for hours.
   */
  time(): Promise<Date>;
  /** Marks sessions whose time is over. @returns those it changed, at most `limit`. */
  expireSessions(now: Date, limit: number): Promise<{ tenantId: TenantId; id: SessionId }[]>;
  /** Forgets used values, grants and authorizations that could not be used any more. @returns how many rows went. */
  forgetExpired(now: Date, limit: number): Promise<number>;
  /**
   * Parts with the data of sessions that their tenant keeps no longer: `ttlSeconds` of its configuration after they
   * were made, once they have ended or expired. `full` removes the session with its grants and events; `anonymize`
   * keeps the row without request and outcome, and its events; whoever remembers the request can do nothing with it
   * either, since the session has expired at `now` at the latest. What was issued stays on record either way, so that
   * a credential can be revoked as long as it lives. A session with a deferred transaction that is neither over nor
   * handed out stays as it is. The oldest of a tenant come first.
   * @param defaults for tenants that configured nothing; these remove in full.
   * @returns how many sessions it touched, at most `limit`.
   */
  cleanUpSessions(
    now: Date,
    limit: number,
    defaults: { readonly ttlSeconds: number },
  ): Promise<{ readonly removed: number; readonly anonymized: number }>;
  /** Marks deferred transactions whose time is over, and erases their credentials. @returns how many, at most `limit`. */
  expireDeferred(now: Date, limit: number): Promise<number>;
  /**
   * Removes what is left of removed tenants. A tenant of the same id can be made when there is little left.
   * @returns how many rows went, at most `limit`.
   */
  removeRemains(now: Date, limit: number): Promise<number>;
  /** Erases secrets of clients that nobody picked up in time. @returns how many. */
  forgetPickUps(now: Date, limit: number): Promise<number>;
  /** Trust lists that end at `until` at the latest, of all tenants, the first to end first; `after` pages on. */
  endingTrustLists(until: Date, limit: number, after?: EndingTrustList): Promise<EndingTrustList[]>;
  /** Lets the database look at tables that grew, so that its plans fit them. @returns the tables it looked at. */
  refreshStatistics(): Promise<readonly string[]>;
  /** One conditional update: true for the one instance that may run the job now. */
  tryLease(name: string, holder: string, now: Date, ttlSeconds: number): Promise<boolean>;
};
