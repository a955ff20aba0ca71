import { defineEntity, p } from '@mikro-orm/core';
import { tenantFilter, time } from './row-parts.ts';

/** A trust list that the tenant publishes. */
export const TrustListRow = defineEntity({
  name: 'TrustListRow',
  tableName: 'trust_lists',
  properties: {
    tenantId: p.string().primary(),
    id: p.string().primary(),
    /** Sealed: what was configured, and the list made of it. */
    body: p.text(),
    /** Grows with every write and every signature. */
    sequenceNumber: p.integer(),
    /** The list as it is published, compact. */
    jwt: p.text(),
    /** When the published list ends. */
    nextUpdate: time(),
    createdAt: time(),
    updatedAt: time(),
  },
  indexes: [{ name: 'trust_lists_by_end', properties: ['nextUpdate'] }],
  filters: tenantFilter,
});

/** What a trust list was before it changed. */
export const TrustListVersionRow = defineEntity({
  name: 'TrustListVersionRow',
  tableName: 'trust_list_versions',
  properties: {
    tenantId: p.string().primary(),
    trustListId: p.string().primary(),
    sequenceNumber: p.integer().primary(),
    id: p.string(),
    /** Sealed; empty in the last version of a list that was removed. */
    body: p.text(),
    createdAt: time(),
  },
  uniques: [{ name: 'trust_list_versions_id', properties: ['tenantId', 'trustListId', 'id'] }],
  filters: tenantFilter,
});

/** The newest release that a tenant has seen of somebody else's list, so that nobody brings an older one back. */
export const SeenReleaseRow = defineEntity({
  name: 'SeenReleaseRow',
  tableName: 'seen_releases',
  properties: {
    tenantId: p.string().primary(),
    /** SHA-256 of signers and address, base64url. */
    id: p.string().primary(),
    sequenceNumber: p.bigint('number'),
    contentHash: p.string(),
    seenAt: time(),
  },
  filters: tenantFilter,
});
