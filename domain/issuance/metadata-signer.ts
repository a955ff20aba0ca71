import { isCompromised, type KeyChain } from '../keys/key-chain.ts';
import { includesProfile, type Profile } from '../shared/finding.ts';

/**
 * The key chain that signs an issuer's metadata: its access certificate identifies the provider to wallets (ARF 3.0 ISSU_22 and ISSU_32,
 * ETSI TS 119 472-3 requirement ISS-MDATA-4.2.1-02). A tenant without an access certificate uses its signing key, unless the profile
 * requires the access certificate.
 * @returns undefined when no key chain is usable.
 */
export function metadataSigner(chains: readonly KeyChain[], profile: Profile | null, now: Date): KeyChain | undefined {
  const usable = chains.filter((chain) => chain.active.notAfter > now && !isCompromised(chain));
  const access = usable.find(({ usages }) => usages.includes('access'));
  if (access !== undefined || includesProfile(profile, 'eu')) return access;
  return usable.find(({ usages }) => usages.includes('signing'));
}
