import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { StatusList } from '../../domain/status-lists/status-list.ts';
import type { KeptListSummary } from '../../domain/trust-lists/kept-list.ts';
import type { PublishedList } from '../../domain/trust-lists/published-list.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';

/** All of a tenant that a forecast looks at. */
export type ForecastSubject = {
  readonly now: Date;
  readonly chains: readonly KeyChain[];
  readonly credentials: readonly CredentialConfiguration[];
  readonly presentations: readonly PresentationConfiguration[];
  readonly statusLists: readonly StatusList[];
  readonly published: readonly PublishedList[];
  readonly followed: readonly KeptListSummary[];
  /** Who attests wallets. */
  readonly wallets: { readonly lists: readonly string[]; readonly signers: readonly string[] };
};
