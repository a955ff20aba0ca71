import type { Cipher } from '../../../application/ports/cipher.ts';
import { withEachKey } from '../../../domain/keys/kept-keys.ts';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import { localKeyPlace } from '../../../domain/keys/signing-key.ts';

/** How a text begins that is sealed under the present secret. */
export function presentPrefix({ keyIds: [present] }: Cipher): string {
  return `v1.${present}.`;
}

/** @returns the same text under the present secret, unless it is already, or under one that is not listed any more. */
export function sealedAnew(cipher: Cipher, sealed: string, context: string): string {
  const [present, ...former] = cipher.keyIds;
  const [, keyId = present] = sealed.split('.');
  return former.includes(keyId) ? cipher.seal(cipher.open(sealed, context), context) : sealed;
}

/**
 * The private halves of local keys are sealed within their key chain, each for its own place. A key chain that is written
 * must not carry one on that is sealed under a former secret: that secret can be dropped, and the key with it.
 */
export function withKeysSealedAnew(cipher: Cipher, chain: KeyChain): KeyChain {
  return withEachKey(chain, (key, tenantId) => ({
    ...key,
    ...(key.sealedKey !== undefined && {
      sealedKey: sealedAnew(cipher, key.sealedKey, localKeyPlace(tenantId, key.handle.keyId)),
    }),
  }));
}
