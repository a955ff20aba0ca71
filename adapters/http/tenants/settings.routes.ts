import type { ServiceSettings } from '../../../application/ports/settings.ts';
import type { ChangeOwnSettings } from '../../../application/tenants/change-own-settings.ts';
import type { GetOwnSettings } from '../../../application/tenants/get-own-settings.ts';
import { SessionStorageConfig, StatusListConfig } from '../../../domain/tenants/tenant.ts';
import { type Route, Routes, route, show } from '../route.ts';
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

type UseCases = {
  readonly getOwnSettings: GetOwnSettings;
  readonly changeOwnSettings: ChangeOwnSettings;
  readonly settings: ServiceSettings;
};

/** A tenant's own settings. Answers show what holds, the global defaults included. */
export class SettingsRoutes extends Routes {
  readonly routes: readonly Route[];

  constructor(useCases: UseCases) {
    super();
    this.routes = [...sessionRoutes(useCases), ...statusListRoutes(useCases)];
  }
}

function sessionRoutes({ getOwnSettings, changeOwnSettings, settings }: UseCases): Route[] {
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
        const tenant = await changeOwnSettings.execute(caller, { sessionConfig: body });
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
        const tenant = await changeOwnSettings.execute(caller, { sessionConfig: null });
        return show(200, toSessionConfigView(tenant, settings), tenant);
      },
    }),
  ];
}

function statusListRoutes({ getOwnSettings, changeOwnSettings, settings }: UseCases): Route[] {
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
        const tenant = await changeOwnSettings.execute(caller, { statusListConfig: body });
        return show(200, toStatusListConfigView(tenant, settings.statusDefaults), tenant);
      },
    }),
  ];
}
