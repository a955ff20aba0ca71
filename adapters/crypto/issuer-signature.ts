import { constants, type KeyObject, verify } from 'node:crypto';
import type { IssuerSigned } from '../../application/ports/certificates.ts';
import type { Certificate } from '../../domain/formats/der/certificate.ts';
import type { PssParameters } from '../../domain/formats/der/signature-algorithm.ts';

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
  try {
    return signed.algorithm.pss === undefined
      ? isSignedPlainly(publicKey, signed)
      : isSignedByPss(publicKey, signed, signed.algorithm.pss);
  } catch {
    return false;
  }
}

function isSignedPlainly(
  key: KeyObject,
  { algorithm: { oid }, toBeSigned, signature }: IssuerSigned,
): boolean {
  const algorithm = ALGORITHMS.get(oid);
  if (algorithm === undefined || algorithm.key !== key.asymmetricKeyType) return false;
  return verify(algorithm.digest, toBeSigned, key, signature);
}

/** RFC 4055 section 3: also with a key that is for PKCS #1 as well. */
function isSignedByPss(
  key: KeyObject,
  { toBeSigned, signature }: IssuerSigned,
  { hash, saltLength }: PssParameters,
): boolean {
  if (key.asymmetricKeyType !== 'rsa' && key.asymmetricKeyType !== 'rsa-pss') return false;
  const padding = constants.RSA_PKCS1_PSS_PADDING;
  return verify(hash, toBeSigned, { key, padding, saltLength }, signature);
}
