import type { Client } from '../../domain/clients/client.ts';
import type { TenantCaller } from '../caller.ts';
import type { Store } from '../ports/store.ts';
import { readClientFor } from './own-client.ts';

/** One client of the caller's tenant. */
export class GetClient {
  readonly #store: Store;

  constructor(ports: { readonly store: Store }) {
    this.#store = ports.store;
  }

  /** @throws Failure `not_found`. */
  async execute(caller: TenantCaller, clientId: string): Promise<Client> {
    return readClientFor(this.#store, caller, clientId);
  }
}
