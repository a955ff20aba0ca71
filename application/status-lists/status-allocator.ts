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
import { type ListKeeping, Store } from '../ports/store.ts';
import { boundedBytes } from '../tenant-cache/bounded.ts';
import { madeOnce } from '../tenant-cache/made-once.ts';
import { SingleFlight } from '../tenant-cache/single-flight.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

export type AllocatedEntries = {
  readonly listId: string;
  readonly uri: string;
  /** Entries of the list. */
  readonly capacity: number;
  readonly firstCounter: number;
  readonly indices: readonly number[];
};

/** Counters that one process takes at once; what it does not use when it ends is wasted, never used twice. */
const RUN_LENGTH = 128;
/** Of each of the memories: what is left of runs, how indices are scattered, new lists, full ones. */
const MAX_BYTES = 8 * 1024 * 1024;
/** With all the rests that there may be. */
const RESERVE_BYTES = 6_000;
/** Of a list with as many entries as there can be, half a mebibyte each. */
const MAX_ALLOCATION_BYTES = 32 * 1024 * 1024;

/** Unused rests that a process keeps of one list; beyond that the shortest is wasted. */
const MAX_RESTS = 64;

/** Hands out status list entries. Two credentials never share one, whichever process issues them. */
export class StatusAllocator extends needs({ store: Store, clock: Clock, random: Random, settings: ServiceSettings }) {
  readonly #reserves = new LRUCache<string, CounterReserve>(boundedBytes<CounterReserve>(MAX_BYTES, () => RESERVE_BYTES));
  readonly #allocations = new LRUCache<string, Allocation>(boundedBytes(MAX_ALLOCATION_BYTES));
  readonly #creating = new SingleFlight<StatusList>();
  /** The list made last by this process: requests that began before it do not have it in their view. */
  readonly #created = new LRUCache<string, StatusList>(boundedBytes(MAX_BYTES));
  /** Lists that this process knows to be full, or not to be of the signer that they had. */
  readonly #full = new LRUCache<string, Pick<StatusList, 'keyChainId'>>(boundedBytes(MAX_BYTES));
  /** Entries that may be given back; not those that were taken before the database was put back. */
  #given = new WeakSet<AllocatedEntries>();
  /** Where the runs end that this process has taken: a database that was put back would give them away once more. */
  readonly #taken = new LRUCache<string, number>(boundedBytes<number>(MAX_BYTES));

  constructor(ports: PortsOf<typeof StatusAllocator.needs>) {
    super(ports);
    ports.store.onRewind(() => {
      this.#reserves.clear();
      this.#created.clear();
      this.#full.clear();
      this.#given = new WeakSet();
    });
  }

  /** Takes `count` entries of one list of the tenant; opens a new list when the others are full. */
  async allocate(
    configured: TenantConfiguration,
    configuration: Pick<CredentialConfiguration, 'id' | 'keyChainId'>,
    count: number,
  ): Promise<AllocatedEntries> {
    const { id, keyChainId } = configuration;
    const chains = await configured.keyChains();
    // Worked out once per configuration of the tenant.
    const signers = configured.derive(`list-signers/${id}`, () => listSigners(chains, keyChainId, this.ports.clock.now()));
    for (const list of await this.#candidates(configured, id, signers)) {
      const firstCounter = await this.#take(configured.tenantId, list, count);
      if (firstCounter !== undefined) return this.#entries(configured.tenantId, list, firstCounter, count);
      this.#full.set(`${configured.tenantId} ${list.id}`, { keyChainId: list.keyChainId });
    }
    const signer = signers.preferred;
    const list = await this.#creating.run(`${configured.tenantId} ${signer ?? ''}`, () => this.#create(configured, signer, count));
    const firstCounter = await this.#take(configured.tenantId, list, count);
    if (firstCounter === undefined) return this.allocate(configured, configuration, count);
    return this.#entries(configured.tenantId, list, firstCounter, count);
  }

  /**
   * Takes entries back that nobody was given: of an issuance that was refused after it had taken them. The one who repeats
   * a request that is refused would use the list up otherwise. Not for one whose outcome is unknown.
   */
  giveBack(tenantId: TenantId, entries: AllocatedEntries): void {
    if (!this.#given.delete(entries)) return;
    const { listId, firstCounter, indices } = entries;
    const key = `${tenantId} ${listId}`;
    this.#reserve(key).add(firstCounter, firstCounter + indices.length);
    this.#full.delete(key);
  }

  /**
   * The entries of a list that were handed out, as far as this process knows: what it took and has not given to anybody
   * does not count; what others took does.
   */
  handedOut(tenantId: TenantId, { id, usedEntries }: Pick<StatusList, 'id' | 'usedEntries'>): number {
    const reserve = this.#reserves.peek(`${tenantId} ${id}`);
    // Runs that were taken since the list was read are not among its used entries.
    return usedEntries - (reserve?.countBelow(usedEntries) ?? 0);
  }

  /** The indices of a run that was recorded earlier. */
  indicesOf(tenantId: TenantId, list: StatusList, firstCounter: number, count: number): readonly number[] {
    const key = `${tenantId} ${list.id}`;
    const prepare = () => prepareAllocation(list.secret, list.capacity);
    const allocation = madeOnce(this.#allocations, key, prepare);
    return allocateFrom(allocation, firstCounter, count);
  }

  /** The configuration's own lists first, then the shared ones, newest first. */
  async #candidates(
    configured: TenantConfiguration,
    configurationId: string,
    { preferred, accepted }: ListSigners,
  ): Promise<readonly StatusList[]> {
    const known = await configured.statusLists();
    const shape = await this.#shape(configured);
    const created = this.#created.get(await placeOf(configured, preferred));
    const lists = created === undefined || known.some(({ id }) => id === created.id) ? known : [created, ...known];
    const usable = lists.filter(
      (list) =>
        accepted.has(list.keyChainId) &&
        (list.usedEntries < list.capacity || this.#reserves.has(`${configured.tenantId} ${list.id}`)) &&
        this.#full.get(`${configured.tenantId} ${list.id}`)?.keyChainId !== list.keyChainId,
    );
    return [
      ...usable.filter((list) => list.credentialConfigurationId === configurationId),
      // Lists that were made before the tenant wished for more bits cannot say what it wishes to say.
      ...usable.filter((list) => list.credentialConfigurationId === null && list.bits >= shape.bits),
    ];
  }

  async #take(tenantId: TenantId, list: StatusList, count: number): Promise<number | undefined> {
    const key = `${tenantId} ${list.id}`;
    const reserved = this.#reserve(key).take(count);
    if (reserved !== undefined) return reserved;
    const lists = this.ports.store.lists(tenantId);
    // Small lists are not drained by one process's reserve.
    const length = Math.max(count, Math.min(RUN_LENGTH, Math.floor(list.capacity / 100)));
    const first = await this.#takeRun(lists, key, list, length);
    if (first === undefined) return length === count ? undefined : this.#takeRun(lists, key, list, count);
    // Not one that was dropped meanwhile.
    this.#reserve(key).add(first + count, first + length);
    return first;
  }

  async #takeRun(lists: ListKeeping, key: string, list: StatusList, length: number): Promise<number | undefined> {
    const first = await lists.takeStatusRun(list, length, this.#taken.get(key));
    if (first !== undefined) this.#taken.set(key, Math.max(this.#taken.get(key) ?? 0, first + length));
    return first;
  }

  #reserve(key: string): CounterReserve {
    return madeOnce(this.#reserves, key, () => new CounterReserve(MAX_RESTS));
  }

  #entries(tenantId: TenantId, list: StatusList, firstCounter: number, count: number): AllocatedEntries {
    const entries = {
      listId: list.id,
      capacity: list.capacity,
      uri: statusListUri(this.ports.settings, tenantId, list.id),
      firstCounter,
      indices: this.indicesOf(tenantId, list, firstCounter, count),
    };
    this.#given.add(entries);
    return entries;
  }

  async #shape(configured: TenantConfiguration) {
    const { statusListConfig } = await configured.tenant();
    return effectiveStatusListConfig(statusListConfig, this.ports.settings.statusDefaults);
  }

  async #create(configured: TenantConfiguration, signer: string | null, atLeast: number): Promise<StatusList> {
    const { store, clock, random } = this.ports;
    const shape = await this.#shape(configured);
    const list = newStatusList(
      { ...shape, capacity: Math.max(shape.capacity, atLeast) },
      {
        id: random.token(),
        credentialConfigurationId: null,
        keyChainId: signer,
        secret: random.bytes(32),
        createdAt: clock.now(),
      },
    );
    await store.forTenant(configured.tenantId, ({ statusLists }) => statusLists.add(list), { by: SYSTEM });
    this.#created.set(await placeOf(configured, signer), list);
    return list;
  }
}

/** A tenant made anew under an old id has nothing of the older one's, so its age stands in the key. */
async function placeOf(configured: TenantConfiguration, signer: string | null): Promise<string> {
  const { createdAt } = await configured.tenant();
  return `${configured.tenantId} ${createdAt.getTime()} ${signer ?? ''}`;
}

/** Public address of a list; character for character what credentials carry (Token Status List section 8.3). */
export function statusListUri(settings: ServiceSettings, tenantId: string, listId: string): string {
  return `${issuerIdentifier(settings, tenantId)}/status-list/${listId}`;
}
