import { p } from '@mikro-orm/core';
import { index, tenantTable, time, unique } from './row-parts.ts';

export const TrustListRow = tenantTable('TrustListRow', 'trust_lists', [index('trust_lists_by_end', 'nextUpdate')], {
  id: p.string().primary(),
  /** Sealed: the configuration, and the list built from it. */
  body: p.text(),
  /** Grows with every write and every signature. */
  sequenceNumber: p.integer(),
  /** The list as it is published, compact. */
  jwt: p.text(),
  /** Expiry of the published list. */
  nextUpdate: time(),
  createdAt: time(),
  updatedAt: time(),
});

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

/** Newest version of an external list that a tenant has seen, so that an older one cannot be replayed. */
export const SeenReleaseRow = tenantTable('SeenReleaseRow', 'seen_releases', [], {
  /** SHA-256 of signers and address, base64url. */
  id: p.string().primary(),
  sequenceNumber: p.bigint('number'),
  contentHash: p.string(),
  seenAt: time(),
});

/** Last valid copy of an external list, so that a restart loses neither it nor the problem of a later version. */
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
  /** Expiry of the copy. */
  endsAt: time().nullable(),
  checkedAt: time().nullable(),
  seenAt: time(),
  /** Time since when a later version has a problem. */
  heldSince: time().nullable(),
  /** Sealed: that problem. */
  finding: p.text().nullable(),
  /** Hash of the problem: each is reported once. */
  findingKey: p.string().nullable(),
  /** Hash of the problem that was reported to other systems. */
  toldKey: p.string().nullable(),
});
