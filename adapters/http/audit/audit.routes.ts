import { z } from 'zod';
import { AuditLogQuery, ListAuditEntries } from '../../../application/audit/audit-entries.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { nextPage } from '../next-page.ts';
import { family, reply, route } from '../route.ts';
import { AuditEntryView, toAuditEntryView } from './audit.view.ts';

/** Who changed what. */
export const auditRoutes = family(
  { listAuditEntries: ListAuditEntries, settings: ServiceSettings },
  ({ listAuditEntries, settings }) => [
    route({
      tag: 'Audit log',
      surface: 'admin',
      access: { either: ['clients:manage', 'tenants:manage'] },
      method: 'get',
      path: '/audit-log',
      summary: 'Read the audit log',
      description:
        'Every administrative change, revocations among them, the newest first. `clients:manage` reads the log of its ' +
        'tenant; `tenants:manage` that of the service, which repeats what accounts without tenant do to tenants, or ' +
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
  ],
);
