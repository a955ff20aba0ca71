import type { CredentialConfigurationBody } from './configuration.ts';
import type { EffectiveIssuance } from './issuance-configuration.ts';

/**
 * True if credentials of a configuration follow their wallet: they expire before the wallet's status does, and are revoked when the wallet
 * provider revokes the wallet (TS3 1.5 section 2.4.3). The default is true if attestations are required.
 */
export function followsWallet(
  { followWalletStatus, keyAttestationsRequired }: Pick<CredentialConfigurationBody, 'followWalletStatus' | 'keyAttestationsRequired'>,
  { walletAttestationRequired }: Pick<EffectiveIssuance, 'walletAttestationRequired'>,
): boolean {
  const isRequired = walletAttestationRequired || (keyAttestationsRequired ?? undefined) !== undefined;
  return followWalletStatus ?? isRequired;
}
