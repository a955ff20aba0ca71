import { type Certificate, parseCertificate } from '../formats/der/certificate.ts';
import { isSameName, normalizedAttributes } from '../formats/der/name.ts';

/** Subject attributes in which two signers of one issuer may differ: common name and serial number. */
const SIGNER_ATTRIBUTES: ReadonlySet<string> = new Set(['2.5.4.3', '2.5.4.5']);

/**
 * True if two signer certificates belong to one issuer: the same authority issued both, and their subjects differ in common name and serial
 * number at most.
 * @param certificate DER in standard base64, like the other one; both from a validated chain.
 */
export function isOfSameIssuer(certificate: string | undefined, otherCertificate: string | undefined): boolean {
  const [firstCertificate, secondCertificate] = [parseOptional(certificate), parseOptional(otherCertificate)];
  if (firstCertificate === undefined || secondCertificate === undefined) return false;
  return (
    isSameName(firstCertificate.issuer, secondCertificate.issuer) && organizationOf(firstCertificate) === organizationOf(secondCertificate)
  );
}

function parseOptional(certificate: string | undefined): Certificate | undefined {
  return certificate === undefined ? undefined : parseCertificate(Buffer.from(certificate, 'base64'));
}

function organizationOf({ subject }: Certificate): string {
  return JSON.stringify(normalizedAttributes(subject, SIGNER_ATTRIBUTES));
}
