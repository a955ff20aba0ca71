import { createPublicKey, generateKeyPairSync, sign, webcrypto } from 'node:crypto';
import {
  AuthorityInfoAccessExtension,
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  CRLDistributionPointsExtension,
  ExtendedKeyUsageExtension,
  Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { writePemCertificates } from '../../domain/formats/der/pem.ts';
import { parseElements, parseSequence } from '../../domain/formats/der/reader.ts';
import { MDL_DOCUMENT_SIGNER } from '../../domain/formats/mdoc/document-signer.ts';
import { type HolderKey, newKey } from './raw-wallet.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** A key with a certificate, created outside the service. */
export type CertifiedKey = HolderKey & {
  readonly name: string;
  /** DER in standard base64. */
  readonly certificate: string;
};

export type CertificateOptions = {
  /** The common name, with optional further attributes: `Issuer, C=GB`. */
  readonly name: string;
  /** Absent: the certificate is self-signed. */
  readonly by?: CertifiedKey;
  readonly ca?: boolean;
  readonly key?: HolderKey;
  /** X.520 `organizationIdentifier` of the subject. */
  readonly organizationIdentifier?: string;
  /** Host names. */
  readonly dns?: readonly string[];
  readonly from?: string;
  readonly until?: string;
  /** Validity as raw UTCTime: 13 characters, valid or not. */
  readonly validity?: { readonly notBefore?: string; readonly notAfter?: string };
  /** False: the key usage of a leaf does not include signatures. */
  readonly signs?: boolean;
  /** Extended key usages, dotted. */
  readonly purposes?: readonly string[];
  /** Key identifiers of the subject and its CA, hexadecimal; derived from the keys by default; null: none. */
  readonly keyId?: string | null;
  readonly authorityKeyId?: string;
  /** Addresses of CRLs, each in a separate distribution point. */
  readonly crlUrls?: readonly string[];
  /** Address of an OCSP responder. */
  readonly ocsp?: string;
  /** False: the CA may not sign CRLs. */
  readonly signsCrls?: boolean;
  /** Whether it has the noRevAvail extension (RFC 9608). */
  readonly neverRevoked?: boolean;
  /** Whether the extended key usage is critical. */
  readonly critical?: boolean;
};

/** Creates a certificate with these options. */
export async function certify(options: CertificateOptions): Promise<CertifiedKey> {
  const { key = newKey() } = options;
  return { ...key, name: options.name, certificate: await certificateFor(key.jwk, options, key) };
}

/** Options of a document signer of driving licences (ISO/IEC 18013-5 section B.1.4). */
export const DOCUMENT_SIGNER = { purposes: [MDL_DOCUMENT_SIGNER], critical: true } as const;

/** Extended key usages of TLS servers (RFC 5280 section 4.2.1.12) and of mdoc readers (ISO/IEC 18013-5). */
export const WEB_SERVER = '1.3.6.1.5.5.7.3.1';
export const READER = '1.0.18013.5.1.6';

/** Certifies an existing public key. @returns DER in standard base64. */
export function certifyKey(jwk: HolderKey['jwk'], options: CertificateOptions & { readonly by: CertifiedKey }): Promise<string> {
  return certificateFor(jwk, options, options.by);
}

async function certificateFor(jwk: HolderKey['jwk'], options: CertificateOptions, self: HolderKey): Promise<string> {
  const { name, by, ca = false, organizationIdentifier, dns = [], purposes = [] } = options;
  const publicKey = await importPublic(jwk);
  const signer = by ?? self;
  const leafUsage = options.signs === false ? KeyUsageFlags.keyAgreement : KeyUsageFlags.digitalSignature;
  const crlUsage = options.signsCrls === false ? 0 : KeyUsageFlags.cRLSign;
  const usage = ca ? KeyUsageFlags.keyCertSign | crlUsage : leafUsage;
  const certificate = await X509CertificateGenerator.create({
    subject: `CN=${name}${organizationIdentifier === undefined ? '' : `, 2.5.4.97=${organizationIdentifier}`}`,
    issuer: `CN=${by?.name ?? name}`,
    notBefore: new Date(options.from ?? '2025-01-01T00:00:00Z'),
    notAfter: new Date(options.until ?? '2046-01-01T00:00:00Z'),
    publicKey,
    signingKey: await importPrivate(signer),
    signingAlgorithm: ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(ca, undefined, true),
      new KeyUsagesExtension(usage, true),
      ...(await subjectKeyId(options, publicKey)),
      options.authorityKeyId === undefined
        ? await AuthorityKeyIdentifierExtension.create(await importPublic(signer.jwk))
        : new AuthorityKeyIdentifierExtension(options.authorityKeyId),
      ...(dns.length > 0 ? [new SubjectAlternativeNameExtension(dns.map((value) => ({ type: 'dns', value })))] : []),
      ...revocationExtensions(options),
      ...(purposes.length > 0 ? [new ExtendedKeyUsageExtension([...purposes], options.critical)] : []),
    ],
  });
  const der = Buffer.from(certificate.rawData);
  const { validity } = options;
  return (validity === undefined ? der : withTimes(der, validity, signer)).toString('base64');
}

function revocationExtensions({ crlUrls: lists = [], ocsp, neverRevoked = false }: CertificateOptions): readonly Extension[] {
  return [
    ...(lists.length > 0 ? [new CRLDistributionPointsExtension([...lists])] : []),
    ...(ocsp === undefined ? [] : [new AuthorityInfoAccessExtension({ ocsp: [ocsp] })]),
    ...(neverRevoked ? [new Extension('2.5.29.56', false, new Uint8Array([5, 0]))] : []),
  ];
}

/** The certificate with other times, signed again. */
function withTimes(der: Buffer, { notBefore, notAfter }: NonNullable<CertificateOptions['validity']>, { privateKey }: HolderKey): Buffer {
  const [toBeSigned, algorithm] = parseSequence(Buffer.from(der));
  if (toBeSigned === undefined || algorithm === undefined) throw new Error('no certificate');
  // Version, serial number, algorithm and issuer precede the validity (RFC 5280 section 4.1).
  const times = parseElements(parseElements(toBeSigned.content)[4]?.content ?? Buffer.alloc(0));
  for (const [position, text] of [notBefore, notAfter].entries()) {
    const content = times[position]?.content;
    if (text === undefined) continue;
    if (content?.length !== text.length) throw new Error('another form of time');
    content.write(text, 'latin1');
  }
  const signature = sign('sha256', toBeSigned.encoded, privateKey);
  const bits = Buffer.concat([Buffer.from([0x03, signature.length + 1, 0]), signature]);
  const content = Buffer.concat([toBeSigned.encoded, algorithm.encoded, bits]);
  const header = Buffer.from([0x30, 0x82, content.length >> 8, content.length & 0xff]);
  return Buffer.concat([header, content]);
}

/** Invalid times by their fault. */
export const UNREADABLE_TIMES: Readonly<Record<string, NonNullable<CertificateOptions['validity']>>> = {
  'an end on day 99 of month 13': { notAfter: '271399000000Z' },
  'an end on 30 February': { notAfter: '270230000000Z' },
  'an end at 24 hours': { notAfter: '270228240000Z' },
  'a beginning that is no time': { notBefore: 'aaaaaaaaaaaaZ' },
  'an end before its beginning': { notBefore: '260101000000Z', notAfter: '250101000000Z' },
};

export function pem({ certificate }: CertifiedKey): string {
  return writePemCertificates([certificate]);
}

async function subjectKeyId(
  { keyId }: CertificateOptions,
  publicKey: webcrypto.CryptoKey,
): Promise<readonly SubjectKeyIdentifierExtension[]> {
  if (keyId === null) return [];
  return [keyId === undefined ? await SubjectKeyIdentifierExtension.create(publicKey) : new SubjectKeyIdentifierExtension(keyId)];
}

function importPublic(jwk: HolderKey['jwk']) {
  return webcrypto.subtle.importKey('jwk', jwk, ALGORITHM, true, ['verify']);
}

function importPrivate({ privateKey }: HolderKey) {
  const pkcs8 = privateKey.export({ format: 'der', type: 'pkcs8' });
  return webcrypto.subtle.importKey('pkcs8', pkcs8, ALGORITHM, true, ['sign']);
}

const SIGNATURE = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** Size and exponent of an RSA key. */
export type RsaNumbers = { readonly bits?: number; readonly exponent?: Buffer };

/** SubjectPublicKeyInfo of an RSA key; no private key exists for random numbers. */
export function rsaKey({ bits = 2048, exponent }: RsaNumbers = {}): Buffer {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: bits });
  if (exponent === undefined) return publicKey.export({ format: 'der', type: 'spki' });
  const { n = '' } = publicKey.export({ format: 'jwk' });
  const key = { kty: 'RSA', n, e: exponent.toString('base64url') };
  return createPublicKey({ key, format: 'jwk' }).export({ format: 'der', type: 'spki' });
}

/**
 * Forges a certificate for any key in the name of an issuer: only its signature is invalid.
 * @param spki SubjectPublicKeyInfo of the key.
 * @returns DER in standard base64.
 */
export async function forgeCertificate(
  names: { readonly subject: string; readonly issuer: string },
  spki: Buffer,
  ca = true,
): Promise<string> {
  const { privateKey } = await webcrypto.subtle.generateKey(SIGNATURE, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.create({
    ...names,
    notBefore: new Date('2025-01-01T00:00:00Z'),
    notAfter: new Date('2046-01-01T00:00:00Z'),
    publicKey: new Uint8Array(spki),
    signingKey: privateKey,
    signingAlgorithm: SIGNATURE,
    extensions: [
      new BasicConstraintsExtension(ca, undefined, true),
      new KeyUsagesExtension(ca ? KeyUsageFlags.keyCertSign : KeyUsageFlags.digitalSignature, true),
    ],
  });
  return Buffer.from(certificate.rawData).toString('base64');
}
