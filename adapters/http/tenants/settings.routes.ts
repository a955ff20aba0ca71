import type { PortsOf } from '../../../application/needs.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { GetOwnSettings, UpdateOwnSettings } from '../../../application/tenants/own-settings.ts';
import { SessionStorageConfig, StatusListConfig } from '../../../domain/tenants/tenant.ts';
import { family, type Route, route, show } from '../route.ts';
import {
  EffectiveSessionConfig,
  EffectiveStatusListConfig,
  toSessionConfigView,
  toStatusListConfigView,
} from './tenant.view.ts';

const sessions = {
  path: '/session-config',
  tag: 'Sessions',
  surface: 'admin',
  access: { anyOf: ['issuance:manage', 'presentation:manage'] },
  responses: { 200: EffectiveSessionConfig },
} as const;
const statusLists = {
  path: '/status-list-config',
  tag: 'Status lists',
  surface: 'admin',
  access: { anyOf: ['issuance:manage'] },
  responses: { 200: EffectiveStatusListConfig },
} as const;

const USE_CASES = {
  getOwnSettings: GetOwnSettings,
  updateOwnSettings: UpdateOwnSettings,
  settings: ServiceSettings,
};
type UseCases = PortsOf<typeof USE_CASES>;

/** A tenant's own settings. Answers show what holds, the global defaults included. */
export const settingsRoutes = family(USE_CASES, (useCases) => [
  ...sessionRoutes(useCases),
  ...statusListRoutes(useCases),
]);

function sessionRoutes({ getOwnSettings, updateOwnSettings, settings }: UseCases): Route[] {
  return [
    route({
      ...sessions,
      edits: { kind: 'session-settings' },
      method: 'get',
      summary: 'Read how long sessions are kept',
      async handle({ caller }) {
        const tenant = await getOwnSettings.execute(caller);
        return show(200, toSessionConfigView(tenant, settings), tenant);
      },
    }),
    route({
      ...sessions,
      edits: { kind: 'session-settings', id: () => 'default' },
      access: { ...sessions.access, unrestricted: true },
      method: 'put',
      summary: 'Set how long sessions are kept',
      description: 'A field that is left out stays; `ttlSeconds: null` brings the global default back.',
      body: SessionStorageConfig,
      example: { ttlSeconds: 3600, cleanupMode: 'anonymize' },
      async handle({ caller, body }) {
        const tenant = await updateOwnSettings.execute(caller, { sessionConfig: body });
        return show(200, toSessionConfigView(tenant, settings), tenant);
      },
    }),
    route({
      ...sessions,
      edits: { kind: 'session-settings', id: () => 'default' },
      access: { ...sessions.access, unrestricted: true },
      method: 'delete',
      summary: 'Go back to the global defaults',
      async handle({ caller }) {
        const tenant = await updateOwnSettings.execute(caller, { sessionConfig: null });
        return show(200, toSessionConfigView(tenant, settings), tenant);
      },
    }),
  ];
}

function statusListRoutes({ getOwnSettings, updateOwnSettings, settings }: UseCases): Route[] {
  return [
    route({
      ...statusLists,
      edits: { kind: 'status-list-settings' },
      method: 'get',
      summary: 'Read the shape of new status lists',
      async handle({ caller }) {
        const tenant = await getOwnSettings.execute(caller);
        return show(200, toStatusListConfigView(tenant, settings.statusDefaults), tenant);
      },
    }),
    route({
      ...statusLists,
      edits: { kind: 'status-list-settings', id: () => 'default' },
      access: { ...statusLists.access, unrestricted: true },
      method: 'put',
      summary: 'Set the shape of new status lists',
      description:
        'A field that is left out stays; null brings the global default back. Existing lists keep their shape.',
      body: StatusListConfig,
      example: { bits: 2, ttl: 900, immediateUpdate: true },
      async handle({ caller, body }) {
        const tenant = await updateOwnSettings.execute(caller, { statusListConfig: body });
        return show(200, toStatusListConfigView(tenant, settings.statusDefaults), tenant);
      },
    }),
  ];
}
