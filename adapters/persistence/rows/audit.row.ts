import { type InferEntity, p } from '@mikro-orm/core';
import { index, tenantTable } from './row-parts.ts';

/** Links of the audit log's chains; the empty tenant is the service. */
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
    /** JSON, letter by letter as the hash covers it. */
    detail: p.text(),
    hash: p.string(),
  },
);
export type AuditEntryRow = InferEntity<typeof AuditEntryRow>;

/** The newest entry of each chain, sealed: without it nobody would miss entries taken off the end. */
export const AuditHeadRow = tenantTable('AuditHeadRow', 'audit_heads', [], {
  sequence: p.bigint('number'),
  hash: p.string(),
  seal: p.string(),
});
