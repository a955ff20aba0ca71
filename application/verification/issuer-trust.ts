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
import { askLists } from '../trust-lists/ask-lists.ts';
import {
  type AskedList,
  anchorOf,
  areSame,
  gatherAnchors,
  isOn,
  type ListedAnchor,
  type ListSource,
  MAX_LISTED_ANCHORS,
  revocationOf,
} from '../trust-lists/listed-anchors.ts';
import { TrustLists } from '../trust-lists/remote-trust-lists.ts';
import { pinSigners } from '../trust-lists/verify-trust-list.ts';

/**
 * Whom a presentation configuration trusts at this moment. The arrays stay the same for as long as possible, since
 * path validation remembers what it knows by the array itself.
 */
export type IssuerTrust = {
  /** All of them. Without any every credential is refused (OpenID4VP 1.0 section 14.1). */
  readonly anchors: readonly TrustAnchor[];
  /** With those who vouch for what was issued in the past alone; who is among `dated` vouches for no other time. */
  readonly withFormer: readonly TrustAnchor[];
  /** By the hash of an anchor's certificate: when a credential has to be issued for it to count. */
  readonly dated: ReadonlyMap<string, readonly Period[]>;
  /** What the lists say about an anchor, by the hash of its certificate. */
  readonly listed: ReadonlyMap<string, ListedAnchor>;
  /** The anchors of each list alone, for queries that demand an issuer of it. */
  readonly lists: readonly { readonly uri: string; readonly anchors: readonly TrustAnchor[] }[];
  /** Lists that vouch for nobody, or not for all that stand on them, and why: for the operator. */
  readonly missing: readonly string[];
};

/** What a configuration says by itself, before any list is asked. */
type Configured = { readonly anchors: readonly TrustAnchor[]; readonly sources: readonly ListSource[] };

const NOBODY: IssuerTrust = { anchors: [], withFormer: [], dated: new Map(), listed: new Map(), lists: [], missing: [] };

/** Which issuers a tenant trusts: certificates that it names, and those of trust lists that it names. */
export class IssuerTrusts extends needs({ trustLists: TrustLists }) {
  /** What was made of the lists of a configuration; made anew when one of them changes. */
  readonly #gathered = new WeakMap<Configured, { readonly asked: readonly AskedList[]; readonly trust: Promise<IssuerTrust> }>();

  /**
   * A request keeps the anchors that it was made with, whatever becomes of its configuration. Without such anchors a
   * removed configuration trusts nobody. Lists are read as they are now, and one that is unavailable vouches for nobody.
   * @param policy that the request keeps; undefined where the configuration decides.
   */
  async of(configured: TenantConfiguration, configurationId: string | undefined, policy?: VerificationPolicy): Promise<IssuerTrust> {
    const named = await this.#anchorsOf(configured, configurationId, policy);
    if (named === undefined) return NOBODY;
    const asked = await askLists(this.ports.trustLists, configured.tenantId, named.sources);
    const known = this.#gathered.get(named);
    if (known !== undefined && areSame(known.asked, asked)) return known.trust;
    const trust = gather(named, asked);
    this.#gathered.set(named, { asked, trust });
    return trust;
  }

  /** Requests with the same anchors share one value, since validated paths are cached by it. */
  async #anchorsOf(
    configured: TenantConfiguration,
    configurationId: string | undefined,
    policy: VerificationPolicy | undefined,
  ): Promise<Configured | undefined> {
    if (policy !== undefined) {
      const name = hash('sha256', JSON.stringify(policy.trustAnchors ?? null), 'base64url');
      return configured.derive(`issuer-trust/frozen/${name}`, async () => read(policy, await configured.keyChains()));
    }
    if (configurationId === undefined) return undefined;
    return configured.derive(`issuer-trust/${configurationId}`, async () => {
      const configuration = await configured.presentationConfiguration(configurationId);
      return configuration === undefined ? undefined : read(configuration, await configured.keyChains());
    });
  }
}

/** @param configuration one of an earlier release may have no anchors, and means its own. */
function read({ trustAnchors = [OWN_AUTHORITIES] }: VerificationPolicy, chains: readonly KeyChain[]): Configured {
  const roots = new Map(chains.map((chain) => [chain.id, chain.root?.certificate]));
  const certificates: string[] = [];
  const pins: string[] = [];
  const sources: ListSource[] = [];
  for (const anchor of trustAnchors) {
    if ('ownAuthorities' in anchor) certificates.push(...chains.flatMap(authoritiesOf));
    else if ('certificate' in anchor) {
      const named = anchor.pin === true ? pins : certificates;
      named.push(...(parsePemCertificates(anchor.certificate, 1) ?? []));
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

/** Whose credentials of a key chain count: its CA's, also of a former one; without a CA here its own certificates'. */
function authoritiesOf(chain: KeyChain): readonly string[] {
  if (!chain.usages.includes('signing')) return [];
  const { root, former = [] } = chain;
  const roots = [root?.certificate, ...former.map((leaf) => leaf.root)];
  const known = roots.filter((certificate) => certificate !== undefined);
  return root === undefined ? [...known, ...trustedLeaves(chain).flatMap(({ certificates }) => certificates.slice(0, 1))] : known;
}

async function gather({ anchors }: Configured, asked: readonly AskedList[]): Promise<IssuerTrust> {
  const listed = await gatherAnchors(asked);
  const lists: { readonly uri: string; readonly anchors: readonly TrustAnchor[] }[] = [];
  for (const one of asked) {
    const { uri } = one.source;
    // Of a list of lists those on the lists that it points to (OpenID4VP 1.0 section 6.1.1.2)
    const cascade = [one, ...asked.filter(({ source }) => source.via === uri)];
    const own = [...(await gatherAnchors(cascade)).values()].filter(isCurrent).map(anchorOf);
    if (own.length > 0) lists.push({ uri, anchors: own });
  }
  // What follows looks at all certificates once more.
  await new Promise((resolve) => setImmediate(resolve));
  // A pin vouches for less than the same certificate on a list.
  const known = new Set(anchors.filter(({ pin }) => pin !== true).map(({ certificate }) => certificate));
  const added = [...listed].filter(([, { certificate }]) => !known.has(certificate));
  const anchorsOf = (some: readonly (readonly [string, ListedAnchor])[]) => some.map(([, anchor]) => anchorOf(anchor));
  const current = [...anchors, ...anchorsOf(added.filter(([, anchor]) => isCurrent(anchor)))];
  const former = anchorsOf(added.filter(([, anchor]) => !isCurrent(anchor)));
  return {
    anchors: current,
    withFormer: former.length === 0 ? current : [...current, ...former],
    dated: new Map(added.flatMap(([id, anchor]) => datesOf(id, anchor))),
    listed,
    lists,
    missing: [
      ...asked.flatMap(describeProblems),
      ...(listed.size < MAX_LISTED_ANCHORS ? [] : [`only ${MAX_LISTED_ANCHORS} certificates of lists count`]),
    ],
  };
}

/** Somebody vouches with it for what is issued now. */
function isCurrent({ listings }: ListedAnchor): boolean {
  return listings.some(({ isFormer }) => isFormer !== true);
}

/** @returns nothing where one place vouches for any time. */
function datesOf(id: string, { listings }: ListedAnchor): readonly [string, readonly Period[]][] {
  const periods = listings.map((listing) => listing.periods);
  return periods.includes(undefined) ? [] : [[id, periods.flatMap((each) => each ?? [])]];
}

function describeProblems(asked: AskedList): string[] {
  const uri = withoutQuery(asked.source.uri);
  if ('refusal' in asked) return [`${uri}: ${asked.refusal.message}`];
  // TS 119 602 section 6.3.15
  return asked.list.nextUpdate === null ? [`${uri}: closed by its operator`] : [];
}

/** Whom to ask about the revocation of a credential, see `revocationOf`. */
export function revokersOf(
  { listed }: IssuerTrust,
  anchor: string,
  demanded: ReadonlySet<string> | undefined,
): readonly TrustAnchor[] | undefined {
  const found = listed.get(anchor);
  if (found === undefined) return undefined;
  const isDemanded = demanded !== undefined && found.listings.some((listing) => isOn(listing, demanded));
  return revocationOf(found, isDemanded ? demanded : undefined);
}
