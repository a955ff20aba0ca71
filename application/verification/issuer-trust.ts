import { hash } from 'node:crypto';
import { parsePemCertificates } from '../../domain/formats/der/pem.ts';
import { type KeyChain, trustedLeaves } from '../../domain/keys/key-chain.ts';
import { defined } from '../../domain/shared/defined.ts';
import { withoutQuery } from '../../domain/shared/without-query.ts';
import { credentialIssuers } from '../../domain/trust-lists/select-certificates.ts';
import type { Period } from '../../domain/trust-lists/service-history.ts';
import { OWN_AUTHORITIES } from '../../domain/verification/trust-anchor.ts';
import type { VerificationPolicy } from '../../domain/verification/verification-policy.ts';
import { needs } from '../needs.ts';
import type { TrustAnchor } from '../ports/certificates.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import {
  anchorOf,
  areSame,
  collectAnchors,
  isOn,
  type ListedAnchor,
  type ListSource,
  MAX_LISTED_ANCHORS,
  type QueriedList,
  revocationOf,
} from '../trust-lists/listed-anchors.ts';
import { queryLists } from '../trust-lists/query-lists.ts';
import { TrustLists } from '../trust-lists/remote-trust-lists.ts';
import { pinSigners } from '../trust-lists/verify-trust-list.ts';

/**
 * The trusted issuers of a presentation configuration. The arrays are reused as long as possible, since path validation caches
 * by their identity.
 */
export type IssuerTrust = {
  /** All current anchors. Without any every credential is rejected (OpenID4VP 1.0 section 14.1). */
  readonly anchors: readonly TrustAnchor[];
  /** All anchors, including those that vouch only for credentials issued in the past; `dated` contains their periods. */
  readonly withFormer: readonly TrustAnchor[];
  /** Periods in which a credential must have been issued, by the hash of the anchor's certificate. */
  readonly dated: ReadonlyMap<string, readonly Period[]>;
  /** List entries of an anchor, by the hash of its certificate. */
  readonly listedAnchors: ReadonlyMap<string, ListedAnchor>;
  /** The anchors of each list, for queries that require an issuer of it. */
  readonly lists: readonly { readonly uri: string; readonly anchors: readonly TrustAnchor[] }[];
  /** Problems of lists that are unusable or incomplete, for the operator. */
  readonly missing: readonly string[];
};

/** Trust settings of a configuration without the content of lists. */
type ConfiguredTrust = { readonly anchors: readonly TrustAnchor[]; readonly sources: readonly ListSource[] };

const NO_ISSUERS: IssuerTrust = { anchors: [], withFormer: [], dated: new Map(), listedAnchors: new Map(), lists: [], missing: [] };

/** The issuers that a tenant trusts: configured certificates, and those of configured trust lists. */
export class IssuerTrusts extends needs({ trustLists: TrustLists }) {
  /** Results by configuration; rebuilt when one of the lists changes. */
  readonly #trustByConfiguration = new WeakMap<
    ConfiguredTrust,
    { readonly lists: readonly QueriedList[]; readonly trust: Promise<IssuerTrust> }
  >();

  /**
   * Returns the trusted issuers of a request, which keeps the anchors that it was created with. Without these a removed configuration
   * trusts no issuer. Lists are read in their current version; an unavailable list vouches for no issuer.
   * @param policy of the request; undefined if the configuration decides.
   */
  async trustOf(tenant: TenantConfiguration, configurationId: string | undefined, policy?: VerificationPolicy): Promise<IssuerTrust> {
    const configuredTrust = await this.#anchorsOf(tenant, configurationId, policy);
    if (configuredTrust === undefined) return NO_ISSUERS;
    const lists = await queryLists(this.ports.trustLists, tenant.tenantId, configuredTrust.sources);
    const cached = this.#trustByConfiguration.get(configuredTrust);
    if (cached !== undefined && areSame(cached.lists, lists)) return cached.trust;
    const trust = collectTrust(configuredTrust, lists);
    this.#trustByConfiguration.set(configuredTrust, { lists, trust });
    return trust;
  }

  /** Requests with the same anchors share one value, since validated paths are cached by it. */
  async #anchorsOf(
    tenant: TenantConfiguration,
    configurationId: string | undefined,
    policy: VerificationPolicy | undefined,
  ): Promise<ConfiguredTrust | undefined> {
    if (policy !== undefined) {
      const name = hash('sha256', JSON.stringify(policy.trustAnchors ?? null), 'base64url');
      return tenant.derive(`issuer-trust/frozen/${name}`, async () => readTrust(policy, await tenant.keyChains()));
    }
    if (configurationId === undefined) return undefined;
    return tenant.derive(`issuer-trust/${configurationId}`, async () => {
      const configuration = await tenant.presentationConfiguration(configurationId);
      return configuration === undefined ? undefined : readTrust(configuration, await tenant.keyChains());
    });
  }
}

/** @param configuration of an earlier version may lack anchors; the tenant's own authorities are trusted then. */
function readTrust({ trustAnchors = [OWN_AUTHORITIES] }: VerificationPolicy, chains: readonly KeyChain[]): ConfiguredTrust {
  const roots = new Map(chains.map((chain) => [chain.id, chain.root?.certificate]));
  const certificates: string[] = [];
  const pins: string[] = [];
  const sources: ListSource[] = [];
  for (const anchor of trustAnchors) {
    if ('ownAuthorities' in anchor) certificates.push(...chains.flatMap(authoritiesOf));
    else if ('certificate' in anchor) {
      const target = anchor.pin === true ? pins : certificates;
      target.push(...(parsePemCertificates(anchor.certificate, 1) ?? []));
    } else if ('keyChainId' in anchor) certificates.push(...[roots.get(anchor.keyChainId) ?? []].flat());
    else {
      const { trustList: uri, signedBy = [], serviceTypes, follow, serviceStatusAt } = anchor;
      const statusAt = serviceStatusAt === 'issuance' ? serviceStatusAt : undefined;
      const purpose = credentialIssuers(serviceTypes, statusAt);
      sources.push({ uri, signers: pinSigners(signedBy), purpose, ...defined({ follow }) });
    }
  }
  const anchors = [
    ...[...new Set(certificates)].map((certificate) => ({ certificate })),
    ...[...new Set(pins)].map((certificate) => ({ certificate, pin: true })),
  ];
  return { anchors, sources };
}

/** The certificates of a key chain that vouch for its credentials: CAs, including former ones; otherwise its leaf certificates. */
function authoritiesOf(chain: KeyChain): readonly string[] {
  if (!chain.usages.includes('signing')) return [];
  const { root, former = [] } = chain;
  const roots = [root?.certificate, ...former.map((leaf) => leaf.root)];
  const presentRoots = roots.filter((certificate) => certificate !== undefined);
  return root === undefined
    ? [...presentRoots, ...trustedLeaves(chain).flatMap(({ certificates }) => certificates.slice(0, 1))]
    : presentRoots;
}

async function collectTrust({ anchors }: ConfiguredTrust, queriedLists: readonly QueriedList[]): Promise<IssuerTrust> {
  const listedAnchors = await collectAnchors(queriedLists);
  const lists: { readonly uri: string; readonly anchors: readonly TrustAnchor[] }[] = [];
  for (const queriedList of queriedLists) {
    const { uri } = queriedList.source;
    // The lists that a list of lists points to belong to it (OpenID4VP 1.0 section 6.1.1.2)
    const cascade = [queriedList, ...queriedLists.filter(({ source }) => source.via === uri)];
    const listAnchors = [...(await collectAnchors(cascade)).values()].filter(isCurrent).map(anchorOf);
    if (listAnchors.length > 0) lists.push({ uri, anchors: listAnchors });
  }
  // The rest visits all certificates once more, so other requests run first.
  await new Promise((resolve) => setImmediate(resolve));
  // A pin vouches for less than the same certificate on a list.
  const anchorCertificates = new Set(anchors.filter(({ pin }) => pin !== true).map(({ certificate }) => certificate));
  const listedOnly = [...listedAnchors].filter(([, { certificate }]) => !anchorCertificates.has(certificate));
  const anchorsOf = (entries: readonly (readonly [string, ListedAnchor])[]) => entries.map(([, anchor]) => anchorOf(anchor));
  const current = [...anchors, ...anchorsOf(listedOnly.filter(([, anchor]) => isCurrent(anchor)))];
  const formerAnchors = anchorsOf(listedOnly.filter(([, anchor]) => !isCurrent(anchor)));
  return {
    anchors: current,
    withFormer: formerAnchors.length === 0 ? current : [...current, ...formerAnchors],
    dated: new Map(listedOnly.flatMap(([id, anchor]) => datesOf(id, anchor))),
    listedAnchors,
    lists,
    missing: [
      ...queriedLists.flatMap(describeProblems),
      ...(listedAnchors.size < MAX_LISTED_ANCHORS ? [] : [`only ${MAX_LISTED_ANCHORS} certificates of lists are used`]),
    ],
  };
}

/** True if a list vouches with it for credentials that are issued now. */
function isCurrent({ listings }: ListedAnchor): boolean {
  return listings.some(({ isFormer }) => isFormer !== true);
}

/** @returns an empty list if one entry vouches without a time limit. */
function datesOf(id: string, { listings }: ListedAnchor): readonly [string, readonly Period[]][] {
  const periods = listings.map((listing) => listing.periods);
  return periods.includes(undefined) ? [] : [[id, periods.flatMap((listingPeriods) => listingPeriods ?? [])]];
}

function describeProblems(queriedList: QueriedList): string[] {
  const uri = withoutQuery(queriedList.source.uri);
  if ('refusal' in queriedList) return [`${uri}: ${queriedList.refusal.message}`];
  // TS 119 602 section 6.3.15
  return queriedList.list.nextUpdate === null ? [`${uri}: closed by its operator`] : [];
}

/** Certificates that may revoke a credential, see `revocationOf`. */
export function revocationAuthoritiesOf(
  { listedAnchors }: IssuerTrust,
  anchor: string,
  demanded: ReadonlySet<string> | undefined,
): readonly TrustAnchor[] | undefined {
  const match = listedAnchors.get(anchor);
  if (match === undefined) return undefined;
  const isDemanded = demanded !== undefined && match.listings.some((listing) => isOn(listing, demanded));
  return revocationOf(match, isDemanded ? demanded : undefined);
}
