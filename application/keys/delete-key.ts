import { Failure } from '../../domain/shared/failure.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { changeOwnAlone } from '../own-changes.ts';
import { Clock } from '../ports/clock.ts';
import { Store } from '../ports/store.ts';
import { assertNotLast, assertUnused } from './key-references.ts';
import { chainsOfKey, keyIdOf } from './shared-key.ts';

/** Removes a key with all of its certificates. */
export class DeleteKey extends needs({ store: Store, clock: Clock }) {
  /** @throws Failure `not_found`; `conflict` when something needs one of the certificates, and then all of them stay. */
  async execute(caller: TenantCaller, keyId: string): Promise<void> {
    const { store, clock } = this.ports;
    await changeOwnAlone(store, caller, async (repositories) => {
      const all = await repositories.keyChains.list();
      const chains = chainsOfKey(keyId, all).filter((chain) => keyIdOf(chain, all) === keyId);
      if (chains.length === 0) throw new Failure('not_found', 'there is no key of this id');
      for (const chain of chains) {
        await assertUnused(repositories, chain.id);
        await assertNotLast(repositories, chain, chain.usages, clock.now());
        await repositories.keyChains.remove(chain.id);
      }
    });
  }
}
