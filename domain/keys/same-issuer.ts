import { type Certificate, parseCertificate } from '../formats/der/certificate.ts';
import { isSameName, normalizedAttributes } from '../formats/der/name.ts';

/** Attributes of a subject that differ between two signers of one issuer: common name and serial number. */
const SIGNER_ATTRIBUTES: ReadonlySet<string> = new Set(['2.5.4.3', '2.5.4.5']);

/**
 * Whether two signer certificates belong to one issuer: the same authority issued both, and their subjects differ in the
 * common name and serial number at most.
 * @param one DER in standard base64, as the other; both from a chain that was validated.
 */
export function isOfSameIssuer(one: string | undefined, other: string | undefined): boolean {
  const [first, second] = [read(one), read(other)];
  if (first === undefined || second === undefined) return false;
  return isSameName(first.issuer, second.issuer) && organizationOf(first) === organizationOf(second);
}

function read(certificate: string | undefined): Certificate | undefined {
  return certificate === undefined ? undefined : parseCertificate(Buffer.from(certificate, 'base64'));
}

function organizationOf({ subject }: Certificate): string {
  return JSON.stringify(normalizedAttributes(subject, SIGNER_ATTRIBUTES));
}
