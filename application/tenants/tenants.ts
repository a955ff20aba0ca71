import type { Role } from '../../domain/clients/role.ts';
import { findProfileProblems } from '../../domain/issuance/issuance-findings.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { mergeOrganization } from '../../domain/tenants/organization.ts';
import { administratorOf, type Tenant, type TenantCreation, type TenantUpdate } from '../../domain/tenants/tenant.ts';
import { endOf } from '../../domain/tenants/tenant-end.ts';
import type { Caller } from '../caller.ts';
import { withNewKeys } from '../keys/new-keys.ts';
import { DESTROYING, destroyRetiredKeys } from '../keys/retired-keys.ts';
import { assertProvider, makeWantedKeyChain } from '../keys/wanted-key-chain.ts';
import { needs, type PortsOf } from '../needs.ts';
import { EventBus } from '../ports/event-bus.ts';
import { Kms } from '../ports/kms.ts';
import { Log } from '../ports/log.ts';
import type { TenantRemoval } from '../ports/maintenance.ts';
import { Store } from '../ports/store.ts';
import {
  assertTenantRoles,
  FIRST_KEY_CHAINS,
  MAKING_CLIENTS,
  MAKING_TENANTS,
  makeAdministrator,
  makeTenant,
  type TenantWithClients,
} from './make-tenant.ts';
import { mergeSettings } from './own-settings.ts';

/** All tenants with their clients, in order of their ids. */
export class ListTenants extends needs({ store: Store }) {
  async execute(): Promise<TenantWithClients[]> {
    return this.ports.store.forService(async ({ tenants, clients }) => {
      const found: TenantWithClients[] = [];
      for (const tenant of await tenants.list()) found.push({ tenant, clients: await clients.listOf(tenant.id) });
      return found;
    });
  }
}

/** Removed tenants whose data is still being removed, in order of their ids. */
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

/** Makes a tenant that can work at once: with its keys and, if roles are given, its administrator. */
export class CreateTenant extends needs({ ...MAKING_TENANTS, log: Log }) {
  /**
   * @returns the tenant and its clients; `secret` of the new administrator is told here once.
   * @throws Failure `conflict` when the id of the tenant or of its administrator is taken.
   */
  async execute(caller: Caller, wanted: TenantCreation): Promise<TenantWithClients> {
    return withNewKeys(this.ports, async (ports) => {
      const { keyChains, ...made } = await makeTenant(ports, wanted, (tenant) => firstKeysOf(ports, tenant));
      const belongings = { keyChains, clients: made.clients };
      await ports.store.forService(({ tenants }) => tenants.add(made.tenant, belongings), { by: caller });
      return { ...made, findings: findProfileProblems(made.tenant.profile, undefined) };
    });
  }
}

async function firstKeysOf(ports: PortsOf<typeof MAKING_TENANTS>, tenant: Tenant): Promise<readonly KeyChain[]> {
  const chains: KeyChain[] = [];
  for (const wanted of FIRST_KEY_CHAINS) chains.push(await makeWantedKeyChain(ports, { tenant, chains }, wanted));
  return chains;
}

/** Changes a tenant. `roles` are those of its administrator, who is made if there is none. */
export class UpdateTenant extends needs({ ...MAKING_CLIENTS, store: Store, kms: Kms, eventBus: EventBus }) {
  /**
   * @throws Failure `not_found`; `conflict` when somebody else changed the tenant at the same time; `invalid_input` for a
   *   key provider that there is not, and for an end that cannot be.
   */
  async execute(caller: Caller, id: TenantId, wanted: TenantUpdate): Promise<TenantWithClients> {
    const { store, clock, kms, eventBus } = this.ports;
    assertProvider(kms, id, wanted.kms ?? undefined, 'kms');
    const made = wanted.roles && (await this.#administratorIfMissing(id, wanted.roles));
    const updated = await store.forTenant(
      id,
      async (own) => {
        const tenant = await own.tenant.save(changed(await own.tenant.get(), wanted, clock.now()));
        if (made !== undefined) await own.clients.add(made.client);
        else if (wanted.roles !== undefined) {
          const administrator = await own.clients.get(administratorOf(id));
          const roles = [...new Set(wanted.roles)];
          await own.clients.save({ ...administrator, roles, updatedAt: clock.now() });
        }
        const clients = await own.clients.list();
        const { profile } = tenant;
        const issuance = profile === null ? undefined : await own.issuanceConfiguration.find('default');
        const findings = findProfileProblems(profile, issuance);
        const written = { tenant, clients, findings };
        return made === undefined ? written : { ...written, newSecret: made.newSecret };
      },
      { by: caller },
    );
    eventBus.publish({ type: 'tenant', tenantId: id });
    return updated;
  }

  /** Hashing a secret is slow, so it comes before the transaction that stores it. */
  async #administratorIfMissing(id: TenantId, roles: readonly Role[]) {
    assertTenantRoles(roles);
    const present = await this.ports.store.forTenant(id, async ({ tenant, clients }) => {
      await tenant.get();
      return (await clients.list()).some((client) => client.clientId === administratorOf(id));
    });
    return present ? undefined : makeAdministrator(this.ports, id, roles);
  }
}

function changed(tenant: Tenant, wanted: TenantUpdate, now: Date): Tenant {
  return {
    ...tenant,
    name: wanted.name ?? tenant.name,
    description: wanted.description === undefined ? tenant.description : wanted.description,
    status: wanted.status ?? tenant.status,
    sessionConfig: mergeSettings(tenant.sessionConfig, wanted.sessionConfig),
    statusListConfig: mergeSettings(tenant.statusListConfig, wanted.statusListConfig),
    kms: wanted.kms === undefined ? tenant.kms : wanted.kms,
    profile: wanted.profile === undefined ? tenant.profile : wanted.profile,
    endsAt: endOf(wanted.endsAt, tenant.endsAt, now),
    ...mergeOrganization(tenant, wanted),
    updatedAt: now,
  };
}

/** Keys that a removal destroys before it answers; the job takes the rest. */
const MAX_DESTROYED = 20;
/** Rows that are removed before the caller gets an answer, so that a small tenant is gone at once; the job removes the rest. */
const BATCH = 500;

/** Removes a tenant with everything that is its own. Its tokens end at once, and nothing of it is served any more. */
export class DeleteTenant extends needs({ ...DESTROYING, eventBus: EventBus }) {
  /** @throws Failure `not_found`. */
  async execute(caller: Caller, id: TenantId): Promise<void> {
    const { store, eventBus } = this.ports;
    await store.forService(({ tenants }) => tenants.remove(id), { by: caller });
    eventBus.publish({ type: 'tenant', tenantId: id });
    await this.#removeSome(id);
    await destroyRetiredKeys(this.ports, MAX_DESTROYED, id);
  }

  /** The tenant is gone already, so the caller is not told when this fails. */
  async #removeSome(tenant: TenantId): Promise<void> {
    const { store, log } = this.ports;
    const { maintenance } = store;
    try {
      const now = await maintenance.time();
      await maintenance.removeRemains(now, BATCH);
    } catch (error) {
      log.error('the remains of a tenant are left to the job', { tenant }, error);
    }
  }
}
