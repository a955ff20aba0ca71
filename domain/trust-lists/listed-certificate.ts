import { parseCertificate } from '../formats/der/certificate.ts';
import { normalizeName } from '../formats/der/name.ts';

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** A certificate of a list, with what its use as an anchor needs, so that it is parsed once: where the list is read. */
export type ListedCertificate = {
  /** DER in standard base64. */
  readonly certificate: string;
  /** SHA-256 of the DER, base64url. */
  readonly hash: string;
  /** Normalized subject of a CA; `null` for an end entity; absent in lists that an earlier release kept. */
  readonly authority?: string | null;
};

/** The certificates of a service, as parallel lists. */
export type ListedCertificates = {
  readonly certificates: readonly string[];
  readonly hashes: readonly string[];
  readonly authorities: readonly (string | null)[];
};

/** @param texts of which one that is not a certificate is left out. */
export function parseListed(texts: readonly string[]): ListedCertificates {
  const read = texts.flatMap((certificate) => {
    const isBase64 = certificate.length % 4 === 0 && BASE64.test(certificate);
    const parsed = isBase64 ? parseCertificate(Buffer.from(certificate, 'base64')) : undefined;
    if (parsed === undefined) return [];
    const isAuthority = parsed.basicConstraints?.ca === true;
    const authority = isAuthority ? normalizeName(parsed.subject) : null;
    return [{ certificate, hash: parsed.hash, authority }];
  });
  return {
    certificates: read.map(({ certificate }) => certificate),
    hashes: read.map(({ hash }) => hash),
    authorities: read.map(({ authority }) => authority),
  };
}
