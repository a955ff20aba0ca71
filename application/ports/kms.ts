import type { SigningKey, StoredKey } from '../../domain/keys/signing-key.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { SigningAlgorithm } from '../../domain/shared/jwk.ts';

export type { KeyHandle, SigningKey, StoredKey } from '../../domain/keys/signing-key.ts';

/** An imported private key: a JWK (RFC 7517, RFC 8037) or the DER of a PKCS#8 structure (RFC 5958). */
export type PrivateKeyMaterial = JsonObject | Uint8Array;

/** Data to sign: bytes, or a text that is signed as UTF-8. */
export type ToSign = Uint8Array | string;

/** A configured key store. */
export type KeyProvider = {
  readonly name: string;
  /** `local`, `vault` or `pkcs11`. */
  readonly type: string;
  /** True for the provider of all tenants without one of their own. */
  readonly default: boolean;
  readonly algorithms: readonly SigningAlgorithm[];
};

/** Stores private keys and signs with them. A private key may enter through `import`; none ever leaves. */
export abstract class Kms {
  /**
   * Generates a key at the provider `provider`, otherwise at that of the tenant or the default provider.
   * @returns the handle of the key and its public half as a JWK (RFC 7517).
   * @throws Failure `invalid_input` for an unknown provider or an algorithm that it does not support; `unavailable` when it
   *   does not answer.
   */
  abstract generate(tenantId: string, algorithm: SigningAlgorithm, provider?: string): Promise<StoredKey>;
  /**
   * Imports an existing key into a provider chosen as in `generate`.
   * @throws Failure as `generate`, and `invalid_input` when it is not a supported signing key or the provider does not import keys.
   */
  abstract import(tenantId: string, privateKey: PrivateKeyMaterial, provider?: string): Promise<StoredKey>;
  /**
   * Copies a key to another provider, where it remains the same key. Only keys in the local key store can be copied; the local copy is
   * removed with the row that refers to it.
   * @throws Failure as `import`, and `conflict` when the provider of the key does not export it.
   */
  abstract copyToProvider(key: SigningKey, provider: string): Promise<StoredKey>;
  /**
   * Signs `data`, including the hash of the algorithm. Local keys answer synchronously.
   * @returns the raw signature: `r || s` for ECDSA (RFC 7518 section 3.4), never DER.
   * @throws Failure `unavailable` when the provider of the key is not configured or does not answer.
   */
  abstract sign(key: SigningKey, data: ToSign): Uint8Array | Promise<Uint8Array>;
  /**
   * Signs all `datas` with one key, with a single round trip to a remote provider. Either all are signed or none.
   * @returns the signatures in the order of `datas`. @throws Failure as `sign`.
   */
  abstract signMany(key: SigningKey, datas: readonly ToSign[]): readonly Uint8Array[] | Promise<readonly Uint8Array[]>;
  /**
   * Called before an irreversible step that a failed signature would leave incomplete. Uses the last known state of the provider
   * and makes no call.
   * @throws Failure `unavailable` when the provider of the key is known to be down.
   */
  abstract assertReady(key: SigningKey): void;
  /**
   * Destroys an unused key. A key that is already gone is not an error.
   * @throws Failure as `sign`.
   */
  abstract remove(key: SigningKey): Promise<void>;
  /** The configured providers, the default first. @param tenantId only providers that this tenant may use. */
  abstract providers(tenantId?: string): readonly KeyProvider[];
  /** The provider for new keys of a tenant: as configured, otherwise the default. */
  abstract providerOf(tenantId: string): string;
  /** Resolves when the provider answers. @throws Error that gives the operator the reason otherwise. */
  abstract assertReachable(provider: string): Promise<void>;
}
