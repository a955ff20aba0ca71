import { LRUCache } from 'lru-cache';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { TenantVersion } from '../ports/maintenance.ts';
import type { Store } from '../ports/store.ts';
import { boundedBytes } from './cache-memory.ts';

/**
 * Caches one value per tenant between the runs of a job, so that a run reads only tenants whose configuration changed, or whose value was
 * evicted.
 */
export class TenantValueCache<Value extends object> {
  readonly #store: Pick<Store, 'maintenance'>;
  readonly #values: LRUCache<string, { readonly version: string; readonly value: Value }>;
  /**
   * The versions of all tenants, ordered by id. Each change of the list and each rollback of the database replaces the map, so that a
   * concurrent `refresh` notices it.
   */
  #versions: ReadonlyMap<TenantId, TenantVersion> = new Map();
  /** Identifies the list of versions; undefined before the first `refresh` and after a rollback. */
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

  /** Reads the list of tenants in one statement, whose result is empty if no configuration changed. */
  async refresh(): Promise<void> {
    const versions = this.#versions;
    const changedVersions = await this.#store.maintenance.tenantVersions(this.#state);
    // The database was rolled back meanwhile, or another refresh was faster: this result may be out of date.
    if (this.#versions !== versions) return this.refresh();
    if (changedVersions === undefined) return;
    this.#versions = new Map(changedVersions.versions.map((tenant) => [tenant.id, tenant]));
    this.#state = changedVersions.state;
    for (const id of this.#values.keys()) if (!this.#versions.has(id as TenantId)) this.#values.delete(id);
  }

  /** All tenants by id, as of the last `refresh`. */
  all(): readonly TenantVersion[] {
    return [...this.#versions.values()];
  }

  /** @returns undefined when the tenant has to be read. */
  get({ id, version }: TenantVersion): Value | undefined {
    const cached = this.#values.get(id);
    return cached?.version === version ? cached.value : undefined;
  }

  /**
   * Caches a value that was read after the last `refresh`. A value that was read before it is ignored: the database may have been rolled
   * back since, and then assigns the lost version numbers again.
   * @param tenant an element of `all()`: its version precedes the read of the value, so that a change meanwhile is noticed.
   */
  set(tenant: TenantVersion, value: Value): void {
    if (this.#versions.get(tenant.id) !== tenant) return;
    this.#values.set(tenant.id, { version: tenant.version, value });
  }

  /** Makes the next run read the tenant again, although its configuration is the same. */
  delete(id: TenantId): void {
    this.#values.delete(id);
  }
}
