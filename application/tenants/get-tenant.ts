import type { TenantId } from '../../domain/shared/ids.ts';
import type { Store } from '../ports/store.ts';
import type { TenantWithClients } from './administrator.ts';

/** One tenant with its clients. */
export class GetTenant {
  readonly #store: Store;

  constructor(ports: { readonly store: Store }) {
    this.#store = ports.store;
  }

  /** @throws Failure `not_found`. */
  async execute(id: TenantId): Promise<TenantWithClients> {
    return this.#store.forService(async ({ tenants, clients }) => ({
      tenant: await tenants.get(id),
      clients: await clients.listOf(id),
    }));
  }
}
