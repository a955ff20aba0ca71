import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { CertificationRequest, CertificationRequestInfo } from '@peculiar/asn1-csr';
import { id_ecdsaWithSHA256, id_ecdsaWithSHA384, id_ecdsaWithSHA512 } from '@peculiar/asn1-ecc';
import { id_pkcs9_at_extensionRequest } from '@peculiar/asn1-pkcs9';
import { AsnConvert } from '@peculiar/asn1-schema';
import * as asn1 from '@peculiar/asn1-x509';
import {
  CertificateAuthority,
  type CertificateRequest,
  type RevocationListRequest,
  type SigningRequestContent,
} from '../../application/ports/certificate-authority.ts';
import type { Kms, SigningKey } from '../../application/ports/kms.ts';
import type { Random } from '../../application/ports/random.ts';
import { type Certificate, parseCertificate } from '../../domain/formats/der/certificate.ts';
import { derSignature } from '../../domain/formats/der/ecdsa-signature.ts';
import { keyIdentifier } from '../../domain/keys/authority-address.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import { alternativeNames, authorityKeyIdentifier, extension, extensionsOf, USAGES } from './x509-extensions.ts';

/** RFC 5758 section 3.2 for ECDSA, RFC 8410 section 3 for Ed25519, which has no separate hash. */
const SIGNATURES = {
  ES256: { oid: id_ecdsaWithSHA256, hash: 'sha256' },
  ES384: { oid: id_ecdsaWithSHA384, hash: 'sha384' },
  ES512: { oid: id_ecdsaWithSHA512, hash: 'sha512' },
  EdDSA: { oid: '1.3.101.112', hash: null },
} as const;

const SERIAL_BYTES = 20;
/** Attribute types of names (X.520). */
const TYPES = { country: '2.5.4.6', organization: '2.5.4.10', organizationIdentifier: '2.5.4.97', commonName: '2.5.4.3' };

type Ports = { readonly kms: Kms; readonly random: Random };
type Signer = { readonly key: SigningKey; readonly certificate?: string };

/** Creates certificates by RFC 5280 that the KMS signs. */
export class X509Writer extends CertificateAuthority {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    super();
    this.#ports = ports;
  }

  /** @throws Error if the KMS signed with another key than the issuer's certificate, or the request, names. */
  override async issue(request: CertificateRequest, signer: Signer): Promise<string> {
    const issuer = signer.certificate === undefined ? undefined : parseIssuer(signer.certificate);
    const subject = nameOf(request.subject);
    const publicKey = createPublicKey({ key: { ...request.publicJwk }, format: 'jwk' });
    const signatureAlgorithm = algorithmOf(signer.key);
    const tbsCertificate = new asn1.TBSCertificate({
      version: asn1.Version.v3,
      serialNumber: this.#serialNumber(),
      signature: signatureAlgorithm,
      issuer: issuer === undefined ? subject : parseName(issuer.subject),
      validity: new asn1.Validity({ notBefore: request.notBefore, notAfter: request.notAfter }),
      subject,
      subjectPublicKeyInfo: publicKeyInfo(publicKey),
      extensions: new asn1.Extensions(extensionsOf(request, issuer && issuerKeyIdentifier(issuer))),
    });
    const signatureValue = await this.#sign(tbsCertificate, signer.key, issuer?.publicKey ?? publicKey);
    const der = AsnConvert.serialize(new asn1.Certificate({ tbsCertificate, signatureAlgorithm, signatureValue }));
    return Buffer.from(der).toString('base64');
  }

  /** @throws Error if the KMS signed with another key than the certificate names. */
  override async revocationList(
    { thisUpdate, nextUpdate, number, revoked }: RevocationListRequest,
    { key, certificate }: Signer & { readonly certificate: string },
  ): Promise<Buffer> {
    const issuer = parseIssuer(certificate);
    const signatureAlgorithm = algorithmOf(key);
    const tbsCertList = new asn1.TBSCertList({
      version: asn1.Version.v2,
      signature: signatureAlgorithm,
      issuer: parseName(issuer.subject),
      thisUpdate: new asn1.Time(thisUpdate),
      nextUpdate: new asn1.Time(nextUpdate),
      // RFC 5280 section 5.1.2.6: absent rather than empty.
      ...(revoked.length === 0 ? {} : { revokedCertificates: revoked.map(revokedCertificate) }),
      crlExtensions: [authorityKeyIdentifier(issuerKeyIdentifier(issuer)), extension(asn1.id_ce_cRLNumber, new asn1.CRLNumber(number))],
    });
    const signature = await this.#sign(tbsCertList, key, issuer.publicKey);
    return Buffer.from(AsnConvert.serialize(new asn1.CertificateList({ tbsCertList, signatureAlgorithm, signature })));
  }

  /** @throws Error if the KMS signed with another key than the one to be certified. */
  override async request({ subject, publicJwk, dnsNames }: SigningRequestContent, key: SigningKey): Promise<string> {
    const publicKey = createPublicKey({ key: { ...publicJwk }, format: 'jwk' });
    const extensions = new asn1.Extensions([USAGES.leaf, ...alternativeNames(dnsNames)]);
    const certificationRequestInfo = new CertificationRequestInfo({ subject: nameOf(subject), subjectPKInfo: publicKeyInfo(publicKey) });
    certificationRequestInfo.attributes.push(
      new asn1.Attribute({ type: id_pkcs9_at_extensionRequest, values: [AsnConvert.serialize(extensions)] }),
    );
    // RFC 2986 section 3: the signature proves possession of the key.
    const signature = await this.#sign(certificationRequestInfo, key, publicKey);
    const signatureAlgorithm = algorithmOf(key);
    const request = new CertificationRequest({ certificationRequestInfo, signatureAlgorithm, signature });
    return Buffer.from(AsnConvert.serialize(request)).toString('base64');
  }

  /** RFC 5280 section 4.1.2.2: positive and at most 20 bytes. The set second bit keeps the DER form minimal. */
  #serialNumber(): ArrayBuffer {
    const serial = this.#ports.random.bytes(SERIAL_BYTES);
    serial.writeUInt8((serial.readUInt8(0) & 0x7f) | 0x40, 0);
    return bufferOf(serial);
  }

  /**
   * @param content an object of the ASN.1 schema.
   * @param publicKey by which others will verify the signature.
   * @returns the value of the BIT STRING.
   */
  async #sign(content: unknown, key: SigningKey, publicKey: KeyObject): Promise<ArrayBuffer> {
    const der = new Uint8Array(AsnConvert.serialize(content));
    const raw = await this.#ports.kms.sign(key, der);
    const { algorithm } = key.handle;
    const signature = algorithm === 'EdDSA' ? raw : derSignature(raw);
    if (!isSigned(der, SIGNATURES[algorithm].hash, publicKey, signature))
      throw new Error('The signing key does not belong to the certificate.');
    return bufferOf(signature);
  }
}

/** A key of another type than the algorithm's makes OpenSSL throw. */
function isSigned(content: Uint8Array, hash: string | null, publicKey: KeyObject, signature: Uint8Array): boolean {
  try {
    return verify(hash, content, publicKey, signature);
  } catch {
    return false;
  }
}

const algorithmOf = (key: SigningKey) => new asn1.AlgorithmIdentifier({ algorithm: SIGNATURES[key.handle.algorithm].oid });

const bufferOf = (bytes: Uint8Array): ArrayBuffer => new Uint8Array(bytes).buffer;

/** @param name DER in hexadecimal. */
const parseName = (name: string) => AsnConvert.parse(Buffer.from(name, 'hex'), asn1.Name);

/** RFC 5280 section 4.1.2.7 */
function publicKeyInfo(publicKey: KeyObject): asn1.SubjectPublicKeyInfo {
  return AsnConvert.parse(publicKey.export({ format: 'der', type: 'spki' }), asn1.SubjectPublicKeyInfo);
}

/** RFC 5280 section 4.1.2.4: the country is a PrintableString, all other parts are UTF-8. */
function nameOf(subject: CertificateRequest['subject']): asn1.Name {
  const part = (type: string, value: Partial<asn1.AttributeValue>) =>
    new asn1.RelativeDistinguishedName([new asn1.AttributeTypeAndValue({ type, value: new asn1.AttributeValue(value) })]);
  const { country, organization, organizationIdentifier, commonName } = subject;
  return new asn1.Name([
    ...(country === undefined ? [] : [part(TYPES.country, { printableString: country })]),
    ...(organization === undefined ? [] : [part(TYPES.organization, { utf8String: organization })]),
    ...(organizationIdentifier === undefined ? [] : [part(TYPES.organizationIdentifier, { utf8String: organizationIdentifier })]),
    part(TYPES.commonName, { utf8String: commonName }),
  ]);
}

function revokedCertificate({ serialNumber, revokedAt }: RevocationListRequest['revoked'][number]): asn1.RevokedCertificate {
  return new asn1.RevokedCertificate({
    userCertificate: integerContent(serialNumber),
    revocationDate: new asn1.Time(revokedAt),
    crlEntryExtensions: [extension(asn1.id_ce_cRLReasons, new asn1.CRLReason(asn1.CRLReasons.keyCompromise))],
  });
}

/** @param hex not negative. @returns the content octets of X.690 section 8.3. */
function integerContent(hex: string): ArrayBuffer {
  const digits = hex.replace(/^0+(?=.)/, '');
  const even = digits.length % 2 === 0 ? digits : `0${digits}`;
  return bufferOf(Buffer.from(/^[89a-f]/i.test(even) ? `00${even}` : even, 'hex'));
}

/** @throws Error for an invalid certificate. */
function parseIssuer(certificate: string): Certificate {
  const issuer = parseCertificate(Buffer.from(certificate, 'base64'));
  if (issuer === undefined) throw new Error('The issuing certificate cannot be read.');
  return issuer;
}

/** RFC 5280 section 4.2.1.1: the identifier in the issuer's certificate, computed only if it states none. */
function issuerKeyIdentifier({ subjectKeyId, publicKey }: Certificate): string {
  if (subjectKeyId !== undefined) return Buffer.from(subjectKeyId, 'base64url').toString('hex');
  return keyIdentifier(publicKey.export({ format: 'jwk' }) as PublicJwk);
}
