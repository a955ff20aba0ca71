import type { Cipher } from '../../../application/ports/cipher.ts';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import { mapKeys } from '../../../domain/keys/retired-keys.ts';
import { localKeySealContext } from '../../../domain/keys/signing-key.ts';

/** Prefix of texts that are sealed under the current secret. */
export function currentSealPrefix({ keyIds: [currentKeyId] }: Cipher): string {
  return `v1.${currentKeyId}.`;
}

/** @returns the text sealed under the current secret; unchanged if it is already, or if its secret is no longer configured. */
export function resealText(cipher: Cipher, sealed: string, context: string): string {
  const [currentKeyId, ...formerKeyIds] = cipher.keyIds;
  const [, keyId = currentKeyId] = sealed.split('.');
  return formerKeyIds.includes(keyId) ? cipher.seal(cipher.open(sealed, context), context) : sealed;
}

/**
 * Private halves of local keys are sealed within their key chain, each with its own context. A key chain must not be written with a key
 * under a former secret: once that secret is removed, the key would be lost.
 */
export function withResealedKeys(cipher: Cipher, chain: KeyChain): KeyChain {
  return mapKeys(chain, (key, tenantId) => ({
    ...key,
    ...(key.sealedKey !== undefined && { sealedKey: resealText(cipher, key.sealedKey, localKeySealContext(tenantId, key.handle.keyId)) }),
  }));
}
