import { Failure } from '../shared/failure.ts';
import { isJsonObject, type Json, parseJsonObject } from '../shared/json.ts';

/** Form fields with which a wallet may fetch a request object (OpenID4VP 1.0 section 5.10). */
export type WalletParameters = {
  readonly wallet_nonce?: string | undefined;
  readonly wallet_metadata?: string | undefined;
};

/** Long enough for any nonce; the value is signed by us, so it stays short and plain. */
const WALLET_NONCE = /^[A-Za-z0-9\-._~]{1,512}$/;
const OUR_PREFIX = 'x509_hash';

/**
 * @param requested formats of the credentials that are asked for.
 * @throws Failure `invalid_request` when we can offer nothing that the wallet can answer.
 */
export function checkWalletParameters(
  { wallet_nonce, wallet_metadata }: WalletParameters,
  requested: readonly string[],
): void {
  // OpenID4VP 1.0 section 5.10: ASCII characters of a URL-safe alphabet
  if (wallet_nonce !== undefined && !WALLET_NONCE.test(wallet_nonce)) {
    throw new Failure('invalid_request', 'wallet_nonce is at most 512 URL-safe characters');
  }
  if (wallet_metadata === undefined) return;
  const metadata = parseJsonObject(wallet_metadata);
  // OpenID4VP 1.0 section 5.10: a JSON object
  if (metadata === undefined) throw new Failure('invalid_request', 'wallet_metadata is not a JSON object');
  checkFormats(metadata['vp_formats_supported'], requested);
  checkPrefixes(metadata['client_id_prefixes_supported']);
}

/** OpenID4VP 1.0 section 10.1 */
function checkFormats(formats: Json | undefined, requested: readonly string[]): void {
  if (formats === undefined) return;
  if (!isJsonObject(formats) || !requested.some((format) => Object.hasOwn(formats, format))) {
    throw new Failure('invalid_request', 'the wallet supports none of the requested formats');
  }
}

/** OpenID4VP 1.0 section 10.1 */
function checkPrefixes(prefixes: Json | undefined): void {
  if (prefixes === undefined) return;
  if (!Array.isArray(prefixes) || !prefixes.includes(OUR_PREFIX)) {
    throw new Failure('invalid_request', 'the wallet does not support this client identifier prefix');
  }
}
