import { LRUCache } from 'lru-cache';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { TenantVersion } from '../ports/maintenance.ts';
import type { Store } from '../ports/store.ts';
import { boundedBytes } from './bounded.ts';

/**
 * What a job needs to know of each tenant, kept from one run to the next, so that a run reads only tenants whose configuration
 * changed. What does not fit into memory is read again.
 */
export class ValuesOfTenants<Value extends object> {
  readonly #store: Pick<Store, 'maintenance'>;
  readonly #values: LRUCache<string, { readonly version: string; readonly value: Value }>;
  /** The versions of all tenants by id, in the order of the ids, as of `#state`. Replaced by each answer and each rewind. */
  #versions: ReadonlyMap<TenantId, TenantVersion> = new Map();
  #state: string | undefined;

  constructor(store: Pick<Store, 'maintenance' | 'onRewind'>, maxBytes: number) {
    this.#store = store;
    this.#values = new LRUCache(boundedBytes(maxBytes));
    store.onRewind(() => {
      this.#values.clear();
      this.#versions = new Map();
      this.#state = undefined;
    });
  }

  /** Learns which tenants there are: one statement, whose answer is empty while no configuration changed. */
  async refresh(): Promise<void> {
    const versions = this.#versions;
    const changed = await this.#store.maintenance.tenantVersions(this.#state);
    // The database went back meanwhile, or another refresh was faster: this answer may be of before.
    if (this.#versions !== versions) return this.refresh();
    if (changed === undefined) return;
    this.#versions = new Map(changed.versions.map((tenant) => [tenant.id, tenant]));
    this.#state = changed.state;
    for (const id of this.#values.keys()) if (!this.#versions.has(id as TenantId)) this.#values.delete(id);
  }

  /** All tenants in the order of their ids, as of the last `refresh`. */
  all(): readonly TenantVersion[] {
    return [...this.#versions.values()];
  }

  /** @returns undefined when the tenant has to be read. */
  get({ id, version }: TenantVersion): Value | undefined {
    const kept = this.#values.get(id);
    return kept?.version === version ? kept.value : undefined;
  }

  /**
   * Keeps a value that was read after the last `refresh`. A value of an earlier one is dropped, since the database may have gone back in
   * time since, and versions of the lost future are given once more.
   * @param tenant an element of `all()`: its version is of before the value was read, so that a change meanwhile is noticed.
   */
  set(tenant: TenantVersion, value: Value): void {
    if (this.#versions.get(tenant.id) !== tenant) return;
    this.#values.set(tenant.id, { version: tenant.version, value });
  }

  /** The tenant is read again by the next run, although its configuration is the same. */
  delete(id: TenantId): void {
    this.#values.delete(id);
  }
}
