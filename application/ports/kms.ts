import type { SigningKey, StoredKey } from '../../domain/keys/signing-key.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { SigningAlgorithm } from '../../domain/shared/jwk.ts';

export type { KeyHandle, SigningKey, StoredKey } from '../../domain/keys/signing-key.ts';

/** A private key from outside: a JWK (RFC 7517, RFC 8037) or the DER of a PKCS#8 structure (RFC 5958). */
export type PrivateKeyMaterial = JsonObject | Uint8Array;

/** What is signed: bytes, or a text of which the UTF-8 bytes count. */
export type ToSign = Uint8Array | string;

/** A place where keys can be made, as the configuration names it. */
export type KeyProvider = {
  readonly name: string;
  /** `local`, `vault` or `pkcs11`. */
  readonly type: string;
  /** Of all tenants for which nothing else is said. */
  readonly default: boolean;
  /** Of the keys that it can make. */
  readonly algorithms: readonly SigningAlgorithm[];
};

/** Keeps private keys and signs with them. A private key may enter through `import`; none ever leaves. */
export abstract class Kms {
  /**
   * Makes a key at the provider that `provider` names, or at the tenant's, else the default, provider.
   * @returns the new key's handle and its public half as a JWK (RFC 7517).
   * @throws Failure `invalid_input` when no provider has that name, or it has no such algorithm; `unavailable` when it
   *   does not answer.
   */
  abstract generate(tenantId: string, algorithm: SigningAlgorithm, provider?: string): Promise<StoredKey>;
  /**
   * Takes a key that was made elsewhere, at a provider chosen as in `generate`.
   * @throws Failure as `generate`, and `invalid_input` when it is no signature key of this service or the provider takes
   *   none.
   */
  abstract import(tenantId: string, privateKey: PrivateKeyMaterial, provider?: string): Promise<StoredKey>;
  /**
   * Takes a key over to another provider, where it is the same key. Only the key store of the service itself can hand one
   * over; the copy there goes with the row that has it.
   * @throws Failure as `import`, and `conflict` when the provider of the key does not let it go.
   */
  abstract takeOver(key: SigningKey, provider: string): Promise<StoredKey>;
  /**
   * Signs `data` (hashing included, as the algorithm says). Local keys answer synchronously.
   * @returns the raw signature: `r || s` for ECDSA (RFC 7518 section 3.4), never DER.
   * @throws Failure `unavailable` when the provider of the key is not configured or does not answer.
   */
  abstract sign(key: SigningKey, data: ToSign): Uint8Array | Promise<Uint8Array>;
  /**
   * Signs all of `datas` with one key: one round trip where the provider is far away. All are signed, or none.
   * @returns the signatures in the order of `datas`. @throws Failure as `sign`.
   */
  abstract signMany(key: SigningKey, datas: readonly ToSign[]): readonly Uint8Array[] | Promise<readonly Uint8Array[]>;
  /**
   * For what cannot be taken back if the signature then fails. Asks nobody: it tells what is known.
   * @throws Failure `unavailable` when the provider of the key is known not to work at present.
   */
  abstract assertReady(key: SigningKey): void;
  /**
   * Destroys a key that nothing rests on any more. One that is gone already is no failure.
   * @throws Failure as `sign`.
   */
  abstract remove(key: SigningKey): Promise<void>;
  /** The configured providers, the default first. @param tenantId only those at which this tenant may have keys made. */
  abstract providers(tenantId?: string): readonly KeyProvider[];
  /** Where the next key of a tenant is made unless something else is said: as configured, else the default provider. */
  abstract providerOf(tenantId: string): string;
  /** Resolves when the provider answers. @throws Error that says for the operator why it does not. */
  abstract assertReachable(provider: string): Promise<void>;
}
