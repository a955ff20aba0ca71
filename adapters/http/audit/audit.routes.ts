import { z } from 'zod';
import { AuditLogQuery, ListAuditEntries } from '../../../application/audit/audit-entries.ts';
import type { PortsOf } from '../../../application/needs.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { family, type Route, reply, route } from '../route.ts';
import { AuditEntryView, toAuditEntryView } from './audit.view.ts';

const USE_CASES = { listAuditEntries: ListAuditEntries, settings: ServiceSettings };

/** Who changed what. */
export const auditRoutes = family(USE_CASES, routesOf);

function routesOf({ listAuditEntries, settings }: PortsOf<typeof USE_CASES>): readonly Route[] {
  return [
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
        const headers = next === undefined ? {} : nextPage(settings.publicUrl, query, next);
        return reply(200, entries.map(toAuditEntryView), headers);
      },
    }),
  ];
}

/** A `Link` header to the next page (RFC 8288) that repeats what this page was asked for. */
function nextPage(publicUrl: string, query: AuditLogQuery, cursor: string): { readonly Link: string } {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...query, cursor })) {
    if (value !== undefined)
      parameters.set(name, value instanceof Date ? value.toISOString() : String(value));
  }
  return { Link: `<${publicUrl}/audit-log?${parameters}>; rel="next"` };
}
