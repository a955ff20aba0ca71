import { findKeyChain, type KeyChain, signingChain } from '../../domain/keys/key-chain.ts';
import { organizationIdentifiers } from '../../domain/registrar/organization-identifier.ts';
import { belongsToVerifier } from '../../domain/registrar/registration-certificate.ts';
import { findDifferingPurposeLanguage, type StatedPurpose } from '../../domain/registrar/stated-purpose.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import { includesProfile } from '../../domain/shared/finding.ts';
import { getOrCreate } from '../tenant-cache/get-or-create.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import type { CheckedCertificate } from './registration-certificate-verifier.ts';

/** Organizations by key chain; the objects live as long as the cached configuration. */
const organizations = new WeakMap<KeyChain, readonly string[]>();

/**
 * Wallets compare the registration certificate with the access certificate (ETSI TS 119 475 section 5.2).
 * @param path of the rejected property in the caller's document.
 * @throws Failure `invalid_input` when the two name different organizations.
 */
export function assertOfSubject(certificate: CheckedCertificate, chain: KeyChain, path: string): void {
  const [leaf = ''] = signingChain(chain);
  const identifiers = getOrCreate(organizations, chain, () => organizationIdentifiers(leaf));
  if (belongsToVerifier(certificate, identifiers)) return;
  throw invalidInput(
    path,
    `The registration certificate is for ${certificate.subject}, the access certificate of the key chain ` +
      `"${chain.id}" for ${identifiers.join(', ')}.`,
  );
}

/**
 * Under the profile `eu` the certificate must contain the purpose that the configuration states.
 * @throws Failure `invalid_input` when wallets would show another purpose.
 */
export function assertOfUse(
  { profile }: Pick<TenantConfiguration, 'profile'>,
  { purposes = [] }: CheckedCertificate,
  purpose: readonly StatedPurpose[] | null | undefined,
): void {
  if (!includesProfile(profile, 'eu')) return;
  const lang = findDifferingPurposeLanguage(purposes, purpose ?? []);
  if (lang === undefined) return;
  throw invalidInput(
    'purpose',
    `profile eu (ARF 3.0 RPRC_09, RPRC_19): the registration certificate was issued for another purpose, by its text in "${lang}"; ` +
      'use the certificate of this purpose, or set its purpose',
  );
}

/** The default signer of requests; undefined while there is none. */
export function accessChainOf(chains: readonly KeyChain[], now: Date, requestedId: string | null | undefined): KeyChain | undefined {
  return findKeyChain(chains, 'access', now, requestedId ?? undefined);
}
