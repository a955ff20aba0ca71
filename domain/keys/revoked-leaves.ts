import { X509Certificate } from 'node:crypto';
import { keyIdentifier } from './authority-address.ts';
import { compromisedKeys, issuedCertificates, type RecordedKey } from './compromised-keys.ts';
import type { KeyChain, KeyRoot } from './key-chain.ts';

/** Entry of an authority's revocation list (RFC 5280 section 5.3). */
export type RevokedCertificate = { readonly serialNumber: string; readonly revokedAt: Date };

/** @returns undefined when no key chain of the tenant has this authority. */
export function authorityOf(chains: readonly KeyChain[], authorityId: string): KeyRoot | undefined {
  return chains.find(({ root }) => root !== undefined && keyIdentifier(root.key.publicJwk) === authorityId)?.root;
}

/**
 * Certificates of this authority for compromised keys, sorted by serial number.
 * @param records of keys whose key chains may be deleted.
 */
export function revokedCertificatesOf(
  chains: readonly KeyChain[],
  root: Pick<KeyRoot, 'certificate'>,
  records: readonly RecordedKey[] = [],
): readonly RevokedCertificate[] {
  const compromised = compromisedKeys(chains, records);
  const issuedEntries = [
    ...chains.flatMap(issuedCertificates),
    ...records.flatMap(({ thumbprint, certificates }) => certificates.map((certificate) => ({ ...certificate, thumbprint }))),
  ];
  const revoked = new Map<string, RevokedCertificate>();
  for (const { root: issuer, certificate, thumbprint } of issuedEntries) {
    const revokedAt = compromised.get(thumbprint);
    if (revokedAt === undefined || issuer !== root.certificate) continue;
    const { serialNumber } = new X509Certificate(Buffer.from(certificate, 'base64'));
    revoked.set(serialNumber, { serialNumber, revokedAt });
  }
  return [...revoked.values()].sort((a, b) => (a.serialNumber < b.serialNumber ? -1 : 1));
}

const HOUR_MS = 60 * 60 * 1000;
const PERIOD_MS = 6 * HOUR_MS;
const VALID_MS = 7 * 24 * HOUR_MS;

export type ListTimes = { readonly thisUpdate: Date; readonly nextUpdate: Date };

/**
 * Times of an authority's list. They are computed from the clock, so that all processes agree without communication: verifiers reject a
 * list that is older than one they saw.
 */
export function listTimes(revoked: readonly RevokedCertificate[], now: Date): ListTimes {
  const period = Math.floor(now.getTime() / PERIOD_MS) * PERIOD_MS;
  const latest = Math.max(period, ...revoked.map(({ revokedAt }) => revokedAt.getTime()));
  const thisUpdate = Math.floor(latest / 1000) * 1000;
  return { thisUpdate: new Date(thisUpdate), nextUpdate: new Date(thisUpdate + VALID_MS) };
}
