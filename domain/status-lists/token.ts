import { parseAlgorithm } from '../formats/jose/compact.ts';
import { CLOCK_TOLERANCE_SECONDS } from '../shared/clock-tolerance.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import { SIGNING_ALGORITHMS } from '../shared/jwk.ts';
import { Refusal } from '../shared/refusal.ts';
import { type EntryBits, isEntryBits } from './bits.ts';

export const STATUS_LIST_JWT_TYPE = 'statuslist+jwt';

export type StatusListToBuild = {
  /** The URL of the token, which credentials reference. */
  readonly uri: string;
  readonly bits: EntryBits;
  /** The compressed bytes, base64url. */
  readonly lst: string;
  readonly issuedAt: Date;
  readonly ttlSeconds: number;
  readonly aggregationUri?: string;
};

/** Claims of a Status List Token (Token Status List section 5.1). Times are NumericDates, `ttl` is seconds. */
export type StatusListClaims = {
  readonly sub: string;
  readonly iat: number;
  readonly exp: number;
  readonly ttl: number;
  readonly status_list: { readonly bits: EntryBits; readonly lst: string; readonly aggregation_uri?: string };
};

/** The content of a verified external token. */
export type ParsedStatusList = {
  readonly bits: EntryBits;
  readonly lst: string;
  readonly iat: number;
  readonly exp?: number;
  readonly ttl?: number;
};

export function statusListClaims(list: StatusListToBuild): StatusListClaims {
  const { uri, bits, lst, issuedAt, ttlSeconds, aggregationUri } = list;
  const iat = Math.floor(issuedAt.getTime() / 1000);
  return {
    sub: uri,
    iat,
    exp: iat + ttlSeconds,
    ttl: ttlSeconds,
    status_list: aggregationUri === undefined ? { bits, lst } : { bits, lst, aggregation_uri: aggregationUri },
  };
}

/** Validates the header before the signature is verified. @throws Refusal `status_invalid` */
export function assertStatusListHeader(header: JsonObject): void {
  // Token Status List section 5.1: the type is explicit.
  if (header['typ'] !== STATUS_LIST_JWT_TYPE) throw new Refusal('status_invalid', 'typ');
  // Token Status List section 8.3: a signature; with a MAC the verifier could create lists itself.
  if (parseAlgorithm(header, SIGNING_ALGORITHMS).fault === 'alg') throw new Refusal('status_invalid', 'alg');
}

/**
 * Parses the verified payload of a token that was fetched from `expectedUri`.
 * @throws Refusal `status_invalid`
 */
export function parseStatusListClaims(payload: unknown, expectedUri: string, now: Date): ParsedStatusList {
  if (!isJsonObject(payload)) throw new Refusal('status_invalid', 'payload');
  const seconds = now.getTime() / 1000;
  // Token Status List section 8.3: the subject is the address, character by character.
  if (payload['sub'] !== expectedUri) throw new Refusal('status_invalid', 'sub');
  // Token Status List section 5.1: iat is required.
  const iat = parseNumber(payload['iat'], 'iat');
  if (iat === undefined || iat > seconds + CLOCK_TOLERANCE_SECONDS) throw new Refusal('status_invalid', 'iat');
  // Token Status List section 8.3: exp ends the use.
  const exp = parseNumber(payload['exp'], 'exp');
  if (exp !== undefined && exp <= seconds - CLOCK_TOLERANCE_SECONDS) throw new Refusal('status_invalid', 'exp');
  // Token Status List section 5.1, RFC 7519 section 4.1.5
  const nbf = parseNumber(payload['nbf'], 'nbf');
  if (nbf !== undefined && nbf > seconds + CLOCK_TOLERANCE_SECONDS) throw new Refusal('status_invalid', 'nbf');
  // RFC 7519 section 4.1.3: a list with an audience is not for every verifier.
  if (payload['aud'] !== undefined) throw new Refusal('status_invalid', 'aud');
  // Token Status List section 5.1: ttl is positive.
  const ttl = parseNumber(payload['ttl'], 'ttl');
  if (ttl !== undefined && ttl <= 0) throw new Refusal('status_invalid', 'ttl');
  const { bits, lst } = parseList(payload['status_list']);
  return { bits, lst, iat, ...(exp !== undefined && { exp }), ...(ttl !== undefined && { ttl }) };
}

/** An absent claim is permitted; any other type than a number is not (RFC 7519 section 2, NumericDate). */
function parseNumber(value: Json | undefined, claim: string): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new Refusal('status_invalid', claim);
  return value;
}

function parseList(list: Json | undefined): { bits: EntryBits; lst: string } {
  // Token Status List section 4.2: both properties are required.
  if (!isJsonObject(list)) throw new Refusal('status_invalid', 'status_list');
  const { bits, lst } = list;
  if (!isEntryBits(bits)) throw new Refusal('status_invalid', 'bits');
  if (typeof lst !== 'string') throw new Refusal('status_invalid', 'lst');
  return { bits, lst };
}
