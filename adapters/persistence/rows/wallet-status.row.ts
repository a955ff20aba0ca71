import { p } from '@mikro-orm/core';
import { index, tenantTable, time } from './row-parts.ts';

/** Status lists of wallet providers that issued credentials follow. */
export const FollowedListRow = tenantTable('FollowedListRow', 'followed_lists', [index('followed_lists_due', 'nextCheckAt')], {
  /** Keyed hash of the address and of who vouched for its provider. */
  id: p.string().primary(),
  /** Sealed: with the address an entry would tell the provider whose credentials these are. */
  place: p.text(),
  nextCheckAt: time(),
  checkedAt: time().nullable(),
  failingSince: time().nullable(),
  failures: p.integer(),
  failure: p.text().nullable(),
  /** Since then nothing follows it. */
  idleSince: time().nullable(),
});

/** Which batch of credentials follows which entry. As narrow as can be: there is one for each credential request. */
export const FollowedStatusRow = tenantTable('FollowedStatusRow', 'followed_statuses', [], {
  listId: p.string().primary(),
  idx: p.integer().primary(),
  batchId: p.string().primary(),
  sessionId: p.string(),
  /** Of the credentials. */
  endsAt: time().nullable(),
});

/** Batches that were revoked with their wallet, and of which their backends have yet to hear. */
export const FallenBatchRow = tenantTable('FallenBatchRow', 'fallen_batches', [], {
  batchId: p.string().primary(),
  sessionId: p.string(),
  credentialConfigurationId: p.string(),
  fellAt: time(),
  /** Since then its backend was told, and subscribers are yet to be. */
  toldAt: time().nullable(),
});
