import { object, z } from 'zod';
import type { TenantWithClients } from '../../../application/tenants/create-tenant.ts';
import { Profile } from '../../../domain/shared/finding.ts';
import { TenantAddress } from '../../../domain/tenants/organization.ts';
import type { Tenant } from '../../../domain/tenants/tenant.ts';
import { effectiveStatusListConfig, StatusListConfig } from '../../../domain/tenants/tenant.ts';
import { ClientView, toClientView } from '../clients/client.view.ts';
import { viewOf } from '../output/view-of.ts';
import { Warnings } from '../output/warnings.ts';

const SessionSettings = object({
  ttlSeconds: z.number().int().nullable().describe('Null: the global default'),
  cleanupMode: z.enum(['full', 'anonymize']),
});

const fields = {
  id: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  status: z.enum(['active', 'suspended']),
  sessionConfig: SessionSettings.nullable().describe('Null: the global defaults'),
  statusListConfig: StatusListConfig.nullable().describe('Null: the global defaults'),
  kms: z.string().nullable().describe('Provider of its next keys; null: the one of `KMS_CONFIG`'),
  profile: Profile.nullable().describe('Profile of the tenant'),
  endsAt: z.iso.datetime().nullable().describe('Time of its automatic removal with all its data; null: never'),
  organization: z.string().nullable().describe('Its legal name; null: `name`'),
  organizationIdentifier: z.string().nullable(),
  country: z.string().nullable(),
  contact: z.string().nullable(),
  address: TenantAddress.nullable(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
};

export const TenantConfiguration = object({ ...fields, clients: z.array(ClientView) }).meta({
  id: 'Tenant',
  description: 'A tenant with its clients',
});

export const WrittenTenantView = object({
  ...fields,
  clients: z.array(ClientView.extend({ secret: z.string().optional().describe('Shown once, after its creation') })),
  warnings: Warnings,
}).meta({ id: 'WrittenTenant', description: 'A tenant; the secret of a new administrator is shown once' });

export const TenantRemovalView = object({
  id: z.string(),
  since: z.iso.datetime().describe('Time of the removal of the tenant'),
  removedRows: z.number().int().describe('Rows of its data that were removed so far'),
}).meta({ id: 'TenantRemoval', description: 'A removed tenant whose data is still being removed' });

/** Warnings are added after a write. */
const SHOWN_PROPERTIES = WrittenTenantView.omit({ warnings: true });

export const EffectiveSessionConfig = object({ ttlSeconds: z.number().int(), cleanupMode: z.enum(['full', 'anonymize']) }).meta({
  id: 'EffectiveSessionStorageConfig',
  description: 'Settings of new sessions of the tenant',
});

export const EffectiveStatusListConfig = object({
  capacity: z.number().int(),
  bits: z.union([z.literal(1), z.literal(2), z.literal(4), z.literal(8)]),
  ttl: z.number().int(),
  immediateUpdate: z.boolean(),
  enableAggregation: z.boolean(),
}).meta({ id: 'EffectiveStatusListConfig', description: 'Settings of future status lists' });

export function toTenantView({ tenant, clients, newSecret }: TenantWithClients) {
  const { sessionConfig } = tenant;
  return viewOf(SHOWN_PROPERTIES, {
    ...tenant,
    clients: clients.map((client) => ({
      ...toClientView(client, tenant),
      ...(client.clientId === newSecret?.clientId && { secret: newSecret.secret }),
    })),
    sessionConfig: sessionConfig && { ttlSeconds: sessionConfig.ttlSeconds ?? null, cleanupMode: sessionConfig.cleanupMode ?? 'full' },
  });
}

export function toSessionConfigView(
  { sessionConfig }: Tenant,
  defaults: { readonly sessionTtlSeconds: number },
): z.infer<typeof EffectiveSessionConfig> {
  return { ttlSeconds: sessionConfig?.ttlSeconds ?? defaults.sessionTtlSeconds, cleanupMode: sessionConfig?.cleanupMode ?? 'full' };
}

export function toStatusListConfigView(
  { statusListConfig }: Tenant,
  defaults: Parameters<typeof effectiveStatusListConfig>[1],
): z.infer<typeof EffectiveStatusListConfig> {
  return effectiveStatusListConfig(statusListConfig, defaults);
}
