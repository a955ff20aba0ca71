import { Refusal } from '../../shared/refusal.ts';
import { extensionsOf, fieldsOf, parseValidity } from '../der/certificate.ts';
import { DerError, parseOid, parseSequence } from '../der/reader.ts';

/** `id-mdl-kp-mdlDS`: extended key usage of signers of mobile driving licences (ISO/IEC 18013-5 B.1.4). */
export const MDL_DOCUMENT_SIGNER = '1.0.18013.5.1.2';

/** Requirements of the format on the signer's certificate, beyond path validation. */
export type DocumentSigner = {
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** Dotted object identifiers; absent without the extension. */
  readonly usages?: { readonly critical: boolean; readonly oids: readonly string[] };
};

const EXTENDED_KEY_USAGE = '2.5.29.37';

/**
 * Parses a certificate that path validation has accepted.
 * @param certificate DER in standard base64.
 * @throws Refusal `issuer_key_unresolved` for an invalid certificate.
 */
export function parseDocumentSigner(certificate: string): DocumentSigner {
  try {
    return parseFields(Buffer.from(certificate, 'base64'));
  } catch (error) {
    if (error instanceof DerError) throw new Refusal('issuer_key_unresolved', 'not a certificate');
    throw error;
  }
}

/**
 * @param usage extended key usage that the certificate must have, marked critical (ISO/IEC 18013-5 B.1.4).
 * @throws Refusal `certificate_profile`
 */
export function assertDocumentSigner({ usages }: DocumentSigner, usage: string): void {
  if (usages?.critical !== true || !usages.oids.includes(usage)) {
    throw new Refusal('certificate_profile', `extended key usage ${usage} is missing`);
  }
}

function parseFields(der: Buffer): DocumentSigner {
  const [toBeSigned] = parseSequence(der);
  if (toBeSigned === undefined) throw new DerError('nothing is signed');
  const fields = fieldsOf(toBeSigned);
  // Algorithm and issuer precede the validity.
  const validity = parseValidity(fields[2]);
  const usage = extensionsOf(fields).get(EXTENDED_KEY_USAGE);
  if (usage === undefined) return validity;
  const oids = parseSequence(usage.value).map(({ content }) => parseOid(content));
  return { ...validity, usages: { critical: usage.critical, oids } };
}
