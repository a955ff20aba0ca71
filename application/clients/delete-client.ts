import type { TenantCaller } from '../caller.ts';
import type { Store } from '../ports/store.ts';

/** Removes a client of the caller's tenant; its access tokens end with it. */
export class DeleteClient {
  readonly #store: Store;

  constructor(ports: { readonly store: Store }) {
    this.#store = ports.store;
  }

  /** @throws Failure `not_found`. */
  async execute(caller: TenantCaller, clientId: string): Promise<void> {
    await this.#store.forTenant(caller.tenantId, ({ clients }) => clients.remove(clientId), { by: caller });
  }
}
