import { type KeyChain, pickKeyChain, signingChain } from '../../domain/keys/key-chain.ts';
import { organizationIdentifiers } from '../../domain/registrar/organization-identifier.ts';
import { isOfSubject } from '../../domain/registrar/registration-certificate.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import { madeOnce } from '../made-once.ts';
import type { CheckedCertificate } from './registration-certificate-checker.ts';

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

/** The chain that requests would be signed with; undefined as long as there is none. */
export function accessChainOf(
  chains: readonly KeyChain[],
  now: Date,
  wantedId: string | null | undefined,
): KeyChain | undefined {
  try {
    return pickKeyChain(chains, 'access', now, wantedId ?? undefined);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}
