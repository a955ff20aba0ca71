import type { Client } from '../../domain/clients/client.ts';
import type { Role } from '../../domain/clients/role.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { KeyChainCreation } from '../../domain/keys/key-chain-input.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { Finding } from '../../domain/shared/finding.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { mergeOrganization, NO_ORGANIZATION } from '../../domain/tenants/organization.ts';
import { administratorOf, type Tenant, type TenantCreation } from '../../domain/tenants/tenant.ts';
import { tenantEnd } from '../../domain/tenants/tenant-end.ts';
import { assertIdNotReserved } from '../clients/client-ids.ts';
import { createClient, SECRET_CREATION_PORTS } from '../clients/client-secrets.ts';
import { assertProvider, KEY_CHAIN_CREATION_PORTS } from '../keys/create-requested-key-chain.ts';
import type { PortsOf } from '../needs.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { mergeSettings } from './tenant-settings.ts';

export type TenantWithClients = {
  readonly tenant: Tenant;
  readonly clients: readonly Client[];
  /** Present only for a secret that was created in this call. */
  readonly newSecret?: { readonly clientId: string; readonly secret: string };
  /** Present only after a write: warnings of the profile. */
  readonly findings?: readonly Finding[];
};

export const CLIENT_CREATION_PORTS = { ...SECRET_CREATION_PORTS, settings: ServiceSettings };

/** The client with which a tenant administers itself. Its secret can be picked up once, too. */
export async function createAdministrator(
  ports: PortsOf<typeof CLIENT_CREATION_PORTS>,
  tenantId: TenantId,
  roles: readonly Role[],
): Promise<{ client: Client; newSecret: { clientId: string; secret: string } }> {
  assertTenantRoles(roles);
  const clientId = administratorOf(tenantId);
  assertIdNotReserved(ports.settings, clientId);
  const clientFields = {
    clientId,
    tenantId,
    roles,
    description: 'Administrator of the tenant',
    allowedPresentationConfigs: null,
    allowedIssuanceConfigs: null,
  };
  const { client, secret } = await createClient(ports, clientFields, 'tenants:manage');
  return { client, newSecret: { clientId, secret } };
}

/** @throws Failure `invalid_input` for an empty list, and for `tenants:manage`. */
export function assertTenantRoles(roles: readonly Role[]): void {
  if (roles.length === 0) throw invalidInput('roles', 'a client has at least one role');
  if (roles.includes('tenants:manage')) throw invalidInput('roles', 'a client that manages tenants cannot belong to a tenant');
}

/**
 * The initial key chains of every tenant, a leaf per usage. A verifier of a credential accepts a status list only under the anchor of
 * that credential (Token Status List section 11.3), so one CA certifies both.
 */
export const FIRST_KEY_CHAINS: readonly (KeyChainCreation & { readonly id: string })[] = [
  { id: 'access', usages: ['access'] },
  { id: 'signing', usages: ['signing'] },
  { id: 'status-list', usages: ['statusList'], rootKeyChainId: 'signing' },
  { id: 'trust-list', usages: ['trustList'] },
];

/** Leaves enough room for the increments of a tenant's whole life. */
const FIRST_REVISIONS = 0x3fffffff;

export const TENANT_CREATION_PORTS = { ...CLIENT_CREATION_PORTS, ...KEY_CHAIN_CREATION_PORTS, store: Store };

/** A tenant with its initial data, not stored yet. `newSecret` is returned once. */
export type NewTenant = TenantWithClients & { readonly keyChains: readonly KeyChain[] };

/**
 * Creates a tenant that can work at once: with its keys and, if roles are given, its administrator.
 * @throws Failure `conflict` when the id of the tenant or of its administrator is taken.
 */
export async function createTenant(
  ports: PortsOf<typeof TENANT_CREATION_PORTS>,
  creation: TenantCreation,
  createKeyChains: (tenant: Tenant) => Promise<readonly KeyChain[]>,
): Promise<NewTenant> {
  const { store, random, clock } = ports;
  assertProvider(ports.kms, creation.id, creation.kms ?? undefined, 'kms');
  const now = clock.now();
  const endsAt = tenantEnd(creation.endsAt, null, now);
  // Checked before any key is generated: an external KMS would keep the keys of a rejected tenant.
  const existingTenant = await store.forService(({ tenants }) => tenants.find(creation.id));
  if (existingTenant !== undefined) throw new Failure('conflict', 'a tenant with this id already exists');

  // Random, so that cached data of a removed tenant with the same id never match the new one.
  const revision = random.bytes(4).readUInt32BE() & FIRST_REVISIONS;
  const tenant: Tenant = {
    id: creation.id,
    name: creation.name,
    description: creation.description ?? null,
    status: 'active',
    sessionConfig: mergeSettings(null, creation.sessionConfig),
    statusListConfig: mergeSettings(null, creation.statusListConfig),
    kms: creation.kms ?? null,
    profile: creation.profile ?? null,
    endsAt,
    ...mergeOrganization(NO_ORGANIZATION, creation),
    revision,
    version: 1,
    createdAt: now,
    updatedAt: now,
  };
  const { roles = [] } = creation;
  const administrator = roles.length === 0 ? undefined : await createAdministrator(ports, tenant.id, roles);
  const clients: Client[] = administrator === undefined ? [] : [administrator.client];
  const { newSecret } = administrator ?? {};
  return { tenant, clients, keyChains: await createKeyChains(tenant), ...defined({ newSecret }) };
}
