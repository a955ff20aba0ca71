import { type InferEntity, p } from '@mikro-orm/core';
import { index, tenantTable } from './row-parts.ts';

/** Entries of the audit chains; the empty tenant is the service. */
export const AuditEntryRow = tenantTable(
  'AuditEntryRow',
  'audit_entries',
  [index('audit_entries_of_target', 'tenantId', 'target', 'sequence')],
  {
    sequence: p.bigint('number').primary(),
    at: p.bigint('number'),
    actor: p.text(),
    action: p.string(),
    kind: p.string(),
    target: p.text(),
    /** JSON, exactly as the hash covers it. */
    detail: p.text(),
    hash: p.string(),
  },
);
export type AuditEntryRow = InferEntity<typeof AuditEntryRow>;

/** Newest entry of each chain, sealed: without it, entries removed from the end would go unnoticed. */
export const AuditHeadRow = tenantTable('AuditHeadRow', 'audit_heads', [], {
  sequence: p.bigint('number'),
  hash: p.string(),
  seal: p.string(),
});
