import type { PrivateKeyMaterial, ToSign } from '../../application/ports/kms.ts';
import type { SigningKey, StoredKey } from '../../domain/keys/signing-key.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { SIGNING_ALGORITHMS, type SigningAlgorithm } from '../../domain/shared/jwk.ts';

/**
 * Backend for keys. `local/` keeps them sealed in the database; a provider of an external service has a folder of its own and passes the
 * same contract suite.
 */
export abstract class KmsProvider {
  /** Algorithms of the keys that it can create. */
  get algorithms(): readonly SigningAlgorithm[] {
    return SIGNING_ALGORITHMS;
  }

  /** @returns the key under a handle that carries this provider's configured name. */
  abstract generate(tenantId: string, algorithm: SigningAlgorithm): Promise<StoredKey>;

  /** @returns the raw signature: `r || s` for ECDSA (RFC 7518 section 3.4), never DER. */
  abstract sign(key: SigningKey, data: ToSign): Uint8Array | Promise<Uint8Array>;

  /** @returns a signature for each of `datas`, in their order; all or none. */
  abstract signMany(key: SigningKey, datas: readonly ToSign[]): readonly Uint8Array[] | Promise<readonly Uint8Array[]>;

  /** @throws Failure `invalid_input` unless the provider overrides it and the key is a signature key of this service. */
  import(_tenantId: string, _privateKey: PrivateKeyMaterial): Promise<StoredKey> {
    return Promise.reject(new Failure('invalid_input', 'This KMS provider does not import private keys.'));
  }

  /**
   * @returns the private half, for another provider; the caller overwrites it afterwards.
   * @throws Failure `conflict` unless the provider overrides it: keys do not leave their provider.
   */
  release(_key: SigningKey): Uint8Array {
    throw new Failure('conflict', 'this key cannot be exported from its provider');
  }

  /** @throws Failure `unavailable` if it is known not to work at present. */
  assertReady(): void {}

  /** Destroys a key; a missing key is no failure. A local key is destroyed with its row. */
  async remove(_key: SigningKey): Promise<void> {}

  /** Resolves when keys can be used. @throws Error that tells the operator why not. */
  async assertReachable(): Promise<void> {}

  async close(): Promise<void> {}
}

/** Provider as the configuration lists it. */
export type NamedProvider = {
  readonly name: string;
  /** `local` or the kind of external service. */
  readonly type: string;
  readonly provider: KmsProvider;
  /** Tenants whose keys may be created there; all by default. */
  readonly onlyFor?: readonly string[];
};
