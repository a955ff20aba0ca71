import { p } from '@mikro-orm/core';
import { index, tenantTable, time } from './row-parts.ts';

/** Status lists of wallet providers that issued credentials follow. */
export const FollowedListRow = tenantTable('FollowedListRow', 'followed_lists', [index('followed_lists_due', 'nextCheckAt')], {
  /** Keyed hash of the address and of the trust anchor of its provider. */
  id: p.string().primary(),
  /** Sealed: an entry with its address would reveal to the provider whose credentials these are. */
  place: p.text(),
  nextCheckAt: time(),
  checkedAt: time().nullable(),
  failingSince: time().nullable(),
  failures: p.integer(),
  failure: p.text().nullable(),
  /** Time since when no batch follows it. */
  idleSince: time().nullable(),
});

/** Links batches of credentials to status entries. The row is narrow, because there is one for each credential request. */
export const FollowedStatusRow = tenantTable('FollowedStatusRow', 'followed_statuses', [], {
  listId: p.string().primary(),
  idx: p.integer().primary(),
  batchId: p.string().primary(),
  sessionId: p.string(),
  /** Expiry of the credentials. */
  endsAt: time().nullable(),
});

/** Batches that were revoked with their wallet, and that are not reported to their backends yet. */
export const FallenBatchRow = tenantTable('FallenBatchRow', 'fallen_batches', [], {
  batchId: p.string().primary(),
  sessionId: p.string(),
  credentialConfigurationId: p.string(),
  fellAt: time(),
  /** Time when the backend was notified; subscribers are notified afterwards. */
  toldAt: time().nullable(),
});
