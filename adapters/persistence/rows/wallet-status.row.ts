import { defineEntity, p } from '@mikro-orm/core';
import { tenantFilter, time } from './row-parts.ts';

/** Status lists of wallet providers that issued credentials follow. */
export const FollowedListRow = defineEntity({
  name: 'FollowedListRow',
  tableName: 'followed_lists',
  properties: {
    tenantId: p.string().primary(),
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
  },
  indexes: [{ name: 'followed_lists_due', properties: ['nextCheckAt'] }],
  filters: tenantFilter,
});

/** Which batch of credentials follows which entry. As narrow as can be: there is one for each credential request. */
export const FollowedStatusRow = defineEntity({
  name: 'FollowedStatusRow',
  tableName: 'followed_statuses',
  properties: {
    tenantId: p.string().primary(),
    listId: p.string().primary(),
    idx: p.integer().primary(),
    batchId: p.string().primary(),
    sessionId: p.string(),
    /** Of the credentials. */
    endsAt: time().nullable(),
  },
  filters: tenantFilter,
});

/** Batches that were revoked with their wallet, and of which their backends have yet to hear. */
export const FallenBatchRow = defineEntity({
  name: 'FallenBatchRow',
  tableName: 'fallen_batches',
  properties: {
    tenantId: p.string().primary(),
    batchId: p.string().primary(),
    sessionId: p.string(),
    credentialConfigurationId: p.string(),
    fellAt: time(),
    /** Since then its backend was told, and subscribers are yet to be. */
    toldAt: time().nullable(),
  },
  filters: tenantFilter,
});
