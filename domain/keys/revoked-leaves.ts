import { X509Certificate } from 'node:crypto';
import { keyIdentifier } from './authority-address.ts';
import { compromisedKeys, issuedCertificates, type RecordedKey } from './compromised-keys.ts';
import type { KeyChain, KeyRoot } from './key-chain.ts';

/** What the list of an authority says of one certificate (RFC 5280 section 5.3). */
export type RevokedCertificate = { readonly serialNumber: string; readonly revokedAt: Date };

/** @returns undefined when no key chain of the tenant is under an authority of this id. */
export function authorityOf(chains: readonly KeyChain[], authorityId: string): KeyRoot | undefined {
  return chains.find(({ root }) => root !== undefined && keyIdentifier(root.key.publicJwk) === authorityId)?.root;
}

/**
 * Certificates that this authority issued for compromised keys, in order of their numbers.
 * @param records of keys whose key chains may be gone.
 */
export function revokedUnder(
  chains: readonly KeyChain[],
  root: Pick<KeyRoot, 'certificate'>,
  records: readonly RecordedKey[] = [],
): readonly RevokedCertificate[] {
  const compromised = compromisedKeys(chains, records);
  const issued = [
    ...chains.flatMap(issuedCertificates),
    ...records.flatMap(({ thumbprint, certificates }) => certificates.map((certificate) => ({ ...certificate, thumbprint }))),
  ];
  const revoked = new Map<string, RevokedCertificate>();
  for (const { root: issuer, certificate, thumbprint } of issued) {
    const revokedAt = compromised.get(thumbprint);
    if (revokedAt === undefined || issuer !== root.certificate) continue;
    const { serialNumber } = new X509Certificate(Buffer.from(certificate, 'base64'));
    revoked.set(serialNumber, { serialNumber, revokedAt });
  }
  return [...revoked.values()].sort((one, other) => (one.serialNumber < other.serialNumber ? -1 : 1));
}

const HOUR_MS = 60 * 60 * 1000;
const PERIOD_MS = 6 * HOUR_MS;
const VALID_MS = 7 * 24 * HOUR_MS;

export type ListTimes = { readonly thisUpdate: Date; readonly nextUpdate: Date };

/**
 * When the list of an authority begins and ends. All processes say the same without asking each other, since readers take
 * no list that is older than one they saw.
 */
export function listTimes(revoked: readonly RevokedCertificate[], now: Date): ListTimes {
  const period = Math.floor(now.getTime() / PERIOD_MS) * PERIOD_MS;
  const latest = Math.max(period, ...revoked.map(({ revokedAt }) => revokedAt.getTime()));
  const thisUpdate = Math.floor(latest / 1000) * 1000;
  return { thisUpdate: new Date(thisUpdate), nextUpdate: new Date(thisUpdate + VALID_MS) };
}
