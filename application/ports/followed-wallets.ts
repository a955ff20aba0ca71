import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import type { IssuedBatch } from '../../domain/status-lists/status-list.ts';
import type { FollowedList } from '../../domain/status-lists/wallet-status.ts';

/** Credentials that follow an entry of a list. */
export type Follower = {
  readonly idx: number;
  readonly batchId: string;
  readonly sessionId: SessionId;
  /** As it is on record. */
  readonly batch: IssuedBatch | undefined;
};

/** Credentials that were revoked with their wallet; their backend has yet to hear of it. */
export type FallenBatch = {
  readonly tenantId: TenantId;
  readonly batchId: string;
  readonly sessionId: SessionId;
  readonly credentialConfigurationId: string;
  readonly fellAt: Date;
};

/** Where a walk over all that follows has come to, by its key. */
export type FollowedPlace = readonly [tenantId: string, listId: string, idx: number, batchId: string];

/** What jobs do with the credentials that follow the status of their wallets, of all tenants in bounded batches. */
export type FollowedWallets = {
  /** Lists that are to be compared by now, those that wait longest first. */
  dueFollowedLists(now: Date, limit: number): Promise<readonly FollowedList[]>;
  /** A list was compared, or could not be had for a `reason`. @param nextAt when it is due again. */
  noteFollowedList(list: Pick<FollowedList, 'tenantId' | 'id'>, now: Date, nextAt: Date, reason?: string): Promise<void>;
  /** What follows one of these entries, at most `limit`. */
  followers(list: Pick<FollowedList, 'tenantId' | 'id'>, indices: readonly number[], limit: number): Promise<readonly Follower[]>;
  /** They follow nothing more, and their backends are to hear of it. */
  fall(list: Pick<FollowedList, 'tenantId' | 'id'>, followers: readonly Follower[], now: Date): Promise<void>;
  /** The oldest first. @param isTold those whose backends were told; else those whose backends are yet to be. */
  fallenBatches(limit: number, isTold?: boolean): Promise<readonly FallenBatch[]>;
  /** Its backend was told. */
  toldOfFallen(batch: Pick<FallenBatch, 'tenantId' | 'batchId'>, now: Date): Promise<void>;
  forgetFallen(batch: Pick<FallenBatch, 'tenantId' | 'batchId'>): Promise<void>;
  /**
   * Looks at some of all that follows, and lets go what has ended.
   * @param place where to go on; a walk begins without one.
   * @returns `place` undefined at the end of the walk.
   */
  forgetEnded(
    now: Date,
    limit: number,
    place?: FollowedPlace,
  ): Promise<{ readonly gone: number; readonly place: FollowedPlace | undefined }>;
  /** Lets go lists that nothing has followed for a while. */
  forgetIdleLists(now: Date, limit: number): Promise<void>;
  /** Of one tenant, those that fail first. */
  followedLists(tenantId: TenantId, limit: number): Promise<readonly FollowedList[]>;
  /** How many lists could not be had since then. */
  failingLists(since: Date): Promise<number>;
};
