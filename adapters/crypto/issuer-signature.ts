import { verify } from 'node:crypto';
import type { IssuerSigned } from '../../application/ports/certificates.ts';
import type { Certificate } from '../../domain/formats/der/certificate.ts';

type Algorithm = { readonly key: string; readonly digest: string | null };

/** ECDSA and RSA (PKCS #1) with SHA-256, SHA-384 or SHA-512, and Ed25519: the ones that certificates are signed with. */
const ALGORITHMS = new Map<string, Algorithm>([
  ['1.2.840.10045.4.3.2', { key: 'ec', digest: 'sha256' }],
  ['1.2.840.10045.4.3.3', { key: 'ec', digest: 'sha384' }],
  ['1.2.840.10045.4.3.4', { key: 'ec', digest: 'sha512' }],
  ['1.2.840.113549.1.1.11', { key: 'rsa', digest: 'sha256' }],
  ['1.2.840.113549.1.1.12', { key: 'rsa', digest: 'sha384' }],
  ['1.2.840.113549.1.1.13', { key: 'rsa', digest: 'sha512' }],
  ['1.3.101.112', { key: 'ed25519', digest: null }],
]);

/** Whether the key of a certificate signed this; the algorithm has to fit the key. */
export function isIssuerSigned({ publicKey }: Certificate, signed: IssuerSigned): boolean {
  const algorithm = ALGORITHMS.get(signed.algorithm);
  if (algorithm === undefined || algorithm.key !== publicKey.asymmetricKeyType) return false;
  try {
    return verify(algorithm.digest, signed.toBeSigned, publicKey, signed.signature);
  } catch {
    return false;
  }
}
