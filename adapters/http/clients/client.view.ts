import { z } from 'zod';
import type { Client } from '../../../domain/clients/client.ts';
import { Role } from '../../../domain/clients/role.ts';
import { TenantReference } from '../shapes/tenant-reference.ts';

const AllowedConfigs = z
  .array(z.string())
  .nullable()
  .describe('Ids of the configurations that the client may use; empty or null means all');

export const ClientView = z
  .object({
    clientId: z.string(),
    roles: z.array(Role),
    description: z.string().nullable(),
    tenantId: z.string().nullable(),
    tenant: TenantReference.nullable(),
    allowedPresentationConfigs: AllowedConfigs,
    allowedIssuanceConfigs: AllowedConfigs,
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  })
  .meta({ id: 'Client', description: 'A client. Its secret is stored hashed and never shown here.' });

export const SecretView = z
  .object({ secret: z.string() })
  .meta({ id: 'ClientSecret', description: 'Shown once. Save it now.' });

export function toClientView(
  client: Client,
  tenant: { readonly id: string; readonly name: string } | null,
): z.infer<typeof ClientView> {
  return {
    clientId: client.clientId,
    roles: [...client.roles],
    description: client.description,
    tenantId: client.tenantId,
    tenant: tenant && { id: tenant.id, name: tenant.name },
    allowedPresentationConfigs: client.allowedPresentationConfigs && [...client.allowedPresentationConfigs],
    allowedIssuanceConfigs: client.allowedIssuanceConfigs && [...client.allowedIssuanceConfigs],
    createdAt: client.createdAt.toISOString(),
    updatedAt: client.updatedAt.toISOString(),
  };
}
