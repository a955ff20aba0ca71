import type { MacKey, Macs } from '../../domain/audit/macs.ts';

/**
 * Encrypts values at rest: personal data, secrets, local private keys. AES-256-GCM under a key derived from `MASTER_SECRET`;
 * `context` is the additional data (`table/column/tenant/id`), so a ciphertext that was moved elsewhere does not decrypt.
 */
export abstract class Cipher {
  /** Ids of the master secrets, which reveal nothing about them. The first one encrypts. */
  abstract readonly keyIds: readonly [string, ...string[]];
  abstract seal(plaintext: string | Uint8Array, context: string): string;
  /** @throws Error when the text was not sealed by this service for this context. There is no plaintext fallback. */
  abstract open(sealed: string, context: string): Buffer;
  /**
   * Message authentication codes under separate keys for each `purpose`.
   * @param retiredKeys keys of master secrets that are no longer configured; they only verify.
   */
  abstract macs(purpose: string, retiredKeys?: readonly MacKey[]): Macs;
  /** The key for `purpose` of one master secret, 32 bytes. @param keyId one of `keyIds`. */
  abstract macKey(purpose: string, keyId: string): Buffer;
}
