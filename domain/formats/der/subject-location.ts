import { fieldsOf } from './certificate.ts';
import { attributesOf } from './name.ts';
import { DerError, parseSequence } from './reader.ts';

/** Location in the subject of a certificate, in capitals; several values of one kind are contradictory. */
export type SubjectLocation = {
  /** ISO 3166-1 alpha-2. */
  readonly countries: readonly string[];
  /** `stateOrProvinceName`; ISO/IEC 18013-5 uses ISO 3166-2 codes. */
  readonly states: readonly string[];
};

const COUNTRY = '2.5.4.6';
const STATE = '2.5.4.8';

/**
 * @param certificate DER in standard base64.
 * @throws DerError for an invalid certificate.
 */
export function subjectLocation(certificate: string): SubjectLocation {
  const [toBeSigned] = parseSequence(Buffer.from(certificate, 'base64'));
  if (toBeSigned === undefined) throw new DerError('nothing is signed');
  // Algorithm, issuer and validity precede the subject (RFC 5280 section 4.1).
  const subject = fieldsOf(toBeSigned)[3];
  if (subject === undefined) throw new DerError('no subject');
  const valuesOf = (type: string) => [...new Set(attributesOf(subject.encoded, type).map((value) => value.toUpperCase()))];
  return { countries: valuesOf(COUNTRY), states: valuesOf(STATE) };
}
