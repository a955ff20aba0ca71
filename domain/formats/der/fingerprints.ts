import { hash } from 'node:crypto';
import { parsePemCertificates } from './pem.ts';

/** @param pems one certificate each. @returns SHA-256 of their DER, base64url; invalid certificates are omitted. */
export function fingerprintsOf(pems: readonly string[]): readonly string[] {
  return pems
    .flatMap((pem) => parsePemCertificates(pem, 1) ?? [])
    .map((certificate) => hash('sha256', Buffer.from(certificate, 'base64'), 'base64url'));
}
