import { createPublicKey, hash, type KeyObject } from 'node:crypto';
import { decodeBase64url } from './base64url.ts';
import { valueOrUndefined } from './value-or-undefined.ts';

/** The signature algorithms of the service (RFC 7518 section 3.1, RFC 8037 section 3.1). */
export const SIGNING_ALGORITHMS = ['ES256', 'ES384', 'ES512', 'EdDSA'] as const;
/** Published names: Ed25519 has two names (RFC 9864 section 2.2), and wallets know one or the other. */
export const PUBLISHED_ALGORITHMS = [...SIGNING_ALGORITHMS, 'Ed25519'] as const;
export type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number];
/** Algorithms agreed for the European wallet (ECCG Agreed Cryptographic Mechanisms 2; ARF 3.0 OIA_03, WUA_04). */
export const AGREED_ALGORITHMS: readonly SigningAlgorithm[] = SIGNING_ALGORITHMS.filter((algorithm) => algorithm !== 'EdDSA');

/** A public key (RFC 7517, RFC 8037). It never has private properties. */
export type PublicJwk = {
  readonly kty: 'EC' | 'OKP';
  readonly crv: string;
  readonly x: string;
  readonly y?: string;
  readonly kid?: string;
  readonly use?: string;
  readonly alg?: string;
};

/** RFC 7638 section 3: SHA-256 over the required properties in lexicographic order, base64url. */
export function thumbprint(key: PublicJwk): string {
  const members =
    key.kty === 'EC'
      ? `{"crv":"${key.crv}","kty":"EC","x":"${key.x}","y":"${key.y}"}`
      : `{"crv":"${key.crv}","kty":"${key.kty}","x":"${key.x}"}`;
  return hash('sha256', members, 'base64url');
}

/** `bytes` is the length of a coordinate, and of each half of a signature. Names and hashes are also those of node:crypto. */
type Curve = {
  readonly name: string;
  readonly kty: PublicJwk['kty'];
  readonly hash: string | null;
  readonly bytes: number;
  /** The bytes before the point in a SubjectPublicKeyInfo (RFC 5480 section 2, RFC 8410 section 4). */
  readonly spki: Buffer;
};

const hex = (text: string) => Buffer.from(text, 'hex');
const P256 = hex('3059301306072a8648ce3d020106082a8648ce3d03010703420004');
const P384 = hex('3076301006072a8648ce3d020106052b8104002203620004');
const P521 = hex('30819b301006072a8648ce3d020106052b810400230381860004');
const ED25519 = hex('302a300506032b6570032100');

/** RFC 7518 section 3.4, RFC 8037 section 3.1 */
export const CURVES: Readonly<Record<SigningAlgorithm, Curve>> = {
  ES256: { name: 'P-256', kty: 'EC', hash: 'sha256', bytes: 32, spki: P256 },
  ES384: { name: 'P-384', kty: 'EC', hash: 'sha384', bytes: 48, spki: P384 },
  ES512: { name: 'P-521', kty: 'EC', hash: 'sha512', bytes: 66, spki: P521 },
  EdDSA: { name: 'Ed25519', kty: 'OKP', hash: null, bytes: 32, spki: ED25519 },
};

export function curveOf(name: unknown): Curve | undefined {
  return Object.values(CURVES).find((curve) => curve.name === name);
}

/** The algorithm of a key, determined by the key and never by a header. */
export function algorithmOf(key: Pick<PublicJwk, 'crv'>): SigningAlgorithm | undefined {
  return SIGNING_ALGORITHMS.find((algorithm) => CURVES[algorithm].name === key.crv);
}

const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'] as const;

/**
 * Parses a received public signature key: an EC or OKP key of a supported curve, without private properties. Further properties are
 * dropped. `undefined` for any other value, also for coordinates of a wrong length (RFC 7518 section 6.2.1.2, RFC 8037 section 2): each key
 * has one spelling and one thumbprint. Verification, or `isOnCurve`, checks that the point is on the curve.
 */
export function parsePublicJwk(value: unknown): PublicJwk | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const { kty, crv, x, y } = value as Record<string, unknown>;
  if (PRIVATE_MEMBERS.some((member) => Object.hasOwn(value, member))) return undefined;
  const curve = curveOf(crv);
  if (curve === undefined || curve.kty !== kty || !isCoordinate(x, curve)) return undefined;
  if (curve.kty === 'OKP') return { kty: curve.kty, crv: curve.name, x };
  return isCoordinate(y, curve) ? { kty: curve.kty, crv: curve.name, x, y } : undefined;
}

function isCoordinate(value: unknown, { bytes }: Curve): value is string {
  return typeof value === 'string' && decodeBase64url(value)?.length === bytes;
}

/** True if the point is on its curve; needed for keys that are stored before they verify anything. */
export function isOnCurve(key: PublicJwk): boolean {
  return publicKeyOf(key) !== undefined;
}

/**
 * Imports a key. It is converted to PEM, because node detects the format of other inputs by exceptions, which takes more than twice as
 * long.
 * @returns undefined for a point that is not on its curve: OpenSSL checks the equation on import.
 */
export function publicKeyOf({ kty, crv, x, y }: PublicJwk): KeyObject | undefined {
  const curve = curveOf(crv);
  if (curve?.kty !== kty) return undefined;
  const coordinates = kty === 'OKP' ? [x] : [x, y ?? ''];
  const bytes = coordinates.map((coordinate) => Buffer.from(coordinate, 'base64url'));
  if (bytes.some(({ length }) => length !== curve.bytes)) return undefined;
  const der = Buffer.concat([curve.spki, ...bytes]);
  return valueOrUndefined(() => createPublicKey(`-----BEGIN PUBLIC KEY-----\n${der.toString('base64')}\n-----END PUBLIC KEY-----`));
}
