import type { TenantCaller } from '../caller.ts';
import type { Clock } from '../ports/clock.ts';
import type { Store } from '../ports/store.ts';
import { assertNotLast, assertUnused } from './key-references.ts';

type Ports = { readonly store: Store; readonly clock: Clock };

/** Removes a key chain that nothing needs. */
export class DeleteKeyChain {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `not_found`, or `conflict` when something names it or has no other key chain. */
  async execute(caller: TenantCaller, id: string): Promise<void> {
    const { store, clock } = this.#ports;
    await store.forTenant(
      caller.tenantId,
      async (repositories) => {
        const chain = await repositories.keyChains.get(id);
        await assertUnused(repositories, id);
        await assertNotLast(repositories, chain, chain.usages, clock.now());
        await repositories.keyChains.remove(id);
      },
      { by: caller, alone: true },
    );
  }
}
