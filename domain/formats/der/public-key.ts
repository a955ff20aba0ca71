import { hash } from 'node:crypto';
import { type DerElement, DerError, parseElement, parseElements, parseOid, parseSequence, TAG } from './reader.ts';

/** rsaEncryption and id-RSASSA-PSS (RFC 8017 appendix C). */
const RSA = new Set(['1.2.840.113549.1.1.1', '1.2.840.113549.1.1.10']);
/** id-ecPublicKey (RFC 5480 section 2.1.1) */
const EC = '1.2.840.10045.2.1';
const RSA_BITS = { min: 2048, max: 4096 } as const;
const MAX_EXPONENT_BITS = 32;

/**
 * Validates the key of a certificate before it is used: with a long RSA key or exponent one verification takes as long as thousands of
 * others.
 * @param info SubjectPublicKeyInfo (RFC 5280 section 4.1.2.7).
 * @returns SHA-1 of the key, base64url: its identifier after RFC 5280 section 4.2.1.2 (1).
 * @throws DerError for RSA keys outside 2,048 to 4,096 bits or with an exponent that is even, 1, or of more than 32 bits, and for curves
 * that are not named.
 */
export function parseKeyHash(info: DerElement | undefined): string {
  const [algorithm, key] = parseSequence(info?.encoded ?? Buffer.alloc(0));
  if (algorithm === undefined || key?.tag !== TAG.bitString) throw new DerError('public key');
  const [type, parameters] = parseElements(algorithm.content);
  const oid = parseOid(type?.content ?? Buffer.alloc(0));
  const bits = key.content.subarray(1);
  if (RSA.has(oid)) assertRsa(bits);
  // RFC 5480 section 2.1.1: explicit curve parameters must not be used.
  if (oid === EC && parameters?.tag !== TAG.oid) throw new DerError('curve');
  return hash('sha1', bits, 'base64url');
}

/** RFC 8017 appendix A.1.1 */
function assertRsa(bits: Buffer): void {
  const [modulus, exponent, ...more] = parseElements(parseElement(bits, TAG.sequence).content).map(parsePositive);
  if (modulus === undefined || exponent === undefined || more.length > 0) throw new DerError('RSA key');
  const size = sizeOf(modulus);
  if (size < RSA_BITS.min || size > RSA_BITS.max) throw new DerError('RSA key size');
  if (sizeOf(exponent) > MAX_EXPONENT_BITS) throw new DerError('RSA exponent');
  if (!isOddNumber(modulus) || !isOddNumber(exponent) || sizeOf(exponent) < 2) throw new DerError('RSA key');
}

/** @returns the bytes of a positive number without leading zeros. */
function parsePositive({ tag, content }: DerElement): Buffer {
  const [firstByte, secondByte] = content;
  if (tag !== TAG.integer || firstByte === undefined || firstByte >= 0x80) throw new DerError('RSA key');
  if (firstByte !== 0) return content;
  // X.690 section 8.3.2: the shortest form, and a key contains no zero
  if (secondByte === undefined || secondByte < 0x80) throw new DerError('RSA key');
  return content.subarray(1);
}

function sizeOf(number: Buffer): number {
  return number.length * 8 - (Math.clz32(number[0] ?? 0) - 24);
}

function isOddNumber(number: Buffer): boolean {
  return ((number.at(-1) ?? 0) & 1) === 1;
}
