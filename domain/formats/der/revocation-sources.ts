import { type Extension, extensionsOf, fieldsOf, parseValidity } from './certificate.ts';
import { parsePointNames } from './distribution-point.ts';
import { DerError, parseElements, parseOid, parseSequence, TAG } from './reader.ts';

export type RevocationSources = {
  /** Content of the INTEGER. */
  readonly serial: Buffer;
  /** Name of its issuer in DER, as encoded in it. */
  readonly issuerName: Buffer;
  /** Addresses of complete lists of its issuer, by distribution point. */
  readonly points: readonly (readonly string[])[];
  /** True if the certificate names any source: lists of unsupported kinds count, and OCSP. */
  readonly hasSources: boolean;
  /** Addresses of responders (RFC 6960). */
  readonly responders: readonly string[];
  /** True if the certificate declares that it is never revoked: RFC 9608, or ETSI EN 319 412-1 section 5.2. */
  readonly isNeverRevoked: boolean;
  /** Milliseconds. */
  readonly lifetime: number;
};

const DISTRIBUTION_POINTS = '2.5.29.31';
const AUTHORITY_INFORMATION = '1.3.6.1.5.5.7.1.1';
const OCSP = '1.3.6.1.5.5.7.48.1';
/** noRevAvail (RFC 9608 section 2) and validity assured, short term (ETSI EN 319 412-1 section 5.2.2) */
const NEVER_REVOKED = ['2.5.29.56', '0.4.0.194121.2.1'];
/** `uniformResourceIdentifier` of a GeneralName. */
const URI = 0x86;
const MAX_ADDRESS_LENGTH = 2048;

/** @param certificate DER in standard base64. @throws DerError */
export function revocationSourcesOf(certificate: string): RevocationSources {
  const [toBeSigned] = parseSequence(Buffer.from(certificate, 'base64'));
  if (toBeSigned === undefined) throw new DerError('nothing is signed');
  const fields = fieldsOf(toBeSigned);
  const [, issuerName] = fields;
  if (issuerName === undefined) throw new DerError('issuer');
  const extensions = extensionsOf(fields);
  const { notBefore, notAfter } = parseValidity(fields[2]);
  const { responders, hasOcsp } = respondersOf(extensions.get(AUTHORITY_INFORMATION));
  return {
    serial: serialOf(toBeSigned.content),
    issuerName: issuerName.encoded,
    points: pointsOf(extensions.get(DISTRIBUTION_POINTS)),
    hasSources: hasOcsp || extensions.has(DISTRIBUTION_POINTS),
    responders,
    isNeverRevoked: NEVER_REVOKED.some((oid) => extensions.has(oid)),
    lifetime: notAfter.getTime() - notBefore.getTime(),
  };
}

function serialOf(toBeSigned: Buffer): Buffer {
  const [firstField, secondField] = parseElements(toBeSigned);
  const serial = firstField?.tag === 0xa0 ? secondField : firstField;
  if (serial?.tag !== TAG.integer || serial.content.length > 0x7f) throw new DerError('serial number');
  return serial.content;
}

/** RFC 5280 section 4.2.1.13. Distribution points for some reasons or of another issuer are omitted. */
function pointsOf(extension: Extension | undefined): readonly (readonly string[])[] {
  if (extension === undefined) return [];
  return parseSequence(extension.value).flatMap(({ content }) => {
    const [name, ...furtherFields] = parseElements(content);
    if (name?.tag !== 0xa0 || furtherFields.length > 0) return [];
    const addresses = namesOf(name).filter(isCallable);
    return addresses.length === 0 ? [] : [addresses];
  });
}

function namesOf(name: Parameters<typeof parsePointNames>[0]): readonly string[] {
  try {
    return parsePointNames(name);
  } catch {
    // A name relative to the issuer's is a directory entry, which is not supported.
    return [];
  }
}

function isCallable(address: string): boolean {
  return address.length <= MAX_ADDRESS_LENGTH && /^https?:$/.test(URL.parse(address)?.protocol ?? '');
}

/** RFC 5280 section 4.2.2.1 */
function respondersOf(extension: Extension | undefined) {
  const methods = extension === undefined ? [] : parseSequence(extension.value);
  const ocspAddresses = methods.flatMap(({ content }) => {
    const [method, address] = parseElements(content);
    return method?.tag === TAG.oid && parseOid(method.content) === OCSP ? [address] : [];
  });
  const responders = ocspAddresses
    .flatMap((address) => (address?.tag === URI ? [address.content.toString('latin1')] : []))
    .filter(isCallable);
  return { responders, hasOcsp: ocspAddresses.length > 0 };
}
