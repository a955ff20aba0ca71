import { hash, type KeyObject, X509Certificate } from 'node:crypto';
import { type PublicJwk, parsePublicJwk } from '../../shared/jwk.ts';
import { formatName } from './name.ts';
import { parseKeyHash } from './public-key.ts';
import { type DerElement, DerError, parseElement, parseElements, parseOid, parseSequence, TAG } from './reader.ts';
import { parseSignatureAlgorithm, type SignatureAlgorithm } from './signature-algorithm.ts';
import { parseTime } from './time.ts';

/** The fields of an X.509 certificate that path validation needs (RFC 5280 section 4). */
export type Certificate = {
  /** SHA-256 of the DER, base64url. */
  readonly hash: string;
  readonly x509: X509Certificate;
  readonly publicKey: KeyObject;
  /** Absent for keys of types that do not sign credentials, such as RSA. */
  readonly publicJwk?: PublicJwk;
  /** RFC 4514 string. */
  readonly subjectText: string;
  /** Names as DER in hexadecimal; `isSameName` compares them. */
  readonly subject: string;
  readonly issuer: string;
  /** Both times are valid, and the end is not before the beginning. */
  readonly notBefore: Date;
  readonly notAfter: Date;
  readonly signatureAlgorithm: SignatureAlgorithm;
  /** Present when the extension is. */
  readonly basicConstraints?: { readonly critical: boolean; readonly ca: boolean; readonly pathLength?: number };
  /** Present when the extension is: bit numbers of RFC 5280 section 4.2.1.3. */
  readonly keyUsage?: ReadonlySet<number>;
  /** Key identifiers, base64url. */
  readonly authorityKeyId?: string;
  readonly subjectKeyId?: string;
  /** SHA-1 of the public key, base64url (RFC 5280 section 4.2.1.2). */
  readonly keyHash: string;
  /** Present when the extension is: dotted object identifiers of purposes (RFC 5280 section 4.2.1.12). */
  readonly extendedKeyUsage?: ReadonlySet<string>;
  /** Dotted object identifiers. */
  readonly extensions: ReadonlySet<string>;
  readonly criticalExtensions: ReadonlySet<string>;
};

export const KEY_USAGE = { digitalSignature: 0, keyCertSign: 5, cRLSign: 6 } as const;

const EXTENSION = {
  subjectKeyId: '2.5.29.14',
  keyUsage: '2.5.29.15',
  basicConstraints: '2.5.29.19',
  authorityKeyId: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
} as const;

/**
 * Parses a certificate strictly. `undefined` for an invalid certificate, also if its times are invalid or its key must not be used, see
 * `parseKeyHash`.
 */
export function parseCertificate(der: Buffer): Certificate | undefined {
  try {
    return parseFields(der);
  } catch {
    // DerError of this service, or an error of OpenSSL.
    return undefined;
  }
}

function parseFields(der: Buffer): Certificate | undefined {
  const [toBeSigned, algorithm] = parseSequence(der);
  if (toBeSigned === undefined || algorithm === undefined) return undefined;
  const fields = fieldsOf(toBeSigned);
  const [inner, issuer, validity, subject, publicKey] = fields;
  if (inner === undefined || issuer === undefined || subject === undefined) return undefined;
  // RFC 5280 section 4.1.1.2: both must be the same.
  if (!inner.encoded.equals(algorithm.encoded)) return undefined;

  const keyHash = parseKeyHash(publicKey);

  const x509 = new X509Certificate(der);
  const publicJwk = publicJwkOf(x509.publicKey);
  return {
    hash: hash('sha256', der, 'base64url'),
    x509,
    publicKey: x509.publicKey,
    ...(publicJwk !== undefined && { publicJwk }),
    keyHash,
    subjectText: formatName(subject.encoded),
    subject: subject.encoded.toString('hex'),
    issuer: issuer.encoded.toString('hex'),
    ...parseValidity(validity),
    signatureAlgorithm: parseSignatureAlgorithm(algorithm),
    ...parseExtensions(extensionsOf(fields)),
  };
}

/** The fields after the serial number in the signed part (RFC 5280 section 4.1). */
export function fieldsOf(toBeSigned: DerElement): readonly DerElement[] {
  const fields = parseElements(toBeSigned.content);
  // RFC 5280 section 4.1.2.1: the version is left out in version 1.
  return fields.slice(fields[0]?.tag === 0xa0 ? 2 : 1);
}

/** RFC 5280 section 4.1.2.5 */
export function parseValidity(field: DerElement | undefined): Pick<Certificate, 'notBefore' | 'notAfter'> {
  const [begin, end, ...more] = parseSequence(field?.encoded ?? Buffer.alloc(0));
  if (begin === undefined || end === undefined || more.length > 0) throw new DerError('validity');
  const validity = { notBefore: parseTime(begin), notAfter: parseTime(end) };
  if (validity.notAfter < validity.notBefore) throw new DerError('validity');
  return validity;
}

function publicJwkOf(key: KeyObject): PublicJwk | undefined {
  if (key.asymmetricKeyType !== 'ec' && key.asymmetricKeyType !== 'ed25519') return undefined;
  return parsePublicJwk(key.export({ format: 'jwk' }));
}

export type Extension = { readonly critical: boolean; readonly value: Buffer };

/** Extensions by dotted object identifier. @throws Error for a duplicate. */
export function extensionsOf(fields: readonly DerElement[]): ReadonlyMap<string, Extension> {
  return parseExtensionList(fields.find(({ tag }) => tag === 0xa3));
}

/** @param field explicitly tagged `Extensions`; absent for a certificate without extensions. @throws DerError for more than `max`. */
export function parseExtensionList(field: DerElement | undefined, max?: number): ReadonlyMap<string, Extension> {
  const extensions = new Map<string, Extension>();
  for (const extension of field === undefined ? [] : parseSequence(field.content, max)) {
    const parts = parseElements(extension.content, max);
    const oid = parseOid(parts[0]?.content ?? Buffer.alloc(0));
    // RFC 5280 section 4.2: not more than once each
    if (extensions.has(oid)) throw new DerError('an extension occurs twice');
    const critical = parts[1]?.tag === TAG.boolean && parts[1].content[0] !== 0;
    extensions.set(oid, { critical, value: parts.at(-1)?.content ?? Buffer.alloc(0) });
  }
  return extensions;
}

function parseExtensions(extensions: ReadonlyMap<string, Extension>) {
  const basicConstraints = extensions.get(EXTENSION.basicConstraints);
  const keyUsage = extensions.get(EXTENSION.keyUsage);
  const authority = extensions.get(EXTENSION.authorityKeyId);
  const authorityKeyId = authority && parseSequence(authority.value).find((part) => part.tag === 0x80);
  const subjectKeyId = extensions.get(EXTENSION.subjectKeyId);
  const extendedKeyUsage = extensions.get(EXTENSION.extendedKeyUsage);
  const isCritical = (oid: string) => extensions.get(oid)?.critical === true;
  return {
    extensions: new Set(extensions.keys()),
    criticalExtensions: new Set([...extensions.keys()].filter(isCritical)),
    ...(basicConstraints && { basicConstraints: parseBasicConstraints(basicConstraints.value, basicConstraints.critical) }),
    ...(keyUsage && { keyUsage: parseBits(parseElement(keyUsage.value, TAG.bitString).content) }),
    ...(authorityKeyId && { authorityKeyId: authorityKeyId.content.toString('base64url') }),
    ...(subjectKeyId && { subjectKeyId: parseElement(subjectKeyId.value, TAG.octetString).content.toString('base64url') }),
    ...(extendedKeyUsage && { extendedKeyUsage: parsePurposes(extendedKeyUsage.value) }),
  };
}

/** RFC 5280 section 4.2.1.12. @throws DerError also for an empty extension. */
function parsePurposes(value: Buffer): ReadonlySet<string> {
  const purposes = parseSequence(value).map(({ tag, content }) => {
    if (tag !== TAG.oid) throw new DerError('extended key usage');
    return parseOid(content);
  });
  if (purposes.length === 0) throw new DerError('extended key usage');
  return new Set(purposes);
}

/** RFC 5280 section 4.2.1.9 */
function parseBasicConstraints(value: Buffer, critical: boolean) {
  const parts = parseSequence(value);
  const ca = parts.find((part) => part.tag === TAG.boolean);
  const length = parts.find((part) => part.tag === TAG.integer);
  return {
    critical,
    ca: ca !== undefined && ca.content[0] !== 0,
    // Longer numbers are no path lengths; OpenSSL rejects negative ones.
    ...(length !== undefined && { pathLength: length.content.readUIntBE(0, Math.min(length.content.length, 4)) }),
  };
}

/**
 * The identifier of the key in other certificates and lists: the extension, or else the hash of the key.
 * @returns base64url.
 */
export function keyIdentifierOf({ subjectKeyId, keyHash }: Certificate): string {
  return subjectKeyId ?? keyHash;
}

/** Numbers of the set bits of a BIT STRING's content. */
function parseBits(content: Buffer): ReadonlySet<number> {
  const bits = new Set<number>();
  for (let bit = 0; bit < (content.length - 1) * 8; bit++) {
    if (((content[1 + (bit >> 3)] ?? 0) & (0x80 >> (bit & 7))) !== 0) bits.add(bit);
  }
  return bits;
}
