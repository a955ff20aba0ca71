import { X509Certificate } from 'node:crypto';
import { keyIdentifier } from './authority-address.ts';
import type { KeyChain, KeyRoot } from './key-chain.ts';

/** What the list of an authority says of one certificate (RFC 5280 section 5.3). */
export type RevokedCertificate = { readonly serialNumber: string; readonly revokedAt: Date };

/** @returns undefined when no key chain of the tenant is under an authority of this id. */
export function authorityOf(chains: readonly KeyChain[], authorityId: string): KeyRoot | undefined {
  return chains.find(({ root }) => root !== undefined && keyIdentifier(root.key.publicJwk) === authorityId)
    ?.root;
}

/** Certificates of former keys that were compromised, in order of their numbers. */
export function revokedUnder(chains: readonly KeyChain[], root: KeyRoot): readonly RevokedCertificate[] {
  const found = new Map<string, RevokedCertificate>();
  for (const { former = [] } of chains) {
    for (const { root: issuer, certificates, documentSigner = [], revokedAt } of former) {
      if (revokedAt === undefined || issuer !== root.certificate) continue;
      for (const certificate of [...certificates.slice(0, 1), ...documentSigner.slice(0, 1)]) {
        const { serialNumber } = new X509Certificate(Buffer.from(certificate, 'base64'));
        found.set(serialNumber, { serialNumber, revokedAt });
      }
    }
  }
  return [...found.values()].sort((one, other) => (one.serialNumber < other.serialNumber ? -1 : 1));
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
