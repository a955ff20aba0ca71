import type { Client } from '../../domain/clients/client.ts';
import type { Role } from '../../domain/clients/role.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { administratorOf, type Tenant } from '../../domain/tenants/tenant.ts';
import { MAKING_SECRETS, makeSecret } from '../clients/client-secret.ts';
import { assertFreeName } from '../clients/free-name.ts';
import type { PortsOf } from '../needs.ts';
import { ServiceSettings } from '../ports/settings.ts';

export type TenantWithClients = {
  readonly tenant: Tenant;
  readonly clients: readonly Client[];
  /** Present only where a secret was made just now. */
  readonly newSecret?: { readonly clientId: string; readonly secret: string };
};

export const MAKING_CLIENTS = { ...MAKING_SECRETS, settings: ServiceSettings };

/** The client through which a tenant administers itself. Its secret can be picked up once, too. */
export async function makeAdministrator(
  ports: PortsOf<typeof MAKING_CLIENTS>,
  tenantId: TenantId,
  roles: readonly Role[],
): Promise<{ client: Client; secret: string }> {
  assertTenantRoles(roles);
  const clientId = administratorOf(tenantId);
  assertFreeName(ports.settings, clientId);
  const { secret, secretHash, pickUp } = await makeSecret(ports, clientId, 'tenants:manage');
  const now = ports.clock.now();
  const client: Client = {
    clientId,
    tenantId,
    roles: [...new Set(roles)],
    description: 'Administrator of the tenant',
    allowedPresentationConfigs: null,
    allowedIssuanceConfigs: null,
    secretHash,
    pickUp,
    version: 1,
    createdAt: now,
    updatedAt: now,
  };
  return { client, secret };
}

/** @throws Failure `invalid_input` for no role at all, and for `tenants:manage`. */
export function assertTenantRoles(roles: readonly Role[]): void {
  if (roles.length === 0) throw invalidInput('roles', 'a client has at least one role');
  if (roles.includes('tenants:manage')) {
    throw invalidInput('roles', 'a client that manages tenants cannot belong to a tenant');
  }
}
