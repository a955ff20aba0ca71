import { defined } from '../../domain/shared/defined.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import { Refusal, type RefusalReason } from '../../domain/shared/refusal.ts';
import { withoutQuery } from '../../domain/shared/without-query.ts';
import { type AttestedStatus, parseAttestedStatuses } from '../../domain/status-lists/attested-status.ts';
import type { WalletStatus } from '../../domain/status-lists/wallet-status.ts';
import { parseInternalTrustListAddress } from '../../domain/trust-lists/internal-address.ts';
import { WALLET_PROVIDERS } from '../../domain/trust-lists/select-certificates.ts';
import { needs } from '../needs.ts';
import { Certificates, type TrustAnchor } from '../ports/certificates.ts';
import { type StatusQuery, StatusVerifier, type VerifiedStatusList } from '../status-lists/verify-status.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import {
  anchorOf,
  areSame,
  collectAnchors,
  type ListedAnchor,
  type ListSource,
  type QueriedList,
  revocationOf,
} from '../trust-lists/listed-anchors.ts';
import { queryLists } from '../trust-lists/query-lists.ts';
import { TrustLists } from '../trust-lists/remote-trust-lists.ts';
import { pinSigners } from '../trust-lists/verify-trust-list.ts';

/** The signer of an attestation, for the check of its status. */
export type AttestationIssuer = Omit<StatusQuery, 'tenant' | 'reference'> & {
  /** Identifies the provider across trust lists. */
  readonly provider: string | undefined;
};

export type WalletProviderVerdict =
  | {
      readonly trusted: true;
      /** Key that signed the attestation. */
      readonly key: PublicJwk;
      readonly issuer: AttestationIssuer;
    }
  | { readonly trusted: false; readonly detail: string };

/** Result of the status check of an attestation: all statuses are valid, or the reason why it must not be used. */
export type StatusAnswer =
  | { readonly statuses: readonly WalletStatus[] }
  | {
      /** Message for the wallet. */
      readonly walletMessage: string;
      /** Message for the operator. */
      readonly reason: string;
    };

/** The trusted providers of one configuration; rebuilt when one of its lists changes. */
type Providers = {
  readonly lists: readonly QueriedList[];
  /** The array is reused as long as possible, since path validation caches by its identity. */
  readonly anchors: readonly TrustAnchor[];
  readonly listedAnchors: ReadonlyMap<string, ListedAnchor>;
};

/** The providers that a tenant trusts to attest wallets and their keys: only those of its trust lists. */
export class WalletProviderTrust extends needs({ trustLists: TrustLists, certificates: Certificates, statusVerifier: StatusVerifier }) {
  /** Cached by the lists of a configuration, which are the same array until it is changed. */
  readonly #providersBySources = new WeakMap<readonly ListSource[], Providers>();

  /**
   * @param chain `x5c` of an attestation (HAIP 1.0 section 4.4.1): DER in standard base64, leaf first.
   * @returns a verdict; its detail may be sent to the wallet.
   */
  async verify(tenant: TenantConfiguration, chain: readonly string[], now: Date): Promise<WalletProviderVerdict> {
    const { lists, anchors, listedAnchors } = await this.#providers(tenant);
    if (lists.length === 0) return { trusted: false, detail: 'this issuer has no trust list of wallet providers configured' };
    // HAIP 1.0 section 4.4.1: no self-signed leaf, no anchor in the chain
    const issuer = this.ports.certificates.verifyChain(chain, anchors, now, { purpose: 'wallet attestation', haip: true });
    const match = issuer.trusted ? listedAnchors.get(issuer.anchor) : undefined;
    if (!issuer.trusted || match === undefined) {
      const problem = issuer.trusted ? 'unknown anchor' : issuer.detail;
      const isComplete = lists.every((entry) => 'list' in entry);
      const incompleteNote = isComplete ? '' : ', and not every trust list is available';
      return { trusted: false, detail: `the wallet provider is not trusted: ${problem}${incompleteNote}` };
    }
    return {
      trusted: true,
      key: issuer.key,
      issuer: {
        chain,
        issuer,
        anchors,
        purpose: 'wallet attestation',
        revocation: revocationOf(match),
        provider: match.listings[0]?.entity.id,
      },
    };
  }

  /**
   * Checks every status of an attestation whose signature and times have been verified (Token Status List section 8.3).
   * A status that cannot be determined counts as a bad one.
   * @param what kind of attestation, for the message.
   */
  async verifyStatuses(
    tenant: TenantConfiguration,
    issuer: AttestationIssuer,
    { what, payload, now }: { readonly what: string; readonly payload: JsonObject; readonly now: Date },
  ): Promise<StatusAnswer> {
    let statusLocation = '';
    try {
      const statuses = parseAttestedStatuses(payload, now);
      for (const { place, reference } of statuses) {
        statusLocation = ` (${place}, entry ${reference.idx} of ${withoutQuery(reference.uri)})`;
        await this.ports.statusVerifier.verify({ ...issuer, tenant, reference });
      }
      return { statuses: statuses.map((status) => followable(status, issuer)) };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return { walletMessage: `${what} ${walletMessageOf(error.reason)}`, reason: `${what}: ${error.message}${statusLocation}` };
    }
  }

  /**
   * The current content of a list that issued credentials follow.
   * @param followed trust lists still have to vouch for its provider.
   * @param notBefore minimum age limit of a cached copy.
   * @throws Refusal `status_…`.
   */
  async followedList(
    tenant: TenantConfiguration,
    followed: Pick<WalletStatus, 'uri' | 'anchor' | 'provider'>,
    notBefore: Date,
  ): Promise<VerifiedStatusList> {
    return this.#ofProvider(tenant, followed, (question) => this.ports.statusVerifier.list({ ...question, uri: followed.uri }, notBefore));
  }

  /**
   * Checks the statuses of an attestation again that is no longer available.
   * @returns as `verifyStatuses`.
   */
  async recheckStatuses(tenant: TenantConfiguration, statuses: readonly WalletStatus[]): Promise<StatusAnswer> {
    let statusLocation = '';
    try {
      for (const status of statuses) {
        const { uri, idx } = status;
        statusLocation = ` (entry ${idx} of ${withoutQuery(uri)})`;
        await this.#ofProvider(tenant, status, (question) => this.ports.statusVerifier.verify({ ...question, reference: { uri, idx } }));
      }
      return { statuses };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const what = 'the wallet';
      return { walletMessage: `${what} ${walletMessageOf(error.reason)}`, reason: `${what}: ${error.message}${statusLocation}` };
    }
  }

  /**
   * Calls with the certificate that vouched for an attestation, if it is still listed, and then with other certificates of the same
   * provider: a provider that replaces its certificates has both for a while, and signs its lists under the new one.
   * @throws Refusal of the last call, or the first one other than `status_invalid`; `status_invalid` if the provider is not listed.
   */
  async #ofProvider<T>(
    tenant: TenantConfiguration,
    { anchor: originalAnchor, provider }: Pick<WalletStatus, 'anchor' | 'provider'>,
    check: (question: Omit<StatusQuery, 'reference'>) => Promise<T>,
  ): Promise<T> {
    const { anchors, listedAnchors } = await this.#providers(tenant);
    const successors = [...listedAnchors].filter(([, { listings }]) => listings.some(({ entity }) => entity.id === provider));
    const candidates = new Set([originalAnchor, ...successors.map(([hash]) => hash)]);
    let refusal = new Refusal('status_invalid', 'its provider is on no trust list');
    for (const anchor of candidates) {
      const match = listedAnchors.get(anchor);
      if (match === undefined) continue;
      try {
        return await check({
          tenant,
          anchors,
          issuer: { anchor },
          revocation: revocationOf(match),
          ...({ purpose: 'wallet attestation', isSignerForgotten: true, chain: [] } as const),
        });
      } catch (error) {
        if (!(error instanceof Refusal) || error.reason !== 'status_invalid') throw error;
        refusal = error;
      }
    }
    throw refusal;
  }

  async #providers(tenant: TenantConfiguration): Promise<Providers> {
    const { walletProviderTrustLists: addresses } = await tenant.issuance();
    const sources = addresses.length === 0 ? NO_LISTS : await sourcesOf(tenant, addresses);
    const lists = await queryLists(this.ports.trustLists, tenant.tenantId, sources);
    const cached = this.#providersBySources.get(sources);
    if (cached !== undefined && areSame(cached.lists, lists)) return cached;
    const listedAnchors = await collectAnchors(lists);
    const anchors = [...listedAnchors.values()].map(anchorOf);
    const providers = { lists, anchors, listedAnchors };
    this.#providersBySources.set(sources, providers);
    return providers;
  }
}

const NO_LISTS: readonly ListSource[] = [];

function followable({ reference, keptUntil }: AttestedStatus, { issuer, provider }: AttestationIssuer): WalletStatus {
  return { ...reference, anchor: issuer.anchor, ...defined({ provider, keptUntil }) };
}

const WALLET_MESSAGES: Partial<Record<RefusalReason, string>> = { status_revoked: 'is revoked', status_suspended: 'is suspended' };

function walletMessageOf(reason: RefusalReason): string {
  return WALLET_MESSAGES[reason] ?? 'has a status that cannot be determined';
}

function sourcesOf(tenant: TenantConfiguration, addresses: readonly string[]): Promise<readonly ListSource[]> {
  return tenant.derive('wallet-provider-lists', async () => {
    const signers = pinSigners((await tenant.issuance()).walletProviderTrustListCertificates);
    // Lists of this service are signed by keys of their tenant, so the configured signers do not apply.
    const localSigners = pinSigners([]);
    const publicUrl = tenant.issuer.slice(0, -`/${tenant.tenantId}`.length);
    return [...new Set(addresses)].map((uri) => ({
      uri,
      signers: parseInternalTrustListAddress(uri, publicUrl) === undefined ? signers : localSigners,
      purpose: WALLET_PROVIDERS,
    }));
  });
}
