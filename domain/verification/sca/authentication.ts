import type { Json, JsonObject } from '../../shared/json.ts';
import { isJsonObject } from '../../shared/json.ts';
import { Refusal } from '../../shared/refusal.ts';

/** Evidence for a payment service of how its user was authenticated (TS12 1.0 section 3.6). */
export type Authentication = JsonObject & {
  readonly jti: string;
  /** Authentication factors of the wallet, from at least two categories. */
  readonly amr: readonly Json[];
};

const FACTORS: Readonly<Record<string, readonly string[]>> = {
  knowledge: [
    ...['pin_less_than_6_digits', 'pin_6_or_more_digits', 'passphrase_less_than_8_chars'],
    ...['passphrase_8_to_11_chars', 'passphrase_12_or_more_chars', 'pattern', 'other'],
  ],
  possession: [
    ...['key_in_remote_wscd', 'key_in_local_external_wscd', 'key_in_local_internal_wscd'],
    ...['key_in_local_native_wscd', 'other'],
  ],
  inherence: ['fingerprint_device', 'fingerprint_external', 'face_device', 'face_external', 'other'],
};
const MAX_FACTORS = 10;
const MAX_CODE_LENGTH = 200;
/** 96 bits in the densest common alphabet: shorter codes can be guessed or repeated. */
const MIN_CODE_LENGTH = 16;

/**
 * Parses the claims that TS12 adds to a key binding JWT with a verified signature.
 * @param responseMode of the request.
 * @throws Refusal `strong_authentication` with the missing or invalid claim.
 */
export function parseAuthentication(payload: JsonObject, responseMode: string): Authentication {
  const { jti, amr, response_mode: mode } = payload;
  if (typeof jti !== 'string' || jti.length < MIN_CODE_LENGTH || jti.length > MAX_CODE_LENGTH) throw authenticationRefusal('jti');
  if (mode !== responseMode) throw authenticationRefusal('response_mode');
  if (!Array.isArray(amr) || amr.length > MAX_FACTORS) throw authenticationRefusal('amr');
  const categories = amr.map((factor) => categoryOf(factor as Json));
  // Two factors of the same category count as one (Directive (EU) 2015/2366 article 4 number 30).
  if (new Set(categories).size < 2) throw authenticationRefusal('amr has fewer than two categories');
  return { jti, amr: amr as readonly Json[] };
}

function categoryOf(factor: Json): string {
  const [entry, ...furtherEntries] = isJsonObject(factor) ? Object.entries(factor) : [];
  if (entry === undefined || furtherEntries.length > 0) throw authenticationRefusal('amr');
  const [category, method] = entry;
  const methods = Object.hasOwn(FACTORS, category) ? FACTORS[category] : undefined;
  if (typeof method !== 'string' || methods?.includes(method) !== true) throw authenticationRefusal('amr');
  return category;
}

function authenticationRefusal(claim: string): Refusal {
  return new Refusal('strong_authentication', claim);
}
