import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import type { IssuedBatch } from '../../domain/status-lists/status-list.ts';
import type { FollowedList } from '../../domain/status-lists/wallet-status.ts';

/** A batch of credentials whose validity follows an entry of an external status list. */
export type Follower = {
  readonly idx: number;
  readonly batchId: string;
  readonly sessionId: SessionId;
  readonly batch: IssuedBatch | undefined;
};

/** A batch that was revoked with its wallet and whose backend is to be notified. */
export type WalletRevokedBatch = {
  readonly tenantId: TenantId;
  readonly batchId: string;
  readonly sessionId: SessionId;
  readonly credentialConfigurationId: string;
  readonly fellAt: Date;
};

/** Cursor of a pass over all followers. */
export type FollowerCursor = readonly [tenantId: string, listId: string, idx: number, batchId: string];

/** Jobs for credentials that follow the status of their wallets, over all tenants in bounded batches. */
export type FollowedWallets = {
  /** Lists that are due for comparison, those that wait longest first. */
  dueFollowedLists(now: Date, limit: number): Promise<readonly FollowedList[]>;
  /** Records that a list was compared, or could not be fetched for a `reason`. @param nextAt time of the next comparison. */
  noteFollowedList(list: Pick<FollowedList, 'tenantId' | 'id'>, now: Date, nextAt: Date, reason?: string): Promise<void>;
  followers(list: Pick<FollowedList, 'tenantId' | 'id'>, indices: readonly number[], limit: number): Promise<readonly Follower[]>;
  /** Marks the batches of these followers as revoked with their wallet; their backends are to be notified. */
  revokeFollowers(list: Pick<FollowedList, 'tenantId' | 'id'>, followers: readonly Follower[], now: Date): Promise<void>;
  /** Oldest first. @param isNotified true for batches whose backends were notified; otherwise those whose backends are yet to be. */
  walletRevokedBatches(limit: number, isNotified?: boolean): Promise<readonly WalletRevokedBatch[]>;
  markWalletRevocationNotified(batch: Pick<WalletRevokedBatch, 'tenantId' | 'batchId'>, now: Date): Promise<void>;
  forgetWalletRevoked(batch: Pick<WalletRevokedBatch, 'tenantId' | 'batchId'>): Promise<void>;
  /**
   * Visits a part of all followers and removes those that expired.
   * @param cursor cursor; a pass begins without one.
   * @returns `place` is undefined at the end of the pass.
   */
  forgetEndedFollowers(
    now: Date,
    limit: number,
    cursor?: FollowerCursor,
  ): Promise<{ readonly removed: number; readonly nextCursor: FollowerCursor | undefined }>;
  /** Removes lists that have had no followers for a while. */
  forgetIdleLists(now: Date, limit: number): Promise<void>;
  /** Lists of one tenant, failing ones first. */
  followedLists(tenantId: TenantId, limit: number): Promise<readonly FollowedList[]>;
  /** Number of lists that could not be fetched since then. */
  failingLists(since: Date): Promise<number>;
};
