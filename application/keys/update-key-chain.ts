import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { TenantCaller } from '../caller.ts';
import type { Clock } from '../ports/clock.ts';
import type { Store } from '../ports/store.ts';
import type { KeyChainUpdate } from './key-chain-input.ts';
import { assertNotLast, assertUnusedFor } from './key-references.ts';

type Ports = { readonly store: Store; readonly clock: Clock };

/** Changes the description of a key chain and what it may sign. */
export class UpdateKeyChain {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `not_found`, or `conflict` when a usage would go that something needs. */
  async execute(caller: TenantCaller, id: string, wanted: KeyChainUpdate): Promise<KeyChain> {
    const { store, clock } = this.#ports;
    return store.forTenant(
      caller.tenantId,
      async (repositories) => {
        const { description: before, ...chain } = await repositories.keyChains.get(id);
        const usages = wanted.usages === undefined ? chain.usages : [...new Set(wanted.usages)];
        const lost = chain.usages.filter((usage) => !usages.includes(usage));
        await assertUnusedFor(repositories, id, lost);
        await assertNotLast(repositories, chain, lost, clock.now());
        const description = wanted.description === undefined ? before : wanted.description;
        const changed: KeyChain = {
          ...chain,
          ...(description !== undefined && description !== null && { description }),
          usages,
          updatedAt: clock.now(),
        };
        await repositories.keyChains.put(changed);
        return changed;
      },
      { alone: true },
    );
  }
}
