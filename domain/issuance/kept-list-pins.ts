import type { IssuanceConfigurationBody } from './issuance-configuration.ts';

type WalletLists = Pick<IssuanceConfigurationBody, 'walletProviderTrustLists' | 'walletProviderTrustListCertificates'>;

/**
 * Lists that were named before keep who was pinned for them where a document says nothing: whoever writes back what the published interface
 * has would have their signers looked for anew otherwise. One list less and nobody knows whose pins are left, so that all are pinned anew.
 */
export function keepWalletListPins<Body extends WalletLists>(body: Body, before: WalletLists | undefined): Body {
  const { walletProviderTrustLists: lists, walletProviderTrustListCertificates: pins } = body;
  if (before === undefined || lists.length === 0 || pins.length > 0) return body;
  if (!before.walletProviderTrustLists.every((uri) => lists.includes(uri))) return body;
  return { ...body, walletProviderTrustListCertificates: before.walletProviderTrustListCertificates };
}
