import { LRUCache } from 'lru-cache';
import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { type Allocation, allocateFrom, prepareAllocation } from '../../domain/status-lists/allocation.ts';
import { CounterReserve } from '../../domain/status-lists/counter-reserve.ts';
import { type ListSigners, listSigners } from '../../domain/status-lists/list-signer.ts';
import { newStatusList, type StatusList } from '../../domain/status-lists/status-list.ts';
import { effectiveStatusListConfig } from '../../domain/tenants/tenant.ts';
import { needs, type PortsOf } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Random } from '../ports/random.ts';
import { issuerIdentifier, ServiceSettings } from '../ports/settings.ts';
import { Store, type TenantLists } from '../ports/store.ts';
import { boundedBytes } from '../tenant-cache/cache-memory.ts';
import { getOrCreate } from '../tenant-cache/get-or-create.ts';
import { SingleFlight } from '../tenant-cache/single-flight.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

export type AllocatedEntries = {
  readonly listId: string;
  readonly uri: string;
  readonly capacity: number;
  readonly firstCounter: number;
  readonly indices: readonly number[];
};

/** Counters that one process allocates at once; unused ones are lost when it ends, and never used twice. */
const RUN_LENGTH = 128;
const MAX_BYTES = 8 * 1024 * 1024;
const RESERVE_BYTES = 6_000;
/** A list of maximum size needs half a mebibyte. */
const MAX_ALLOCATION_BYTES = 32 * 1024 * 1024;

/** Limit of unused counter ranges per list; beyond that the shortest is discarded. */
const MAX_FREE_RANGES = 64;

/** Allocates status list entries. An entry is never used for two credentials, also across processes. */
export class StatusAllocator extends needs({ store: Store, clock: Clock, random: Random, settings: ServiceSettings }) {
  readonly #reserves = new LRUCache<string, CounterReserve>(boundedBytes<CounterReserve>(MAX_BYTES, () => RESERVE_BYTES));
  readonly #allocations = new LRUCache<string, Allocation>(boundedBytes(MAX_ALLOCATION_BYTES));
  readonly #creating = new SingleFlight<StatusList>();
  /** The list created last by this process: requests that began earlier do not have it in their configuration. */
  readonly #created = new LRUCache<string, StatusList>(boundedBytes(MAX_BYTES));
  /** Lists that are known to be full, or to have another signer now. */
  readonly #full = new LRUCache<string, Pick<StatusList, 'keyChainId'>>(boundedBytes(MAX_BYTES));
  /** Entries that may be returned; not those that were allocated before a rollback of the database. */
  #returnable = new WeakSet<AllocatedEntries>();
  /** Ends of the runs that this process allocated: after a rollback the database would allocate them again. */
  readonly #runEnds = new LRUCache<string, number>(boundedBytes<number>(MAX_BYTES));

  constructor(ports: PortsOf<typeof StatusAllocator.needs>) {
    super(ports);
    ports.store.onRewind(() => {
      this.#reserves.clear();
      this.#created.clear();
      this.#full.clear();
      this.#returnable = new WeakSet();
    });
  }

  /** Allocates `count` entries of one list; creates a new list when the others are full. */
  async allocate(
    tenant: TenantConfiguration,
    configuration: Pick<CredentialConfiguration, 'id' | 'keyChainId'>,
    count: number,
  ): Promise<AllocatedEntries> {
    const { id, keyChainId } = configuration;
    const chains = await tenant.keyChains();
    // Computed once per configuration of the tenant.
    const signers = tenant.derive(`list-signers/${id}`, () => listSigners(chains, keyChainId, this.ports.clock.now()));
    for (const list of await this.#candidates(tenant, id, signers)) {
      const firstCounter = await this.#takeCounters(tenant.tenantId, list, count);
      if (firstCounter !== undefined) return this.#entries(tenant.tenantId, list, firstCounter, count);
      this.#full.set(`${tenant.tenantId} ${list.id}`, { keyChainId: list.keyChainId });
    }
    const signer = signers.preferred;
    const list = await this.#creating.run(`${tenant.tenantId} ${signer ?? ''}`, () => this.#create(tenant, signer, count));
    const firstCounter = await this.#takeCounters(tenant.tenantId, list, count);
    if (firstCounter === undefined) return this.allocate(tenant, configuration, count);
    return this.#entries(tenant.tenantId, list, firstCounter, count);
  }

  /**
   * Returns entries that no credential uses, after an issuance that was rejected. Repeated rejected requests would otherwise use the list
   * up. Must not be called if the outcome is unknown.
   */
  release(tenantId: TenantId, entries: AllocatedEntries): void {
    if (!this.#returnable.delete(entries)) return;
    const { listId, firstCounter, indices } = entries;
    const key = `${tenantId} ${listId}`;
    this.#reserve(key).add(firstCounter, firstCounter + indices.length);
    this.#full.delete(key);
  }

  /**
   * Number of used entries of a list: entries in this process's reserve do not count, those that
   * other processes allocated do.
   */
  countUsed(tenantId: TenantId, { id, usedEntries }: Pick<StatusList, 'id' | 'usedEntries'>): number {
    const reserve = this.#reserves.peek(`${tenantId} ${id}`);
    // Runs that were allocated after the list was read are not among its used entries.
    return usedEntries - (reserve?.countBelow(usedEntries) ?? 0);
  }

  /** The indices of a run that was recorded earlier. */
  indicesOf(tenantId: TenantId, list: StatusList, firstCounter: number, count: number): readonly number[] {
    const key = `${tenantId} ${list.id}`;
    const prepare = () => prepareAllocation(list.secret, list.capacity);
    const allocation = getOrCreate(this.#allocations, key, prepare);
    return allocateFrom(allocation, firstCounter, count);
  }

  /** The configuration's own lists first, then the shared ones, newest first. */
  async #candidates(
    tenant: TenantConfiguration,
    configurationId: string,
    { preferred, accepted }: ListSigners,
  ): Promise<readonly StatusList[]> {
    const knownLists = await tenant.statusLists();
    const shape = await this.#shape(tenant);
    const created = this.#created.get(await createdKeyOf(tenant, preferred));
    const lists = created === undefined || knownLists.some(({ id }) => id === created.id) ? knownLists : [created, ...knownLists];
    const usable = lists.filter(
      (list) =>
        accepted.has(list.keyChainId) &&
        (list.usedEntries < list.capacity || this.#reserves.has(`${tenant.tenantId} ${list.id}`)) &&
        this.#full.get(`${tenant.tenantId} ${list.id}`)?.keyChainId !== list.keyChainId,
    );
    return [
      ...usable.filter((list) => list.credentialConfigurationId === configurationId),
      // Lists that were created with fewer bits than the tenant has configured now cannot express all statuses.
      ...usable.filter((list) => list.credentialConfigurationId === null && list.bits >= shape.bits),
    ];
  }

  async #takeCounters(tenantId: TenantId, list: StatusList, count: number): Promise<number | undefined> {
    const key = `${tenantId} ${list.id}`;
    const reserved = this.#reserve(key).take(count);
    if (reserved !== undefined) return reserved;
    const lists = this.ports.store.lists(tenantId);
    // One process's reserve must not drain a small list.
    const length = Math.max(count, Math.min(RUN_LENGTH, Math.floor(list.capacity / 100)));
    const firstCounter = await this.#allocateRun(lists, key, list, length);
    if (firstCounter === undefined) return length === count ? undefined : this.#allocateRun(lists, key, list, count);
    // Read again: the reserve may have been evicted meanwhile.
    this.#reserve(key).add(firstCounter + count, firstCounter + length);
    return firstCounter;
  }

  async #allocateRun(lists: TenantLists, key: string, list: StatusList, length: number): Promise<number | undefined> {
    const firstCounter = await lists.allocateStatusRun(list, length, this.#runEnds.get(key));
    if (firstCounter !== undefined) this.#runEnds.set(key, Math.max(this.#runEnds.get(key) ?? 0, firstCounter + length));
    return firstCounter;
  }

  #reserve(key: string): CounterReserve {
    return getOrCreate(this.#reserves, key, () => new CounterReserve(MAX_FREE_RANGES));
  }

  #entries(tenantId: TenantId, list: StatusList, firstCounter: number, count: number): AllocatedEntries {
    const entries = {
      listId: list.id,
      capacity: list.capacity,
      uri: statusListUri(this.ports.settings, tenantId, list.id),
      firstCounter,
      indices: this.indicesOf(tenantId, list, firstCounter, count),
    };
    this.#returnable.add(entries);
    return entries;
  }

  async #shape(tenant: TenantConfiguration) {
    const { statusListConfig } = await tenant.tenant();
    return effectiveStatusListConfig(statusListConfig, this.ports.settings.statusDefaults);
  }

  async #create(tenant: TenantConfiguration, signer: string | null, atLeast: number): Promise<StatusList> {
    const { store, clock, random } = this.ports;
    const shape = await this.#shape(tenant);
    const list = newStatusList(
      { ...shape, capacity: Math.max(shape.capacity, atLeast) },
      { id: random.token(), credentialConfigurationId: null, keyChainId: signer, secret: random.bytes(32), createdAt: clock.now() },
    );
    await store.forTenant(tenant.tenantId, ({ statusLists }) => statusLists.add(list), { by: SYSTEM });
    this.#created.set(await createdKeyOf(tenant, signer), list);
    return list;
  }
}

/** Contains the age of the tenant, since a tenant created again under an old id does not inherit lists. */
async function createdKeyOf(tenant: TenantConfiguration, signer: string | null): Promise<string> {
  const { createdAt } = await tenant.tenant();
  return `${tenant.tenantId} ${createdAt.getTime()} ${signer ?? ''}`;
}

/** Public address of a list; exactly as in credentials (Token Status List section 8.3). */
export function statusListUri(settings: ServiceSettings, tenantId: string, listId: string): string {
  return `${issuerIdentifier(settings, tenantId)}/status-list/${listId}`;
}
