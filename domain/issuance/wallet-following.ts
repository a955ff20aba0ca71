import type { CredentialConfigurationBody } from './configuration.ts';
import type { EffectiveIssuance } from './issuance-configuration.ts';

/**
 * Whether credentials of a configuration end with their wallet: they expire before what its provider says of it does, and are
 * revoked when the provider revokes it (TS3 1.5 section 2.4.3). Where attestations are demanded, unless stated.
 */
export function followsWallet(
  { followWalletStatus, keyAttestationsRequired }: Pick<CredentialConfigurationBody, 'followWalletStatus' | 'keyAttestationsRequired'>,
  { walletAttestationRequired }: Pick<EffectiveIssuance, 'walletAttestationRequired'>,
): boolean {
  const isDemanded = walletAttestationRequired || (keyAttestationsRequired ?? undefined) !== undefined;
  return followWalletStatus ?? isDemanded;
}
