import type { Certificate } from '../formats/der/certificate.ts';
import { MDL_DOCUMENT_SIGNER } from '../formats/mdoc/document-signer.ts';

/** The type of object that the leaf certificate of a chain signs. */
export type CertificatePurpose =
  | 'SD-JWT VC'
  | 'mdoc'
  | 'wallet attestation'
  | 'status list'
  | 'trust list'
  | 'registration certificate'
  | 'OCSP answer';

/** `anyExtendedKeyUsage` (RFC 5280 section 4.2.1.12): no restriction. */
const ANY = '2.5.29.37.0';
/** `id-kp-oauthStatusSigning` (Token Status List section 10). */
const STATUS_SIGNING = '1.3.6.1.5.5.7.3.30';
/** `id-tsl-kp-tslSigning` (ETSI TS 119 612 section 5.7.1). */
const TRUST_LIST_SIGNING = '0.4.0.2231.3.0';
/** The document signer of mdocs other than driving licences (ISO/IEC TS 23220-4). */
const MDOC_DOCUMENT_SIGNER = '1.0.23220.4.1.2';
/** `id-mdl-kp-mdlReaderAuth` (ISO/IEC 18013-5 section B.1.7): signs presentation requests, which are not verified here. */
export const READER_AUTHENTICATION = '1.0.18013.5.1.6';

/** Extended key usages that permit a purpose. If none is defined for it, certificates with the extension are not permitted. */
const USAGES: Readonly<Record<CertificatePurpose, readonly string[]>> = {
  // No usage is defined; issuers of European PIDs sign both formats with a document signer's certificate.
  'SD-JWT VC': [MDL_DOCUMENT_SIGNER, MDOC_DOCUMENT_SIGNER],
  // ISO/IEC 18013-5 section B.1.4
  mdoc: [MDL_DOCUMENT_SIGNER, MDOC_DOCUMENT_SIGNER],
  'wallet attestation': [],
  'status list': [STATUS_SIGNING],
  'trust list': [TRUST_LIST_SIGNING],
  'registration certificate': [],
  // RFC 6960 section 4.2.2.2
  'OCSP answer': ['1.3.6.1.5.5.7.3.9'],
};

/** True if the extended key usage, if present, permits the certificate, or its subject CA, to sign for this purpose. */
export function allowsPurpose({ extendedKeyUsage }: Certificate, purpose: CertificatePurpose): boolean {
  if (extendedKeyUsage === undefined) return true;
  return [ANY, ...USAGES[purpose]].some((usage) => extendedKeyUsage.has(usage));
}
