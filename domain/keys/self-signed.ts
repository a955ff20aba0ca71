import { parseCertificate } from '../formats/der/certificate.ts';
import { isSameName } from '../formats/der/name.ts';
import { invalidInput } from '../shared/failure.ts';
import type { KeyLeaf, KeyUsage } from './key-chain.ts';

/**
 * HAIP 1.0 sections 5, 6.1 and 6.1.1: wallets and verifiers reject requests, status lists and credentials under a self-signed certificate.
 * Verifiers of a trust list pin its signer.
 * @throws Failure `invalid_input` at `path`.
 */
export function assertSelfSignedUsage(usages: readonly KeyUsage[], path: string): void {
  const otherUsage = usages.find((usage) => usage !== 'trustList');
  if (otherUsage === undefined) return;
  throw invalidInput(path, `A self-signed key chain is only accepted for "trustList", not for "${otherUsage}".`);
}

export function isSelfSigned({ certificates: [leafCertificate = ''] }: KeyLeaf): boolean {
  const certificate = parseCertificate(Buffer.from(leafCertificate, 'base64'));
  return certificate !== undefined && isSameName(certificate.subject, certificate.issuer);
}
