import { hash } from 'node:crypto';
import { CLOCK_TOLERANCE_SECONDS } from '../../shared/clock-tolerance.ts';
import type { Json, JsonObject } from '../../shared/json.ts';
import { algorithmOf, type PublicJwk } from '../../shared/jwk.ts';
import { NonceRefusal, Refusal } from '../../shared/refusal.ts';
import { requireAlgorithm } from './sd-jwt-vc.ts';
import { checkTransactionData } from './transaction-data.ts';

/** What a key binding JWT has to answer. */
export type ExpectedBinding = {
  readonly now: Date;
  /** When the request was made; no answer is older. */
  readonly requestedAt?: Date;
  readonly nonce: string;
  /** The full client identifier, or `origin:` and the origin for the Digital Credentials API. Any of several. */
  readonly audience: string | readonly string[];
  /** The exact texts of the request that this credential has to confirm. */
  readonly transactionData?: readonly string[];
  /** Texts that this credential may confirm, because another credential could do so as well. */
  readonly alternativeTransactionData?: readonly string[];
};

/** How old an answer may be. */
const WINDOW_SECONDS = 300;

/** Checks the header of a key binding JWT (RFC 9901 section 4.3) before its signature is verified. */
export function checkKeyBindingHeader(header: JsonObject, key: PublicJwk, allowed: readonly string[]): void {
  // RFC 9901 section 4.3: exactly this value
  if (header['typ'] !== 'kb+jwt') throw new Refusal('kb_typ');
  const algorithm = requireAlgorithm(header, allowed, 'kb_alg');
  // RFC 8725 section 3.1: the algorithm follows from the key.
  if (algorithm !== algorithmOf(key)) throw new Refusal('kb_alg', 'does not fit the key');
}

/**
 * Checks the claims of a key binding JWT whose signature has been verified (RFC 9901 section 7.3,
 * OpenID4VP 1.0 appendix B.3.6).
 * @param boundText what `sd_hash` covers. @param hashName what `_sd_alg` names, as node:crypto calls it.
 * @returns the texts of the expected transaction data that it confirms.
 */
export function checkKeyBindingClaims(
  payload: JsonObject,
  boundText: string,
  hashName: string,
  expected: ExpectedBinding,
): readonly string[] {
  checkNonce(payload, expected.nonce);
  checkAudience(payload, expected.audience);
  checkTimes(payload, expected);
  // RFC 9901 section 4.3.1
  if (requireText(payload, 'sd_hash') !== hash(hashName, boundText, 'base64url')) {
    throw new Refusal('sd_hash_mismatch');
  }
  return checkTransactionData(
    payload,
    expected.transactionData ?? [],
    expected.alternativeTransactionData ?? [],
  );
}

/** OpenID4VP 1.0 section 14.1.2. @throws NonceRefusal */
export function checkNonce(payload: JsonObject, nonce: string): void {
  if (!Object.hasOwn(payload, 'nonce')) throw new NonceRefusal('kb_claim_missing');
  if (typeof payload['nonce'] !== 'string') throw new NonceRefusal('kb_claim_type');
  if (payload['nonce'] !== nonce) throw new NonceRefusal('nonce_mismatch');
}

function checkAudience(payload: JsonObject, audience: ExpectedBinding['audience']): void {
  const aud = requireClaim(payload, 'aud');
  // RFC 9901 section 4.3: a single string
  if (typeof aud !== 'string') throw new Refusal('aud_not_string');
  // OpenID4VP 1.0 appendix B.3.6
  if (typeof audience === 'string' ? aud !== audience : !audience.includes(aud))
    throw new Refusal('aud_mismatch');
}

function checkTimes(payload: JsonObject, { now, requestedAt }: ExpectedBinding): void {
  const seconds = now.getTime() / 1000;
  const iat = requireClaim(payload, 'iat');
  // RFC 7519 section 2: a number, fractions allowed
  if (typeof iat !== 'number' || !Number.isFinite(iat)) throw new Refusal('kb_claim_type', 'iat');
  const requested = requestedAt === undefined ? 0 : requestedAt.getTime() / 1000 - CLOCK_TOLERANCE_SECONDS;
  const earliest = Math.max(requested, seconds - WINDOW_SECONDS);
  // RFC 9901 section 7.3 step 5: made recently, and for this request
  if (iat > seconds + CLOCK_TOLERANCE_SECONDS || iat < Math.floor(earliest))
    throw new Refusal('kb_iat_window');

  const { exp, nbf } = payload;
  if (exp !== undefined && typeof exp !== 'number') throw new Refusal('kb_claim_type', 'exp');
  if (nbf !== undefined && typeof nbf !== 'number') throw new Refusal('kb_claim_type', 'nbf');
  // RFC 7519 sections 4.1.4 and 4.1.5
  if (exp !== undefined && exp <= seconds - CLOCK_TOLERANCE_SECONDS)
    throw new Refusal('kb_iat_window', 'exp');
  if (nbf !== undefined && nbf > seconds + CLOCK_TOLERANCE_SECONDS) throw new Refusal('kb_iat_window', 'nbf');
}

function requireClaim(payload: JsonObject, name: string): Json {
  const value = Object.hasOwn(payload, name) ? payload[name] : undefined;
  if (value === undefined) throw new Refusal('kb_claim_missing', name);
  return value;
}

function requireText(payload: JsonObject, name: string): string {
  const value = requireClaim(payload, name);
  if (typeof value !== 'string') throw new Refusal('kb_claim_type', name);
  return value;
}
