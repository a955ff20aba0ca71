import type { Client } from '../../domain/clients/client.ts';
import type { KeyChain, KeyUsage } from '../../domain/keys/key-chain.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { Tenant, TenantCreation } from '../../domain/tenants/tenant.ts';
import type { Caller } from '../caller.ts';
import { createKeyChain } from '../keys/make-key-chain.ts';
import type { CertificateAuthority } from '../ports/certificate-authority.ts';
import type { Cipher } from '../ports/cipher.ts';
import type { Clock } from '../ports/clock.ts';
import type { Kms } from '../ports/kms.ts';
import type { Random } from '../ports/random.ts';
import type { Secrets } from '../ports/secrets.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import { makeAdministrator, type TenantWithClients } from './administrator.ts';
import { mergeSettings } from './merge-settings.ts';

/** `under` names the one of these whose CA certifies this, too. */
export type FirstKeyChain = { readonly id: string; readonly usage: KeyUsage; readonly under?: string };

/**
 * The key chains that every tenant starts with, a leaf per usage. Whoever verifies a credential accepts a status list
 * under the anchor of that credential only (Token Status List section 11.3), so one CA certifies both.
 */
export const FIRST_KEY_CHAINS: readonly FirstKeyChain[] = [
  { id: 'access', usage: 'access' },
  { id: 'signing', usage: 'signing' },
  { id: 'status-list', usage: 'statusList', under: 'signing' },
  { id: 'trust-list', usage: 'trustList' },
];

/** Leaves room to count on for a tenant's whole life. */
const FIRST_REVISIONS = 0x3fffffff;

type Ports = {
  readonly store: Store;
  readonly kms: Kms;
  readonly certificateAuthority: CertificateAuthority;
  readonly secrets: Secrets;
  readonly cipher: Cipher;
  readonly random: Random;
  readonly clock: Clock;
  readonly settings: ServiceSettings;
};

/** Makes a tenant that can work at once: with its keys and, if roles are given, its administrator. */
export class CreateTenant {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * @returns the tenant and its clients; `secret` of the new administrator is told here once.
   * @param firstKeyChains for a caller who makes some of them in another way.
   * @throws Failure `conflict` when the id of the tenant or of its administrator is taken.
   */
  async execute(
    caller: Caller,
    wanted: TenantCreation,
    firstKeyChains: readonly FirstKeyChain[] = FIRST_KEY_CHAINS,
  ): Promise<TenantWithClients> {
    const { store, clock } = this.#ports;
    // Before any key is made: an external KMS would keep the keys of a tenant that is refused.
    const known = await store.forService(({ tenants }) => tenants.find(wanted.id));
    if (known !== undefined) throw new Failure('conflict', 'a tenant of this id exists already');

    const now = clock.now();
    const revision = this.#ports.random.bytes(4).readUInt32BE() & FIRST_REVISIONS;
    const tenant = newTenant(wanted, now, revision);
    const roles = wanted.roles ?? [];
    const administrator =
      roles.length === 0 ? undefined : await makeAdministrator(this.#ports, tenant.id, roles);
    const keyChains = await this.#makeKeyChains(tenant, firstKeyChains);
    const clients: Client[] = administrator === undefined ? [] : [administrator.client];
    await store.forService(({ tenants }) => tenants.add(tenant, { keyChains, clients }), { by: caller });
    return {
      tenant,
      clients,
      ...(administrator !== undefined && {
        newSecret: { clientId: administrator.client.clientId, secret: administrator.secret },
      }),
    };
  }

  async #makeKeyChains(tenant: Tenant, wanted: readonly FirstKeyChain[]): Promise<KeyChain[]> {
    const dnsName = new URL(this.#ports.settings.publicUrl).hostname;
    const chains: KeyChain[] = [];
    for (const { id, usage, under } of wanted) {
      const root = chains.find((chain) => chain.id === under)?.root;
      chains.push(
        await createKeyChain(this.#ports, {
          tenantId: tenant.id,
          id,
          usages: [usage],
          subjectName: tenant.name,
          dnsName,
          ...(root !== undefined && { certification: { by: 'root', root } }),
        }),
      );
    }
    return chains;
  }
}

function newTenant(wanted: TenantCreation, now: Date, revision: number): Tenant {
  return {
    id: wanted.id,
    name: wanted.name,
    description: wanted.description ?? null,
    status: 'active',
    sessionConfig: mergeSettings(null, wanted.sessionConfig),
    statusListConfig: mergeSettings(null, wanted.statusListConfig),
    // At random: what any process holds of an older tenant of this id must never look like the new one's.
    revision,
    version: 1,
    createdAt: now,
    updatedAt: now,
  };
}
