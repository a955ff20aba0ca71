import type { IssuanceConfigurationBody } from './issuance-configuration.ts';

type WalletLists = Pick<IssuanceConfigurationBody, 'walletProviderTrustLists' | 'walletProviderTrustListCertificates'>;

/**
 * A document without pins keeps the stored pins of lists that it names as well. Otherwise writing back a published configuration would
 * fetch the signers again. After a list was removed, its pins cannot be told apart, so all are pinned again.
 */
export function keepWalletListPins<Body extends WalletLists>(body: Body, previous: WalletLists | undefined): Body {
  const { walletProviderTrustLists: lists, walletProviderTrustListCertificates: pins } = body;
  if (previous === undefined || lists.length === 0 || pins.length > 0) return body;
  if (!previous.walletProviderTrustLists.every((uri) => lists.includes(uri))) return body;
  return { ...body, walletProviderTrustListCertificates: previous.walletProviderTrustListCertificates };
}
