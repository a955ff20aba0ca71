import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  AccessDescription,
  AuthorityInfoAccessSyntax,
  AuthorityKeyIdentifier,
  BasicConstraints,
  CertificatePolicies,
  CRLDistributionPoints,
  DistributionPoint,
  DistributionPointName,
  ExtendedKeyUsage,
  Extension,
  GeneralName,
  GeneralNames,
  id_ad_caIssuers,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_certificatePolicies,
  id_ce_cRLDistributionPoints,
  id_ce_extKeyUsage,
  id_ce_issuerAltName,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_pe_authorityInfoAccess,
  KeyIdentifier,
  KeyUsage,
  KeyUsageFlags,
  PolicyInformation,
  SubjectKeyIdentifier,
} from '@peculiar/asn1-x509';
import type { CertificateRequest } from '../../application/ports/certificate-authority.ts';
import { keyIdentifier } from '../../domain/keys/authority-address.ts';

/** RFC 5280 section 4.2.1.9: the constraints of a CA are critical. */
const CA_CONSTRAINTS = extension(id_ce_basicConstraints, new BasicConstraints({ cA: true, pathLenConstraint: 0 }), true);
export const USAGES = {
  ca: extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign), true),
  leaf: extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.digitalSignature), true),
} as const;

/**
 * Extensions of a certificate (RFC 5280 section 4.2).
 * @param issuerKeyId as the issuer's certificate states it, hexadecimal; absent for a self-signed certificate.
 */
export function extensionsOf(request: CertificateRequest, issuerKeyId: string | undefined): Extension[] {
  const { issuerContact, revocationList, issuerCertificate, policies = [], extendedKeyUsages } = request;
  const subjectKeyId = keyIdentifier(request.publicJwk);
  return [
    // ISO/IEC 18013-5 table B.3 lists no basic constraints for document signers, and some mdoc readers reject a
    // certificate with a critical extension that is not in the table.
    ...(request.kind === 'ca' ? [CA_CONSTRAINTS] : []),
    USAGES[request.kind],
    extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(bytesOf(subjectKeyId))),
    authorityKeyIdentifier(issuerKeyId ?? subjectKeyId),
    ...alternativeNames(request.dnsNames, request.uris, request.contact),
    // ISO/IEC 18013-5 tables B.1 and B.3
    ...(issuerContact === undefined ? [] : [extension(id_ce_issuerAltName, new GeneralNames([contactName(issuerContact)]))]),
    ...(revocationList === undefined ? [] : [extension(id_ce_cRLDistributionPoints, distributionPoints(revocationList))]),
    ...(issuerCertificate === undefined ? [] : [extension(id_pe_authorityInfoAccess, issuerAccess(issuerCertificate))]),
    ...(policies.length === 0 ? [] : [extension(id_ce_certificatePolicies, policiesOf(policies))]),
    ...(extendedKeyUsages === undefined ? [] : [extension(id_ce_extKeyUsage, new ExtendedKeyUsage([...extendedKeyUsages]), true)]),
  ];
}

export function alternativeNames(dnsNames: readonly string[] = [], uris: readonly string[] = [], contact?: string): Extension[] {
  const names = [
    ...dnsNames.map((dNSName) => new GeneralName({ dNSName })),
    ...uris.map((uniformResourceIdentifier) => new GeneralName({ uniformResourceIdentifier })),
    ...(contact === undefined ? [] : [contactName(contact)]),
  ];
  return names.length === 0 ? [] : [extension(id_ce_subjectAltName, new GeneralNames(names))];
}

/** RFC 5280 section 4.2.1.1. @param keyId hexadecimal. */
export function authorityKeyIdentifier(keyId: string): Extension {
  return extension(id_ce_authorityKeyIdentifier, new AuthorityKeyIdentifier({ keyIdentifier: new KeyIdentifier(bytesOf(keyId)) }));
}

/** @param value an object of the ASN.1 schema. */
export function extension(extnID: string, value: unknown, critical = false): Extension {
  return new Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });
}

const distributionPoints = (uniformResourceIdentifier: string) => {
  const fullName = [new GeneralName({ uniformResourceIdentifier })];
  return new CRLDistributionPoints([new DistributionPoint({ distributionPoint: new DistributionPointName({ fullName }) })]);
};

const issuerAccess = (uniformResourceIdentifier: string) =>
  new AuthorityInfoAccessSyntax([
    new AccessDescription({ accessMethod: id_ad_caIssuers, accessLocation: new GeneralName({ uniformResourceIdentifier }) }),
  ]);

const policiesOf = (policies: readonly string[]) =>
  new CertificatePolicies(policies.map((policyIdentifier) => new PolicyInformation({ policyIdentifier })));

const bytesOf = (hex: string) => new Uint8Array(Buffer.from(hex, 'hex'));

/** RFC 5280 section 4.2.1.6: mail addresses have a form of their own, and both forms are ASCII. */
function contactName(address: string): GeneralName {
  const mail = /^mailto:([!-$&-~]+@[!-$&-~]+)$/i.exec(address)?.[1];
  if (mail !== undefined && !mail.includes('?')) return new GeneralName({ rfc822Name: mail });
  return new GeneralName({ uniformResourceIdentifier: new URL(address).href });
}
