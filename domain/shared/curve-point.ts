import { decodeBase64url } from './base64url.ts';
import type { PublicJwk } from './jwk.ts';

/** NIST SP 800-186 section 3.2.1: y² = x³ - 3x + b over the integers modulo p. */
const WEIERSTRASS: ReadonlyMap<string, { readonly p: bigint; readonly b: bigint }> = new Map([
  [
    'P-256',
    {
      p: 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n,
      b: 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn,
    },
  ],
  [
    'P-384',
    {
      p: 2n ** 384n - 2n ** 128n - 2n ** 96n + 2n ** 32n - 1n,
      b: 0xb3312fa7e23ee7e4988e056be3f82d19181d9c6efe8141120314088f5013875ac656398d8a2ed19d2a85c8edd3ec2aefn,
    },
  ],
  [
    'P-521',
    {
      p: 2n ** 521n - 1n,
      b: 0x51953eb9618e1c9a1f929a21a0b68540eea2da725b99b315f3b8b489918ef109e156193951ec7e937b1652c0bd3bb1bf073573df883d2c34f1ef451fd46b503f00n,
    },
  ],
]);

const COORDINATE_BYTES: ReadonlyMap<string, number> = new Map([
  ['P-256', 32],
  ['P-384', 48],
  ['P-521', 66],
  ['Ed25519', 32],
]);

/**
 * Whether the coordinates have the length of their curve (RFC 7518 section 6.2.1.2, RFC 8037 section 2), so that one
 * key has one spelling and one thumbprint. Says nothing about the curve equation.
 */
export function isFullLength({ crv, x, y }: PublicJwk): boolean {
  const bytes = COORDINATE_BYTES.get(crv);
  return decodeBase64url(x)?.length === bytes && (y === undefined || decodeBase64url(y)?.length === bytes);
}

/**
 * Whether a key is a point of its curve, for keys that verify nothing before they are used. An Edwards point is
 * looked at by whoever verifies with it.
 */
export function isOnCurve(key: PublicJwk): boolean {
  if (!isFullLength(key)) return false;
  const curve = WEIERSTRASS.get(key.crv);
  if (curve === undefined) return key.crv === 'Ed25519';
  const x = integer(key.x);
  const y = integer(key.y ?? '');
  if (x >= curve.p || y >= curve.p) return false;
  return (y * y - (x * x - 3n) * x - curve.b) % curve.p === 0n;
}

function integer(text: string): bigint {
  return BigInt(`0x${Buffer.from(text, 'base64url').toString('hex') || '0'}`);
}
