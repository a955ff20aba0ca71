import type { JsonObject } from '../shared/json.ts';

/** Claims of all copies in one credential response, in bytes of JSON. */
export const MAX_RESPONSE_CLAIMS_BYTES = 16 * 1024 * 1024;

/**
 * Copies that one credential response may carry. An issuer may issue fewer credentials than the wallet proved keys
 * (OpenID4VCI 1.0 section 8.3); without this, 100 copies of an image of 1 MiB would take 140 MB.
 */
export function maxCopies(claims: JsonObject): number {
  const bytes = Buffer.byteLength(JSON.stringify(claims));
  return Math.max(1, Math.floor(MAX_RESPONSE_CLAIMS_BYTES / bytes));
}
