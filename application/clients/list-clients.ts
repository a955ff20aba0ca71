import type { Client } from '../../domain/clients/client.ts';
import type { TenantCaller } from '../caller.ts';
import type { Store } from '../ports/store.ts';

/** The clients of the caller's tenant, in order of their ids. */
export class ListClients {
  readonly #store: Store;

  constructor(ports: { readonly store: Store }) {
    this.#store = ports.store;
  }

  async execute(caller: TenantCaller): Promise<Client[]> {
    return this.#store.forTenant(caller.tenantId, ({ clients }) => clients.list());
  }
}
