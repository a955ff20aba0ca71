import { Refusal } from '../../shared/refusal.ts';
import { DerError, readElements, readOid, readSequence, TAG } from '../der/reader.ts';
import { readTime } from '../der/time.ts';

/** `id-mdl-kp-mdlDS`, the extended key usage of whoever signs mobile driving licences (ISO/IEC 18013-5 B.1.4). */
export const MDL_DOCUMENT_SIGNER = '1.0.18013.5.1.2';

/** What the format asks of the signer's certificate beyond its path. */
export type DocumentSigner = {
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** Dotted object identifiers; absent without the extension. */
  readonly usages?: { readonly critical: boolean; readonly oids: readonly string[] };
};

const EXTENDED_KEY_USAGE = '2.5.29.37';
const VERSION = 0xa0;
const EXTENSIONS = 0xa3;

/**
 * Reads a certificate that path validation has accepted already.
 * @param certificate DER in standard base64.
 * @throws Refusal `issuer_key_unresolved` for anything that is no certificate.
 */
export function readDocumentSigner(certificate: string): DocumentSigner {
  try {
    return readFields(Buffer.from(certificate, 'base64'));
  } catch (error) {
    if (error instanceof DerError) throw new Refusal('issuer_key_unresolved', 'not a certificate');
    throw error;
  }
}

/**
 * @param usage extended key usage that the certificate must have, marked critical (ISO/IEC 18013-5 B.1.4).
 * @throws Refusal `certificate_profile`
 */
export function checkDocumentSigner({ usages }: DocumentSigner, usage: string): void {
  if (usages?.critical !== true || !usages.oids.includes(usage)) {
    throw new Refusal('certificate_profile', `extended key usage ${usage} is missing`);
  }
}

/** RFC 5280 section 4.1 */
function readFields(der: Buffer): DocumentSigner {
  const [toBeSigned] = readSequence(der);
  const fields = readElements(toBeSigned?.content ?? Buffer.alloc(0));
  // Serial number, algorithm and issuer stand before the validity, and the version before all.
  const validity = fields[fields[0]?.tag === VERSION ? 4 : 3];
  const [notBefore, notAfter] = readElements(validity?.content ?? Buffer.alloc(0));
  if (notBefore === undefined || notAfter === undefined) throw new DerError('validity');
  const usages = readUsages(fields.find(({ tag }) => tag === EXTENSIONS)?.content);
  return {
    notBefore: readTime(notBefore),
    notAfter: readTime(notAfter),
    ...(usages !== undefined && { usages }),
  };
}

function readUsages(extensions: Buffer | undefined): DocumentSigner['usages'] {
  for (const extension of extensions === undefined ? [] : readSequence(extensions)) {
    const parts = readElements(extension.content);
    if (readOid(parts[0]?.content ?? Buffer.alloc(0)) !== EXTENDED_KEY_USAGE) continue;
    const [, second] = parts;
    return {
      critical: second?.tag === TAG.boolean && second.content[0] !== 0,
      oids: readSequence(parts.at(-1)?.content ?? Buffer.alloc(0)).map(({ content }) => readOid(content)),
    };
  }
  return undefined;
}
