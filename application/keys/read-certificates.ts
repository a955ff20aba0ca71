import { type Certificate, KEY_USAGE, readCertificate } from '../../domain/formats/der/certificate.ts';
import { readPemCertificates } from '../../domain/formats/der/pem.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import { type PublicJwk, thumbprint } from '../../domain/shared/jwk.ts';

const MAX_CERTIFICATES = 6;

/**
 * Reads the certificates that somebody obtained for a key of ours.
 * @param pem one text or one per certificate, leaf first, each certified by the next.
 * @returns DER in standard base64 without a self-signed root, and when the first of them ends.
 * @throws Failure `invalid_input` for another key, a wrong order, a self-signed or expired certificate.
 */
export function readCertificates(
  pem: string | readonly string[],
  key: PublicJwk,
  now: Date,
): { readonly certificates: readonly string[]; readonly notAfter: Date } {
  const texts = readPemCertificates(typeof pem === 'string' ? pem : pem.join('\n'), MAX_CERTIFICATES);
  if (texts === undefined) throw refused(`give 1 to ${MAX_CERTIFICATES} certificates as PEM, leaf first`);
  const chain = texts.map((text) => {
    const certificate = readCertificate(Buffer.from(text, 'base64'));
    if (certificate === undefined) throw refused('one of these is not a certificate');
    return certificate;
  });
  assertLeaf(chain, key);
  for (const [position, certificate] of chain.entries()) assertLink(certificate, chain[position + 1], now);

  // HAIP 1.0 section 6.1.1 keeps the trust anchor out of what is sent.
  const sent = chain.filter((certificate) => !isSelfSigned(certificate));
  return {
    certificates: sent.map(({ x509 }) => x509.raw.toString('base64')),
    notAfter: new Date(Math.min(...sent.map(({ notAfter }) => notAfter.getTime()))),
  };
}

function assertLeaf([leaf]: readonly Certificate[], key: PublicJwk): void {
  if (leaf?.publicJwk === undefined || thumbprint(leaf.publicJwk) !== thumbprint(key)) {
    throw refused('the first certificate is not for this key');
  }
  // HAIP 1.0 section 6.1.1
  if (isSelfSigned(leaf)) throw refused('a self-signed certificate is accepted by no wallet');
  if (leaf.basicConstraints?.ca === true) throw refused('the first certificate is that of an authority');
  // RFC 5280 section 4.2.1.3
  if (leaf.keyUsage !== undefined && !leaf.keyUsage.has(KEY_USAGE.digitalSignature)) {
    throw refused('the key usage of the first certificate does not allow signatures');
  }
}

function assertLink(certificate: Certificate, next: Certificate | undefined, now: Date): void {
  if (now < certificate.notBefore || now >= certificate.notAfter) {
    throw refused(`the certificate of ${certificate.subjectText} is expired or not valid yet`);
  }
  if (next === undefined) return;
  // RFC 7515 section 4.1.6: each certificate certifies the one before it.
  if (!certificate.x509.checkIssued(next.x509) || !certificate.x509.verify(next.publicKey)) {
    throw refused(`the certificate of ${certificate.subjectText} was not issued by the one after it`);
  }
}

function isSelfSigned({ x509, publicKey, subject, issuer }: Certificate): boolean {
  return subject === issuer && x509.verify(publicKey);
}

function refused(message: string): Error {
  return invalidInput('crt', message);
}
