import type { JsonObject } from '../shared/json.ts';

/** The signer of a credential in webhooks and results: names and hashes, no data about the holder. */
export type PresentedIssuer = JsonObject & {
  /** RFC 4514 string of the certificate's subject. */
  readonly subject: string;
  /** SHA-256 of the certificate, base64url. */
  readonly fingerprint: string;
  /** SHA-256 of the trust anchor, base64url; a pinned certificate is its own anchor. */
  readonly anchor: string;
  /** Trust lists that contain the anchor; absent for a configured anchor. */
  readonly listed?: readonly { readonly entity: string; readonly list: string; readonly sequenceNumber: number }[];
};

/**
 * True if the signer's certificate contains the `iss` that it signed: as a URI, or as the host name. Otherwise any certificate holder could
 * sign any `iss` (SD-JWT VC, section on the validation of issuers).
 * @param names subject alternative names, `URI:…` and `DNS:…`.
 */
export function certifiesIss(names: readonly string[], iss: unknown): boolean {
  if (typeof iss !== 'string') return false;
  if (names.includes(`URI:${iss}`)) return true;
  const url = URL.parse(iss);
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:';
  return isWeb && names.includes(`DNS:${url.hostname}`);
}

/**
 * Removes an `iss` that the certificate does not confirm, so that it neither satisfies a query nor reaches a backend.
 * @param names subject alternative names of the signer's certificate.
 */
export function withoutUncertifiedIss<Claims extends object>(claims: Claims, names: readonly string[]): Claims {
  if (!Object.hasOwn(claims, 'iss') || certifiesIss(names, (claims as { iss?: unknown }).iss)) return claims;
  const otherClaims = Object.assign(Object.create(null), claims);
  delete otherClaims.iss;
  return otherClaims;
}
