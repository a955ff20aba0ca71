import type { TenantCaller } from '../caller.ts';
import type { Store } from '../ports/store.ts';
import { assertUnused } from './key-references.ts';

/** Removes a key chain that nothing names. */
export class DeleteKeyChain {
  readonly #store: Store;

  constructor(ports: { readonly store: Store }) {
    this.#store = ports.store;
  }

  /** @throws Failure `not_found`, or `conflict` when a configuration or status list names it. */
  async execute(caller: TenantCaller, id: string): Promise<void> {
    await this.#store.forTenant(caller.tenantId, async (repositories) => {
      await repositories.keyChains.get(id);
      await assertUnused(repositories, id);
      await repositories.keyChains.remove(id);
    });
  }
}
