import { p } from '@mikro-orm/core';
import { index, tenantTable, time, unique } from './row-parts.ts';

/** A trust list that the tenant publishes. */
export const TrustListRow = tenantTable('TrustListRow', 'trust_lists', [index('trust_lists_by_end', 'nextUpdate')], {
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
});

/** What a trust list was before it changed. */
export const TrustListVersionRow = tenantTable(
  'TrustListVersionRow',
  'trust_list_versions',
  [unique('trust_list_versions_id', 'tenantId', 'trustListId', 'id')],
  {
    trustListId: p.string().primary(),
    sequenceNumber: p.integer().primary(),
    id: p.string(),
    /** Sealed; empty in the last version of a list that was removed. */
    body: p.text(),
    createdAt: time(),
  },
);

/** The newest release that a tenant has seen of somebody else's list, so that nobody brings an older one back. */
export const SeenReleaseRow = tenantTable('SeenReleaseRow', 'seen_releases', [], {
  /** SHA-256 of signers and address, base64url. */
  id: p.string().primary(),
  sequenceNumber: p.bigint('number'),
  contentHash: p.string(),
  seenAt: time(),
});

/** Somebody else's list as it was good the last time, so that a restart forgets neither it nor what is held against a later one. */
export const KeptTrustListRow = tenantTable('KeptTrustListRow', 'kept_trust_lists', [index('kept_trust_lists_by_look', 'seenAt')], {
  /** SHA-256 of signers and address, base64url. */
  id: p.string().primary(),
  /** 0 without a good copy. */
  sequenceNumber: p.bigint('number'),
  /** Sealed: its address, which may carry a secret. */
  place: p.text(),
  /** Sealed: the good copy. */
  copy: p.text().nullable(),
  documentHash: p.string().nullable(),
  /** Until when the copy may be used. */
  endsAt: time().nullable(),
  checkedAt: time().nullable(),
  seenAt: time(),
  /** Since then something is held against what came later. */
  heldSince: time().nullable(),
  /** Sealed: what that is. */
  finding: p.text().nullable(),
  /** Hash of it: a person hears of each once. */
  findingKey: p.string().nullable(),
  /** Of the finding that other systems were told of. */
  toldKey: p.string().nullable(),
});
