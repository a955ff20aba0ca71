import type { RetiredKey } from '../../domain/keys/kept-keys.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import type { EventLog } from './event-log.ts';
import type { FollowedWallets } from './followed-wallets.ts';
import type { IssuedSubjects } from './issued-subjects.ts';
import type { KeptTrustListJobs } from './kept-trust-lists.ts';
import type { ListFill } from './metrics.ts';
import type { PendingDeliveries } from './pending-deliveries.ts';

export type EndingTrustList = { readonly tenantId: TenantId; readonly id: string; readonly nextUpdate: Date };

/** Where a pass over what is sealed has come to. */
export type ResealPlace = {
  readonly column: number;
  /** The last row that was looked at, by its key. */
  readonly key?: readonly (string | number)[];
};

export type SessionKey = { readonly tenantId: TenantId; readonly id: SessionId };
/** A place in the order of expiry: a time in milliseconds, and what tells sessions of the same time apart in this database. */
export type ExpiryPlace = readonly [milliseconds: number, ...(string | number)[]];

/** A removed tenant whose data is being removed. */
export type TenantRemoval = { readonly tenantId: TenantId; readonly since: Date; readonly removedRows: number };

/** How a tenant keeps its sessions. */
export type CleanUpTenant = {
  readonly id: TenantId;
  readonly mode: string;
  /** Sessions that were created until then are due. */
  readonly until: Date;
  /** The newest of these. */
  readonly newest: Date;
};
/** A tenant whose due sessions were visited; `leftFrom` is when the first of those was created that had to be left for now. */
export type CleanedUpTenant = CleanUpTenant & { readonly leftFrom?: Date };
/** Where a walk over the due sessions of all tenants goes on. */
export type CleanUpPlace = {
  /** Listed tenants that are to be walked, the first of them from `after` on. */
  readonly tenants: readonly CleanUpTenant[];
  readonly after?: { readonly createdAt: number; readonly id: string };
  readonly leftFrom?: Date;
  /** The last tenant that was listed; undefined when all were. */
  readonly lastListed?: string;
};

/** A text that changes with each change of the tenant's configuration, also when another tenant gets the same id. */
export type TenantVersion = { readonly id: TenantId; readonly version: string };
export type TenantVersions = {
  /** Stands for all of them together. */
  readonly state: string;
  readonly versions: readonly TenantVersion[];
};

type Parts = EventLog & FollowedWallets & IssuedSubjects & KeptTrustListJobs & PendingDeliveries;

/**
 * What jobs do. `now` comes from `time`, since it decides about what cannot be taken back; it is a parameter so that many
 * parts of one run have the same, and tests their own.
 */
export type Maintenance = Parts & {
  /**
   * The time of the database, which all processes share: none of them, when its clock is wrong, forgets or removes what
   * others still need, or keeps a lease for hours.
   */
  time(): Promise<Date>;
  /** Whether `time` leaves out, for some minutes yet, what passed while the service did not run. */
  isCatchingUp(): Promise<boolean>;
  /**
   * Visits the next sessions in the order of their expiry and marks those whose time is over as expired; those with a response
   * only when no client has decided about them for an hour, and none whose outcome is being delivered to a backend.
   * @param limit the most sessions that are visited.
   * @param range where the visit begins, and the latest expiry; all up to `now` unless stated.
   * @returns `overdue`: open sessions with a response whose time is over for less than an hour; `next`: where the next visit
   *   begins, undefined at the end.
   */
  expireSessions(
    now: Date,
    limit: number,
    range?: { readonly after?: ExpiryPlace; readonly until?: Date },
  ): Promise<{ readonly expired: readonly SessionKey[]; readonly overdue: readonly SessionKey[]; readonly next: ExpiryPlace | undefined }>;
  /** Forgets used values, grants and authorizations that could not be used any more. @returns how many rows went. */
  forgetExpired(now: Date, limit: number): Promise<number>;
  /**
   * Parts with the data of sessions that their tenant keeps no longer: `ttlSeconds` of its configuration after they
   * were made, once they have ended or expired. `full` removes the session with its grants and events; `anonymize`
   * keeps the row without request and outcome, and its events; the one who remembers the request can do nothing with it
   * either, since the session has expired at `now` at the latest. What was issued stays on record either way, so that
   * a credential can be revoked as long as it lives. A session with a deferred transaction that is neither over nor
   * handed out stays as it is; of one whose credentials a wallet may renew stays what that needs, hidden where
   * sessions are removed in full, until the grant ends. The oldest of a tenant come first.
   * @param limit the most sessions that are visited.
   * @param options `ttlSeconds` of tenants that configured none, which remove in full; `startOf` where the walk of a tenant
   *   begins, at the oldest session unless stated.
   * @param place `next` of the call before.
   * @returns how many sessions were removed and anonymized; `unsent` where events went that were to be handed on and were not
   *   yet; `next` where the walk goes on, absent at its end; with `startOf` the tenants whose walk is over.
   */
  cleanUpSessions(
    now: Date,
    limit: number,
    options: {
      readonly ttlSeconds: number;
      readonly startOf?: (tenant: CleanUpTenant) => Date | undefined;
    },
    place?: CleanUpPlace,
  ): Promise<{
    readonly removed: number;
    readonly anonymized: number;
    readonly unsent?: number;
    readonly next?: CleanUpPlace;
    readonly walked?: readonly CleanedUpTenant[];
  }>;
  /** Marks deferred transactions whose time is over, and erases their credentials. @returns how many, at most `limit`. */
  expireDeferred(now: Date, limit: number): Promise<number>;
  /** Tenants whose time is over, at most `limit`. */
  endedTenants(now: Date, limit: number): Promise<readonly TenantId[]>;
  /**
   * Removes what is left of removed tenants. A tenant of the same id can be made when there is little left.
   * @returns how many rows went, at most `limit`.
   */
  removeRemains(now: Date, limit: number): Promise<number>;
  /** Removed tenants of which something is left. */
  tenantRemovals(): Promise<readonly TenantRemoval[]>;
  /**
   * Keys at providers that no key chain has any more, those that wait longest first.
   * @param owner only keys of this tenant, which may be gone.
   */
  retiredKeys(limit: number, owner?: string): Promise<readonly RetiredKey[]>;
  /** The key is gone at its provider. */
  forgetRetiredKey(key: RetiredKey): Promise<void>;
  /** It could not be destroyed: others come first next time. */
  postponeRetiredKey(key: RetiredKey): Promise<void>;
  /** How many texts are sealed under a former master secret at this moment. */
  pendingReseals(): Promise<number>;
  /**
   * Seals a few rows under the present secret, each by itself and only if nobody has written it meanwhile.
   * @param place where to go on; a pass over everything begins without one.
   * @returns `place` undefined at the end of the pass.
   */
  reseal(limit: number, place?: ResealPlace): Promise<{ readonly done: number; readonly place: ResealPlace | undefined }>;
  /**
   * Says that this process seals under its first secret, which is needed from now on, whatever was noted of it. Called
   * again and again, so that `endReseal` is found out to have come too early.
   */
  keepSealing(): Promise<void>;
  /** Secrets under which nothing is sealed any more, by the ids of the cipher. */
  resealedKeys(): Promise<readonly string[]>;
  /**
   * Notes that nothing is sealed under the former secrets any more. What they chained of the audit log stays verifiable.
   * @returns how many of them need not be listed from now on.
   */
  endReseal(now: Date): Promise<number>;
  /** Erases secrets of clients that nobody picked up in time. @returns how many. */
  forgetPickUps(now: Date, limit: number): Promise<number>;
  /** Trust lists that end at `until` at the latest, of all tenants, the first to end first; `after` pages on. */
  endingTrustLists(until: Date, limit: number, after?: EndingTrustList): Promise<EndingTrustList[]>;
  /**
   * All tenants in the order of their ids, each with a text that changes with its configuration.
   * @param state as it was answered before. @returns undefined while nothing changed since.
   */
  tenantVersions(state?: string): Promise<TenantVersions | undefined>;
  /** What all status lists come to: one row for some hundred thousand credentials is read. */
  listFill(): Promise<ListFill>;
  /** Tenants whose audit log begins before this time, in the order of their ids, those behind `after`. */
  oldAuditLogs(before: Date, limit: number, after?: TenantId): Promise<readonly TenantId[]>;
  /**
   * Removes the entries of a tenant's audit log up to and with this one that are from before `before`: a tenant of the same id that
   * was made meanwhile has a younger log. @returns how many there were.
   */
  removeAuditEntries(tenantId: TenantId, upTo: number, before: Date): Promise<number>;
  /** Updates the planner statistics of tables that grew. A table whose update fails does not keep the other tables from theirs. */
  refreshStatistics(): Promise<{
    readonly refreshed: readonly string[];
    readonly failures: readonly { readonly table: string; readonly error: unknown }[];
  }>;
  /** One conditional update: true for the one instance that may run the job now. */
  tryLease(name: string, holder: string, now: Date, ttlSeconds: number): Promise<boolean>;
};
