import { type CompactJws, parseCompactJws } from '../formats/jose/compact.ts';
import { CLOCK_TOLERANCE_SECONDS } from '../shared/clock-tolerance.ts';
import { isStringArray, type Json, type JsonObject } from '../shared/json.ts';
import { isSameIssuer } from '../shared/web-address.ts';

/** The reason for which a token of another authorization server is rejected. */
export type ForeignTokenReason =
  | 'malformed'
  | 'type'
  | 'algorithm'
  | 'critical_header'
  | 'unknown_key'
  | 'signature'
  | 'issuer'
  | 'audience'
  | 'expired'
  | 'not_yet_valid'
  // ID tokens
  | 'authorized_party'
  | 'nonce'
  | 'access_token_hash'
  | 'subject'
  // access tokens of external authorization servers
  | 'id_token'
  | 'key_binding'
  | 'too_many_details';

/** The message is for the operator: names and numbers, never the token or a claim's value. */
export class ForeignTokenError extends Error {
  readonly reason: ForeignTokenReason;

  constructor(reason: ForeignTokenReason, options?: { readonly cause?: unknown }) {
    super(`The token of another authorization server was rejected: ${reason}.`, options);
    this.name = 'ForeignTokenError';
    this.reason = reason;
  }
}

/** Asymmetric algorithms only. A key of the issuer is public, so a MAC with it proves nothing (RFC 8725 section 2.1). */
export const FOREIGN_ALGORITHMS = [
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
  'PS256',
  'PS384',
  'PS512',
  'RS256',
  'RS384',
  'RS512',
] as const;
export type ForeignAlgorithm = (typeof FOREIGN_ALGORITHMS)[number];

const LIMITS = { length: 65_536, headerBytes: 16 * 1024, depth: 32 } as const;
const MAX_AUDIENCES = 100;
const MAX_KEY_NAME_LENGTH = 1024;

export type ParsedForeignToken = {
  readonly jws: CompactJws;
  readonly type: string | undefined;
  readonly algorithm: ForeignAlgorithm;
  readonly keyId: string | undefined;
};

/**
 * Parses a token and its header. Keys and addresses in the header (`jwk`, `x5c`, `jku`, `x5u`) are ignored: only the issuer's published
 * keys are trusted.
 * @param types accepted `typ` values in lower case, without `application/`; `undefined` stands for an absent one.
 * @throws ForeignTokenError `malformed`, `type`, `algorithm`, `critical_header`.
 */
export function parseForeignToken(token: string, types: readonly (string | undefined)[]): ParsedForeignToken {
  const jws = parseCompactJws(token, LIMITS);
  if (jws === undefined) throw new ForeignTokenError('malformed');
  const { alg, kid } = jws.header;
  const algorithm = FOREIGN_ALGORITHMS.find((name) => name === alg);
  if (algorithm === undefined) throw new ForeignTokenError('algorithm');
  // RFC 7515 section 4.1.11, RFC 7797 section 6: no extension is supported.
  if (Object.hasOwn(jws.header, 'crit') || Object.hasOwn(jws.header, 'b64')) throw new ForeignTokenError('critical_header');
  const type = parseType(jws.header['typ']);
  if (!types.includes(type)) throw new ForeignTokenError('type');
  if (kid !== undefined && (typeof kid !== 'string' || kid.length > MAX_KEY_NAME_LENGTH)) throw new ForeignTokenError('malformed');
  return { jws, type, algorithm, keyId: kid };
}

/** RFC 7515 section 4.1.9: a media type in any case, with or without `application/`. */
function parseType(typ: Json | undefined): string | undefined {
  if (typ === undefined) return undefined;
  if (typeof typ !== 'string') throw new ForeignTokenError('type');
  return typ.toLowerCase().replace(/^application\//, '');
}

/**
 * Validates the claims of every token (RFC 7519 section 4.1), after its signature.
 * @param audience undefined when the token has another audience.
 * @throws ForeignTokenError `issuer`, `audience`, `expired`, `not_yet_valid`.
 */
export function assertForeignClaims(
  claims: JsonObject,
  expected: { readonly issuer: string; readonly audience: string | undefined; readonly now: Date },
): void {
  const { iss, aud, exp } = claims;
  if (typeof iss !== 'string' || !isSameIssuer(iss, expected.issuer)) throw new ForeignTokenError('issuer');
  if (expected.audience !== undefined && !parseAudiences(aud).includes(expected.audience)) throw new ForeignTokenError('audience');
  if (exp === undefined) throw new ForeignTokenError('expired');
  assertForeignTimes(claims, expected.now);
}

/**
 * Validates the times of a token; all are optional.
 * @throws ForeignTokenError `expired`, `not_yet_valid`.
 */
export function assertForeignTimes({ exp, nbf, iat }: JsonObject, currentTime: Date): void {
  const now = currentTime.getTime() / 1000;
  // RFC 7519 section 4.1.4
  if (exp !== undefined && (!isTime(exp) || exp + CLOCK_TOLERANCE_SECONDS <= now)) throw new ForeignTokenError('expired');
  // RFC 7519 sections 4.1.5 and 4.1.6
  for (const time of [nbf, iat]) {
    if (time !== undefined && (!isTime(time) || time - CLOCK_TOLERANCE_SECONDS > now)) throw new ForeignTokenError('not_yet_valid');
  }
}

/** RFC 7519 section 2, NumericDate: seconds since the epoch in the range of `Date`. */
function isTime(value: Json | undefined): value is number {
  return typeof value === 'number' && Math.abs(value) <= 8.64e12;
}

/** RFC 7519 section 4.1.3: one string or several. */
export function parseAudiences(aud: Json | undefined): readonly string[] {
  if (typeof aud === 'string') return [aud];
  return isStringArray(aud) && aud.length <= MAX_AUDIENCES ? aud : [];
}
