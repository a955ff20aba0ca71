import { mayUse } from '../../domain/clients/client.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { MAX_UNUSED_LISTS, type StatusListCreation, type StatusListUpdate } from '../../domain/status-lists/list-definition.ts';
import { newStatusList, type StatusList } from '../../domain/status-lists/status-list.ts';
import { effectiveStatusListConfig } from '../../domain/tenants/tenant.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { EventBus } from '../ports/event-bus.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { TenantConfigurations } from '../tenant-cache/tenant-configurations.ts';
import { changeTenant, changeTenantExclusively } from '../transactions/tenant-changes.ts';
import { assertStillTrusted, bind } from './list-binding.ts';
import { StatusAllocator, statusListUri } from './status-allocator.ts';

export class ListStatusLists extends needs({ store: Store, statusAllocator: StatusAllocator }) {
  /** A restricted client sees the lists of its configurations and shared ones. */
  async execute(caller: TenantCaller): Promise<readonly StatusList[]> {
    const lists = await this.ports.store.forTenant(caller.tenantId, ({ statusLists }) => statusLists.list());
    return lists.filter((list) => maySee(caller, list)).map((list) => withUsedCount(this.ports, caller, list));
  }
}

export class GetStatusList extends needs({ store: Store, statusAllocator: StatusAllocator }) {
  /** @throws Failure `not_found`, also for one of a configuration that the client may not use. */
  async execute(caller: TenantCaller, id: string): Promise<StatusList> {
    const list = await this.ports.store.forTenant(caller.tenantId, ({ statusLists }) => statusLists.get(id));
    if (!maySee(caller, list)) throw new Failure('not_found', 'there is no such status list');
    return withUsedCount(this.ports, caller, list);
  }
}

export class CreateStatusList extends needs({ store: Store, clock: Clock, random: Random, settings: ServiceSettings }) {
  /** @throws Failure `invalid_input`, or `conflict` when the limit of unused lists is reached. */
  async execute(caller: TenantCaller, creation: StatusListCreation): Promise<StatusList> {
    const { store, clock, random, settings } = this.ports;
    const { credentialConfigurationId = null, keyChainId, ...shape } = creation;
    const givenSettings = Object.entries(shape).filter(([, value]) => value !== null && value !== undefined);
    return changeTenantExclusively(store, caller, async (repositories) => {
      assertRoom(await repositories.statusLists.list());
      // Null selects the default signer as well.
      const signer = keyChainId ?? undefined;
      const binding = await bind(repositories, credentialConfigurationId, signer, clock.now());
      const { statusListConfig } = await repositories.tenant.get();
      const listSettings = { ...statusListConfig, ...Object.fromEntries(givenSettings) };
      const identity = { ...binding, id: random.token(), secret: random.bytes(32), createdAt: clock.now() };
      const list = newStatusList(effectiveStatusListConfig(listSettings, settings.statusDefaults), identity);
      await repositories.statusLists.add(list);
      return list;
    });
  }
}

const UPDATE = { store: Store, statusAllocator: StatusAllocator, clock: Clock, eventBus: EventBus };

/** Changes the configuration that a list serves, and its signer. */
export class UpdateStatusList extends needs(UPDATE) {
  /** @throws Failure `not_found`, `invalid_input`, or `conflict` when readers would not trust the list any more. */
  async execute(caller: TenantCaller, id: string, update: StatusListUpdate): Promise<StatusList> {
    const { store, clock, eventBus } = this.ports;
    const { tenantId } = caller;
    const updated = await changeTenantExclusively(store, caller, async (repositories) => {
      const { statusLists } = repositories;
      const list = await statusLists.get(id);
      const { credentialConfigurationId = list.credentialConfigurationId, keyChainId = list.keyChainId } = update;
      const binding = await bind(repositories, credentialConfigurationId, keyChainId, clock.now());
      await assertStillTrusted(repositories, list, binding, clock.now());
      const rebound = await statusLists.rebind(id, binding, { unused: list.usedEntries === 0 });
      // Entries may have been allocated since the check.
      if (rebound === undefined) throw new Failure('conflict', 'a credential has just used the list; try again');
      return rebound;
    });
    eventBus.publish({ type: 'status-list', tenantId, listId: id });
    return withUsedCount(this.ports, caller, updated);
  }
}

/** Removes a status list that no credential uses. */
export class DeleteStatusList extends needs({ store: Store, eventBus: EventBus }) {
  /** @throws Failure `not_found`, or `conflict` when it has used entries. */
  async execute(caller: TenantCaller, id: string): Promise<void> {
    const { store, eventBus } = this.ports;
    const { tenantId } = caller;
    await changeTenant(store, caller, async ({ statusLists }) => {
      await statusLists.get(id);
      if (await statusLists.removeUnused(id)) return;
      throw new Failure('conflict', 'credentials use this list, so it cannot be deleted');
    });
    eventBus.publish({ type: 'status-list', tenantId, listId: id });
  }
}

/** The list with the number of actually used entries. */
function withUsedCount(
  { statusAllocator }: { readonly statusAllocator: StatusAllocator },
  { tenantId }: TenantCaller,
  list: StatusList,
): StatusList {
  return { ...list, usedEntries: statusAllocator.countUsed(tenantId, list) };
}

function maySee({ allowedIssuanceConfigs }: TenantCaller, { credentialConfigurationId }: StatusList): boolean {
  return credentialConfigurationId === null || mayUse(allowedIssuanceConfigs, credentialConfigurationId);
}

function assertRoom(lists: readonly StatusList[]): void {
  if (lists.filter(({ usedEntries }) => usedEntries === 0).length < MAX_UNUSED_LISTS) return;
  throw new Failure('conflict', `${MAX_UNUSED_LISTS} lists are unused; delete some first`);
}

export class AggregateStatusLists extends needs({ tenantConfigurations: TenantConfigurations, settings: ServiceSettings }) {
  /** @throws Failure `not_found` for an unknown tenant, and for one whose lists are not part of the aggregation. */
  async execute(tenantId: TenantId): Promise<readonly string[]> {
    const { tenantConfigurations, settings } = this.ports;
    const tenant = await tenantConfigurations.readStored(tenantId);
    if (tenant === undefined) throw new Failure('not_found', 'unknown tenant');
    const lists = (await tenant.statusLists()).filter((list) => list.enableAggregation);
    const isEnabled = (await tenant.tenant()).statusListConfig?.enableAggregation ?? true;
    if (lists.length === 0 && !isEnabled) throw new Failure('not_found', 'unknown address');
    return lists.map((list) => statusListUri(settings, tenantId, list.id));
  }
}
