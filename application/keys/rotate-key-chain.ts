import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { KeyChainRotation } from '../../domain/keys/key-chain-input.ts';
import type { TenantCaller } from '../caller.ts';
import { assertProvider } from './new-key-chain.ts';
import { type RenewalPorts, renewLeaf } from './renew-leaf.ts';

/** Gives a key chain another key at once. */
export class RotateKeyChain {
  readonly #ports: RenewalPorts;

  constructor(ports: RenewalPorts) {
    this.#ports = ports;
  }

  /**
   * @throws Failure `not_found`; `conflict` when its certificates come from outside, too many former keys count still,
   *   or somebody else rotates it at this moment.
   */
  async execute(caller: TenantCaller, id: string, { kmsProvider }: KeyChainRotation): Promise<KeyChain> {
    const { store, kms } = this.#ports;
    assertProvider(kms, kmsProvider);
    const chain = await store.forTenant(caller.tenantId, ({ keyChains }) => keyChains.get(id));
    return renewLeaf(this.#ports, chain, { kind: 'rotation', provider: kmsProvider, by: caller });
  }
}
