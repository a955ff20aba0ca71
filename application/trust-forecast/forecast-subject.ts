import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { StatusList } from '../../domain/status-lists/status-list.ts';
import type { PublishedList } from '../../domain/trust-lists/published-list.ts';
import type { StoredListSummary } from '../../domain/trust-lists/stored-list.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';

/** Data of a tenant for a forecast. */
export type ForecastSubject = {
  readonly now: Date;
  readonly chains: readonly KeyChain[];
  readonly credentials: readonly CredentialConfiguration[];
  readonly presentations: readonly PresentationConfiguration[];
  readonly statusLists: readonly StatusList[];
  readonly published: readonly PublishedList[];
  readonly followed: readonly StoredListSummary[];
  readonly wallets: { readonly lists: readonly string[]; readonly signers: readonly string[] };
};
