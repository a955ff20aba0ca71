import { findKeyChain, type KeyChain, signingChain } from '../../domain/keys/key-chain.ts';
import { organizationIdentifiers } from '../../domain/registrar/organization-identifier.ts';
import { isOfSubject } from '../../domain/registrar/registration-certificate.ts';
import { differingPurpose, type StatedPurpose } from '../../domain/registrar/stated-purpose.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import { holdsTo } from '../../domain/shared/finding.ts';
import { madeOnce } from '../tenant-cache/made-once.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import type { CheckedCertificate } from './registration-certificate-verifier.ts';

/** Organizations by key chain; the chains of a tenant's view live as long as the view does. */
const organizations = new WeakMap<KeyChain, readonly string[]>();

/**
 * Wallets hold the registration certificate against the access certificate (ETSI TS 119 475 section 5.2).
 * @param path of the member of the caller's document that is refused.
 * @throws Failure `invalid_input` when they would see two organizations.
 */
export function assertOfSubject(certificate: CheckedCertificate, chain: KeyChain, path: string): void {
  const [leaf = ''] = signingChain(chain);
  const identifiers = madeOnce(organizations, chain, () => organizationIdentifiers(leaf));
  if (isOfSubject(certificate, identifiers)) return;
  throw invalidInput(
    path,
    `The registration certificate is for ${certificate.subject}, the access certificate of the key chain ` +
      `"${chain.id}" for ${identifiers.join(', ')}.`,
  );
}

/**
 * Under the profile `eu` a configuration that says why it asks has a certificate that says so, too.
 * @throws Failure `invalid_input` where wallets would show another purpose.
 */
export function assertOfUse(
  { profile }: Pick<TenantConfiguration, 'profile'>,
  { purposes = [] }: CheckedCertificate,
  purpose: readonly StatedPurpose[] | null | undefined,
): void {
  if (!holdsTo(profile, 'eu')) return;
  const lang = differingPurpose(purposes, purpose ?? []);
  if (lang === undefined) return;
  throw invalidInput(
    'purpose',
    `profile eu (ARF 3.0 RPRC_09, RPRC_19): the registration certificate was issued for another purpose, by its text in "${lang}"; ` +
      'take the certificate of this use, or say what it says',
  );
}

/** The chain that requests would be signed with; undefined as long as there is none. */
export function accessChainOf(chains: readonly KeyChain[], now: Date, wantedId: string | null | undefined): KeyChain | undefined {
  return findKeyChain(chains, 'access', now, wantedId ?? undefined);
}
