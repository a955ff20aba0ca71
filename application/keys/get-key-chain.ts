import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { TenantCaller } from '../caller.ts';
import type { Store } from '../ports/store.ts';

/** One key chain of the caller's tenant. */
export class GetKeyChain {
  readonly #store: Store;

  constructor(ports: { readonly store: Store }) {
    this.#store = ports.store;
  }

  /** @throws Failure `not_found`. */
  async execute(caller: TenantCaller, id: string): Promise<KeyChain> {
    return this.#store.forTenant(caller.tenantId, ({ keyChains }) => keyChains.get(id));
  }
}
