import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { X509CertificateGenerator } from '@peculiar/x509';
import type { Key } from './jwt.ts';

/** A self-signed certificate without any trust. */
export async function selfSignedCertificate(key: Key, subject: string): Promise<string> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = {
    privateKey: await webcrypto.subtle.importKey('jwk', key.privateKey.export({ format: 'jwk' }) as webcrypto.JsonWebKey, algorithm, true, [
      'sign',
    ]),
    publicKey: await webcrypto.subtle.importKey('jwk', key.jwk, algorithm, true, ['verify']),
  };
  const times = { notBefore: new Date(Date.now() - 86_400_000), notAfter: new Date(Date.now() + 86_400_000) };
  const certificate = await X509CertificateGenerator.createSelfSigned(
    { name: subject, keys: keys as never, signingAlgorithm: algorithm, ...times },
    webcrypto as never,
  );
  return Buffer.from(certificate.rawData).toString('base64');
}
