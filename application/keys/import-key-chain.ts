import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { KeyChainImport } from '../../domain/keys/key-chain-input.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { TenantCaller } from '../caller.ts';
import type { CertificateAuthority } from '../ports/certificate-authority.ts';
import type { Clock } from '../ports/clock.ts';
import type { Kms } from '../ports/kms.ts';
import type { Random } from '../ports/random.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import { createKeyChain, type NewKeyChain } from './make-key-chain.ts';
import { addKeyChain, newKeyChain } from './new-key-chain.ts';
import { type ImportedKey, readPrivateKey } from './private-key.ts';
import { readCertificates } from './read-certificates.ts';

type Ports = {
  readonly store: Store;
  readonly kms: Kms;
  readonly certificateAuthority: CertificateAuthority;
  readonly random: Random;
  readonly clock: Clock;
  readonly settings: ServiceSettings;
};

/** Takes in a key that was made elsewhere, with its certificates or under an internal CA. */
export class ImportKeyChain {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * @throws Failure `invalid_input` for a key that is none of ours, certificates that are not for it and a KMS provider
   *   that takes none; `conflict` when the id is taken.
   */
  async execute(caller: TenantCaller, wanted: KeyChainImport): Promise<KeyChain> {
    const imported = readPrivateKey(wanted.key as string | JsonObject);
    try {
      const common = await newKeyChain(this.#ports, caller, wanted);
      const chain = await this.#make(this.#certified(common, wanted, imported));
      await addKeyChain(this.#ports, caller, chain, wanted.rootKeyChainId);
      return chain;
    } finally {
      imported.pkcs8.fill(0);
    }
  }

  #certified(common: NewKeyChain, { certificates }: KeyChainImport, imported: ImportedKey): NewKeyChain {
    const { algorithm, publicJwk, pkcs8 } = imported;
    const known = { ...common, algorithm, leafKey: pkcs8 };
    if (certificates === undefined) return known;
    if (common.certification !== undefined) {
      throw invalidInput('rootKeyChainId', 'give either certificates or rootKeyChainId');
    }
    const wanted = { key: publicJwk, usages: common.usages };
    const read = readCertificates(certificates, wanted, this.#ports.clock.now(), 'certificates');
    return { ...known, certification: { by: 'others', ...read } };
  }

  async #make(wanted: NewKeyChain): Promise<KeyChain> {
    try {
      return await createKeyChain(this.#ports, wanted);
    } catch (error) {
      // Of the KMS, which does not know where the key came from
      if (
        !(error instanceof Failure) ||
        error.code !== 'invalid_input' ||
        error.details.errors !== undefined
      ) {
        throw error;
      }
      throw invalidInput('key', error.message);
    }
  }
}
