import { webcrypto } from 'node:crypto';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { writePemCertificates } from '../../domain/formats/der/pem.ts';
import { type HolderKey, newKey } from './raw-wallet.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** A key with a certificate, made outside the service. */
export type Certified = HolderKey & {
  readonly name: string;
  /** DER in standard base64. */
  readonly certificate: string;
};

export type CertificateOptions = {
  readonly name: string;
  /** Absent: the certificate signs itself. */
  readonly by?: Certified;
  readonly ca?: boolean;
  readonly key?: HolderKey;
  /** X.520 `organizationIdentifier` of the subject. */
  readonly organizationIdentifier?: string;
  /** Host names. */
  readonly dns?: readonly string[];
  readonly from?: string;
  readonly until?: string;
  /** False: the key usage of a leaf is another one than signatures. */
  readonly signs?: boolean;
  /** Extended key usages, dotted. */
  readonly purposes?: readonly string[];
};

/** A certificate that is right in every respect that `options` does not change. */
export async function certify(options: CertificateOptions): Promise<Certified> {
  const { key = newKey() } = options;
  return { ...key, name: options.name, certificate: await certificateFor(key.jwk, options, key) };
}

/** A certificate for a key of somebody else. @returns DER in standard base64. */
export function certifyKey(
  jwk: HolderKey['jwk'],
  options: CertificateOptions & { readonly by: Certified },
): Promise<string> {
  return certificateFor(jwk, options, options.by);
}

async function certificateFor(
  jwk: HolderKey['jwk'],
  options: CertificateOptions,
  self: HolderKey,
): Promise<string> {
  const { name, by, ca = false, organizationIdentifier, dns = [], purposes = [] } = options;
  const publicKey = await importPublic(jwk);
  const signer = by ?? self;
  const leafUsage = options.signs === false ? KeyUsageFlags.keyAgreement : KeyUsageFlags.digitalSignature;
  const usage = ca ? KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign : leafUsage;
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
      await SubjectKeyIdentifierExtension.create(publicKey),
      await AuthorityKeyIdentifierExtension.create(await importPublic(signer.jwk)),
      ...(dns.length > 0
        ? [new SubjectAlternativeNameExtension(dns.map((value) => ({ type: 'dns', value })))]
        : []),
      ...(purposes.length > 0 ? [new ExtendedKeyUsageExtension([...purposes])] : []),
    ],
  });
  return Buffer.from(certificate.rawData).toString('base64');
}

export function pem({ certificate }: Certified): string {
  return writePemCertificates([certificate]);
}

function importPublic(jwk: HolderKey['jwk']) {
  return webcrypto.subtle.importKey('jwk', jwk, ALGORITHM, true, ['verify']);
}

function importPrivate({ privateKey }: HolderKey) {
  const pkcs8 = privateKey.export({ format: 'der', type: 'pkcs8' });
  return webcrypto.subtle.importKey('pkcs8', pkcs8, ALGORITHM, true, ['sign']);
}
