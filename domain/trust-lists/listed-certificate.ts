import { readCertificate } from '../formats/der/certificate.ts';

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/**
 * Looks once at what a list calls certificates, where the list is read: a list has thousands, and who uses it asks for them again
 * and again. One that does not parse is passed over.
 */
export function readListed(texts: readonly string[]): {
  readonly certificates: readonly string[];
  readonly hashes: readonly string[];
} {
  const read = texts.flatMap((certificate) => {
    const isBase64 = certificate.length % 4 === 0 && BASE64.test(certificate);
    const parsed = isBase64 ? readCertificate(Buffer.from(certificate, 'base64')) : undefined;
    return parsed === undefined ? [] : [{ certificate, hash: parsed.hash }];
  });
  return { certificates: read.map(({ certificate }) => certificate), hashes: read.map(({ hash }) => hash) };
}
