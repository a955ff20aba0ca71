import { type Certificate, KEY_USAGE, parseCertificate } from '../../domain/formats/der/certificate.ts';
import { isSameName } from '../../domain/formats/der/name.ts';
import { parsePemCertificates } from '../../domain/formats/der/pem.ts';
import { MDL_DOCUMENT_SIGNER } from '../../domain/formats/mdoc/document-signer.ts';
import { READER_AUTHENTICATION } from '../../domain/keys/certificate-purpose.ts';
import type { KeyUsage } from '../../domain/keys/key-chain.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import { type PublicJwk, thumbprint } from '../../domain/shared/jwk.ts';

const MAX_CERTIFICATES = 6;

/** Extended key usages that limit a certificate to one key usage of this service. */
const PURPOSES: Readonly<Record<string, KeyUsage>> = { [MDL_DOCUMENT_SIGNER]: 'signing', [READER_AUTHENTICATION]: 'access' };

/** The key and usages that the certificates are for. */
export type CertificateSubject = { readonly key: PublicJwk; readonly usages: readonly KeyUsage[] };

/**
 * Parses externally issued certificates of a key of the tenant.
 * @param pem one text or one per certificate, leaf first, each certified by the next.
 * @param path of the property with the certificates.
 * @returns DER in standard base64 without a self-signed root, and the earliest expiry.
 * @throws Failure `invalid_input` for another key, a wrong order, a self-signed or expired certificate, and one for other
 *   usages.
 */
export function parseCertificates(
  pem: string | readonly string[],
  subject: CertificateSubject,
  now: Date,
  path = 'crt',
): { readonly certificates: readonly string[]; readonly notAfter: Date } {
  const fault = parseChain(pem, subject, now);
  if (typeof fault === 'string') throw invalidInput(path, fault);
  // HAIP 1.0 section 6.1.1: the trust anchor is not sent.
  const withoutRoot = fault.filter((certificate) => !isSelfSigned(certificate));
  return {
    certificates: withoutRoot.map(({ x509 }) => x509.raw.toString('base64')),
    notAfter: new Date(Math.min(...withoutRoot.map(({ notAfter }) => notAfter.getTime()))),
  };
}

/**
 * Checks that the certificates of a key are suitable for its new usages.
 * @param certificates DER in standard base64, leaf first.
 * @param path of the property with the usages.
 * @throws Failure `invalid_input`.
 */
export function assertUsagesFit(certificates: readonly string[], usages: readonly KeyUsage[], path: string): void {
  const leaf = parseCertificate(Buffer.from(certificates[0] ?? '', 'base64'));
  const fault = leaf === undefined ? 'the certificate of the key cannot be parsed' : findUsageProblem(leaf, usages);
  if (fault !== undefined) throw invalidInput(path, fault);
}

/** @returns the problem, or the certificates. */
function parseChain(pem: string | readonly string[], subject: CertificateSubject, now: Date): string | Certificate[] {
  const texts = parsePemCertificates(typeof pem === 'string' ? pem : pem.join('\n'), MAX_CERTIFICATES);
  if (texts === undefined) return `send 1 to ${MAX_CERTIFICATES} certificates as PEM, leaf first`;
  const chain = texts.flatMap((text) => parseCertificate(Buffer.from(text, 'base64')) ?? []);
  if (chain.length < texts.length) {
    return 'one of these is not a certificate, has an invalid validity period, or an RSA key of ' + 'other than 2048 to 4096 bits';
  }
  const faults = [
    findLeafProblem(chain[0], subject),
    ...chain.map((certificate, position) => findLinkProblem(certificate, chain[position + 1], position, now)),
  ];
  return faults.find((fault) => fault !== undefined) ?? chain;
}

function findLeafProblem(leaf: Certificate | undefined, { key, usages }: CertificateSubject): string | undefined {
  if (leaf?.publicJwk === undefined || thumbprint(leaf.publicJwk) !== thumbprint(key)) return 'the first certificate is not for this key';
  // HAIP 1.0 section 6.1.1
  if (isSelfSigned(leaf)) return 'no wallet accepts a self-signed certificate';
  if (leaf.basicConstraints?.ca === true) return 'the first certificate is that of an authority';
  // RFC 5280 section 4.2.1.3
  if (leaf.keyUsage !== undefined && !leaf.keyUsage.has(KEY_USAGE.digitalSignature)) {
    return 'the key usage of the first certificate does not allow signatures';
  }
  return findUsageProblem(leaf, usages);
}

function findUsageProblem(leaf: Certificate, usages: readonly KeyUsage[]): string | undefined {
  const unsuitable = usages.find((usage) => !allows(leaf, usage));
  return unsuitable && `the extended key usage of the first certificate is for other things than "${unsuitable}"`;
}

function allows({ extendedKeyUsage = new Set() }: Certificate, usage: KeyUsage): boolean {
  const purposes = [...extendedKeyUsage].map((oid) => PURPOSES[oid]);
  // Unknown purposes, as in certificates of web servers, are left to the readers of the certificate.
  return purposes.length === 0 || purposes.includes(undefined) || purposes.includes(usage);
}

function findLinkProblem(
  { x509, notBefore, notAfter, subjectText }: Certificate,
  issuerCertificate: Certificate | undefined,
  position: number,
  now: Date,
): string | undefined {
  if (now < notBefore || now >= notAfter) return `the certificate of ${subjectText} is expired or not valid yet`;
  if (issuerCertificate === undefined) return undefined;
  // RFC 7515 section 4.1.6: each certificate certifies the one before it.
  if (!x509.checkIssued(issuerCertificate.x509) || !x509.verify(issuerCertificate.publicKey)) {
    return `the certificate of ${subjectText} was not issued by the one after it`;
  }
  // RFC 5280 sections 4.2.1.3 and 4.2.1.9
  const { basicConstraints, keyUsage } = issuerCertificate;
  if (basicConstraints?.ca !== true || keyUsage?.has(KEY_USAGE.keyCertSign) === false) {
    return `the certificate of ${issuerCertificate.subjectText} is not that of an authority`;
  }
  if ((basicConstraints.pathLength ?? position) < position) {
    return `the certificate of ${issuerCertificate.subjectText} allows fewer authorities below it`;
  }
  return undefined;
}

function isSelfSigned({ x509, publicKey, subject, issuer }: Certificate): boolean {
  return isSameName(subject, issuer) && x509.verify(publicKey);
}
