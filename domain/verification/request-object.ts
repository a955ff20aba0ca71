import { hash } from 'node:crypto';
import { coseNumbersOf } from '../formats/cose/algorithms.ts';
import { CONTENT_ENCRYPTION } from '../formats/jose/content-encryption.ts';
import { encodeBase64url } from '../shared/base64url.ts';
import type { Json, JsonObject } from '../shared/json.ts';
import { AGREED_ALGORITHMS, type PublicJwk, SIGNING_ALGORITHMS, type SigningAlgorithm } from '../shared/jwk.ts';

export const REQUEST_OBJECT_TYPE = 'oauth-authz-req+jwt';

/** OpenID4VP 1.0 section 5.8: the audience of a request to a wallet with unknown metadata. */
export const SELF_ISSUED = 'https://self-issued.me/v2';

/**
 * Published with fully specified names (OpenID4VP 1.0 appendix B.3.4). The ambiguous `EdDSA` (RFC 9864 section 2.2) is accepted from
 * issuers and holders as well.
 */
export const PRESENTATION_ALGORITHMS = ['ES256', 'ES384', 'ES512', 'Ed25519'] as const;

/** Excludes algorithms that are not agreed by the ECCG (ARF 3.0 OIA_03). */
const AGREED_PRESENTATION_ALGORITHMS = PRESENTATION_ALGORITHMS.filter((name) => name !== 'Ed25519');

/** Accepted signature algorithms of issuers and holders, by the names of each format. */
export type PresentationAlgorithms = {
  readonly jose: readonly string[];
  readonly cose: readonly SigningAlgorithm[];
  /** True if certificates are restricted to these algorithms as well. */
  readonly agreedOnly: boolean;
};

/** @param agreedOnly true if the tenant is restricted to agreed algorithms. */
export function presentationAlgorithms(agreedOnly: boolean): PresentationAlgorithms {
  return agreedOnly
    ? { jose: AGREED_PRESENTATION_ALGORITHMS, cose: AGREED_ALGORITHMS, agreedOnly }
    : { jose: PRESENTATION_ALGORITHMS, cose: SIGNING_ALGORITHMS, agreedOnly };
}

/** OpenID4VP 1.0 appendix B.3.4. */
function vpFormats(agreedOnly = false) {
  const { jose, cose } = presentationAlgorithms(agreedOnly);
  // OpenID4VP 1.0 appendix B.2.2: COSE numbers, the fully specified ones of RFC 9864 as well
  const numbers = cose.flatMap(coseNumbersOf);
  return {
    'dc+sd-jwt': { 'sd-jwt_alg_values': jose, 'kb-jwt_alg_values': jose },
    mso_mdoc: { issuerauth_alg_values: numbers, deviceauth_alg_values: numbers },
  } as const;
}
const VP_FORMATS = vpFormats();
const AGREED_VP_FORMATS = vpFormats(true);

/** Algorithms of the requested formats of which a wallet must support one: the published names, and `EdDSA` as an alias of `Ed25519`. */
export function acceptedAlgorithms(formats: readonly string[]) {
  const algorithmsByFormat: { readonly [format: string]: { readonly [list: string]: readonly (string | number)[] } } = {
    mso_mdoc: VP_FORMATS.mso_mdoc,
    'dc+sd-jwt': { 'sd-jwt_alg_values': [...PRESENTATION_ALGORITHMS, 'EdDSA'], 'kb-jwt_alg_values': [...PRESENTATION_ALGORITHMS, 'EdDSA'] },
  };
  return Object.fromEntries(formats.map((format) => [format, algorithmsByFormat[format] ?? {}]));
}

export type RequestContent = {
  readonly responseMode: string;
  readonly nonce: string;
  readonly dcqlQuery: JsonObject;
  /** Public half of the ephemeral key of this request; in encrypted mode only. */
  readonly encryptionJwk?: JsonObject | undefined;
  /** Encoded entries, see `encodeTransactionData`. */
  readonly transactionData?: readonly string[] | undefined;
  readonly verifierInfo?: readonly JsonObject[];
  readonly display?: VerifierDisplay | undefined;
  /** True if only agreed algorithms are published to wallets. */
  readonly agreedOnly?: boolean;
};

export type VerifierDisplay = { readonly clientName?: string | null | undefined; readonly logoUri?: string | null | undefined };

/**
 * Parameters that are independent of the transport (OpenID4VP 1.0 section 5.1). The Digital Credentials API needs no others, because it
 * delivers the response itself (appendix A.2).
 */
export function requestParameters(request: RequestContent): JsonObject {
  const { transactionData = [], verifierInfo = [], encryptionJwk, display: asker, agreedOnly } = request;
  return {
    response_type: 'vp_token',
    response_mode: request.responseMode,
    nonce: request.nonce,
    dcql_query: request.dcqlQuery,
    client_metadata: { ...displayMetadata(asker), ...clientMetadata(encryptionJwk, agreedOnly) },
    ...(transactionData.length > 0 && { transaction_data: transactionData }),
    ...(verifierInfo.length > 0 && { verifier_info: verifierInfo }),
  };
}

/** Adds the parameters for a wallet that posts its response (OpenID4VP 1.0 section 8.2). */
export function postedParameters(
  parameters: JsonObject,
  { clientId, responseUri, state }: { clientId: string; responseUri: string; state: string },
): JsonObject {
  return { ...parameters, client_id: clientId, response_uri: responseUri, state };
}

/** Claims of a request object (OpenID4VP 1.0 section 5.8, RFC 9101 section 4). */
export function requestObjectClaims(
  parameters: JsonObject,
  { issuedAt, expiresAt }: { readonly issuedAt: Date; readonly expiresAt: Date },
): JsonObject {
  return { ...parameters, aud: SELF_ISSUED, iat: seconds(issuedAt), exp: seconds(expiresAt) };
}

/** RFC 7591 section 2; OpenID4VP 1.0 section 5.1 lets wallets ignore undefined properties. */
function displayMetadata({ clientName, logoUri }: VerifierDisplay = {}): JsonObject {
  return { ...(typeof clientName === 'string' && { client_name: clientName }), ...(typeof logoUri === 'string' && { logo_uri: logoUri }) };
}

/** OpenID4VP 1.0 section 5.1: encryption properties are present only when the response is encrypted. */
export function clientMetadata(encryptionJwk: JsonObject | undefined, agreedOnly = false): JsonObject {
  const formats = agreedOnly ? AGREED_VP_FORMATS : VP_FORMATS;
  if (encryptionJwk === undefined) return { vp_formats_supported: formats };
  return {
    vp_formats_supported: formats,
    jwks: { keys: [encryptionJwk] },
    // HAIP 1.0 section 5 requires both.
    encrypted_response_enc_values_supported: CONTENT_ENCRYPTION,
  };
}

/** The encryption key of the response, which is part of the SessionTranscript of an mdoc. */
export function encryptionKeyOf(request: { readonly encryption?: { readonly publicJwk: JsonObject } }): PublicJwk | undefined {
  return request.encryption?.publicJwk as PublicJwk | undefined;
}

function seconds(time: Date): number {
  return Math.floor(time.getTime() / 1000);
}

/** OpenID4VP 1.0 section 5.9.3: `x509_hash` over the leaf certificate. @param leaf DER in standard base64. */
export function x509HashClientId(leaf: string): string {
  return `x509_hash:${hash('sha256', Buffer.from(leaf, 'base64'), 'base64url')}`;
}

/** OpenID4VP 1.0 section 5.1: hashes cover these exact characters, so they are encoded once and stored. */
export function encodeTransactionData(entries: readonly Json[]): readonly string[] {
  return entries.map((entry) => encodeBase64url(JSON.stringify(entry)));
}

/** The default scheme that opens a wallet (OpenID4VP 1.0 section 13.1.2). */
export const INVOCATION_URI = 'openid4vp://';

/** The prefix of a client identifier (OpenID4VP 1.0 section 5.9.1: up to the first colon). */
export function prefixOf(clientId: string): string {
  return clientId.slice(0, clientId.indexOf(':'));
}

/** OpenID4VP 1.0 section 5.9.3: the response address identifies the verifier of an unsigned request. */
export function redirectUriClientId(responseUri: string): string {
  return `redirect_uri:${responseUri}`;
}

/** OpenID4VP 1.0 section 5.9.3: a DNS name of the certificate. */
export function x509SanDnsClientId(host: string): string {
  return `x509_san_dns:${host}`;
}
