import { object, z } from 'zod';
import type { Client } from '../../../domain/clients/client.ts';
import { Role } from '../../../domain/clients/role.ts';
import { viewOf } from '../output/view-of.ts';
import { type ReferredTenant, TenantReference, toTenantReference } from '../shapes.ts';

const AllowedConfigs = z
  .array(z.string())
  .nullable()
  .describe('Ids of the configurations that the client may use; empty or null means all');

export const ClientView = object({
  clientId: z.string(),
  roles: z.array(Role),
  description: z.string().nullable(),
  tenantId: z.string().nullable(),
  tenant: TenantReference.nullable(),
  allowedPresentationConfigs: AllowedConfigs,
  allowedIssuanceConfigs: AllowedConfigs,
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
}).meta({ id: 'Client', description: 'A client. Its secret is stored hashed and never shown here.' });

export const SecretView = object({ secret: z.string() }).meta({ id: 'ClientSecret', description: 'Shown once. Save it now.' });

export function toClientView(client: Client, tenant: ReferredTenant | null) {
  return viewOf(ClientView, { ...client, tenant: tenant && toTenantReference(tenant) });
}
