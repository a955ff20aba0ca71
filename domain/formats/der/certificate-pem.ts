import { textUpTo } from '../../shared/bounds.ts';
import { parseCertificate } from './certificate.ts';
import { parsePemCertificates } from './pem.ts';

/** PEM of a CA certificate, or of a signer's certificate as a pin. */
export const CertificatePem = textUpTo(20_000).refine((pem) => {
  const [der] = parsePemCertificates(pem, 1) ?? [];
  return der !== undefined && parseCertificate(Buffer.from(der, 'base64')) !== undefined;
}, 'one certificate as PEM; an RSA key has 2048 to 4096 bits');
