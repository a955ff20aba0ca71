import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { KeyChainCreation } from '../../domain/keys/key-chain-input.ts';
import { assertSelfSignedFits } from '../../domain/keys/self-signed.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import type { TenantCaller } from '../caller.ts';
import type { CertificateAuthority } from '../ports/certificate-authority.ts';
import type { Clock } from '../ports/clock.ts';
import type { Kms } from '../ports/kms.ts';
import type { Random } from '../ports/random.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import { createKeyChain, type NewKeyChain } from './make-key-chain.ts';
import { addKeyChain, newKeyChain } from './new-key-chain.ts';

type Ports = {
  readonly store: Store;
  readonly kms: Kms;
  readonly certificateAuthority: CertificateAuthority;
  readonly random: Random;
  readonly clock: Clock;
  readonly settings: ServiceSettings;
};

/** Makes a key chain with its own internal CA, under that of another one, or certified by itself. */
export class CreateKeyChain {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `conflict` when the id is taken, `invalid_input` for what does not go together. */
  async execute(caller: TenantCaller, wanted: KeyChainCreation): Promise<KeyChain> {
    const chain = await createKeyChain(this.#ports, await this.#read(caller, wanted));
    await addKeyChain(this.#ports, caller, chain, wanted.rootKeyChainId);
    return chain;
  }

  async #read(caller: TenantCaller, wanted: KeyChainCreation): Promise<NewKeyChain> {
    const { algorithm, selfSigned = false } = wanted;
    const common = await newKeyChain(this.#ports, caller, wanted);
    const known = { ...common, ...(algorithm !== undefined && { algorithm }) };
    if (!selfSigned) return known;
    assertSelfSignedFits(common.usages, 'selfSigned');
    if (common.certification !== undefined) {
      throw invalidInput('selfSigned', 'give either selfSigned or rootKeyChainId');
    }
    return { ...known, certification: { by: 'itself' } };
  }
}
