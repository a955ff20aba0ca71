import { object, z } from 'zod';
import { type ListedSetting, SETTING_SOURCES } from '../../../application/ports/listed-settings.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { ListSettings, SettingsQuery } from '../../../application/settings/list-settings.ts';
import { defined } from '../../../domain/shared/defined.ts';
import { ListQuery, pageOf } from '../output/page-of.ts';
import { viewOf } from '../output/view-of.ts';
import { family, route } from '../route.ts';

export const SettingView = object({
  name: z.string().describe('Name of the environment variable'),
  value: z
    .string()
    .nullable()
    .describe('Configured value, without user, password and parameters of an address; null for a secret, and without a value'),
  isSet: z.boolean().describe('True if it was configured, or set by the first start'),
  isSecret: z.boolean().describe('The value is never shown'),
  source: z
    .enum(SETTING_SOURCES)
    .describe('`file`: `secrets.env` of the first start, or `kms.json`, both in DATA_FOLDER; `default`: not configured'),
  description: z.string(),
}).meta({ id: 'Setting', description: 'One setting of the service, with where its value comes from' });

export function toSettingView(setting: ListedSetting) {
  return viewOf(SettingView, setting);
}

export const serviceSettingRoutes = family({ listSettings: ListSettings, settings: ServiceSettings }, ({ listSettings, settings }) => [
  route({
    tag: 'Service',
    surface: 'admin',
    access: { service: ['tenants:manage'] },
    method: 'get',
    path: '/settings',
    operationId: 'listSettings',
    exampleParameters: { q: 'database', source: 'environment', limit: 20, sort: 'asc' },
    summary: 'Read the settings of the service',
    description:
      'All settings of docs/reference/settings.md, by default in its order, with the values of the start of this process; for secrets only whether they are set. Settings are changed ' +
      'in the environment, and apply from the next start on.',
    query: ListQuery.extend(SettingsQuery.shape),
    responses: { 200: z.array(SettingView) },
    async handle({ caller, query }) {
      const { q, source } = query;
      return pageOf({
        all: await listSettings.execute(caller, defined({ q, source })),
        query,
        address: `${settings.publicUrl}/settings`,
        keyOf: ({ name }) => name,
        toView: toSettingView,
      });
    },
  }),
]);
