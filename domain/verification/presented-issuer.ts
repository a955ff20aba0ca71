import type { JsonObject } from '../shared/json.ts';

/** Who signed a credential, as the backend is told: names and hashes, nothing of the person. */
export type PresentedIssuer = JsonObject & {
  /** RFC 4514 string of the certificate's subject. */
  readonly subject: string;
  /** SHA-256 of the certificate, base64url. */
  readonly fingerprint: string;
  /** SHA-256 of the anchor that vouches for it, base64url: the same for a pinned certificate. */
  readonly anchor: string;
  /** Where the anchor stands on trust lists; absent for one that is configured itself. */
  readonly listed?: readonly { readonly entity: string; readonly list: string; readonly sequenceNumber: number }[];
};

/**
 * Whether the certificate of a signer vouches for the `iss` that it signed: as one of its URIs, or by naming the host.
 * Anybody who has a certificate could write any `iss` otherwise (SD-JWT VC, section on the validation of issuers).
 * @param names subject alternative names, `URI:…` and `DNS:…`.
 */
export function vouchesForIss(names: readonly string[], iss: unknown): boolean {
  if (typeof iss !== 'string') return false;
  if (names.includes(`URI:${iss}`)) return true;
  const url = URL.parse(iss);
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:';
  return isWeb && names.includes(`DNS:${url.hostname}`);
}

/**
 * What nothing ties to the signer answers no query and reaches no backend.
 * @param names subject alternative names of the signer's certificate.
 */
export function withoutForeignIss<Claims extends object>(claims: Claims, names: readonly string[]): Claims {
  if (!Object.hasOwn(claims, 'iss') || vouchesForIss(names, (claims as { iss?: unknown }).iss)) return claims;
  const others = Object.assign(Object.create(null), claims);
  delete others.iss;
  return others;
}
