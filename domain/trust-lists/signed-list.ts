import { hash } from 'node:crypto';
import {
  type CompactJws,
  JADES_CRITICAL,
  parseAlgorithm,
  parseCompactJws,
  parseX5c,
  supportsCriticalParameters,
} from '../formats/jose/compact.ts';
import type { JsonObject } from '../shared/json.ts';
import { SIGNING_ALGORITHMS, type SigningAlgorithm } from '../shared/jwk.ts';
import { TrustListRefusal } from './trust-list-refusal.ts';

export const MAX_LIST_BYTES = 2 * 1024 * 1024;
/** Limit of properties and entries in a list. The certificates of the largest lists have about ten thousand. */
const MAX_MEMBERS = 200_000;
/** Tolerance for the clock of a scheme operator. */
export const SKEW_SECONDS = 300;

/** A parsed list; its content is not trusted before its signature is verified. */
export type SignedList = {
  readonly jws: CompactJws;
  /** DER in standard base64, the signer first; or the hash of a pinned signer's certificate (`x5t#S256`). */
  readonly signer: { readonly chain: readonly string[] } | { readonly thumbprint: string };
  readonly algorithm: SigningAlgorithm;
  /** SHA-256 of the document, independent of its signature. */
  readonly documentHash: string;
};

const LIST_TOKEN_TYPES = ['trustlist+jwt', 'lote+jwt'];

/**
 * The specification defines no type, so any is accepted except those of other tokens, which were signed for another purpose (RFC 8725
 * section 3.11).
 */
function isForeignType(typ: unknown): boolean {
  if (typeof typ !== 'string') return typ !== undefined;
  const name = typ.toLowerCase().replace(/^application\//, '');
  return /\+(sd-)?jwt$/.test(name) && !LIST_TOKEN_TYPES.includes(name);
}

/**
 * Parses a list that was signed as a compact JWS (TS 119 602 section 6.8, JAdES baseline B-B).
 * @throws TrustListRefusal `malformed`, `algorithm`, `critical_extension`, `untrusted_signer`.
 */
export function parseSignedList(text: string): SignedList {
  const jws = parseCompactJws(text, { length: MAX_LIST_BYTES, headerBytes: 64 * 1024, members: MAX_MEMBERS });
  if (jws === undefined) throw new TrustListRefusal('malformed', 'it is not a compact JWS');
  const { crit: _crit, ...header } = jws.header;
  if (isForeignType(header['typ'])) throw new TrustListRefusal('malformed', 'typ is that of another kind of token');
  if (!supportsCriticalParameters(jws.header, JADES_CRITICAL))
    throw new TrustListRefusal('critical_extension', 'crit of the signature is invalid or names an unsupported parameter');
  const verdict = parseAlgorithm(header, SIGNING_ALGORITHMS);
  if (verdict.fault !== undefined) throw new TrustListRefusal(verdict.fault === 'alg' ? 'algorithm' : 'critical_extension');
  const payload = jws.signingInput.slice(jws.signingInput.indexOf('.') + 1);
  return { jws, signer: parseSigner(header), algorithm: verdict.algorithm, documentHash: hash('sha256', payload, 'base64url') };
}

/** TS 119 182-1 section 5.1.7: the certificates, or the hash of the first one. */
function parseSigner(header: JsonObject): SignedList['signer'] {
  const { x5c, 'x5t#S256': thumbprint } = header;
  if (x5c === undefined && typeof thumbprint === 'string') return { thumbprint };
  const chain = parseX5c(header);
  if (chain === undefined) throw new TrustListRefusal('untrusted_signer', 'x5c is missing or malformed');
  return { chain };
}

/**
 * Validates the signing time in either form: `iat` (TS 119 182-1 section 5.1.11) or the older `sigT`.
 * @throws TrustListRefusal `malformed`, `from_the_future`.
 */
export function assertSigningTime({ jws }: SignedList, now: Date): void {
  const { iat, sigT } = jws.header;
  if (iat !== undefined && typeof iat !== 'number') throw new TrustListRefusal('malformed', 'iat is not a number');
  const sigTSeconds = sigT === undefined ? undefined : parseDateTime(sigT, 'sigT').getTime() / 1000;
  const latest = Math.max(iat ?? 0, sigTSeconds ?? 0);
  if (latest > now.getTime() / 1000 + SKEW_SECONDS) throw new TrustListRefusal('from_the_future', 'the signing time is in the future');
}

/** TS 119 602 section 6.1.3 requires whole seconds; published lists contain fractions as well. */
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/;

/** @throws TrustListRefusal `malformed` */
export function parseDateTime(value: unknown, name: string): Date {
  const time = typeof value === 'string' && DATE_TIME.test(value) ? new Date(value) : undefined;
  if (time === undefined || Number.isNaN(time.getTime())) throw new TrustListRefusal('malformed', `${name} is not a date and time in UTC`);
  return time;
}
