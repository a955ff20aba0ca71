import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { tenantFilter } from './row-parts.ts';

/** Links of the audit log's chains; the empty tenant is the service. */
export const AuditEntryRow = defineEntity({
  name: 'AuditEntryRow',
  tableName: 'audit_entries',
  properties: {
    tenantId: p.string().primary(),
    sequence: p.bigint('number').primary(),
    at: p.bigint('number'),
    actor: p.text(),
    action: p.string(),
    kind: p.string(),
    target: p.text(),
    /** JSON, letter by letter as the hash covers it. */
    detail: p.text(),
    hash: p.string(),
  },
  indexes: [{ name: 'audit_entries_of_target', properties: ['tenantId', 'target', 'sequence'] }],
  filters: tenantFilter,
});
export type AuditEntryRow = InferEntity<typeof AuditEntryRow>;

/** The newest entry of each chain, sealed: without it nobody would miss entries taken off the end. */
export const AuditHeadRow = defineEntity({
  name: 'AuditHeadRow',
  tableName: 'audit_heads',
  properties: {
    tenantId: p.string().primary(),
    sequence: p.bigint('number'),
    hash: p.string(),
    seal: p.string(),
  },
  filters: tenantFilter,
});
