import type { MacKey, Macs } from '../../domain/audit/macs.ts';

/**
 * Seals what must not be read from the database: personal data, secrets, local private keys. AES-256-GCM under a key derived from
 * `MASTER_SECRET`; `context` names the place (`table/column/tenant/id`), so a ciphertext moved elsewhere does not open.
 */
export abstract class Cipher {
  /** Names of the keys it has, which tell nothing about them; the one that seals first. */
  abstract readonly keyIds: readonly [string, ...string[]];
  abstract seal(plaintext: string | Uint8Array, context: string): string;
  /** @throws Error when the text was not sealed by us for exactly this place. There is no plaintext fallback. */
  abstract open(sealed: string, context: string): Buffer;
  /**
   * Codes over texts that must not be changed, under keys of their own for each `purpose`.
   * @param former keys of secrets that are not listed any more; they only verify.
   */
  abstract macs(purpose: string, former?: readonly MacKey[]): Macs;
  /** The key for `purpose` of one of the secrets, 32 bytes. @param keyId one of `keyIds`. */
  abstract macKey(purpose: string, keyId: string): Buffer;
}
