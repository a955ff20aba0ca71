import { CONTENT_ENCRYPTION, type ContentEncryption } from '../formats/jose/content-encryption.ts';
import { defined } from '../shared/defined.ts';
import { Failure } from '../shared/failure.ts';
import { isJsonObject, type Json, type JsonObject, MAX_UNTRUSTED_PROPERTIES, parseJsonObject } from '../shared/json.ts';
import { isOnCurve, type PublicJwk, parsePublicJwk } from '../shared/jwk.ts';

/** Form fields with which a wallet may fetch a request object (OpenID4VP 1.0 section 5.10). */
export type WalletParameters = { readonly wallet_nonce?: string | undefined; readonly wallet_metadata?: string | undefined };

export type RequestRequirements = {
  /** Requested formats with the names of their algorithm lists and our values of each. */
  readonly formats: { readonly [format: string]: { readonly [list: string]: readonly (string | number)[] } };
  readonly responseMode: string;
  readonly clientIdPrefix: string;
  /** `alg` of the request object. */
  readonly signedWith: string;
  readonly encrypts: boolean;
};

export type WalletMetadata = {
  readonly nonce?: string;
  /** Copied to `aud` (OpenID4VP 1.0 section 5.8). */
  readonly issuer?: string;
  /** The key to which the request object is encrypted. */
  readonly recipient?: PublicJwk;
  readonly enc?: ContentEncryption;
};

/** The limit admits any reasonable nonce; the value becomes part of a signed object, so it is short and one line. */
const WALLET_NONCE = /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]{1,512}$/u;
const MAX_ISSUER = 2048;

const invalidRequestError = (message: string) => new Failure('invalid_request', message);

/** @throws Failure `invalid_request` for invalid parameters. */
export function parseWalletMetadata({ wallet_nonce, wallet_metadata }: WalletParameters): JsonObject {
  // OpenID4VP 1.0 section 5.10: a string created by the wallet, returned unchanged
  if (wallet_nonce !== undefined && !WALLET_NONCE.test(wallet_nonce)) {
    throw invalidRequestError('wallet_nonce must have at most 512 characters, without control characters');
  }
  const metadata = wallet_metadata === undefined ? {} : parseJsonObject(wallet_metadata, undefined, MAX_UNTRUSTED_PROPERTIES);
  // OpenID4VP 1.0 section 5.10: a JSON object
  if (metadata === undefined) throw invalidRequestError('wallet_metadata is not a JSON object');
  return metadata;
}

/**
 * Validates the wallet's metadata against the request (OpenID4VP 1.0 sections 5.10 and 10.1). Absent metadata count as supported.
 * @throws Failure `invalid_request` when the wallet supports no possible response.
 */
export function parseWalletParameters(
  metadata: JsonObject,
  requirements: RequestRequirements | undefined,
  walletNonce: string | undefined,
): WalletMetadata {
  if (requirements !== undefined) assertWalletSupports(metadata, requirements);
  const { issuer } = metadata;
  if (issuer !== undefined && (typeof issuer !== 'string' || issuer.length > MAX_ISSUER)) {
    throw invalidRequestError('issuer of the wallet is not a string');
  }
  return { ...defined({ nonce: walletNonce, issuer }), ...parseRecipient(metadata) };
}

function assertWalletSupports(
  metadata: JsonObject,
  { formats, responseMode, clientIdPrefix, signedWith, encrypts }: RequestRequirements,
): void {
  const supported = metadata['vp_formats_supported'];
  const isSupported = ([format, lists]: [string, RequestRequirements['formats'][string]]) =>
    isJsonObject(supported) && Object.hasOwn(supported, format) && hasCommon(supported[format], lists);
  if (supported !== undefined && !Object.entries(formats).some(isSupported))
    throw invalidRequestError('the wallet supports none of the requested formats with an algorithm of this service');
  assertHasOneOf(metadata, 'response_types_supported', ['vp_token']);
  assertHasOneOf(metadata, 'response_modes_supported', [responseMode]);
  assertHasOneOf(metadata, 'client_id_prefixes_supported', [clientIdPrefix]);
  assertHasOneOf(metadata, 'request_object_signing_alg_values_supported', [signedWith]);
  if (encrypts) {
    assertHasOneOf(metadata, 'authorization_encryption_alg_values_supported', ['ECDH-ES']);
    assertHasOneOf(metadata, 'authorization_encryption_enc_values_supported', CONTENT_ENCRYPTION);
  }
}

/** OpenID4VP 1.0 appendices B.2.2 and B.3.4: a list of algorithms, if present, contains one of ours. */
function hasCommon(format: Json | undefined, lists: RequestRequirements['formats'][string]): boolean {
  if (!isJsonObject(format)) return false;
  return Object.entries(lists).every(([name, supported]) => {
    const walletValues = format[name];
    return walletValues === undefined || (Array.isArray(walletValues) && supported.some((value) => walletValues.includes(value)));
  });
}

/** A list, if present, must contain a value of this service. */
function assertHasOneOf(metadata: JsonObject, name: string, supported: readonly string[]): void {
  const walletValues = metadata[name];
  if (walletValues === undefined) return;
  if (!Array.isArray(walletValues) || !supported.some((value) => walletValues.includes(value))) {
    throw invalidRequestError(`the wallet's ${name} has none of ${supported.join(', ')}`);
  }
}

/** A wallet that sends encryption keys requests an encrypted request object (OpenID4VP 1.0 section 5.10). */
function parseRecipient(metadata: JsonObject): Pick<WalletMetadata, 'recipient' | 'enc'> {
  const keys = keysOf(metadata['jwks']);
  assertHasOneOf(metadata, 'request_object_encryption_alg_values_supported', ['ECDH-ES']);
  assertHasOneOf(metadata, 'request_object_encryption_enc_values_supported', CONTENT_ENCRYPTION);
  const recipient = keys.map(parseEncryptionKey).find((key) => key !== undefined);
  if (recipient === undefined) {
    // Keys may have another purpose; encryption is requested by encryption parameters or by a key marked for it.
    const requestsEncryption = metadata['request_object_encryption_alg_values_supported'] !== undefined;
    if (!requestsEncryption && !keys.some(isForEncryption)) return {};
    throw invalidRequestError('the wallet has no encryption key on P-256 for ECDH-ES');
  }
  const walletEncs = metadata['request_object_encryption_enc_values_supported'];
  const enc = CONTENT_ENCRYPTION.find((value) => !Array.isArray(walletEncs) || walletEncs.includes(value));
  return defined({ recipient, enc });
}

/** Keys that are not for signatures only (RFC 7517 section 4.2). */
function keysOf(jwks: Json | undefined): readonly JsonObject[] {
  if (jwks === undefined) return [];
  const keys = isJsonObject(jwks) ? jwks['keys'] : undefined;
  if (!Array.isArray(keys)) throw invalidRequestError('jwks of the wallet is not a key set');
  return keys.filter(isJsonObject).filter(({ use }) => use !== 'sig');
}

/** RFC 7517 section 4.2, RFC 7518 section 4.6, RFC 8037 section 3.2 */
function isForEncryption({ use, alg, crv }: JsonObject): boolean {
  return use === 'enc' || crv === 'X25519' || crv === 'X448' || (typeof alg === 'string' && alg.startsWith('ECDH-ES'));
}

function parseEncryptionKey(jwk: JsonObject): PublicJwk | undefined {
  const key = parsePublicJwk(jwk);
  const { alg, kid } = jwk;
  if (key?.crv !== 'P-256' || !isOnCurve(key) || (alg !== undefined && alg !== 'ECDH-ES')) return undefined;
  return typeof kid === 'string' && kid.length <= 1024 ? { ...key, kid } : key;
}
