import type { SigningKey, StoredKey } from '../../domain/keys/signing-key.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { SigningAlgorithm } from '../../domain/shared/jwk.ts';

export type { KeyHandle, SigningKey, StoredKey } from '../../domain/keys/signing-key.ts';

/** A private key from outside: a JWK (RFC 7517, RFC 8037) or the DER of a PKCS#8 structure (RFC 5958). */
export type PrivateKeyMaterial = JsonObject | Uint8Array;

/** Keeps private keys and signs with them. A private key may enter through `import`; none ever leaves. */
export abstract class Kms {
  /**
   * Makes a key at the provider that `provider` names, or at the tenant's, else the default, provider.
   * @returns the new key's handle and its public half as a JWK (RFC 7517).
   * @throws Failure `invalid_input` when no provider has that name.
   */
  abstract generate(tenantId: string, algorithm: SigningAlgorithm, provider?: string): Promise<StoredKey>;
  /**
   * Takes a key that was made elsewhere, at a provider chosen as in `generate`.
   * @throws Failure `invalid_input` when it is no signature key of this service or the provider takes none.
   */
  abstract import(tenantId: string, privateKey: PrivateKeyMaterial, provider?: string): Promise<StoredKey>;
  /**
   * Signs `data` (hashing included, as the algorithm says). Local keys answer synchronously.
   * @returns the raw signature: `r || s` for ECDSA (RFC 7518 section 3.4), never DER.
   * @throws Failure `unavailable` when the provider of the key is not configured or does not answer.
   */
  abstract sign(key: SigningKey, data: Uint8Array | string): Uint8Array | Promise<Uint8Array>;
  /** Names of the configured providers, the default first. */
  abstract providers(): readonly { name: string; type: string; default: boolean }[];
}
