import { defineEntity, p } from '@mikro-orm/core';
import { index, tenantTable, time } from './row-parts.ts';

export const StatusListRow = tenantTable('StatusListRow', 'status_lists', [], {
  id: p.string().primary(),
  credentialConfigurationId: p.string().nullable(),
  keyChainId: p.string().nullable(),
  bits: p.integer(),
  capacity: p.integer(),
  ttlSeconds: p.integer(),
  immediateUpdate: p.boolean(),
  enableAggregation: p.boolean(),
  /** Sealed. */
  secret: p.text(),
  usedEntries: p.integer(),
  version: p.integer(),
  createdAt: time(),
  token: p.text().nullable(),
  tokenVersion: p.integer().nullable(),
  tokenIssuedAt: time().nullable(),
  tokenExpiresAt: time().nullable(),
});

/** Entries that are or were not valid; `changedVersion` lets a reader select new ones. */
export const StatusEntryRow = tenantTable(
  'StatusEntryRow',
  'status_entries',
  [index('status_entries_changed', 'tenantId', 'listId', 'changedVersion')],
  { listId: p.string().primary(), idx: p.integer().primary(), status: p.integer(), changedVersion: p.integer() },
);

/** Every key that ever sealed something in this database, by the id that `Cipher` gives it. */
export const SealingKeyRow = defineEntity({
  name: 'SealingKeyRow',
  tableName: 'sealing_keys',
  properties: {
    id: p.string().primary(),
    firstUsedAt: time(),
    /** Time since when nothing is sealed under the key any more, so that it need not be configured. */
    resealedAt: p.bigint('number').nullable(),
    /** Key with which it chained the audit log, sealed under a later one: its entries stay verifiable. */
    auditKey: p.text().nullable(),
  },
});

export const LeaseRow = defineEntity({
  name: 'LeaseRow',
  tableName: 'leases',
  properties: { name: p.string().primary(), holder: p.string(), expiresAt: time() },
});
