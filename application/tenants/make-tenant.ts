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
import { endOf } from '../../domain/tenants/tenant-end.ts';
import { MAKING_SECRETS, makeClient } from '../clients/client-secrets.ts';
import { assertFreeName } from '../clients/free-name.ts';
import { assertProvider, MAKING_KEY_CHAINS } from '../keys/wanted-key-chain.ts';
import type { PortsOf } from '../needs.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { mergeSettings } from './own-settings.ts';

export type TenantWithClients = {
  readonly tenant: Tenant;
  readonly clients: readonly Client[];
  /** Present only where a secret was made just now. */
  readonly newSecret?: { readonly clientId: string; readonly secret: string };
  /** Present only where it was written just now: what its profile keeps out. */
  readonly findings?: readonly Finding[];
};

export const MAKING_CLIENTS = { ...MAKING_SECRETS, settings: ServiceSettings };

/** The client through which a tenant administers itself. Its secret can be picked up once, too. */
export async function makeAdministrator(
  ports: PortsOf<typeof MAKING_CLIENTS>,
  tenantId: TenantId,
  roles: readonly Role[],
): Promise<{ client: Client; newSecret: { clientId: string; secret: string } }> {
  assertTenantRoles(roles);
  const clientId = administratorOf(tenantId);
  assertFreeName(ports.settings, clientId);
  const own = {
    clientId,
    tenantId,
    roles,
    description: 'Administrator of the tenant',
    allowedPresentationConfigs: null,
    allowedIssuanceConfigs: null,
  };
  const { client, secret } = await makeClient(ports, own, 'tenants:manage');
  return { client, newSecret: { clientId, secret } };
}

/** @throws Failure `invalid_input` for no role at all, and for `tenants:manage`. */
export function assertTenantRoles(roles: readonly Role[]): void {
  if (roles.length === 0) throw invalidInput('roles', 'a client has at least one role');
  if (roles.includes('tenants:manage')) throw invalidInput('roles', 'a client that manages tenants cannot belong to a tenant');
}

/**
 * The key chains that every tenant starts with, a leaf per usage. A verifier of a credential accepts a status list
 * under the anchor of that credential only (Token Status List section 11.3), so one CA certifies both.
 */
export const FIRST_KEY_CHAINS: readonly (KeyChainCreation & { readonly id: string })[] = [
  { id: 'access', usages: ['access'] },
  { id: 'signing', usages: ['signing'] },
  { id: 'status-list', usages: ['statusList'], rootKeyChainId: 'signing' },
  { id: 'trust-list', usages: ['trustList'] },
];

/** Leaves room to count on for a tenant's whole life. */
const FIRST_REVISIONS = 0x3fffffff;

export const MAKING_TENANTS = { ...MAKING_CLIENTS, ...MAKING_KEY_CHAINS, store: Store };

/** A tenant with what it starts with, not stored yet. `newSecret` is told once. */
export type NewTenant = TenantWithClients & { readonly keyChains: readonly KeyChain[] };

/**
 * Makes a tenant that can work at once: with its keys and, if roles are given, its administrator.
 * @throws Failure `conflict` when the id of the tenant or of its administrator is taken.
 */
export async function makeTenant(
  ports: PortsOf<typeof MAKING_TENANTS>,
  wanted: TenantCreation,
  makeKeyChains: (tenant: Tenant) => Promise<readonly KeyChain[]>,
): Promise<NewTenant> {
  const { store, random, clock } = ports;
  assertProvider(ports.kms, wanted.id, wanted.kms ?? undefined, 'kms');
  const now = clock.now();
  const endsAt = endOf(wanted.endsAt, null, now);
  // Before any key is made: an external KMS would keep the keys of a tenant that is refused.
  const known = await store.forService(({ tenants }) => tenants.find(wanted.id));
  if (known !== undefined) throw new Failure('conflict', 'a tenant of this id exists already');

  // At random: what any process holds of an older tenant of this id must never look like the new one's.
  const revision = random.bytes(4).readUInt32BE() & FIRST_REVISIONS;
  const tenant: Tenant = {
    id: wanted.id,
    name: wanted.name,
    description: wanted.description ?? null,
    status: 'active',
    sessionConfig: mergeSettings(null, wanted.sessionConfig),
    statusListConfig: mergeSettings(null, wanted.statusListConfig),
    kms: wanted.kms ?? null,
    profile: wanted.profile ?? null,
    endsAt,
    ...mergeOrganization(NO_ORGANIZATION, wanted),
    revision,
    version: 1,
    createdAt: now,
    updatedAt: now,
  };
  const { roles = [] } = wanted;
  const made = roles.length === 0 ? undefined : await makeAdministrator(ports, tenant.id, roles);
  const clients: Client[] = made === undefined ? [] : [made.client];
  const { newSecret } = made ?? {};
  return { tenant, clients, keyChains: await makeKeyChains(tenant), ...defined({ newSecret }) };
}
