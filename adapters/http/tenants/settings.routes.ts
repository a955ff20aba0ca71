import { ServiceSettings } from '../../../application/ports/settings.ts';
import { GetTenantSettings, UpdateTenantSettings } from '../../../application/tenants/tenant-settings.ts';
import { SessionStorageConfig, StatusListConfig, type Tenant } from '../../../domain/tenants/tenant.ts';
import { warningsFor, withWarnings } from '../output/warnings.ts';
import { family, route, show } from '../route.ts';
import { EffectiveSessionConfig, EffectiveStatusListConfig, toSessionConfigView, toStatusListConfigView } from './tenant.view.ts';

/** A tenant has one of each. */
const id = () => 'default';
const sessions = {
  path: '/session-config',
  tag: 'Sessions',
  surface: 'admin',
  access: { anyOf: ['issuance:manage', 'presentation:manage'] },
  responses: { 200: EffectiveSessionConfig },
} as const;
const sessionWrites = { ...sessions, access: { ...sessions.access, unrestricted: true }, edits: { kind: 'session-settings', id } } as const;
const statusLists = {
  path: '/status-list-config',
  tag: 'Status lists',
  surface: 'admin',
  access: { anyOf: ['issuance:manage'] },
  responses: { 200: EffectiveStatusListConfig },
} as const;

const USE_CASES = { get: GetTenantSettings, update: UpdateTenantSettings, settings: ServiceSettings };

/** Settings of a tenant. Responses show the effective values, including the global defaults. */
export const settingsRoutes = family(USE_CASES, ({ get, update, settings }) => {
  const showSessions = (tenant: Tenant) => show(200, toSessionConfigView(tenant, settings), tenant);
  const showWrittenSessions = (tenant: Tenant) => {
    const warnings = warningsFor('session-settings', tenant, tenant.profile);
    return show(200, { ...toSessionConfigView(tenant, settings), warnings }, tenant);
  };
  const showWrittenLists = (tenant: Tenant) => {
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
      summary: 'Read the session retention',
      handle: async ({ caller }) => showSessions(await get.execute(caller)),
    }),
    route({
      ...sessionWrites,
      method: 'put',
      operationId: 'replaceSessionStorage',
      summary: 'Set how long sessions are kept',
      description: 'Omitted properties are unchanged; `ttlSeconds: null` restores the global default.',
      body: SessionStorageConfig,
      example: { ttlSeconds: 3600, cleanupMode: 'anonymize' },
      responses: { 200: withWarnings(EffectiveSessionConfig) },
      handle: async ({ caller, body }) => showWrittenSessions(await update.execute(caller, { sessionConfig: body })),
    }),
    route({
      ...sessionWrites,
      method: 'delete',
      operationId: 'resetSessionStorage',
      summary: 'Reset to the global defaults',
      handle: async ({ caller }) => showSessions(await update.execute(caller, { sessionConfig: null })),
    }),
    route({
      ...statusLists,
      edits: { kind: 'status-list-settings' },
      method: 'get',
      operationId: 'getStatusListDefaults',
      summary: 'Read the parameters of new status lists',
      handle: async ({ caller }) => showLists(await get.execute(caller)),
    }),
    route({
      ...statusLists,
      edits: { kind: 'status-list-settings', id },
      access: { ...statusLists.access, unrestricted: true },
      method: 'put',
      operationId: 'replaceStatusListDefaults',
      summary: 'Set the shape of new status lists',
      description: 'Omitted properties are unchanged; null restores the global default. Existing lists keep their parameters.',
      body: StatusListConfig,
      example: { bits: 2, ttl: 900, immediateUpdate: true },
      responses: { 200: withWarnings(EffectiveStatusListConfig) },
      handle: async ({ caller, body }) => showWrittenLists(await update.execute(caller, { statusListConfig: body })),
    }),
  ];
});
