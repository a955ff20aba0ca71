import { hash } from 'node:crypto';
import { CLOCK_TOLERANCE_SECONDS } from '../../shared/clock-tolerance.ts';
import { decodeJson, isJsonObject, isStringArray, type Json, type JsonObject } from '../../shared/json.ts';
import { algorithmOf, type PublicJwk } from '../../shared/jwk.ts';
import { NonceRefusal, Refusal } from '../../shared/refusal.ts';
import { hashNameOf } from './disclosures.ts';
import { parseAllowedAlgorithm } from './sd-jwt-vc.ts';

export type ExpectedBinding = {
  readonly now: Date;
  /** Creation of the request; no response is older. */
  readonly requestedAt?: Date;
  readonly nonce: string;
  /** The full client identifier, or `origin:` and the origin for the Digital Credentials API. One of several must match. */
  readonly audience: string | readonly string[];
  /** The exact texts of the request that this credential must confirm. */
  readonly transactionData?: readonly string[];
  /** Texts that this credential may confirm, because another credential may do so as well. */
  readonly alternativeTransactionData?: readonly string[];
};

/** Limit for the age of a response. */
const WINDOW_SECONDS = 300;

/** Validates the header of a key binding JWT (RFC 9901 section 4.3) before its signature is verified. */
export function assertKeyBindingHeader(header: JsonObject, key: PublicJwk, allowed: readonly string[]): void {
  // RFC 9901 section 4.3: exactly this value
  if (header['typ'] !== 'kb+jwt') throw new Refusal('kb_typ');
  const algorithm = parseAllowedAlgorithm(header, allowed, 'kb_alg');
  // RFC 8725 section 3.1: the algorithm follows from the key.
  if (algorithm !== algorithmOf(key)) throw new Refusal('kb_alg', 'does not fit the key');
}

/**
 * Validates the claims of a key binding JWT with verified signature (RFC 9901 section 7.3, OpenID4VP 1.0 appendix B.3.6).
 * @param boundText covered by `sd_hash`. @param hashName of `_sd_alg`, in node:crypto.
 * @returns the confirmed texts of the expected transaction data.
 */
export function verifyKeyBindingClaims(
  payload: JsonObject,
  boundText: string,
  hashName: string,
  expected: ExpectedBinding,
): readonly string[] {
  assertNonce(payload, expected.nonce);
  assertAudience(payload, expected.audience);
  assertTimes(payload, expected);
  // RFC 9901 section 4.3.1
  if (parseText(payload, 'sd_hash') !== hash(hashName, boundText, 'base64url')) throw new Refusal('sd_hash_mismatch');
  return verifyTransactionData(payload, expected.transactionData ?? [], expected.alternativeTransactionData ?? []);
}

/** OpenID4VP 1.0 section 14.1.2. @throws NonceRefusal */
export function assertNonce(payload: JsonObject, nonce: string): void {
  if (!Object.hasOwn(payload, 'nonce')) throw new NonceRefusal('kb_claim_missing');
  if (typeof payload['nonce'] !== 'string') throw new NonceRefusal('kb_claim_type');
  if (payload['nonce'] !== nonce) throw new NonceRefusal('nonce_mismatch');
}

function assertAudience(payload: JsonObject, audience: ExpectedBinding['audience']): void {
  const aud = parseClaim(payload, 'aud');
  // RFC 9901 section 4.3: a single string
  if (typeof aud !== 'string') throw new Refusal('aud_not_string');
  // OpenID4VP 1.0 appendix B.3.6
  if (typeof audience === 'string' ? aud !== audience : !audience.includes(aud)) throw new Refusal('aud_mismatch');
}

function assertTimes(payload: JsonObject, { now, requestedAt }: ExpectedBinding): void {
  const seconds = now.getTime() / 1000;
  const iat = parseClaim(payload, 'iat');
  // RFC 7519 section 2: a number, fractions allowed
  if (typeof iat !== 'number' || !Number.isFinite(iat)) throw new Refusal('kb_claim_type', 'iat');
  const earliestRequest = requestedAt === undefined ? 0 : requestedAt.getTime() / 1000 - CLOCK_TOLERANCE_SECONDS;
  const earliest = Math.max(earliestRequest, seconds - WINDOW_SECONDS);
  // RFC 9901 section 7.3 step 5: created recently, and for this request
  if (iat > seconds + CLOCK_TOLERANCE_SECONDS || iat < Math.floor(earliest)) throw new Refusal('kb_iat_window');

  const { exp, nbf } = payload;
  if (exp !== undefined && typeof exp !== 'number') throw new Refusal('kb_claim_type', 'exp');
  if (nbf !== undefined && typeof nbf !== 'number') throw new Refusal('kb_claim_type', 'nbf');
  // RFC 7519 sections 4.1.4 and 4.1.5
  if (exp !== undefined && exp <= seconds - CLOCK_TOLERANCE_SECONDS) throw new Refusal('kb_iat_window', 'exp');
  if (nbf !== undefined && nbf > seconds + CLOCK_TOLERANCE_SECONDS) throw new Refusal('kb_iat_window', 'nbf');
}

function parseClaim(payload: JsonObject, name: string): Json {
  const value = Object.hasOwn(payload, name) ? payload[name] : undefined;
  if (value === undefined) throw new Refusal('kb_claim_missing', name);
  return value;
}

function parseText(payload: JsonObject, name: string): string {
  const value = parseClaim(payload, name);
  if (typeof value !== 'string') throw new Refusal('kb_claim_type', name);
  return value;
}

/**
 * Verifies `transaction_data_hashes` (OpenID4VP 1.0 appendix B.3.3.1). A hash covers the exact text in the request. Each required text must
 * be confirmed, and each hash must belong to a text; the order is irrelevant. Without expected texts the claims are ignored.
 * @returns the confirmed texts.
 */
export function verifyTransactionData(
  payload: JsonObject,
  required: readonly string[],
  alternatives: readonly string[],
): readonly string[] {
  if (required.length === 0 && alternatives.length === 0) return [];
  const hashes = payload['transaction_data_hashes'];
  if (hashes === undefined && required.length === 0) return [];
  if (hashes === undefined) throw new Refusal('transaction_data_missing');

  const requestedTexts = [...required, ...alternatives];
  const hashName = parseHashName(payload, requestedTexts);
  const textOfHash = new Map(requestedTexts.map((text) => [hash(hashName, text, 'base64url'), text]));
  const confirmed = parseHashes(hashes).map((value) => textOfHash.get(value));
  // OpenID4VP 1.0 appendix B.3.3.1: each hash maps to an entry of the request.
  if (confirmed.includes(undefined)) throw new Refusal('transaction_data_mismatch', 'unknown hash');
  const texts = new Set(confirmed.filter((text) => text !== undefined));
  if (!required.every((text) => texts.has(text))) throw new Refusal('transaction_data_mismatch', 'an entry is not confirmed');
  return [...texts];
}

function parseHashes(value: Json): readonly string[] {
  if (!isStringArray(value) || value.length === 0) throw new Refusal('transaction_data_mismatch', 'not a list of hashes');
  return value;
}

/** OpenID4VP 1.0 appendix B.3.3.1: one algorithm for all hashes; it must be named if the request names any. */
function parseHashName(payload: JsonObject, sent: readonly string[]): string {
  const offers = sent.map(offeredAlgorithms).filter((offer) => offer !== undefined);
  const statedAlgorithm = payload['transaction_data_hashes_alg'];
  if (statedAlgorithm === undefined && offers.length > 0) throw new Refusal('transaction_data_alg', 'not named');
  const algorithm = statedAlgorithm ?? 'sha-256';
  const offered = offers.length > 0 ? offers : [['sha-256']];
  if (!offered.every((offer) => offer.includes(algorithm))) throw new Refusal('transaction_data_alg');
  const hashName = hashNameOf(algorithm);
  if (hashName === undefined) throw new Refusal('transaction_data_alg');
  return hashName;
}

function offeredAlgorithms(text: string): readonly Json[] | undefined {
  const entry = decodeJson(text);
  const offer = isJsonObject(entry) ? entry['transaction_data_hashes_alg'] : undefined;
  return Array.isArray(offer) && offer.length > 0 ? (offer as readonly Json[]) : undefined;
}
