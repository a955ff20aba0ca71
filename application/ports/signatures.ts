import type { PublicJwk } from '../../domain/shared/jwk.ts';

/** Verifies signatures. The algorithm follows from the key, never from a header. */
export abstract class Signatures {
  /**
   * @param signature raw form: `r || s` for ECDSA (RFC 7518 section 3.4), 64 bytes for Ed25519. A DER form or
   *   a wrong length does not verify.
   * @param keyUse `once` for a key that is unlikely to be used again: it is not cached, so that it does not evict other keys.
   * @returns true if `signature` over `data` is by `key`; false, never a throw, for unusable input.
   */
  abstract verify(key: PublicJwk, data: Uint8Array | string, signature: Uint8Array, keyUse?: 'once' | 'often'): boolean;
}
