import { webcrypto } from 'node:crypto';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
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
  readonly from?: string;
  readonly until?: string;
};

/** A certificate that is right in every respect that `options` does not change. */
export async function certify(options: CertificateOptions): Promise<Certified> {
  const { name, by, ca = false, key = newKey() } = options;
  const keys = await importKeys(key);
  const signer = by === undefined ? keys : await importKeys(by);
  const usage = ca ? KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign : KeyUsageFlags.digitalSignature;
  const certificate = await X509CertificateGenerator.create({
    subject: `CN=${name}`,
    issuer: `CN=${by?.name ?? name}`,
    notBefore: new Date(options.from ?? '2025-01-01T00:00:00Z'),
    notAfter: new Date(options.until ?? '2046-01-01T00:00:00Z'),
    publicKey: keys.publicKey,
    signingKey: signer.privateKey,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(ca, undefined, true),
      new KeyUsagesExtension(usage, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
      await AuthorityKeyIdentifierExtension.create(signer.publicKey),
    ],
  });
  return { ...key, name, certificate: Buffer.from(certificate.rawData).toString('base64') };
}

export function pem({ certificate }: Certified): string {
  return writePemCertificates([certificate]);
}

async function importKeys({ privateKey, jwk }: HolderKey) {
  const { subtle } = webcrypto;
  const pkcs8 = privateKey.export({ format: 'der', type: 'pkcs8' });
  return {
    privateKey: await subtle.importKey('pkcs8', pkcs8, ALGORITHM, true, ['sign']),
    publicKey: await subtle.importKey('jwk', jwk, ALGORITHM, true, ['verify']),
  };
}
