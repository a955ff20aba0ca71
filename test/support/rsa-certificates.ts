import { createPublicKey, generateKeyPairSync, webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';

const SIGNATURE = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** The numbers of an RSA key, as long as they are asked for. */
export type RsaNumbers = { readonly bits?: number; readonly exponent?: Buffer };

/** SubjectPublicKeyInfo of an RSA key; nobody has the private half when the numbers are made up. */
export function rsaKey({ bits = 2048, exponent }: RsaNumbers = {}): Buffer {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: bits });
  if (exponent === undefined) return publicKey.export({ format: 'der', type: 'spki' });
  const { n = '' } = publicKey.export({ format: 'jwk' });
  const key = { kty: 'RSA', n, e: exponent.toString('base64url') };
  return createPublicKey({ key, format: 'jwk' }).export({ format: 'der', type: 'spki' });
}

/**
 * A certificate for any key that names an issuer who never saw it: only its signature is wrong.
 * @param spki of the key; an RSA key for a CA, as strangers send them.
 * @returns DER in standard base64.
 */
export async function pretend(
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
