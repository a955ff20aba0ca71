import type { RetiredKey } from '../../domain/keys/retired-keys.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import type { EventLog } from './event-log.ts';
import type { FollowedWallets } from './followed-wallets.ts';
import type { IssuedSubjects } from './issued-subjects.ts';
import type { ListFill } from './metrics.ts';
import type { PendingDeliveries } from './pending-deliveries.ts';
import type { StoredTrustListJobs } from './stored-trust-lists.ts';

export type EndingTrustList = { readonly tenantId: TenantId; readonly id: string; readonly nextUpdate: Date };

/** Cursor of a pass over all sealed columns. */
export type ResealCursor = {
  readonly column: number;
  /** Key of the last visited row. */
  readonly key?: readonly (string | number)[];
};

export type SessionKey = { readonly tenantId: TenantId; readonly id: SessionId };
/** Cursor in expiry order: a time in milliseconds, and values that distinguish sessions of the same time in this database. */
export type ExpiryCursor = readonly [milliseconds: number, ...(string | number)[]];

/** A removed tenant whose data is being removed. */
export type TenantRemoval = { readonly tenantId: TenantId; readonly since: Date; readonly removedRows: number };

export type CleanUpTenant = {
  readonly id: TenantId;
  readonly mode: string;
  /** Sessions that were created up to this time are due. */
  readonly until: Date;
  /** Creation time of the newest due session. */
  readonly newest: Date;
};
/** A tenant whose due sessions were visited; `leftFrom` is the creation time of the first one that had to be kept for now. */
export type CleanedUpTenant = CleanUpTenant & { readonly leftFrom?: Date };
/** Cursor of a pass over the due sessions of all tenants. */
export type CleanUpCursor = {
  /** Tenants that are still to be visited, the first of them from `after` on. */
  readonly tenants: readonly CleanUpTenant[];
  readonly after?: { readonly createdAt: number; readonly id: string };
  readonly leftFrom?: Date;
  /** The last tenant that was listed; undefined after the last one. */
  readonly lastListed?: string;
};

/** A text that changes with each change of the tenant's configuration, also when another tenant gets the same id. */
export type TenantVersion = { readonly id: TenantId; readonly version: string };
export type TenantVersions = {
  /** Version of all tenants together. */
  readonly state: string;
  readonly versions: readonly TenantVersion[];
};

type MaintenanceGroups = EventLog & FollowedWallets & IssuedSubjects & StoredTrustListJobs & PendingDeliveries;

/**
 * Database work of jobs. `now` is the result of `time`, since it decides about irreversible steps; it is a parameter so that the
 * steps of one run share it and tests can set it.
 */
export type Maintenance = MaintenanceGroups & {
  /**
   * The time of the database, which all processes share: a process with a wrong clock must not remove rows that others
   * need, or hold a lease for hours.
   */
  time(): Promise<Date>;
  /** True while `time` excludes, for some minutes after a start, the time during which the service did not run. */
  isCatchingUp(): Promise<boolean>;
  /**
   * Visits the next sessions in expiry order and marks expired ones; those with a response only when no client has decided about
   * them for an hour, and none whose outcome is being delivered to a backend.
   * @param limit maximum number of visited sessions.
   * @param range begin of the visit and latest expiry; all up to `now` by default.
   * @returns `overdue`: open sessions with a response that expired less than an hour ago; `next`: cursor of the next visit,
   *   undefined at the end.
   */
  expireSessions(
    now: Date,
    limit: number,
    range?: { readonly after?: ExpiryCursor; readonly until?: Date },
  ): Promise<{ readonly expired: readonly SessionKey[]; readonly overdue: readonly SessionKey[]; readonly next: ExpiryCursor | undefined }>;
  /** Removes expired consumed values, grants and authorizations. @returns the number of removed rows. */
  forgetExpired(now: Date, limit: number): Promise<number>;
  /**
   * Removes the data of sessions after their retention time: `ttlSeconds` of the tenant's configuration after their creation, once they
   * have ended or expired. `full` removes the session with its grants and events; `anonymize` keeps the row without request and outcome,
   * and its events. A holder of the request cannot use it afterwards, since the session has expired at `now` at the latest. The record of
   * issued credentials remains in both modes, so that a credential can be revoked as long as it is valid. A session with a deferred
   * transaction that is neither over nor issued remains unchanged. For a session whose credentials a wallet may refresh, the
   * required data remain until the grant ends, hidden where sessions are removed in full. The oldest sessions of a tenant come first.
   * @param limit maximum number of visited sessions.
   * @param options `ttlSeconds` of tenants that configured none, which remove in full; `startOf` gives the begin of the pass of a tenant,
   *   by default its oldest session.
   * @param cursor `next` of the previous call.
   * @returns the number of removed and of anonymized sessions; `unsent` is the number of removed events that were not relayed yet;
   *   `next` is the cursor, absent at the end; with `startOf` also the tenants whose pass is over.
   */
  cleanUpSessions(
    now: Date,
    limit: number,
    options: { readonly ttlSeconds: number; readonly startOf?: (tenant: CleanUpTenant) => Date | undefined },
    cursor?: CleanUpCursor,
  ): Promise<{
    readonly removed: number;
    readonly anonymized: number;
    readonly unsent?: number;
    readonly next?: CleanUpCursor;
    readonly walked?: readonly CleanedUpTenant[];
  }>;
  /** Marks expired deferred transactions and erases their credentials. @returns the number, at most `limit`. */
  expireDeferred(now: Date, limit: number): Promise<number>;
  /** Tenants past their end date, at most `limit`. */
  endedTenants(now: Date, limit: number): Promise<readonly TenantId[]>;
  /**
   * Removes remaining rows of removed tenants. A tenant with the same id can be created when few rows remain.
   * @returns the number of removed rows, at most `limit`.
   */
  removeRemainingRows(now: Date, limit: number): Promise<number>;
  /** Removed tenants with remaining rows. */
  tenantRemovals(): Promise<readonly TenantRemoval[]>;
  /**
   * Keys at providers that no key chain uses any more, those that wait longest first.
   * @param owner only keys of this tenant, which may have been removed.
   */
  retiredKeys(limit: number, owner?: string): Promise<readonly RetiredKey[]>;
  /** Removes the record of a key that was destroyed at its provider. */
  forgetRetiredKey(key: RetiredKey): Promise<void>;
  /** Postpones a key that could not be destroyed, so that other keys come first. */
  postponeRetiredKey(key: RetiredKey): Promise<void>;
  /** Number of texts that are currently sealed under a former master secret. */
  pendingReseals(): Promise<number>;
  /**
   * Seals a few rows under the current secret, each in its own statement and only if it was not written meanwhile.
   * @param cursor cursor; a pass over everything begins without one.
   * @returns `place` is undefined at the end of the pass.
   */
  reseal(limit: number, cursor?: ResealCursor): Promise<{ readonly done: number; readonly nextCursor: ResealCursor | undefined }>;
  /**
   * Records that this process seals under its first secret, which is therefore needed again. Called periodically, so that a premature
   * `endReseal` is detected.
   */
  keepSealing(): Promise<void>;
  /** Secrets under which nothing is sealed any more, by the ids of the cipher. */
  resealedKeys(): Promise<readonly string[]>;
  /**
   * Records that nothing is sealed under the former secrets any more. Audit log entries that they authenticated stay verifiable.
   * @returns the number of secrets that need not be configured any more.
   */
  endReseal(now: Date): Promise<number>;
  /** Erases client secrets that were not picked up in time. @returns the number. */
  forgetPickUps(now: Date, limit: number): Promise<number>;
  /** Trust lists of all tenants that expire at `until` at the latest, earliest first; `after` is the cursor. */
  endingTrustLists(until: Date, limit: number, after?: EndingTrustList): Promise<EndingTrustList[]>;
  /**
   * All tenants by id, each with the version of its configuration.
   * @param state of the previous answer. @returns undefined if nothing changed since.
   */
  tenantVersions(state?: string): Promise<TenantVersions | undefined>;
  /** Fill level of all status lists. It reads one row for some hundred thousand credentials. */
  listFill(): Promise<ListFill>;
  /** Tenants whose audit log begins before this time, by id, those after `after`. */
  oldAuditLogs(before: Date, limit: number, after?: TenantId): Promise<readonly TenantId[]>;
  /**
   * Removes the audit log entries of a tenant up to and including this one that are older than `before`: a tenant of the same id that
   * was created meanwhile has a younger log. @returns the number of removed entries.
   */
  removeAuditEntries(tenantId: TenantId, upTo: number, before: Date): Promise<number>;
  /** Updates the planner statistics of tables that grew. The failure of one table does not affect the others. */
  refreshStatistics(): Promise<{
    readonly refreshed: readonly string[];
    readonly failures: readonly { readonly table: string; readonly error: unknown }[];
  }>;
  /** One conditional update: true for the one process that may run the job now. */
  tryLease(name: string, holder: string, now: Date, ttlSeconds: number): Promise<boolean>;
};
