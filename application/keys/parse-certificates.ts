import { type Certificate, KEY_USAGE, parseCertificate } from '../../domain/formats/der/certificate.ts';
import { isSameName } from '../../domain/formats/der/name.ts';
import { parsePemCertificates } from '../../domain/formats/der/pem.ts';
import { MDL_DOCUMENT_SIGNER } from '../../domain/formats/mdoc/document-signer.ts';
import { READER_AUTHENTICATION } from '../../domain/keys/certificate-purpose.ts';
import type { KeyUsage } from '../../domain/keys/key-chain.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import { type PublicJwk, thumbprint } from '../../domain/shared/jwk.ts';

const MAX_CERTIFICATES = 6;

/** Extended key usages of our trade: a certificate that is for nothing else serves no other usage. */
const PURPOSES: Readonly<Record<string, KeyUsage>> = { [MDL_DOCUMENT_SIGNER]: 'signing', [READER_AUTHENTICATION]: 'access' };

/** What the certificates are for. */
export type Certified = { readonly key: PublicJwk; readonly usages: readonly KeyUsage[] };

/**
 * Reads the certificates that somebody obtained for a key of the tenant.
 * @param pem one text or one per certificate, leaf first, each certified by the next.
 * @param path of the member that they came in.
 * @returns DER in standard base64 without a self-signed root, and when the first of them ends.
 * @throws Failure `invalid_input` for another key, a wrong order, a self-signed or expired certificate, and one that
 *   is not for this.
 */
export function parseCertificates(
  pem: string | readonly string[],
  wanted: Certified,
  now: Date,
  path = 'crt',
): { readonly certificates: readonly string[]; readonly notAfter: Date } {
  const fault = parseChain(pem, wanted, now);
  if (typeof fault === 'string') throw invalidInput(path, fault);
  // HAIP 1.0 section 6.1.1 keeps the trust anchor out of what is sent.
  const sent = fault.filter((certificate) => !isSelfSigned(certificate));
  return {
    certificates: sent.map(({ x509 }) => x509.raw.toString('base64')),
    notAfter: new Date(Math.min(...sent.map(({ notAfter }) => notAfter.getTime()))),
  };
}

/**
 * Looks whether the certificates that a key has are for what it is to sign from now on.
 * @param certificates DER in standard base64, leaf first.
 * @param path of the member that the usages came in.
 * @throws Failure `invalid_input`.
 */
export function assertUsagesFit(certificates: readonly string[], usages: readonly KeyUsage[], path: string): void {
  const leaf = parseCertificate(Buffer.from(certificates[0] ?? '', 'base64'));
  const fault = leaf === undefined ? 'the certificate of the key cannot be read' : findUsageProblem(leaf, usages);
  if (fault !== undefined) throw invalidInput(path, fault);
}

/** @returns what is wrong, or the certificates. */
function parseChain(pem: string | readonly string[], wanted: Certified, now: Date): string | Certificate[] {
  const texts = parsePemCertificates(typeof pem === 'string' ? pem : pem.join('\n'), MAX_CERTIFICATES);
  if (texts === undefined) return `give 1 to ${MAX_CERTIFICATES} certificates as PEM, leaf first`;
  const chain = texts.flatMap((text) => parseCertificate(Buffer.from(text, 'base64')) ?? []);
  if (chain.length < texts.length) {
    return (
      'one of these is not a certificate, has times that cannot be read or end before they begin, or an RSA key of ' +
      'other than 2048 to 4096 bits'
    );
  }
  const faults = [
    findLeafProblem(chain[0], wanted),
    ...chain.map((certificate, position) => findLinkProblem(certificate, chain[position + 1], position, now)),
  ];
  return faults.find((fault) => fault !== undefined) ?? chain;
}

function findLeafProblem(leaf: Certificate | undefined, { key, usages }: Certified): string | undefined {
  if (leaf?.publicJwk === undefined || thumbprint(leaf.publicJwk) !== thumbprint(key)) return 'the first certificate is not for this key';
  // HAIP 1.0 section 6.1.1
  if (isSelfSigned(leaf)) return 'a self-signed certificate is accepted by no wallet';
  if (leaf.basicConstraints?.ca === true) return 'the first certificate is that of an authority';
  // RFC 5280 section 4.2.1.3
  if (leaf.keyUsage !== undefined && !leaf.keyUsage.has(KEY_USAGE.digitalSignature)) {
    return 'the key usage of the first certificate does not allow signatures';
  }
  return findUsageProblem(leaf, usages);
}

function findUsageProblem(leaf: Certificate, usages: readonly KeyUsage[]): string | undefined {
  const other = usages.find((usage) => !allows(leaf, usage));
  return other && `the extended key usage of the first certificate is for other things than "${other}"`;
}

function allows({ extendedKeyUsage = new Set() }: Certificate, usage: KeyUsage): boolean {
  const purposes = [...extendedKeyUsage].map((oid) => PURPOSES[oid]);
  // What is not of our trade, as in certificates of web servers, is a matter of those who read it.
  return purposes.length === 0 || purposes.includes(undefined) || purposes.includes(usage);
}

function findLinkProblem(
  { x509, notBefore, notAfter, subjectText }: Certificate,
  next: Certificate | undefined,
  position: number,
  now: Date,
): string | undefined {
  if (now < notBefore || now >= notAfter) return `the certificate of ${subjectText} is expired or not valid yet`;
  if (next === undefined) return undefined;
  // RFC 7515 section 4.1.6: each certificate certifies the one before it.
  if (!x509.checkIssued(next.x509) || !x509.verify(next.publicKey)) {
    return `the certificate of ${subjectText} was not issued by the one after it`;
  }
  // RFC 5280 sections 4.2.1.3 and 4.2.1.9
  const { basicConstraints, keyUsage } = next;
  if (basicConstraints?.ca !== true || keyUsage?.has(KEY_USAGE.keyCertSign) === false) {
    return `the certificate of ${next.subjectText} is not that of an authority`;
  }
  if ((basicConstraints.pathLength ?? position) < position) {
    return `the certificate of ${next.subjectText} allows fewer authorities below it`;
  }
  return undefined;
}

function isSelfSigned({ x509, publicKey, subject, issuer }: Certificate): boolean {
  return isSameName(subject, issuer) && x509.verify(publicKey);
}
