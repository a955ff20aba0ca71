import type { PublicJwk } from '../../domain/shared/jwk.ts';

export type EncryptionKeyPair = {
  /** Public half with `kid`, `use: enc` and `alg: ECDH-ES`, as it goes into `client_metadata.jwks`. */
  readonly publicJwk: PublicJwk & { readonly kid: string };
  /** Private scalar, unpadded base64url. Sealed wherever it is stored. */
  readonly d: string;
};

/** Encrypts and decrypts messages (RFC 7516, RFC 7518 section 4.6: ECDH-ES on P-256, A128GCM and A256GCM). */
export abstract class Encryption {
  /** A fresh P-256 key; HAIP 1.0 section 5 wants one per request. */
  abstract generate(): EncryptionKeyPair;
  /**
   * Decrypts a compact JWE addressed to `key` by `kid`.
   * @returns the plaintext, or `undefined` when anything about the message is not as it must be: another
   *   `kid`, `alg` or `enc`, a foreign or invalid `epk`, `zip`, `crit`, a nested JWS, a broken tag.
   */
  abstract decrypt(jwe: string, key: EncryptionKeyPair): Promise<string | undefined> | string | undefined;
}
