import { object, z } from 'zod';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Tenant } from '../../domain/tenants/tenant.ts';
import { viewOf } from './output/view-of.ts';

export const DeletedView = object({ id: z.string() }).meta({ id: 'Deleted', description: 'The id of the deleted object' });

/** Error response (RFC 6749 section 5.2 and protocols that follow it). Protocols add properties of their own, such as `interval`. */
export const ProtocolError = z.looseObject({ error: z.string(), error_description: z.string().optional() }).meta({ id: 'ProtocolError' });

/** Tenant as its resources refer to it. */
export const TenantReference = object({
  id: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  status: z.enum(['active', 'suspended']),
  createdAt: z.iso.datetime(),
}).meta({ id: 'TenantReference', description: 'The tenant that this belongs to' });

export function toTenantReference(tenant: ReferredTenant) {
  return viewOf(TenantReference, tenant);
}

export type ReferredTenant = Pick<Tenant, 'name' | 'description' | 'status' | 'createdAt'> & { readonly id: string };

/** First path segment of the addresses for wallets. */
export const TenantPath = object({
  tenant: z
    .string()
    .max(63)
    .transform((id) => id as TenantId),
});

/** JSON object that is specified elsewhere. */
export const Document = z.record(z.string(), z.unknown());
