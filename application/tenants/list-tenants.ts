import type { Store } from '../ports/store.ts';
import type { TenantWithClients } from './administrator.ts';

/** All tenants with their clients, in order of their ids. */
export class ListTenants {
  readonly #store: Store;

  constructor(ports: { readonly store: Store }) {
    this.#store = ports.store;
  }

  async execute(): Promise<TenantWithClients[]> {
    return this.#store.forService(async ({ tenants, clients }) => {
      const found: TenantWithClients[] = [];
      for (const tenant of await tenants.list()) {
        found.push({ tenant, clients: await clients.listOf(tenant.id) });
      }
      return found;
    });
  }
}
