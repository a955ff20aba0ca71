import type { Client } from '../../domain/clients/client.ts';
import type { Role } from '../../domain/clients/role.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { administratorOf, type Tenant, type TenantUpdate } from '../../domain/tenants/tenant.ts';
import type { Caller } from '../caller.ts';
import type { Cipher } from '../ports/cipher.ts';
import type { Clock } from '../ports/clock.ts';
import type { EventBus } from '../ports/event-bus.ts';
import type { Random } from '../ports/random.ts';
import type { Secrets } from '../ports/secrets.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { Store, TenantRepositories } from '../ports/store.ts';
import { assertTenantRoles, makeAdministrator, type TenantWithClients } from './administrator.ts';
import { mergeSettings } from './merge-settings.ts';

type Ports = {
  readonly store: Store;
  readonly secrets: Secrets;
  readonly cipher: Cipher;
  readonly random: Random;
  readonly clock: Clock;
  readonly settings: ServiceSettings;
  readonly eventBus: EventBus;
};

type NewAdministrator = { readonly client: Client; readonly secret: string };

/** Changes a tenant. `roles` are those of its administrator, who is made if there is none. */
export class UpdateTenant {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `not_found`, or `conflict` when somebody else changed the tenant at the same time. */
  async execute(caller: Caller, id: TenantId, wanted: TenantUpdate): Promise<TenantWithClients> {
    const { store, clock, eventBus } = this.#ports;
    const made = wanted.roles && (await this.#administratorIfMissing(id, wanted.roles));
    const updated = await store.forTenant(
      id,
      async (repositories) => {
        const before = await repositories.tenant.get();
        const tenant = await repositories.tenant.save(changed(before, wanted, clock.now()));
        if (made !== undefined) await repositories.clients.add(made.client);
        else if (wanted.roles !== undefined) await setRoles(repositories, id, wanted.roles, clock.now());
        const clients = await repositories.clients.list();
        if (made === undefined) return { tenant, clients };
        return { tenant, clients, newSecret: { clientId: made.client.clientId, secret: made.secret } };
      },
      { by: caller },
    );
    eventBus.publish({ type: 'tenant', tenantId: id });
    return updated;
  }

  /** Hashing a secret is slow, so it comes before the transaction that stores it. */
  async #administratorIfMissing(id: TenantId, roles: readonly Role[]): Promise<NewAdministrator | undefined> {
    assertTenantRoles(roles);
    const present = await this.#ports.store.forTenant(id, async ({ tenant, clients }) => {
      await tenant.get();
      return (await clients.list()).some((client) => client.clientId === administratorOf(id));
    });
    return present ? undefined : makeAdministrator(this.#ports, id, roles);
  }
}

async function setRoles(
  { clients }: TenantRepositories,
  id: TenantId,
  roles: readonly Role[],
  now: Date,
): Promise<void> {
  const administrator = await clients.get(administratorOf(id));
  await clients.save({ ...administrator, roles: [...new Set(roles)], updatedAt: now });
}

function changed(tenant: Tenant, wanted: TenantUpdate, now: Date): Tenant {
  return {
    ...tenant,
    name: wanted.name ?? tenant.name,
    description: wanted.description === undefined ? tenant.description : wanted.description,
    status: wanted.status ?? tenant.status,
    sessionConfig: mergeSettings(tenant.sessionConfig, wanted.sessionConfig),
    statusListConfig: mergeSettings(tenant.statusListConfig, wanted.statusListConfig),
    updatedAt: now,
  };
}
