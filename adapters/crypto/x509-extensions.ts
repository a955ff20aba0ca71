import {
  AuthorityInfoAccessExtension,
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  CertificatePolicyExtension,
  CRLDistributionPointsExtension,
  ExtendedKeyUsageExtension,
  type Extension,
  IssuerAlternativeNameExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
} from '@peculiar/x509';
import type { CertificateRequest } from '../../application/ports/certificate-authority.ts';
import { keyIdentifier } from '../../domain/keys/authority-address.ts';

/** RFC 5280 section 4.2.1.9: the constraints of a CA are critical. */
const CA_CONSTRAINTS = new BasicConstraintsExtension(true, 0, true);
export const USAGES = {
  ca: new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
  leaf: new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
} as const;

/**
 * Extensions of a certificate (RFC 5280 section 4.2).
 * @param issuerKeyId as the issuer's certificate states it, hexadecimal; absent for a self-signed certificate.
 */
export function extensionsOf(request: CertificateRequest, issuerKeyId: string | undefined): Extension[] {
  const subjectKeyId = keyIdentifier(request.publicJwk);
  return [
    // ISO/IEC 18013-5 table B.3 lists no basic constraints for document signers, and some mdoc readers reject a
    // certificate with a critical extension that is not in the table.
    ...(request.kind === 'ca' ? [CA_CONSTRAINTS] : []),
    USAGES[request.kind],
    new SubjectKeyIdentifierExtension(subjectKeyId),
    new AuthorityKeyIdentifierExtension(issuerKeyId ?? subjectKeyId),
    ...alternativeNames(request.dnsNames, request.uris, request.contact),
    // ISO/IEC 18013-5 tables B.1 and B.3
    ...(request.issuerContact === undefined ? [] : [new IssuerAlternativeNameExtension([contactName(request.issuerContact)])]),
    ...(request.revocationList === undefined ? [] : [new CRLDistributionPointsExtension([request.revocationList])]),
    ...(request.issuerCertificate === undefined ? [] : [new AuthorityInfoAccessExtension({ caIssuers: [request.issuerCertificate] })]),
    ...(request.policies === undefined || request.policies.length === 0 ? [] : [new CertificatePolicyExtension([...request.policies])]),
    ...(request.extendedKeyUsages === undefined ? [] : [new ExtendedKeyUsageExtension([...request.extendedKeyUsages], true)]),
  ];
}

export function alternativeNames(dnsNames: readonly string[] = [], uris: readonly string[] = [], contact?: string): Extension[] {
  const names = [
    ...dnsNames.map((value) => ({ type: 'dns' as const, value })),
    ...uris.map((value) => ({ type: 'url' as const, value })),
    ...(contact === undefined ? [] : [contactName(contact)]),
  ];
  return names.length === 0 ? [] : [new SubjectAlternativeNameExtension(names)];
}

/** RFC 5280 section 4.2.1.6: mail addresses have a form of their own, and both forms are ASCII. */
function contactName(address: string): { type: 'email' | 'url'; value: string } {
  const mail = /^mailto:([!-$&-~]+@[!-$&-~]+)$/i.exec(address)?.[1];
  if (mail !== undefined && !mail.includes('?')) return { type: 'email', value: mail };
  return { type: 'url', value: new URL(address).href };
}
