import { CLOCK_TOLERANCE_SECONDS } from '../../shared/clock-tolerance.ts';
import { defined } from '../../shared/defined.ts';
import { isJsonObject, isStringArray, type Json, type JsonObject } from '../../shared/json.ts';
import { algorithmOf, type PublicJwk, parsePublicJwk, type SigningAlgorithm } from '../../shared/jwk.ts';
import { Refusal, type RefusalReason } from '../../shared/refusal.ts';
import { parseAlgorithm, parseX5c } from '../jose/compact.ts';
import { NEVER_DISCLOSABLE } from './claim-names.ts';
import type { ProcessedClaims } from './disclosures.ts';

/** Claims about the credential itself. Times are NumericDates (RFC 7519 section 2). */
export type SdJwtVc = { readonly vct: string; readonly iss?: string; readonly iat?: number; readonly nbf?: number; readonly exp?: number };

/**
 * Validates the header of the issuer-signed JWT (SD-JWT VC section 2.2.1).
 * @returns the algorithm of the header, which the caller must compare with the issuer's key.
 */
export function parseIssuerHeader(header: JsonObject, allowed: readonly string[]): SigningAlgorithm {
  const { typ } = header;
  const type = typeof typ === 'string' ? typ.toLowerCase() : undefined;
  // SD-JWT VC section 2.2.1; RFC 7515 section 4.1.9 permits the omission of "application/".
  if (type !== 'dc+sd-jwt' && type !== 'application/dc+sd-jwt') throw new Refusal('issuer_typ');
  return parseAllowedAlgorithm(header, allowed, 'issuer_alg');
}

/** @throws Refusal `reason` for a disallowed algorithm, `unsupported_crit` for an unknown extension. */
export function parseAllowedAlgorithm(header: JsonObject, allowed: readonly string[], reason: RefusalReason): SigningAlgorithm {
  const verdict = parseAlgorithm(header, allowed);
  if (verdict.fault === 'crit') throw new Refusal('unsupported_crit');
  if (verdict.fault !== undefined) throw new Refusal(reason);
  return verdict.algorithm;
}

/** The certificates of `x5c`. @throws Refusal `issuer_key_unresolved` */
export function parseCertificateChain(header: JsonObject): readonly string[] {
  const chain = parseX5c(header);
  if (chain !== undefined) return chain;
  throw new Refusal('issuer_key_unresolved', header['x5c'] === undefined ? 'no x5c' : 'x5c is not base64');
}

/** Rejects disclosed claims whose type forbids it (SD-JWT VC section 2.2.2.3, RFC 9901 section 9.7), including nested values. */
export function assertNoForbiddenDisclosures(payload: JsonObject, processed: ProcessedClaims): void {
  for (const name of NEVER_DISCLOSABLE) {
    const hidden = processed.disclosedNames.has(name);
    if (hidden || (Object.hasOwn(payload, name) && containsDigests(payload[name] as Json))) throw new Refusal('forbidden_disclosure', name);
  }
}

function containsDigests(value: Json): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([name, member]) => name === '_sd' || name === '...' || containsDigests(member));
}

/**
 * Parses the claims about the credential and validates its times against `now` (SD-JWT VC section 2.2.2).
 * @throws Refusal `malformed`, `credential_expired` or `credential_not_yet_valid`.
 */
export function parseSdJwtVc(payload: JsonObject, processed: ProcessedClaims, now: Date): SdJwtVc {
  const { vct, iss } = payload;
  // SD-JWT VC section 2.2.2.1: vct is required.
  if (typeof vct !== 'string' || vct === '') throw new Refusal('malformed', 'vct');
  if (iss !== undefined && typeof iss !== 'string') throw new Refusal('malformed', 'iss');
  const exp = parseNumericDate(payload['exp'], 'exp');
  const nbf = parseNumericDate(payload['nbf'], 'nbf');
  // Only `iat` may be disclosed selectively.
  const iat = parseNumericDate(processed.claims['iat'], 'iat');

  const seconds = now.getTime() / 1000;
  // RFC 7519 section 4.1.4
  if (exp !== undefined && exp <= seconds - CLOCK_TOLERANCE_SECONDS) throw new Refusal('credential_expired');
  // RFC 7519 section 4.1.5
  if (nbf !== undefined && nbf > seconds + CLOCK_TOLERANCE_SECONDS) throw new Refusal('credential_not_yet_valid');
  if (iat !== undefined && iat > seconds + CLOCK_TOLERANCE_SECONDS) throw new Refusal('credential_not_yet_valid', 'iat');
  return { vct, ...defined({ iss, iat, nbf, exp }) };
}

/**
 * A credential may be restricted to certain recipients, which is rare (RFC 9901 section 7.1 step 6, RFC 7519 section 4.1.3).
 * @param aud of the credential, disclosed or visible. @param recipients names of the verifier.
 * @throws Refusal `credential_audience`, or `malformed` for an invalid type.
 */
export function assertRecipients(aud: unknown, recipients: readonly string[] = []): void {
  if (aud === undefined) return;
  const audiences = typeof aud === 'string' ? [aud] : aud;
  if (!isStringArray(audiences)) throw new Refusal('malformed', 'aud');
  if (!recipients.some((recipient) => audiences.includes(recipient))) throw new Refusal('credential_audience');
}

/** RFC 7519 section 2: a number, fractions allowed. */
function parseNumericDate(value: unknown, name: string): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new Refusal('malformed', name);
  return value;
}

/**
 * The key that the holder must prove (RFC 7800 section 3.2). Keys by reference are not resolved.
 * @throws Refusal `holder_key_missing` also for private or symmetric keys and for a contradictory `alg`.
 */
export function parseHolderKey(payload: JsonObject): PublicJwk {
  const { cnf } = payload;
  const jwk = isJsonObject(cnf) ? cnf['jwk'] : undefined;
  const key = parsePublicJwk(jwk);
  if (key === undefined || !isJsonObject(jwk)) throw new Refusal('holder_key_missing');
  const { alg } = jwk;
  const algorithm = algorithmOf(key);
  const agrees = alg === undefined || alg === algorithm || (alg === 'Ed25519' && algorithm === 'EdDSA');
  if (!agrees) throw new Refusal('holder_key_missing', 'alg contradicts the key');
  return key;
}
