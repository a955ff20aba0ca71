import { hash } from 'node:crypto';
import { coseNumbersOf } from '../formats/cose/algorithms.ts';
import { CONTENT_ENCRYPTION } from '../formats/jose/content-encryption.ts';
import { encodeBase64url } from '../shared/base64url.ts';
import type { Json, JsonObject } from '../shared/json.ts';
import { AGREED_ALGORITHMS, type PublicJwk, SIGNING_ALGORITHMS, type SigningAlgorithm } from '../shared/jwk.ts';

export const REQUEST_OBJECT_TYPE = 'oauth-authz-req+jwt';

/** OpenID4VP 1.0 section 5.8: the audience of a request to a wallet whose own metadata is not known. */
export const SELF_ISSUED = 'https://self-issued.me/v2';

/**
 * Published by their fully specified names (OpenID4VP 1.0 appendix B.3.4). `EdDSA`, which says less than `Ed25519` (RFC 9864
 * section 2.2), is taken from issuers and holders as well.
 */
export const PRESENTATION_ALGORITHMS = ['ES256', 'ES384', 'ES512', 'Ed25519'] as const;

/** Without those that the ECCG has not agreed to (ARF 3.0 OIA_03). */
const AGREED_PRESENTATION_ALGORITHMS = PRESENTATION_ALGORITHMS.filter((name) => name !== 'Ed25519');

/** Signatures of issuers and holders that count, by the names of each format. */
export type PresentationAlgorithms = {
  readonly jose: readonly string[];
  readonly cose: readonly SigningAlgorithm[];
  /** Whether certificates are held to these, too. */
  readonly agreedOnly: boolean;
};

/** @param agreedOnly whether a tenant is bound to agreed algorithms. */
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

/** What of the requested formats a wallet has to be able to do: as it is published, `EdDSA` besides, which is taken for `Ed25519`. */
export function supportedOf(formats: readonly string[]) {
  const known: { readonly [format: string]: { readonly [list: string]: readonly (string | number)[] } } = {
    mso_mdoc: VP_FORMATS.mso_mdoc,
    'dc+sd-jwt': { 'sd-jwt_alg_values': [...PRESENTATION_ALGORITHMS, 'EdDSA'], 'kb-jwt_alg_values': [...PRESENTATION_ALGORITHMS, 'EdDSA'] },
  };
  return Object.fromEntries(formats.map((format) => [format, known[format] ?? {}]));
}

export type RequestToMake = {
  readonly responseMode: string;
  readonly nonce: string;
  readonly dcqlQuery: JsonObject;
  /** Public half of this request's own key; in encrypted mode only. */
  readonly encryptionJwk?: JsonObject | undefined;
  /** Encoded entries, see `encodeTransactionData`. */
  readonly transactionData?: readonly string[] | undefined;
  readonly verifierInfo?: readonly JsonObject[];
  readonly asker?: Asker | undefined;
  /** Whether wallets are told of agreed algorithms alone. */
  readonly agreedOnly?: boolean;
};

/** Who asks, in words and pictures; sent where the operator wants it. */
export type Asker = { readonly clientName?: string | null | undefined; readonly logoUri?: string | null | undefined };

/**
 * Parameters that a request has by whatever way it travels (OpenID4VP 1.0 section 5.1). Through the Digital
 * Credentials API these are all, since it knows by itself where the answer goes (appendix A.2).
 */
export function requestParameters(request: RequestToMake): JsonObject {
  const { transactionData = [], verifierInfo = [], encryptionJwk, asker, agreedOnly } = request;
  return {
    response_type: 'vp_token',
    response_mode: request.responseMode,
    nonce: request.nonce,
    dcql_query: request.dcqlQuery,
    client_metadata: { ...shownAs(asker), ...clientMetadata(encryptionJwk, agreedOnly) },
    ...(transactionData.length > 0 && { transaction_data: transactionData }),
    ...(verifierInfo.length > 0 && { verifier_info: verifierInfo }),
  };
}

/** Adds what a wallet needs that posts its answer (OpenID4VP 1.0 section 8.2). */
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

/** RFC 7591 section 2; OpenID4VP 1.0 section 5.1 has wallets pass over what it does not define. */
function shownAs({ clientName, logoUri }: Asker = {}): JsonObject {
  return {
    ...(typeof clientName === 'string' && { client_name: clientName }),
    ...(typeof logoUri === 'string' && { logo_uri: logoUri }),
  };
}

/** OpenID4VP 1.0 section 5.1: the members of encryption stand there only when the response is encrypted. */
export function clientMetadata(encryptionJwk: JsonObject | undefined, agreedOnly = false): JsonObject {
  const formats = agreedOnly ? AGREED_VP_FORMATS : VP_FORMATS;
  if (encryptionJwk === undefined) return { vp_formats_supported: formats };
  return {
    vp_formats_supported: formats,
    jwks: { keys: [encryptionJwk] },
    // HAIP 1.0 section 5 wants both.
    encrypted_response_enc_values_supported: CONTENT_ENCRYPTION,
  };
}

/** The key that a response is encrypted to, which the transcript of an mdoc names. */
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

/** OpenID4VP 1.0 section 5.1: hashes cover these very characters, so they are made once and stored. */
export function encodeTransactionData(entries: readonly Json[]): readonly string[] {
  return entries.map((entry) => encodeBase64url(JSON.stringify(entry)));
}

/** What starts a wallet unless the configuration says otherwise (OpenID4VP 1.0 section 13.1.2). */
export const INVOCATION_URI = 'openid4vp://';

/** The prefix of a client identifier (OpenID4VP 1.0 section 5.9.1: up to the first colon). */
export function prefixOf(clientId: string): string {
  return clientId.slice(0, clientId.indexOf(':'));
}

/** OpenID4VP 1.0 section 5.9.3: the address of the answer stands for who asks, and nobody signs. */
export function redirectUriClientId(responseUri: string): string {
  return `redirect_uri:${responseUri}`;
}

/** OpenID4VP 1.0 section 5.9.3: a DNS name of the certificate. */
export function x509SanDnsClientId(host: string): string {
  return `x509_san_dns:${host}`;
}
