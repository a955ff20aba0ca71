import { defined } from '../../domain/shared/defined.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import { Refusal, type RefusalReason } from '../../domain/shared/refusal.ts';
import { withoutQuery } from '../../domain/shared/without-query.ts';
import { type AttestedStatus, parseAttestedStatuses } from '../../domain/status-lists/attested-status.ts';
import type { WalletStatus } from '../../domain/status-lists/wallet-status.ts';
import { ownTrustListOf } from '../../domain/trust-lists/own-address.ts';
import { WALLET_PROVIDERS } from '../../domain/trust-lists/select-certificates.ts';
import { needs } from '../needs.ts';
import { Certificates, type TrustAnchor } from '../ports/certificates.ts';
import { type SpokenList, type StatusQuestion, StatusVerifier } from '../status-lists/verify-status.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { askLists } from '../trust-lists/ask-lists.ts';
import {
  type AskedList,
  anchorOf,
  areSame,
  gatherAnchors,
  type ListedAnchor,
  type ListSource,
  revocationOf,
} from '../trust-lists/listed-anchors.ts';
import { TrustLists } from '../trust-lists/remote-trust-lists.ts';
import { pinSigners } from '../trust-lists/verify-trust-list.ts';

/** Who signed an attestation, for the question whether it was revoked. */
export type AttestationIssuer = Omit<StatusQuestion, 'configured' | 'reference'> & {
  /** As trust lists tell providers apart. */
  readonly provider: string | undefined;
};

export type WalletProviderVerdict =
  | {
      readonly trusted: true;
      /** With which the attestation has to verify. */
      readonly key: PublicJwk;
      readonly issuer: AttestationIssuer;
    }
  | { readonly trusted: false; readonly detail: string };

/** What the statuses of an attestation say: they are all valid, or why it must not be used. */
export type StatusAnswer =
  | { readonly statuses: readonly WalletStatus[] }
  | {
      /** What a wallet may read. */
      readonly told: string;
      /** For the operator. */
      readonly reason: string;
    };

/** Whom the lists of one configuration trust; made anew when one of them changes. */
type Providers = {
  readonly asked: readonly AskedList[];
  /** One array for as long as possible, since path validation remembers what it knows by the array itself. */
  readonly anchors: readonly TrustAnchor[];
  readonly listed: ReadonlyMap<string, ListedAnchor>;
};

/** Which providers a tenant trusts to attest wallets and their keys: those of its trust lists, nobody else. */
export class WalletProviderTrust extends needs({ trustLists: TrustLists, certificates: Certificates, statusVerifier: StatusVerifier }) {
  /** By the lists that a configuration names, which are the same array for all requests until it is changed. */
  readonly #known = new WeakMap<readonly ListSource[], Providers>();

  /**
   * @param chain `x5c` of an attestation (HAIP 1.0 section 4.4.1): DER in standard base64, leaf first.
   * @returns why not, in words that a wallet may read.
   */
  async verify(configured: TenantConfiguration, chain: readonly string[], now: Date): Promise<WalletProviderVerdict> {
    const { asked, anchors, listed } = await this.#providers(configured);
    if (asked.length === 0) return { trusted: false, detail: 'this issuer has no trust list of wallet providers configured' };
    // HAIP 1.0 section 4.4.1: no self-signed leaf, no anchor in the chain
    const issuer = this.ports.certificates.verifyChain(chain, anchors, now, { purpose: 'wallet attestation', haip: true });
    const match = issuer.trusted ? listed.get(issuer.anchor) : undefined;
    if (!issuer.trusted || match === undefined) {
      const why = issuer.trusted ? 'unknown anchor' : issuer.detail;
      const isComplete = asked.every((one) => 'list' in one);
      const missing = isComplete ? '' : ', and not every trust list could be had';
      return { trusted: false, detail: `the wallet provider is not trusted: ${why}${missing}` };
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
   * Asks for every status of an attestation whose signature and times have been checked (Token Status List section 8.3).
   * One that is there and cannot be established counts as much as one that is bad.
   * @param what the attestation is, for whom it is refused.
   */
  async verifyStatuses(
    configured: TenantConfiguration,
    issuer: AttestationIssuer,
    { what, payload, now }: { readonly what: string; readonly payload: JsonObject; readonly now: Date },
  ): Promise<StatusAnswer> {
    let asked = '';
    try {
      const statuses = parseAttestedStatuses(payload, now);
      for (const { place, reference } of statuses) {
        asked = ` (${place}, entry ${reference.idx} of ${withoutQuery(reference.uri)})`;
        await this.ports.statusVerifier.verify({ ...issuer, configured, reference });
      }
      return { statuses: statuses.map((status) => followable(status, issuer)) };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return { told: `${what} ${toldOf(error.reason)}`, reason: `${what}: ${error.message}${asked}` };
    }
  }

  /**
   * A list that issued credentials follow, as it is now.
   * @param followed lists have to vouch for its provider still.
   * @param notBefore an older copy does not do.
   * @throws Refusal `status_…`.
   */
  async followedList(
    configured: TenantConfiguration,
    followed: Pick<WalletStatus, 'uri' | 'anchor' | 'provider'>,
    notBefore: Date,
  ): Promise<SpokenList> {
    return this.#ofProvider(configured, followed, (question) =>
      this.ports.statusVerifier.list({ ...question, uri: followed.uri }, notBefore),
    );
  }

  /**
   * Looks again at what an attestation named that is not here any more.
   * @returns as `verifyStatuses`.
   */
  async verifyAgain(configured: TenantConfiguration, statuses: readonly WalletStatus[]): Promise<StatusAnswer> {
    let asked = '';
    try {
      for (const status of statuses) {
        const { uri, idx } = status;
        asked = ` (entry ${idx} of ${withoutQuery(uri)})`;
        await this.#ofProvider(configured, status, (question) =>
          this.ports.statusVerifier.verify({ ...question, reference: { uri, idx } }),
        );
      }
      return { statuses };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const what = 'the wallet';
      return { told: `${what} ${toldOf(error.reason)}`, reason: `${what}: ${error.message}${asked}` };
    }
  }

  /**
   * Asks by the certificate that vouched for an attestation, as long as a list has that, and by the others that vouch for the
   * same provider now: one that changes its certificates has both for a while, and signs its lists under the new one.
   * @throws Refusal what the last of them threw, or the first that says more than that the list is not to be believed; `status_invalid` where nobody vouches for the provider any more.
   */
  async #ofProvider<T>(
    configured: TenantConfiguration,
    { anchor: first, provider }: Pick<WalletStatus, 'anchor' | 'provider'>,
    ask: (question: Omit<StatusQuestion, 'reference'>) => Promise<T>,
  ): Promise<T> {
    const { anchors, listed } = await this.#providers(configured);
    const successors = [...listed].filter(([, { listings }]) => listings.some(({ entity }) => entity.id === provider));
    const candidates = new Set([first, ...successors.map(([hash]) => hash)]);
    let refusal = new Refusal('status_invalid', 'no trust list vouches for its provider');
    for (const anchor of candidates) {
      const match = listed.get(anchor);
      if (match === undefined) continue;
      try {
        return await ask({
          configured,
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

  async #providers(configured: TenantConfiguration): Promise<Providers> {
    const { walletProviderTrustLists: addresses } = await configured.issuance();
    const sources = addresses.length === 0 ? NO_LISTS : await sourcesOf(configured, addresses);
    const asked = await askLists(this.ports.trustLists, configured.tenantId, sources);
    const known = this.#known.get(sources);
    if (known !== undefined && areSame(known.asked, asked)) return known;
    const listed = await gatherAnchors(asked);
    const anchors = [...listed.values()].map(anchorOf);
    const providers = { asked, anchors, listed };
    this.#known.set(sources, providers);
    return providers;
  }
}

const NO_LISTS: readonly ListSource[] = [];

function followable({ reference, keptUntil }: AttestedStatus, { issuer, provider }: AttestationIssuer): WalletStatus {
  return { ...reference, anchor: issuer.anchor, ...defined({ provider, keptUntil }) };
}

const TOLD: Partial<Record<RefusalReason, string>> = { status_revoked: 'is revoked', status_suspended: 'is suspended' };

function toldOf(reason: RefusalReason): string {
  return TOLD[reason] ?? 'has a status that cannot be established';
}

function sourcesOf(configured: TenantConfiguration, addresses: readonly string[]): Promise<readonly ListSource[]> {
  return configured.derive('wallet-provider-lists', async () => {
    const signers = pinSigners((await configured.issuance()).walletProviderTrustListCertificates);
    // Lists of this service are signed by the keys of their tenant, whoever signs the others.
    const own = pinSigners([]);
    const publicUrl = configured.issuer.slice(0, -`/${configured.tenantId}`.length);
    return [...new Set(addresses)].map((uri) => ({
      uri,
      signers: ownTrustListOf(uri, publicUrl) === undefined ? signers : own,
      purpose: WALLET_PROVIDERS,
    }));
  });
}
