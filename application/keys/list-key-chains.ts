import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { TenantCaller } from '../caller.ts';
import type { Store } from '../ports/store.ts';

/** The key chains of the caller's tenant, in order of their ids. */
export class ListKeyChains {
  readonly #store: Store;

  constructor(ports: { readonly store: Store }) {
    this.#store = ports.store;
  }

  async execute(caller: TenantCaller): Promise<KeyChain[]> {
    return this.#store.forTenant(caller.tenantId, ({ keyChains }) => keyChains.list());
  }
}
