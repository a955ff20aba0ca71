import type { Role } from '../../domain/clients/role.ts';
import { findProfileProblems } from '../../domain/issuance/issuance-findings.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { mergeOrganization } from '../../domain/tenants/organization.ts';
import { administratorOf, type Tenant, type TenantCreation, type TenantUpdate } from '../../domain/tenants/tenant.ts';
import { tenantEnd } from '../../domain/tenants/tenant-end.ts';
import type { Caller } from '../caller.ts';
import { assertProvider, createRequestedKeyChain } from '../keys/create-requested-key-chain.ts';
import { withNewKeys } from '../keys/new-keys.ts';
import { destroyRetiredKeys, KEY_DESTRUCTION_PORTS } from '../keys/retired-keys.ts';
import { needs, type PortsOf } from '../needs.ts';
import { EventBus } from '../ports/event-bus.ts';
import { Kms } from '../ports/kms.ts';
import { Log } from '../ports/log.ts';
import type { TenantRemoval } from '../ports/maintenance.ts';
import { Store } from '../ports/store.ts';
import {
  assertTenantRoles,
  CLIENT_CREATION_PORTS,
  createAdministrator,
  createTenant,
  FIRST_KEY_CHAINS,
  TENANT_CREATION_PORTS,
  type TenantWithClients,
} from './create-tenant.ts';
import { mergeSettings } from './tenant-settings.ts';

export class ListTenants extends needs({ store: Store }) {
  async execute(): Promise<TenantWithClients[]> {
    return this.ports.store.forService(async ({ tenants, clients }) => {
      const result: TenantWithClients[] = [];
      for (const tenant of await tenants.list()) result.push({ tenant, clients: await clients.listOf(tenant.id) });
      return result;
    });
  }
}

export class ListTenantRemovals extends needs({ store: Store }) {
  execute(): Promise<readonly TenantRemoval[]> {
    return this.ports.store.maintenance.tenantRemovals();
  }
}

export class GetTenant extends needs({ store: Store }) {
  /** @throws Failure `not_found`. */
  async execute(_caller: Caller, id: TenantId): Promise<TenantWithClients> {
    return this.ports.store.forService(async ({ tenants, clients }) => ({
      tenant: await tenants.get(id),
      clients: await clients.listOf(id),
    }));
  }
}

/** Creates a tenant with its first keys and, if `roles` are given, its administrator. */
export class CreateTenant extends needs({ ...TENANT_CREATION_PORTS, log: Log }) {
  /**
   * @returns the tenant and its clients; `secret` of the new administrator is returned only here.
   * @throws Failure `conflict` when the id of the tenant or of its administrator is taken.
   */
  async execute(caller: Caller, creation: TenantCreation): Promise<TenantWithClients> {
    return withNewKeys(this.ports, async (ports) => {
      const { keyChains, ...createdTenant } = await createTenant(ports, creation, (tenant) => createInitialKeys(ports, tenant));
      const { tenant, clients } = createdTenant;
      await ports.store.forService(({ tenants }) => tenants.add(tenant, { keyChains, clients }), { by: caller });
      return { ...createdTenant, findings: findProfileProblems(tenant.profile, undefined) };
    });
  }
}

async function createInitialKeys(ports: PortsOf<typeof TENANT_CREATION_PORTS>, tenant: Tenant): Promise<readonly KeyChain[]> {
  const chains: KeyChain[] = [];
  for (const request of FIRST_KEY_CHAINS) chains.push(await createRequestedKeyChain(ports, { tenant, chains }, request));
  return chains;
}

/** Changes a tenant. `roles` are those of its administrator, who is created if there is none. */
export class UpdateTenant extends needs({ ...CLIENT_CREATION_PORTS, store: Store, kms: Kms, eventBus: EventBus }) {
  /**
   * @throws Failure `not_found`; `conflict` after a concurrent change of the tenant; `invalid_input` for an
   *   unknown key provider, and for an invalid end date.
   */
  async execute(caller: Caller, id: TenantId, update: TenantUpdate): Promise<TenantWithClients> {
    const { store, clock, kms, eventBus } = this.ports;
    assertProvider(kms, id, update.kms ?? undefined, 'kms');
    const administrator = update.roles && (await this.#createAdministratorIfMissing(id, update.roles));
    const updated = await store.forTenant(
      id,
      async (repositories) => {
        const tenant = await repositories.tenant.save(applyUpdate(await repositories.tenant.get(), update, clock.now()));
        if (administrator !== undefined) await repositories.clients.add(administrator.client);
        else if (update.roles !== undefined) {
          const currentAdministrator = await repositories.clients.get(administratorOf(id));
          const roles = [...new Set(update.roles)];
          await repositories.clients.save({ ...currentAdministrator, roles, updatedAt: clock.now() });
        }
        const clients = await repositories.clients.list();
        const { profile } = tenant;
        const issuance = profile === null ? undefined : await repositories.issuanceConfiguration.find('default');
        const findings = findProfileProblems(profile, issuance);
        const result = { tenant, clients, findings };
        return administrator === undefined ? result : { ...result, newSecret: administrator.newSecret };
      },
      { by: caller },
    );
    eventBus.publish({ type: 'tenant', tenantId: id });
    return updated;
  }

  /** Hashing a secret is slow, so it happens before the transaction. */
  async #createAdministratorIfMissing(id: TenantId, roles: readonly Role[]) {
    assertTenantRoles(roles);
    const isPresent = await this.ports.store.forTenant(id, async ({ tenant, clients }) => {
      await tenant.get();
      return (await clients.list()).some((client) => client.clientId === administratorOf(id));
    });
    return isPresent ? undefined : createAdministrator(this.ports, id, roles);
  }
}

function applyUpdate(tenant: Tenant, update: TenantUpdate, now: Date): Tenant {
  return {
    ...tenant,
    name: update.name ?? tenant.name,
    description: update.description === undefined ? tenant.description : update.description,
    status: update.status ?? tenant.status,
    sessionConfig: mergeSettings(tenant.sessionConfig, update.sessionConfig),
    statusListConfig: mergeSettings(tenant.statusListConfig, update.statusListConfig),
    kms: update.kms === undefined ? tenant.kms : update.kms,
    profile: update.profile === undefined ? tenant.profile : update.profile,
    endsAt: tenantEnd(update.endsAt, tenant.endsAt, now),
    ...mergeOrganization(tenant, update),
    updatedAt: now,
  };
}

/** Number of keys that are destroyed before the response; a job destroys the others. */
const MAX_DESTROYED_KEYS = 20;
/** Rows that are removed before the response, so that a small tenant is removed at once; a job removes the rest. */
const MAX_REMOVED_ROWS = 500;

/** Removes a tenant with all its data. Its tokens become invalid and nothing of it is served any more. */
export class DeleteTenant extends needs({ ...KEY_DESTRUCTION_PORTS, eventBus: EventBus }) {
  /** @throws Failure `not_found`. */
  async execute(caller: Caller, id: TenantId): Promise<void> {
    const { store, eventBus } = this.ports;
    await store.forService(({ tenants }) => tenants.remove(id), { by: caller });
    eventBus.publish({ type: 'tenant', tenantId: id });
    await this.#removeFirstRows(id);
    await destroyRetiredKeys(this.ports, MAX_DESTROYED_KEYS, id);
  }

  /** Failures are only logged: the tenant itself is already removed, and a job removes the remaining rows. */
  async #removeFirstRows(tenant: TenantId): Promise<void> {
    const { store, log } = this.ports;
    const { maintenance } = store;
    try {
      const now = await maintenance.time();
      await maintenance.removeRemainingRows(now, MAX_REMOVED_ROWS);
    } catch (error) {
      log.error('the data of a deleted tenant was not removed; a job tries again', { tenant }, error);
    }
  }
}
