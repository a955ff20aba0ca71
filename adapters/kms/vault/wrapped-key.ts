import { constants, createCipheriv, createPublicKey, type KeyObject, publicEncrypt } from 'node:crypto';
import type { Random } from '../../../application/ports/random.ts';
import { VaultError } from './vault-error.ts';

/** RFC 5649 section 3 */
const ALTERNATIVE_INITIAL_VALUE = Buffer.from('a65959a6', 'hex');
const AES_KEY_BYTES = 32;
const LEAST_RSA_BITS = 3072;

/**
 * A private key as Transit takes it in: an AES key that is used once, encrypted by RSA-OAEP with SHA-256 for Transit's
 * wrapping key, and behind it the PKCS#8 structure wrapped by that AES key (AES-KWP, RFC 5649).
 * @param wrappingKey PEM, as `GET <mount>/wrapping_key` gives it.
 * @returns base64. @throws VaultError when the wrapping key is none.
 */
export function wrapPrivateKey(privateKey: KeyObject, wrappingKey: unknown, random: Random): string {
  const recipient = readWrappingKey(wrappingKey);
  const aesKey = random.bytes(AES_KEY_BYTES);
  const der = privateKey.export({ format: 'der', type: 'pkcs8' });
  try {
    const cipher = createCipheriv('id-aes256-wrap-pad', aesKey, ALTERNATIVE_INITIAL_VALUE);
    const wrapped = Buffer.concat([cipher.update(der), cipher.final()]);
    const padding = constants.RSA_PKCS1_OAEP_PADDING;
    const forRecipient = publicEncrypt({ key: recipient, padding, oaepHash: 'sha256' }, aesKey);
    return Buffer.concat([forRecipient, wrapped]).toString('base64');
  } finally {
    der.fill(0);
    aesKey.fill(0);
  }
}

function readWrappingKey(pem: unknown): KeyObject {
  const key = typeof pem === 'string' ? parsed(pem) : undefined;
  const bits = key?.asymmetricKeyDetails?.modulusLength ?? 0;
  if (key?.asymmetricKeyType !== 'rsa' || bits < LEAST_RSA_BITS) {
    throw new VaultError('its wrapping key is no RSA key of at least 3072 bits');
  }
  return key;
}

function parsed(pem: string): KeyObject | undefined {
  try {
    return createPublicKey(pem);
  } catch {
    return undefined;
  }
}
