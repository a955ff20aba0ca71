import { CONTENT_ENCRYPTION, type ContentEncryption } from '../formats/jose/content-encryption.ts';
import { defined } from '../shared/defined.ts';
import { Failure } from '../shared/failure.ts';
import { isJsonObject, type Json, type JsonObject, MAX_STRANGER_MEMBERS, parseJsonObject } from '../shared/json.ts';
import { isOnCurve, type PublicJwk, parsePublicJwk } from '../shared/jwk.ts';

/** Form fields with which a wallet may fetch a request object (OpenID4VP 1.0 section 5.10). */
export type WalletParameters = { readonly wallet_nonce?: string | undefined; readonly wallet_metadata?: string | undefined };

/** What of a request a wallet has to be able to do. */
export type Demands = {
  /** By format what of it is asked for: the names of lists of algorithms, and what this service has in them. */
  readonly formats: { readonly [format: string]: { readonly [list: string]: readonly (string | number)[] } };
  readonly responseMode: string;
  readonly clientIdPrefix: string;
  /** `alg` of the request object. */
  readonly signedWith: string;
  readonly encrypts: boolean;
};

/** How a wallet wants the request object. */
export type WalletWishes = {
  readonly nonce?: string;
  /** Goes into `aud` (OpenID4VP 1.0 section 5.8). */
  readonly issuer?: string;
  /** The request object is encrypted to this key. */
  readonly recipient?: PublicJwk;
  readonly enc?: ContentEncryption;
};

/** Long enough for any nonce; the value is signed by us, so it stays short, and one line. */
const WALLET_NONCE = /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]{1,512}$/u;
const MAX_ISSUER = 2048;

const refused = (message: string) => new Failure('invalid_request', message);

/** @throws Failure `invalid_request` for what no wallet may send. */
export function parseWalletMetadata({ wallet_nonce, wallet_metadata }: WalletParameters): JsonObject {
  // OpenID4VP 1.0 section 5.10: a string of the wallet's own making, which goes back as it is
  if (wallet_nonce !== undefined && !WALLET_NONCE.test(wallet_nonce)) {
    throw refused('wallet_nonce is at most 512 characters, none of them a control character');
  }
  const metadata = wallet_metadata === undefined ? {} : parseJsonObject(wallet_metadata, undefined, MAX_STRANGER_MEMBERS);
  // OpenID4VP 1.0 section 5.10: a JSON object
  if (metadata === undefined) throw refused('wallet_metadata is not a JSON object');
  return metadata;
}

/**
 * Holds what the wallet says of itself against the request (OpenID4VP 1.0 sections 5.10 and 10.1). What it leaves out it can do.
 * @throws Failure `invalid_request` when we can offer nothing that the wallet can answer.
 */
export function parseWalletParameters(metadata: JsonObject, demands: Demands | undefined, walletNonce: string | undefined): WalletWishes {
  if (demands !== undefined) assertMeetsDemands(metadata, demands);
  const { issuer } = metadata;
  if (issuer !== undefined && (typeof issuer !== 'string' || issuer.length > MAX_ISSUER)) {
    throw refused('issuer of the wallet is not a string');
  }
  return { ...defined({ nonce: walletNonce, issuer }), ...parseRecipient(metadata) };
}

function assertMeetsDemands(metadata: JsonObject, { formats, responseMode, clientIdPrefix, signedWith, encrypts }: Demands): void {
  const supported = metadata['vp_formats_supported'];
  const isSupported = ([format, lists]: [string, Demands['formats'][string]]) =>
    isJsonObject(supported) && Object.hasOwn(supported, format) && hasCommon(supported[format], lists);
  if (supported !== undefined && !Object.entries(formats).some(isSupported))
    throw refused('the wallet supports none of the requested formats with an algorithm of this service');
  assertHasOneOf(metadata, 'response_types_supported', ['vp_token']);
  assertHasOneOf(metadata, 'response_modes_supported', [responseMode]);
  assertHasOneOf(metadata, 'client_id_prefixes_supported', [clientIdPrefix]);
  assertHasOneOf(metadata, 'request_object_signing_alg_values_supported', [signedWith]);
  if (encrypts) {
    assertHasOneOf(metadata, 'authorization_encryption_alg_values_supported', ['ECDH-ES']);
    assertHasOneOf(metadata, 'authorization_encryption_enc_values_supported', CONTENT_ENCRYPTION);
  }
}

/** OpenID4VP 1.0 appendices B.2.2 and B.3.4: a list of algorithms that is there has one of ours. */
function hasCommon(format: Json | undefined, lists: Demands['formats'][string]): boolean {
  if (!isJsonObject(format)) return false;
  return Object.entries(lists).every(([name, ours]) => {
    const theirs = format[name];
    return theirs === undefined || (Array.isArray(theirs) && ours.some((value) => theirs.includes(value)));
  });
}

/** A list that is there and has nothing of this service in it refuses. */
function assertHasOneOf(metadata: JsonObject, name: string, ours: readonly string[]): void {
  const theirs = metadata[name];
  if (theirs === undefined) return;
  if (!Array.isArray(theirs) || !ours.some((value) => theirs.includes(value))) {
    throw refused(`the wallet's ${name} has none of ${ours.join(', ')}`);
  }
}

/** A wallet that brings keys for encryption wants the request encrypted (OpenID4VP 1.0 section 5.10). */
function parseRecipient(metadata: JsonObject): Pick<WalletWishes, 'recipient' | 'enc'> {
  const keys = keysOf(metadata['jwks']);
  assertHasOneOf(metadata, 'request_object_encryption_alg_values_supported', ['ECDH-ES']);
  assertHasOneOf(metadata, 'request_object_encryption_enc_values_supported', CONTENT_ENCRYPTION);
  const recipient = keys.map(parseEncryptionKey).find((key) => key !== undefined);
  if (recipient === undefined) {
    // Keys may be there for something else; who says how to encrypt, or that a key is for it, wants it.
    const wantsIt = metadata['request_object_encryption_alg_values_supported'] !== undefined;
    if (!wantsIt && !keys.some(isForEncryption)) return {};
    throw refused('the wallet has no encryption key on P-256 for ECDH-ES');
  }
  const wanted = metadata['request_object_encryption_enc_values_supported'];
  const enc = CONTENT_ENCRYPTION.find((value) => !Array.isArray(wanted) || wanted.includes(value));
  return defined({ recipient, enc });
}

/** Keys that are not for signing only (RFC 7517 section 4.2). */
function keysOf(jwks: Json | undefined): readonly JsonObject[] {
  if (jwks === undefined) return [];
  const keys = isJsonObject(jwks) ? jwks['keys'] : undefined;
  if (!Array.isArray(keys)) throw refused('jwks of the wallet is not a key set');
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
