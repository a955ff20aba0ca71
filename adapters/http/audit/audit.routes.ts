import { object, z } from 'zod';
import { AuditLogQuery, ListAuditEntries } from '../../../application/audit/audit-entries.ts';
import { VerificationQuery, VerifyChain } from '../../../application/audit/verify-chain.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { AUDIT_ACTIONS, AUDIT_KINDS, type AuditEntry, detailOf } from '../../../domain/audit/audit-entry.ts';
import { FAULT_KINDS } from '../../../domain/audit/verify-entries.ts';
import { nextPage } from '../output/next-page.ts';
import { viewOf } from '../output/view-of.ts';
import { family, reply, route } from '../route.ts';

const Change = object({ member: z.string(), before: z.unknown().optional(), after: z.unknown().optional() });

export const AuditEntryView = object({
  sequence: z.number().int().describe('From 1, without gaps'),
  at: z.iso.datetime(),
  actor: z
    .string()
    .describe(
      'Client id, or `system` for the service itself. With an external OpenID provider the user follows in ' +
        'parentheses, by the claim of `OIDC_ACTOR_CLAIM`: `console (3f9c…)`; a name that is too long or has control characters is shown as `sha256:…`',
    ),
  action: z.enum(AUDIT_ACTIONS),
  kind: z.enum(AUDIT_KINDS),
  target: z.string().describe('Id of the changed object'),
  changes: z.array(Change).describe('Properties that changed; values only of properties without secrets and personal data'),
  requestId: z.string().optional().describe('`X-Request-Id` of the call'),
  of: object({ tenantId: z.string(), sequence: z.number().int(), hash: z.string() })
    .optional()
    .describe('In the log of the service: the entry of the log of the tenant that this one repeats'),
  hash: z.string().describe('MAC of the entry, its position and the previous hash, under a key of `MASTER_SECRET`'),
}).meta({ id: 'AuditEntry', description: 'Actors, changes and times' });

export function toAuditEntryView(entry: AuditEntry) {
  return viewOf(AuditEntryView, { ...entry, ...detailOf(entry) });
}

const VerificationView = object({
  status: z.enum(['whole', 'broken', 'unfinished']).describe('`unfinished`: intact so far; continue with `next`'),
  verified: z.number().int().describe('Number of the entry up to which the log is intact'),
  length: z.number().int().describe('Number of the newest entry'),
  fault: object({
    sequence: z.number().int().describe('The first entry that is wrong or missing'),
    kind: z.enum(FAULT_KINDS),
    message: z.string(),
  }).optional(),
  warning: z.string().optional().describe('Observations that an operator has to judge'),
  next: z.string().optional().describe('`cursor` of the next call'),
}).meta({ id: 'AuditVerification', description: 'Result of verifying the chain of the audit log' });

export const auditRoutes = family(
  { listAuditEntries: ListAuditEntries, verifyChain: VerifyChain, settings: ServiceSettings },
  ({ listAuditEntries, verifyChain, settings }) => [
    route({
      tag: 'Audit log',
      surface: 'admin',
      access: { either: ['clients:manage', 'tenants:manage'] },
      method: 'get',
      path: '/audit-log',
      operationId: 'listAuditEntries',
      exampleParameters: { kind: 'client', since: '2026-01-01T00:00:00Z', limit: 20, sort: 'desc' },
      summary: 'Read the audit log',
      description:
        'Every administrative change, including revocations. Default order: the newest first. `clients:manage` reads the log of its ' +
        'tenant; `tenants:manage` that of the service, which repeats the changes of tenants by accounts without tenant, or ' +
        'with `tenant` that of a tenant. The `Link` header with `rel="next"` leads to the next page. ' +
        '`npm run audit:verify` finds what was altered or removed in the database.',
      query: AuditLogQuery,
      responses: { 200: z.array(AuditEntryView), 404: 'There is no such tenant' },
      async handle({ caller, query }) {
        const { entries, next } = await listAuditEntries.execute(caller, query);
        const link = nextPage(`${settings.publicUrl}/audit-log`, query, next);
        return reply(200, entries.map(toAuditEntryView), link);
      },
    }),
    route({
      tag: 'Audit log',
      surface: 'admin',
      access: { either: ['clients:manage', 'tenants:manage'] },
      method: 'get',
      path: '/audit-log/verification',
      operationId: 'verifyAuditLog',
      summary: 'Verify the audit log',
      description:
        'Up to 2,000 entries in one call, from the oldest stored one, for clients that may read the log; call again with `next` as `cursor` ' +
        'until `status` is `whole` or `broken`. Manipulations that the database alone cannot show, such as a log that was restored as a whole, ' +
        'are found by `npm run audit:verify` with `--expect`.',
      query: VerificationQuery,
      responses: { 200: VerificationView, 404: 'There is no such tenant' },
      handle: async ({ caller, query }) => reply(200, viewOf(VerificationView, await verifyChain.execute(caller, query))),
    }),
  ],
);
