import { parseCertificate } from '../formats/der/certificate.ts';
import { normalizeName } from '../formats/der/name.ts';

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** A certificate of a list, with the data for its use as an anchor, so that it is parsed once: when the list is parsed. */
export type ListedCertificate = {
  /** DER in standard base64. */
  readonly certificate: string;
  /** SHA-256 of the DER, base64url. */
  readonly hash: string;
  /** Normalized subject of a CA; `null` for an end entity; absent in lists that an earlier release stored. */
  readonly authority?: string | null;
};

/** The certificates of a service, as parallel lists. */
export type ListedCertificates = {
  readonly certificates: readonly string[];
  readonly hashes: readonly string[];
  readonly authorities: readonly (string | null)[];
};

/** @param texts invalid certificates are omitted. */
export function parseListed(texts: readonly string[]): ListedCertificates {
  const parsed = texts.flatMap((certificate) => {
    const isBase64 = certificate.length % 4 === 0 && BASE64.test(certificate);
    const parsed = isBase64 ? parseCertificate(Buffer.from(certificate, 'base64')) : undefined;
    if (parsed === undefined) return [];
    const isAuthority = parsed.basicConstraints?.ca === true;
    const authority = isAuthority ? normalizeName(parsed.subject) : null;
    return [{ certificate, hash: parsed.hash, authority }];
  });
  return {
    certificates: parsed.map(({ certificate }) => certificate),
    hashes: parsed.map(({ hash }) => hash),
    authorities: parsed.map(({ authority }) => authority),
  };
}
