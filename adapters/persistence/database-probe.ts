import { Probe } from '../../application/ports/probe.ts';
import type { Store } from '../../application/ports/store.ts';

/** The database answers. */
export class DatabaseProbe extends Probe {
  readonly name = 'database';
  readonly #store: Store;

  constructor(store: Store) {
    super();
    this.#store = store;
  }

  override check(): Promise<void> {
    return this.#store.ping();
  }
}
