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
import { changeOwn, changeOwnAlone } from '../transactions/own-changes.ts';
import { assertStillTrusted, bind } from './list-binding.ts';
import { StatusAllocator, statusListUri } from './status-allocator.ts';

/** The status lists of the tenant as they stand now, in order of their age. */
export class ListStatusLists extends needs({ store: Store, statusAllocator: StatusAllocator }) {
  /** A restricted client sees those of its configurations, and those that all share. */
  async execute(caller: TenantCaller): Promise<readonly StatusList[]> {
    const lists = await this.ports.store.forTenant(caller.tenantId, ({ statusLists }) => statusLists.list());
    return lists.filter((list) => maySee(caller, list)).map((list) => counted(this.ports, caller, list));
  }
}

export class GetStatusList extends needs({ store: Store, statusAllocator: StatusAllocator }) {
  /** @throws Failure `not_found`, also for one of a configuration that the client may not use. */
  async execute(caller: TenantCaller, id: string): Promise<StatusList> {
    const list = await this.ports.store.forTenant(caller.tenantId, ({ statusLists }) => statusLists.get(id));
    if (!maySee(caller, list)) throw new Failure('not_found', 'there is no such status list');
    return counted(this.ports, caller, list);
  }
}

/** Makes a status list before any credential needs it: for one configuration, or of a shape of its own. */
export class CreateStatusList extends needs({ store: Store, clock: Clock, random: Random, settings: ServiceSettings }) {
  /** @throws Failure `invalid_input`, or `conflict` when there are enough lists that nothing uses. */
  async execute(caller: TenantCaller, wanted: StatusListCreation): Promise<StatusList> {
    const { store, clock, random, settings } = this.ports;
    const { credentialConfigurationId = null, keyChainId, ...shape } = wanted;
    const given = Object.entries(shape).filter(([, value]) => value !== null && value !== undefined);
    return changeOwnAlone(store, caller, async (repositories) => {
      assertRoom(await repositories.statusLists.list());
      // Null, too, leaves it to the service who signs: the default where that fits.
      const signer = keyChainId ?? undefined;
      const binding = await bind(repositories, credentialConfigurationId, signer, clock.now());
      const { statusListConfig } = await repositories.tenant.get();
      const own = { ...statusListConfig, ...Object.fromEntries(given) };
      const made = { ...binding, id: random.token(), secret: random.bytes(32), createdAt: clock.now() };
      const list = newStatusList(effectiveStatusListConfig(own, settings.statusDefaults), made);
      await repositories.statusLists.add(list);
      return list;
    });
  }
}

const UPDATE = { store: Store, statusAllocator: StatusAllocator, clock: Clock, eventBus: EventBus };

/** Changes whose credentials a list serves from now on, and who signs it. */
export class UpdateStatusList extends needs(UPDATE) {
  /** @throws Failure `not_found`, `invalid_input`, or `conflict` when readers would not trust the list any more. */
  async execute(caller: TenantCaller, id: string, wanted: StatusListUpdate): Promise<StatusList> {
    const { store, clock, eventBus } = this.ports;
    const { tenantId } = caller;
    const updated = await changeOwnAlone(store, caller, async (repositories) => {
      const { statusLists } = repositories;
      const list = await statusLists.get(id);
      const { credentialConfigurationId = list.credentialConfigurationId, keyChainId = list.keyChainId } = wanted;
      const binding = await bind(repositories, credentialConfigurationId, keyChainId, clock.now());
      await assertStillTrusted(repositories, list, binding, clock.now());
      const rebound = await statusLists.rebind(id, binding, { unused: list.usedEntries === 0 });
      // Credentials may have come to it since the look, for which it has to be trusted.
      if (rebound === undefined) throw new Failure('conflict', 'the list has just come into use; try again');
      return rebound;
    });
    eventBus.publish({ type: 'status-list', tenantId, listId: id });
    return counted(this.ports, caller, updated);
  }
}

/** Removes a status list that no credential uses. */
export class DeleteStatusList extends needs({ store: Store, eventBus: EventBus }) {
  /** @throws Failure `not_found`, or `conflict` when entries of it were handed out. */
  async execute(caller: TenantCaller, id: string): Promise<void> {
    const { store, eventBus } = this.ports;
    const { tenantId } = caller;
    await changeOwn(store, caller, async ({ statusLists }) => {
      await statusLists.get(id);
      if (await statusLists.removeUnused(id)) return;
      throw new Failure('conflict', 'credentials use this list, so it has to stay');
    });
    eventBus.publish({ type: 'status-list', tenantId, listId: id });
  }
}

/** As it is shown: its used entries are those that were handed out. */
function counted(
  { statusAllocator }: { readonly statusAllocator: StatusAllocator },
  { tenantId }: TenantCaller,
  list: StatusList,
): StatusList {
  return { ...list, usedEntries: statusAllocator.handedOut(tenantId, list) };
}

function maySee({ allowedIssuanceConfigs }: TenantCaller, { credentialConfigurationId }: StatusList): boolean {
  return credentialConfigurationId === null || mayUse(allowedIssuanceConfigs, credentialConfigurationId);
}

function assertRoom(lists: readonly StatusList[]): void {
  if (lists.filter(({ usedEntries }) => usedEntries === 0).length < MAX_UNUSED_LISTS) return;
  throw new Failure('conflict', `there are ${MAX_UNUSED_LISTS} lists that no credential uses; remove some first`);
}

/** The public addresses of a tenant's status lists (Token Status List section 9). */
export class AggregateStatusLists extends needs({ tenantConfigurations: TenantConfigurations, settings: ServiceSettings }) {
  /** @throws Failure `not_found` for an unknown tenant, and for one whose lists take no part in aggregation. */
  async execute(tenantId: TenantId): Promise<readonly string[]> {
    const { tenantConfigurations, settings } = this.ports;
    const configured = await tenantConfigurations.stored(tenantId);
    if (configured === undefined) throw new Failure('not_found', 'unknown address');
    const lists = (await configured.statusLists()).filter((list) => list.enableAggregation);
    const wanted = (await configured.tenant()).statusListConfig?.enableAggregation ?? true;
    if (lists.length === 0 && !wanted) throw new Failure('not_found', 'unknown address');
    return lists.map((list) => statusListUri(settings, tenantId, list.id));
  }
}
