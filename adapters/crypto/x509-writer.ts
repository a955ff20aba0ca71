import 'reflect-metadata';
import { createPublicKey, webcrypto, X509Certificate } from 'node:crypto';
import {
  AuthorityKeyIdentifierExtension,
  Extension,
  type JsonNameParams,
  Name,
  Pkcs10CertificateRequestGenerator,
  X509CertificateGenerator,
  X509CrlGenerator,
  X509CrlReason,
} from '@peculiar/x509';
import {
  CertificateAuthority,
  type CertificateRequest,
  type RevocationListRequest,
  type SigningRequestContent,
} from '../../application/ports/certificate-authority.ts';
import type { Kms, SigningKey } from '../../application/ports/kms.ts';
import type { Random } from '../../application/ports/random.ts';
import { type Certificate, parseCertificate } from '../../domain/formats/der/certificate.ts';
import { keyIdentifier } from '../../domain/keys/authority-address.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import { alternativeNames, extensionsOf, USAGES } from './x509-extensions.ts';

/** Algorithms in the generator's terms: RFC 5758 section 3.2 for ECDSA, RFC 8410 section 3 for Ed25519. */
const SIGNATURES = {
  ES256: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  ES384: { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' },
  ES512: { name: 'ECDSA', namedCurve: 'P-521', hash: 'SHA-512' },
  EdDSA: { name: 'Ed25519' },
} as const;

const SERIAL_BYTES = 20;
/** RFC 5280 section 5.2.3 */
const CRL_NUMBER = '2.5.29.20';
const ORGANIZATION_IDENTIFIER = '2.5.4.97';

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
    const subject = new Name(subjectName(request.subject));
    const certificate = await X509CertificateGenerator.create(
      {
        serialNumber: this.#serialNumber(),
        subject,
        issuer: issuer === undefined ? subject : new Name(Buffer.from(issuer.subject, 'hex')),
        notBefore: request.notBefore,
        notAfter: request.notAfter,
        publicKey: spki(request.publicJwk),
        signingKey: cryptoKey(signer.key),
        extensions: extensionsOf(request, issuer && issuerKeyIdentifier(issuer)),
      },
      this.#signingCrypto(signer.key, request.publicJwk),
    );

    const created = new X509Certificate(Buffer.from(certificate.rawData));
    if (!created.verify(issuer?.publicKey ?? created.publicKey))
      throw new Error('The signing key does not belong to the issuing certificate.');
    return created.raw.toString('base64');
  }

  /** @throws Error if the KMS signed with another key than the certificate names. */
  override async revocationList(
    { thisUpdate, nextUpdate, number, revoked }: RevocationListRequest,
    { key, certificate }: Signer & { readonly certificate: string },
  ): Promise<Buffer> {
    const issuer = parseIssuer(certificate);
    const { publicJwk } = issuer;
    if (publicJwk === undefined) throw new Error('The issuing certificate has a key of another type.');
    const list = await X509CrlGenerator.create(
      {
        issuer: new Name(Buffer.from(issuer.subject, 'hex')),
        thisUpdate,
        nextUpdate,
        signingAlgorithm: SIGNATURES[key.handle.algorithm],
        signingKey: cryptoKey(key),
        extensions: [
          new AuthorityKeyIdentifierExtension(issuerKeyIdentifier(issuer)),
          new Extension(CRL_NUMBER, false, derInteger(number)),
        ],
        entries: revoked.map(({ serialNumber, revokedAt }) => ({
          serialNumber,
          revocationDate: revokedAt,
          reason: X509CrlReason.keyCompromise,
        })),
      },
      this.#signingCrypto(key, publicJwk),
    );
    return Buffer.from(list.rawData);
  }

  /** @throws Error if the KMS signed with another key than the one to be certified. */
  override async request({ subject, publicJwk, dnsNames }: SigningRequestContent, key: SigningKey): Promise<string> {
    const request = await Pkcs10CertificateRequestGenerator.create(
      {
        name: new Name(subjectName(subject)),
        keys: { publicKey: cryptoKey(key), privateKey: cryptoKey(key) },
        signingAlgorithm: SIGNATURES[key.handle.algorithm],
        extensions: [USAGES.leaf, ...alternativeNames(dnsNames)],
      },
      this.#signingCrypto(key, publicJwk),
    );
    // RFC 2986 section 3: the signature proves possession of the key.
    if (!(await request.verify(webcrypto))) throw new Error('The signing key differs from the key to be certified.');
    return Buffer.from(request.rawData).toString('base64');
  }

  /** RFC 5280 section 4.1.2.2: positive and at most 20 bytes. The set second bit keeps the DER form minimal. */
  #serialNumber(): string {
    const serial = this.#ports.random.bytes(SERIAL_BYTES);
    serial.writeUInt8((serial.readUInt8(0) & 0x7f) | 0x40, 0);
    return serial.toString('hex');
  }

  /** The generators use a `Crypto` object for the signature, which the KMS creates, and for the public key. */
  #signingCrypto(key: SigningKey, publicJwk: PublicJwk): webcrypto.Crypto {
    const { kms } = this.#ports;
    const subtle = {
      exportKey: async (): Promise<ArrayBuffer> => spki(publicJwk).buffer,
      async sign(_algorithm: unknown, _key: unknown, data: ArrayBuffer): Promise<ArrayBuffer> {
        return new Uint8Array(await kms.sign(key, new Uint8Array(data))).buffer;
      },
    };
    return { subtle } as unknown as webcrypto.Crypto;
  }
}

/** RFC 5280 section 4.1.2.7 */
function spki(publicJwk: PublicJwk): Uint8Array<ArrayBuffer> {
  const key = createPublicKey({ key: { ...publicJwk }, format: 'jwk' });
  return new Uint8Array(key.export({ format: 'der', type: 'spki' }));
}

/** The generators read only the algorithm; the key itself never leaves the KMS. */
function cryptoKey(key: SigningKey): webcrypto.CryptoKey {
  return { algorithm: SIGNATURES[key.handle.algorithm] } as unknown as webcrypto.CryptoKey;
}

/** RFC 5280 section 4.1.2.4: the country is a PrintableString, all other parts are UTF-8. */
function subjectName(subject: CertificateRequest['subject']): JsonNameParams {
  const { country, organization, organizationIdentifier, commonName } = subject;
  return [
    ...(country === undefined ? [] : [{ C: [{ printableString: country }] }]),
    ...(organization === undefined ? [] : [{ O: [{ utf8String: organization }] }]),
    ...(organizationIdentifier === undefined ? [] : [{ [ORGANIZATION_IDENTIFIER]: [{ utf8String: organizationIdentifier }] }]),
    { CN: [{ utf8String: commonName }] },
  ];
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

/** X.690 section 8.3, for a number that is not negative. */
function derInteger(value: number): Uint8Array<ArrayBuffer> {
  const digits = value.toString(16);
  const even = digits.length % 2 === 0 ? digits : `0${digits}`;
  const bytes = Buffer.from(/^[89a-f]/.test(even) ? `00${even}` : even, 'hex');
  return new Uint8Array(Buffer.concat([Buffer.of(0x02, bytes.length), bytes]));
}
