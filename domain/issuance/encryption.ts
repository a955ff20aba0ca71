import { CONTENT_ENCRYPTION, type Compression, type ContentEncryption } from '../formats/jose/content-encryption.ts';
import { Failure } from '../shared/failure.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import { isOnCurve, type PublicJwk, parsePublicJwk } from '../shared/jwk.ts';
import type { IssuanceConfigurationBody } from './issuance-configuration.ts';

/** How a wallet wants to have its answer. */
export type ResponseEncryption = {
  /** With the wallet's own `kid`, if it gave one. */
  readonly recipient: PublicJwk;
  readonly enc: ContentEncryption;
  readonly zip: Compression | undefined;
};

const MAX_KID_LENGTH = 1024;

const refused = (message: string) => new Failure('invalid_encryption_parameters', message);

/**
 * Reads `credential_response_encryption` (OpenID4VCI 1.0 sections 8.2 and 10).
 * @param offer what the tenant publishes about it, and whether the request itself came encrypted.
 * @returns undefined for an answer in the clear.
 * @throws Failure `invalid_encryption_parameters`.
 */
export function parseResponseEncryption(
  body: JsonObject,
  offer: { readonly use: IssuanceConfigurationBody['responseEncryption']; readonly encrypted: boolean },
): ResponseEncryption | undefined {
  const { credential_response_encryption: wanted } = body;
  if (wanted === undefined) {
    if (offer.use === 'required') throw refused('this issuer answers encrypted only; say how');
    return undefined;
  }
  if (offer.use === 'off') throw refused('this issuer offers no response encryption');
  // OpenID4VCI 1.0 section 8.2: otherwise somebody on the way could put in a key of his own
  if (!offer.encrypted) throw refused('ask for an encrypted response in an encrypted request');
  if (!isJsonObject(wanted)) throw refused('credential_response_encryption must be an object');
  const enc = CONTENT_ENCRYPTION.find((known) => known === wanted['enc']);
  if (enc === undefined) throw refused(`enc must be one of: ${CONTENT_ENCRYPTION.join(', ')}`);
  const { zip } = wanted;
  if (zip !== undefined && zip !== 'DEF') throw refused('zip must be DEF or absent');
  return { recipient: parseRecipient(wanted['jwk']), enc, zip };
}

function parseRecipient(value: Json | undefined): PublicJwk {
  const key = parsePublicJwk(value);
  if (key?.crv !== 'P-256' || !isOnCurve(key) || !isJsonObject(value)) throw refused('jwk must be a public key on P-256');
  const { alg, use, kid } = value;
  // OpenID4VCI 1.0 section 10: the alg of the JWK is that of the JWE
  if (alg !== 'ECDH-ES') throw refused('jwk must have the alg ECDH-ES');
  // RFC 7517 section 4.2
  if (use !== undefined && use !== 'enc') throw refused('use of jwk must be enc');
  if (kid === undefined) return key;
  if (typeof kid !== 'string' || kid.length > MAX_KID_LENGTH) throw refused('kid of jwk must be a string');
  return { ...key, kid };
}
