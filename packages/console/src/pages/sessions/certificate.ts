import { bytesOfBase64 } from '../../../../wallet/src/core/formats/base64.ts';
import { readCertificate as readDer } from '../decoder/certificate.ts';

export type CertificateSummary = { readonly subject: string; readonly issuer: string; readonly notAfter: Date; readonly daysLeft: number };

const MOST_CHARACTERS = 64 * 1024;

/** @param text base64 of DER, as `x5c` has it. @returns undefined for what is no certificate. */
export function readCertificate(text: unknown, now = Date.now()): CertificateSummary | undefined {
  if (typeof text !== 'string' || text.length > MOST_CHARACTERS) return undefined;
  try {
    const { subject, issuer, notAfter, daysLeft } = readDer(bytesOfBase64(text), new Date(now));
    return { subject: subject || 'without a name', issuer: issuer || 'without a name', notAfter: new Date(notAfter), daysLeft };
  } catch {
    return undefined;
  }
}
