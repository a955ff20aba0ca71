import { isCompromised, type KeyChain } from '../keys/key-chain.ts';
import { holdsTo, type Profile } from '../shared/finding.ts';

/**
 * Who signs the metadata of an issuer: its access certificate, by which a provider shows wallets who it is (ARF 3.0 ISSU_22
 * and ISSU_32, ETSI TS 119 472-3 requirement ISS-MDATA-4.2.1-02). A tenant without one uses that of its credentials, but not
 * where the profile says who signs.
 * @returns undefined when nobody can at the moment.
 */
export function metadataSigner(chains: readonly KeyChain[], profile: Profile | null, now: Date): KeyChain | undefined {
  const usable = chains.filter((chain) => chain.active.notAfter > now && !isCompromised(chain));
  const access = usable.find(({ usages }) => usages.includes('access'));
  if (access !== undefined || holdsTo(profile, 'eu')) return access;
  return usable.find(({ usages }) => usages.includes('signing'));
}
