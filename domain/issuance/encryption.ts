import { CONTENT_ENCRYPTION, type Compression, type ContentEncryption } from '../formats/jose/content-encryption.ts';
import { Failure } from '../shared/failure.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import { isOnCurve, type PublicJwk, parsePublicJwk } from '../shared/jwk.ts';
import type { IssuanceConfigurationBody } from './issuance-configuration.ts';

export type ResponseEncryption = {
  /** Includes the wallet's `kid`, if it sent one. */
  readonly recipient: PublicJwk;
  readonly enc: ContentEncryption;
  readonly zip: Compression | undefined;
};

const MAX_KID_LENGTH = 1024;

const invalidParametersError = (message: string) => new Failure('invalid_encryption_parameters', message);

/**
 * Parses `credential_response_encryption` (OpenID4VCI 1.0 sections 8.2 and 10).
 * @param offer the published setting of the tenant, and true in `encrypted` if the request was encrypted.
 * @returns undefined for a plain response.
 * @throws Failure `invalid_encryption_parameters`.
 */
export function parseResponseEncryption(
  body: JsonObject,
  offer: { readonly use: IssuanceConfigurationBody['responseEncryption']; readonly encrypted: boolean },
): ResponseEncryption | undefined {
  const { credential_response_encryption: requestedEncryption } = body;
  if (requestedEncryption === undefined) {
    if (offer.use === 'required') throw invalidParametersError('this issuer encrypts every response; send credential_response_encryption');
    return undefined;
  }
  if (offer.use === 'off') throw invalidParametersError('this issuer offers no response encryption');
  // OpenID4VCI 1.0 section 8.2: otherwise an attacker in the middle could insert his own key
  if (!offer.encrypted) throw invalidParametersError('request an encrypted response in an encrypted request');
  if (!isJsonObject(requestedEncryption)) throw invalidParametersError('credential_response_encryption must be an object');
  const enc = CONTENT_ENCRYPTION.find((supportedEnc) => supportedEnc === requestedEncryption['enc']);
  if (enc === undefined) throw invalidParametersError(`enc must be one of: ${CONTENT_ENCRYPTION.join(', ')}`);
  const { zip } = requestedEncryption;
  if (zip !== undefined && zip !== 'DEF') throw invalidParametersError('zip must be DEF or absent');
  return { recipient: parseRecipient(requestedEncryption['jwk']), enc, zip };
}

function parseRecipient(value: Json | undefined): PublicJwk {
  const key = parsePublicJwk(value);
  if (key?.crv !== 'P-256' || !isOnCurve(key) || !isJsonObject(value)) throw invalidParametersError('jwk must be a public key on P-256');
  const { alg, use, kid } = value;
  // OpenID4VCI 1.0 section 10: the alg of the JWK is that of the JWE
  if (alg !== 'ECDH-ES') throw invalidParametersError('jwk must have the alg ECDH-ES');
  // RFC 7517 section 4.2
  if (use !== undefined && use !== 'enc') throw invalidParametersError('use of jwk must be enc');
  if (kid === undefined) return key;
  if (typeof kid !== 'string' || kid.length > MAX_KID_LENGTH) throw invalidParametersError('kid of jwk must be a string');
  return { ...key, kid };
}
