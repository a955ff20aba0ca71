import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { KeyChainRotation } from '../../domain/keys/key-chain-input.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { RENEWAL_PORTS, renewLeaf } from './renew-leaf.ts';
import { assertProvider } from './wanted-key-chain.ts';

/** Gives a key chain another key at once. */
export class RotateKeyChain extends needs(RENEWAL_PORTS) {
  /**
   * @throws Failure `not_found`; `conflict` when its certificates come from outside, too many former keys count still,
   *   or somebody else rotates it at this moment.
   */
  async execute(caller: TenantCaller, id: string, { kmsProvider }: KeyChainRotation): Promise<KeyChain> {
    const { store, kms } = this.ports;
    assertProvider(kms, kmsProvider);
    const chain = await store.forTenant(caller.tenantId, ({ keyChains }) => keyChains.get(id));
    return renewLeaf(this.ports, chain, { step: 'rotation', provider: kmsProvider, by: caller });
  }
}
