import { ServiceSettings } from '../../../application/ports/settings.ts';
import { GetOwnSettings, UpdateOwnSettings } from '../../../application/tenants/own-settings.ts';
import { SessionStorageConfig, StatusListConfig, type Tenant } from '../../../domain/tenants/tenant.ts';
import { warningsFor, withWarnings } from '../output/warnings.ts';
import { family, route, show } from '../route.ts';
import { EffectiveSessionConfig, EffectiveStatusListConfig, toSessionConfigView, toStatusListConfigView } from './tenant.view.ts';

/** There is one of each in a tenant. */
const id = () => 'default';
const sessions = {
  path: '/session-config',
  tag: 'Sessions',
  surface: 'admin',
  access: { anyOf: ['issuance:manage', 'presentation:manage'] },
  responses: { 200: EffectiveSessionConfig },
} as const;
const sessionsWritten = {
  ...sessions,
  access: { ...sessions.access, unrestricted: true },
  edits: { kind: 'session-settings', id },
} as const;
const statusLists = {
  path: '/status-list-config',
  tag: 'Status lists',
  surface: 'admin',
  access: { anyOf: ['issuance:manage'] },
  responses: { 200: EffectiveStatusListConfig },
} as const;

const USE_CASES = { get: GetOwnSettings, update: UpdateOwnSettings, settings: ServiceSettings };

/** A tenant's own settings. Answers show what holds, the global defaults included. */
export const settingsRoutes = family(USE_CASES, ({ get, update, settings }) => {
  const showSessions = (tenant: Tenant) => show(200, toSessionConfigView(tenant, settings), tenant);
  const writtenSessions = (tenant: Tenant) => {
    const warnings = warningsFor('session-settings', tenant, tenant.profile);
    return show(200, { ...toSessionConfigView(tenant, settings), warnings }, tenant);
  };
  const writtenLists = (tenant: Tenant) => {
    const warnings = warningsFor('status-list-settings', tenant, tenant.profile);
    return show(200, { ...toStatusListConfigView(tenant, settings.statusDefaults), warnings }, tenant);
  };
  const showLists = (tenant: Tenant) => show(200, toStatusListConfigView(tenant, settings.statusDefaults), tenant);
  return [
    route({
      ...sessions,
      edits: { kind: 'session-settings' },
      method: 'get',
      operationId: 'getSessionStorage',
      summary: 'Read how long sessions are kept',
      handle: async ({ caller }) => showSessions(await get.execute(caller)),
    }),
    route({
      ...sessionsWritten,
      method: 'put',
      operationId: 'replaceSessionStorage',
      summary: 'Set how long sessions are kept',
      description: 'A field that is left out stays; `ttlSeconds: null` brings the global default back.',
      body: SessionStorageConfig,
      example: { ttlSeconds: 3600, cleanupMode: 'anonymize' },
      responses: { 200: withWarnings(EffectiveSessionConfig) },
      handle: async ({ caller, body }) => writtenSessions(await update.execute(caller, { sessionConfig: body })),
    }),
    route({
      ...sessionsWritten,
      method: 'delete',
      operationId: 'resetSessionStorage',
      summary: 'Go back to the global defaults',
      handle: async ({ caller }) => showSessions(await update.execute(caller, { sessionConfig: null })),
    }),
    route({
      ...statusLists,
      edits: { kind: 'status-list-settings' },
      method: 'get',
      operationId: 'getStatusListDefaults',
      summary: 'Read the shape of new status lists',
      handle: async ({ caller }) => showLists(await get.execute(caller)),
    }),
    route({
      ...statusLists,
      edits: { kind: 'status-list-settings', id },
      access: { ...statusLists.access, unrestricted: true },
      method: 'put',
      operationId: 'replaceStatusListDefaults',
      summary: 'Set the shape of new status lists',
      description: 'A field that is left out stays; null brings the global default back. Existing lists keep their shape.',
      body: StatusListConfig,
      example: { bits: 2, ttl: 900, immediateUpdate: true },
      responses: { 200: withWarnings(EffectiveStatusListConfig) },
      handle: async ({ caller, body }) => writtenLists(await update.execute(caller, { statusListConfig: body })),
    }),
  ];
});
