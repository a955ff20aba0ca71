import type { PublicJwk, SigningAlgorithm } from '../../domain/shared/jwk.ts';

/** Names one private key: the provider that holds it and the provider's own name for it. */
export type KeyHandle = {
  readonly kms: string;
  readonly keyId: string;
  readonly algorithm: SigningAlgorithm;
};

/** Keeps private keys and signs with them. A private key never crosses this port. */
export abstract class Kms {
  /**
   * Makes a key at the provider that `provider` names, or at the tenant's, else the default, provider.
   * @returns the new key's handle and its public half as a JWK (RFC 7517).
   */
  abstract generate(
    tenantId: string,
    algorithm: SigningAlgorithm,
    provider?: string,
  ): Promise<{ handle: KeyHandle; publicJwk: PublicJwk; sealedKey?: string }>;
  /**
   * Signs `data` (hashing included, as the algorithm says). Local keys answer synchronously.
   * @returns the raw signature: `r || s` for ECDSA (RFC 7518 section 3.4), never DER.
   */
  abstract sign(key: SigningKey, data: Uint8Array | string): Uint8Array | Promise<Uint8Array>;
  /** Names of the configured providers, the default first. */
  abstract providers(): readonly { name: string; type: string; default: boolean }[];
}

/** What signing needs: the handle and, for a local key, its sealed private half as it is stored. */
export type SigningKey = {
  readonly tenantId: string;
  readonly handle: KeyHandle;
  /** Sealed PKCS#8 of a local key. Providers that keep their keys themselves leave it out. */
  readonly sealedKey?: string;
};
