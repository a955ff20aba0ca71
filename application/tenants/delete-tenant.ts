import type { TenantId } from '../../domain/shared/ids.ts';
import type { Store } from '../ports/store.ts';

/** Removes a tenant with everything that is its own. Its tokens end at once. */
export class DeleteTenant {
  readonly #store: Store;

  constructor(ports: { readonly store: Store }) {
    this.#store = ports.store;
  }

  /** @throws Failure `not_found`. */
  async execute(id: TenantId): Promise<void> {
    await this.#store.forService(({ tenants }) => tenants.remove(id));
  }
}
