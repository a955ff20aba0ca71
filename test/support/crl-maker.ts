import { sign } from 'node:crypto';
import { readElements, readSequence } from '../../domain/formats/der/reader.ts';
import type { Certified } from './test-certificates.ts';

/** What a list of `by` says; right in every respect that is not changed. */
export type CrlOptions = {
  /** Who signs. */
  readonly by: Certified;
  /** Whose name it bears, where that is another one. */
  readonly issuer?: Certified;
  readonly revoked?: readonly (Revoked | Certified)[];
  readonly thisUpdate?: Date;
  /** Null: it does not say when the next one comes. */
  readonly nextUpdate?: Date | null;
  /** DER of extensions. */
  readonly extensions?: readonly Buffer[];
  /** How it is signed; ECDSA with SHA-256 unless stated. */
  readonly signing?: Signing;
  /** Changes what is signed, after it was signed. */
  readonly bend?: (der: Buffer) => Buffer;
};
export type Revoked = {
  readonly serial: Buffer;
  readonly reason?: number;
  readonly extensions?: readonly Buffer[];
};

/** DER of an AlgorithmIdentifier, and what signs by it. */
export type Signing = { readonly algorithm: Buffer; readonly sign: (toBeSigned: Buffer) => Buffer };

const ECDSA_SHA256 = '06082a8648ce3d040302';
const hex = (text: string) => Buffer.from(text, 'hex');

/** One element of DER. */
export function der(tag: number, ...content: readonly Buffer[]): Buffer {
  const bytes = Buffer.concat(content);
  if (bytes.length < 0x80) return Buffer.concat([Buffer.from([tag, bytes.length]), bytes]);
  const length = hex(
    bytes.length.toString(16).padStart(bytes.length > 0xffff ? 6 : bytes.length > 0xff ? 4 : 2, '0'),
  );
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length]), length, bytes]);
}

/** @param oid content of the object identifier, hexadecimal. */
export function extension(oid: string, value: Buffer, critical = false): Buffer {
  return der(0x30, der(0x06, hex(oid)), ...(critical ? [hex('0101ff')] : []), der(0x04, value));
}

export const crlNumber = (number: number) => extension('551d14', der(0x02, Buffer.from([number])));
export const deltaIndicator = () => extension('551d1b', der(0x02, Buffer.from([1])), true);
/** `IssuingDistributionPoint` */
export const scope = (...fields: readonly Buffer[]) => extension('551d1c', der(0x30, ...fields), true);
export const scopeOf = (uri: string) => der(0xa0, der(0xa0, der(0x86, Buffer.from(uri))));
export const FLAG = {
  users: hex('8101ff'),
  authorities: hex('8201ff'),
  indirect: hex('8401ff'),
  reasons: hex('83020640'),
};

export function time(date: Date): Buffer {
  const digits = date.toISOString().replace(/[-:T]|\.\d+/g, '');
  return der(0x17, Buffer.from(digits.slice(2)));
}

/** Content of the serial number, and the DER of the issuer and the subject. */
export function namesOf(certificate: string) {
  const [toBeSigned] = readSequence(Buffer.from(certificate, 'base64'));
  const fields = readElements(toBeSigned?.content ?? Buffer.alloc(0));
  const [serial, issuer, subject] = [fields[1]?.content, fields[3]?.whole, fields[5]?.whole];
  if (serial === undefined || issuer === undefined || subject === undefined)
    throw new Error('no certificate');
  return { serial, issuer, subject };
}

function entry(revoked: Revoked | Certified, at: Date): Buffer {
  const {
    serial,
    reason,
    extensions = [],
  } = 'certificate' in revoked ? { serial: namesOf(revoked.certificate).serial, reason: 1 } : { ...revoked };
  const reasons = reason === undefined ? [] : [extension('551d15', der(0x0a, Buffer.from([reason])))];
  const all = [...reasons, ...extensions];
  return der(0x30, der(0x02, serial), time(at), ...(all.length > 0 ? [der(0x30, ...all)] : []));
}

/** @returns DER of a certificate revocation list (RFC 5280 section 5.1). */
export function makeCrl(options: CrlOptions): Buffer {
  const { by, issuer = by, revoked = [], extensions = [crlNumber(1)], bend = (bytes) => bytes } = options;
  const { thisUpdate = new Date(Date.now() - 60_000), nextUpdate = new Date(Date.now() + 86_400_000) } =
    options;
  const { signing = { algorithm: der(0x30, hex(ECDSA_SHA256)), sign: signerOf(by) } } = options;
  const { algorithm } = signing;
  const entries = revoked.map((one) => entry(one, thisUpdate));
  const toBeSigned = der(
    0x30,
    hex('020101'),
    algorithm,
    namesOf(issuer.certificate).subject,
    time(thisUpdate),
    ...(nextUpdate === null ? [] : [time(nextUpdate)]),
    ...(entries.length > 0 ? [der(0x30, ...entries)] : []),
    ...(extensions.length > 0 ? [der(0xa0, der(0x30, ...extensions))] : []),
  );
  const signature = signing.sign(toBeSigned);
  return bend(der(0x30, toBeSigned, algorithm, der(0x03, Buffer.from([0]), signature)));
}

const signerOf =
  ({ privateKey }: Certified) =>
  (toBeSigned: Buffer) =>
    sign('sha256', toBeSigned, privateKey);
