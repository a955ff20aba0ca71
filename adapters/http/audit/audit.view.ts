import { z } from 'zod';
import { AUDIT_ACTIONS, AUDIT_KINDS, type AuditEntry, detailOf } from '../../../domain/audit/audit-entry.ts';
import { viewOf } from '../view-of.ts';

const Change = z.object({
  member: z.string(),
  before: z.unknown().optional(),
  after: z.unknown().optional(),
});

export const AuditEntryView = z
  .object({
    sequence: z.number().int().describe('From 1, without gaps'),
    at: z.iso.datetime(),
    actor: z.string().describe('Client id, or `system` for the service itself'),
    action: z.enum(AUDIT_ACTIONS),
    kind: z.enum(AUDIT_KINDS),
    target: z.string().describe('Id of the thing'),
    changes: z
      .array(Change)
      .describe('Members that changed; values only of those that hold no secret and nobody’s data'),
    requestId: z.string().optional().describe('`X-Request-Id` of the call'),
    of: z
      .object({ tenantId: z.string(), sequence: z.number().int(), hash: z.string() })
      .optional()
      .describe('In the log of the service: the entry of the tenant’s log that this one repeats'),
    hash: z
      .string()
      .describe('Covers the entry, its place and the hash before it, under a key of `MASTER_SECRET`'),
  })
  .meta({ id: 'AuditEntry', description: 'Who changed what, and when' });

export function toAuditEntryView(entry: AuditEntry) {
  return viewOf(AuditEntryView, { ...entry, ...detailOf(entry) });
}
