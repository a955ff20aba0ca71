import { decodeBase64url } from '../shared/base64url.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import { CURVES, curveOf, SIGNING_ALGORITHMS } from '../shared/jwk.ts';
import type { ForeignAlgorithm } from './foreign-token.ts';

/** A public signature key of another server, reduced to the properties of the key itself. */
export type ForeignKey = {
  readonly id: string | undefined;
  readonly jwk: Readonly<Record<string, string>>;
  /** Algorithms by the key's `alg` or type, never by the header of a token. */
  readonly algorithms: readonly ForeignAlgorithm[];
};

const MAX_KEYS = 100;
const RSA: readonly ForeignAlgorithm[] = ['PS256', 'PS384', 'PS512', 'RS256', 'RS384', 'RS512'];
const OKP: readonly ForeignAlgorithm[] = ['EdDSA', 'Ed25519'];

/**
 * Parses a JWK Set (RFC 7517 section 5). Unusable keys are skipped, as section 5 demands.
 * @returns undefined for an invalid JWK Set or too many keys.
 */
export function parseForeignKeys(document: JsonObject): readonly ForeignKey[] | undefined {
  const { keys } = document;
  if (!Array.isArray(keys) || keys.length > MAX_KEYS) return undefined;
  return keys.map(parseForeignKey).filter((key) => key !== undefined);
}

function parseForeignKey(value: Json): ForeignKey | undefined {
  if (!isJsonObject(value)) return undefined;
  const { kid, alg, use, key_ops } = value;
  // RFC 7517 sections 4.2 and 4.3
  if (use !== undefined && use !== 'sig') return undefined;
  if (key_ops !== undefined && !(Array.isArray(key_ops) && key_ops.includes('verify'))) return undefined;
  if (kid !== undefined && typeof kid !== 'string') return undefined;
  const keyProperties = parseProperties(value);
  if (keyProperties === undefined) return undefined;
  // RFC 9864 section 2.2: two names for one algorithm.
  const matchesAlg = (name: ForeignAlgorithm) =>
    alg === undefined || name === alg || (OKP.includes(name) && OKP.some((alias) => alias === alg));
  const algorithms = keyProperties.algorithms.filter(matchesAlg);
  return algorithms.length === 0 ? undefined : { id: kid, jwk: keyProperties.jwk, algorithms };
}

function parseProperties({ kty, crv, x, y, n, e }: JsonObject): Omit<ForeignKey, 'id'> | undefined {
  if (kty === 'RSA') {
    if (!isModulus(n) || !isExponent(e)) return undefined;
    return { jwk: { kty, n, e }, algorithms: RSA };
  }
  const curve = curveOf(crv);
  if (curve === undefined || kty !== curve.kty || !isCoordinate(x)) return undefined;
  const jwk = { kty: curve.kty, crv: curve.name, x };
  if (curve.kty === 'OKP') return { jwk: jwk, algorithms: OKP };
  const algorithms = SIGNING_ALGORITHMS.filter((algorithm) => CURVES[algorithm] === curve);
  return isCoordinate(y) ? { jwk: { ...jwk, y }, algorithms } : undefined;
}

/** RFC 7518 section 3.3: at least 2048 bits; a much larger modulus only costs time. */
function isModulus(n: Json | undefined): n is string {
  const bytes = typeof n === 'string' ? decodeBase64url(n) : undefined;
  return bytes !== undefined && bytes.length >= 256 && bytes.length <= 1024;
}

function isExponent(e: Json | undefined): e is string {
  return typeof e === 'string' && /^[A-Za-z0-9_-]{2,6}$/.test(e);
}

function isCoordinate(value: Json | undefined): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9_-]{1,88}$/.test(value);
}

/**
 * The key that must verify a token. A token without `kid` matches only if exactly one key is suitable (OpenID Connect Core 1.0 section
 * 10.1).
 */
export function pickForeignKey(
  keys: readonly ForeignKey[],
  token: { readonly algorithm: ForeignAlgorithm; readonly keyId: string | undefined },
): ForeignKey | undefined {
  const matchingKeys = keys.filter(
    ({ id, algorithms }) => algorithms.includes(token.algorithm) && (token.keyId === undefined || token.keyId === id),
  );
  return matchingKeys.length === 1 ? matchingKeys[0] : undefined;
}
