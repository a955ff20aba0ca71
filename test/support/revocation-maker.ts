import { constants, createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { parseCertificate } from '../../domain/formats/der/certificate.ts';
import { parseElements, parseSequence } from '../../domain/formats/der/reader.ts';
import { type CertificateOptions, type CertifiedKey, certify } from './test-certificates.ts';

/** Contents of a CRL; valid by default. */
export type CrlOptions = {
  /** Signing certificate. */
  readonly by: CertifiedKey;
  /** Issuer name, when it differs from the signer. */
  readonly issuer?: CertifiedKey;
  readonly revoked?: readonly (RevokedEntry | CertifiedKey)[];
  readonly thisUpdate?: Date;
  /** Null: the list has no nextUpdate. */
  readonly nextUpdate?: Date | null;
  /** DER of extensions. */
  readonly extensions?: readonly Buffer[];
  /** Signature algorithm; ECDSA with SHA-256 by default. */
  readonly signing?: Signing;
  /** Changes the signed part after signing. */
  readonly bend?: (der: Buffer) => Buffer;
};
export type RevokedEntry = { readonly serial: Buffer; readonly reason?: number; readonly extensions?: readonly Buffer[] };

/** DER of an AlgorithmIdentifier, and its signing function. */
export type Signing = { readonly algorithm: Buffer; readonly sign: (toBeSigned: Buffer) => Buffer };

const ECDSA_SHA256 = '06082a8648ce3d040302';
const hex = (text: string) => Buffer.from(text, 'hex');

/** One element of DER. */
export function der(tag: number, ...content: readonly Buffer[]): Buffer {
  const bytes = Buffer.concat(content);
  if (bytes.length < 0x80) return Buffer.concat([Buffer.from([tag, bytes.length]), bytes]);
  const length = hex(bytes.length.toString(16).padStart(bytes.length > 0xffff ? 6 : bytes.length > 0xff ? 4 : 2, '0'));
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length]), length, bytes]);
}

/** @param oid content of the object identifier, hexadecimal. */
export function extension(oid: string, value: Buffer, critical = false): Buffer {
  return der(0x30, der(0x06, hex(oid)), ...(critical ? [hex('0101ff')] : []), der(0x04, value));
}

export const crlNumber = (number: number) => extension('551d14', der(0x02, Buffer.from([number])));
export const deltaIndicator = () => extension('551d1b', der(0x02, Buffer.from([1])), true);
/** `IssuingDistributionPoint` */
export const issuingDistributionPoint = (...fields: readonly Buffer[]) => extension('551d1c', der(0x30, ...fields), true);
export const distributionPointName = (uri: string) => der(0xa0, der(0xa0, der(0x86, Buffer.from(uri))));
export const SCOPE_FLAGS = { users: hex('8101ff'), authorities: hex('8201ff'), indirect: hex('8401ff'), reasons: hex('83020640') };

export function derTime(date: Date): Buffer {
  const digits = date.toISOString().replace(/[-:T]|\.\d+/g, '');
  return der(0x17, Buffer.from(digits.slice(2)));
}

/** Content of the serial number, and the DER of the issuer and the subject. */
export function nameParts(certificate: string) {
  const [toBeSigned] = parseSequence(Buffer.from(certificate, 'base64'));
  const fields = parseElements(toBeSigned?.content ?? Buffer.alloc(0));
  const [serial, issuer, subject] = [fields[1]?.content, fields[3]?.encoded, fields[5]?.encoded];
  if (serial === undefined || issuer === undefined || subject === undefined) throw new Error('no certificate');
  return { serial, issuer, subject };
}

function derEntry(revoked: RevokedEntry | CertifiedKey, revocationDate: Date): Buffer {
  const {
    serial,
    reason,
    extensions = [],
  } = 'certificate' in revoked ? { serial: nameParts(revoked.certificate).serial, reason: 1 } : { ...revoked };
  const reasonExtension = reason === undefined ? [] : [extension('551d15', der(0x0a, Buffer.from([reason])))];
  const allExtensions = [...reasonExtension, ...extensions];
  return der(0x30, der(0x02, serial), derTime(revocationDate), ...(allExtensions.length > 0 ? [der(0x30, ...allExtensions)] : []));
}

/** @returns DER of a certificate revocation list (RFC 5280 section 5.1). */
export function makeCrl(options: CrlOptions): Buffer {
  const { by, issuer = by, revoked = [], extensions = [crlNumber(1)], bend = (bytes) => bytes } = options;
  const { thisUpdate = new Date(Date.now() - 60_000), nextUpdate = new Date(Date.now() + 86_400_000) } = options;
  const { signing = { algorithm: der(0x30, hex(ECDSA_SHA256)), sign: signerOf(by) } } = options;
  const { algorithm } = signing;
  const entries = revoked.map((one) => derEntry(one, thisUpdate));
  const toBeSigned = der(
    0x30,
    hex('020101'),
    algorithm,
    nameParts(issuer.certificate).subject,
    derTime(thisUpdate),
    ...(nextUpdate === null ? [] : [derTime(nextUpdate)]),
    ...(entries.length > 0 ? [der(0x30, ...entries)] : []),
    ...(extensions.length > 0 ? [der(0xa0, der(0x30, ...extensions))] : []),
  );
  const signature = signing.sign(toBeSigned);
  return bend(der(0x30, toBeSigned, algorithm, der(0x03, Buffer.from([0]), signature)));
}

const signerOf =
  ({ privateKey }: CertifiedKey) =>
  (toBeSigned: Buffer) =>
    sign('sha256', toBeSigned, privateKey);

export type OcspOptions = {
  /** The certificate in question and its issuer. */
  readonly about: CertifiedKey;
  readonly issuer: CertifiedKey;
  /** Signing certificate; the issuer by default. */
  readonly by?: CertifiedKey;
  readonly status?: 'good' | 'revoked' | 'unknown';
  readonly thisUpdate: Date;
  readonly nextUpdate?: Date | undefined;
  /** `OCSPResponseStatus`; 0 for success. */
  readonly state?: number;
  /** Signature algorithm; ECDSA with SHA-256 by default. */
  readonly signing?: Signing;
  /** Omits the parameters of the hash algorithm. */
  readonly isTerse?: boolean;
};
const ECDSA_ALGORITHM = der(0x30, hex('06082a8648ce3d040302'));
const sha1 = (bytes: Buffer) => createHash('sha1').update(bytes).digest();

function generalizedTime(date: Date): Buffer {
  return der(0x18, Buffer.from(date.toISOString().replace(/[-:T]|\.\d+/g, '')));
}

/** @returns DER of an OCSP response (RFC 6960 section 4.2.1). */
export function makeOcspResponse(options: OcspOptions): Buffer {
  const { about, issuer, by = issuer, status = 'good', thisUpdate, nextUpdate, state = 0, isTerse } = options;
  if (state !== 0) return der(0x30, der(0x0a, Buffer.from([state])));
  const keyHash = parseCertificate(Buffer.from(issuer.certificate, 'base64'))?.keyHash ?? '';
  const id = der(
    0x30,
    der(0x30, hex('06052b0e03021a'), isTerse === true ? Buffer.alloc(0) : hex('0500')),
    der(0x04, sha1(nameParts(issuer.certificate).subject)),
    der(0x04, Buffer.from(keyHash, 'base64url')),
    der(0x02, nameParts(about.certificate).serial),
  );
  const certStatus = { good: der(0x80), unknown: der(0x82), revoked: der(0xa1, generalizedTime(thisUpdate)) }[status];
  const nextUpdateField = nextUpdate === undefined ? [] : [der(0xa0, generalizedTime(nextUpdate))];
  const toBeSigned = der(
    0x30,
    der(0xa1, nameParts(by.certificate).subject),
    generalizedTime(thisUpdate),
    der(0x30, der(0x30, id, certStatus, generalizedTime(thisUpdate), ...nextUpdateField)),
  );
  const { signing = { algorithm: ECDSA_ALGORITHM, sign: (data: Buffer) => sign('sha256', data, by.privateKey) } } = options;
  const signature = der(0x03, Buffer.from([0]), signing.sign(toBeSigned));
  const certificates = by === issuer ? [] : [der(0xa0, der(0x30, Buffer.from(by.certificate, 'base64')))];
  const basic = der(0x30, toBeSigned, signing.algorithm, signature, ...certificates);
  const type = hex('06092b0601050507300101');
  return der(0x30, hex('0a0100'), der(0xa0, der(0x30, type, der(0x04, basic))));
}

const HASH_OIDS = { sha1: '06052b0e03021a', sha256: '0609608648016503040201', sha512: '0609608648016503040203' };
type Hash = keyof typeof HASH_OIDS;

/** A certificate with an RSA key, and that key. */
export type RsaCertified = CertifiedKey & { readonly rsa: KeyObject };

export const pkcs1 = (privateKey: KeyObject): Signing => ({
  algorithm: der(0x30, hex('06092a864886f70d01010b'), hex('0500')),
  sign: (data) => sign('sha256', data, privateKey),
});

/** RSASSA-PSS (RFC 4055 section 3.1). @param mask hash of MGF1. */
export function pss(
  key: KeyObject,
  { hash = 'sha256', mask = hash, saltLength = 32 }: { hash?: Hash; mask?: Hash; saltLength?: number } = {},
): Signing {
  const hashOf = (name: Hash) => der(0x30, hex(HASH_OIDS[name]), hex('0500'));
  const generator = der(0x30, hex('06092a864886f70d010108'), hashOf(mask));
  const parameters = der(0x30, der(0xa0, hashOf(hash)), der(0xa1, generator), der(0xa2, der(0x02, Buffer.from([saltLength]))));
  return {
    algorithm: der(0x30, hex('06092a864886f70d01010a'), parameters),
    sign: (data) => sign(hash, data, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength }),
  };
}

/** Creates a certificate, optionally for an RSA key, with the given signature algorithm. */
export async function certifyRsa(
  options: CertificateOptions,
  { rsa, signing }: { readonly rsa?: ReturnType<typeof rsaPair>; readonly signing?: (signerOf: KeyObject) => Signing },
): Promise<RsaCertified> {
  const certified = await certify(options);
  const [toBeSigned] = parseSequence(Buffer.from(certified.certificate, 'base64'));
  if (toBeSigned === undefined) throw new Error('no certificate');
  const fields = parseElements(toBeSigned.content).map(({ encoded: structure }) => structure);
  const { privateKey } = rsa ?? certified;
  const by = (signing ?? pkcs1)(privateKey);
  fields[2] = by.algorithm;
  if (rsa !== undefined) fields[6] = rsa.publicKey.export({ format: 'der', type: 'spki' });
  const content = der(0x30, ...fields);
  const structure = der(0x30, content, by.algorithm, der(0x03, Buffer.from([0]), by.sign(content)));
  return { ...certified, certificate: structure.toString('base64'), rsa: privateKey };
}

export const rsaPair = (modulusLength = 2048) => generateKeyPairSync('rsa', { modulusLength });
/** An RSA key for RSASSA-PSS only. */
export const pssPair = () => generateKeyPairSync('rsa-pss', { modulusLength: 2048 });
