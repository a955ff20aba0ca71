import { defined } from '../../domain/shared/defined.ts';
import type { ListedCertificate } from '../../domain/trust-lists/listed-certificate.ts';
import type { TrustList } from '../../domain/trust-lists/lote.ts';
import { type SelectedCertificate, selectInChunks, type TrustPurpose } from '../../domain/trust-lists/select-certificates.ts';
import type { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import type { TrustAnchor } from '../ports/certificates.ts';
import type { PinnedSigners } from './verify-trust-list.ts';

export type ListSource = {
  readonly uri: string;
  readonly signers: PinnedSigners;
  readonly purpose: TrustPurpose;
  /** Follows the pointers of the list: of these territories, or all. */
  readonly follow?: { readonly territories?: readonly string[] | undefined };
  /** The list of lists that points to it, and the territory of the pointer. */
  readonly via?: string;
  readonly territory?: string;
};

export type QueriedList = { readonly source: ListSource } & (
  | { readonly list: TrustList }
  /** The list vouches for no issuer at present. */
  | { readonly refusal: TrustListRefusal }
);

/** True if two queries returned the same lists, so that values derived from them can be reused. */
export function areSame(lists: readonly QueriedList[], otherLists: readonly QueriedList[]): boolean {
  return lists.length === otherLists.length && lists.every((list, index) => isSame(list, otherLists[index]));
}

function isSame(list: QueriedList, otherList: QueriedList | undefined): boolean {
  if (otherList === undefined || list.source !== otherList.source) return false;
  if ('list' in list) return 'list' in otherList && list.list === otherList.list;
  return 'refusal' in otherList && list.refusal.message === otherList.refusal.message;
}

export type Listing = {
  readonly entity: SelectedCertificate['entity'];
  /** `via`: the list of lists that points to it. */
  readonly list: { readonly uri: string; readonly sequenceNumber: number; readonly via?: string };
  /** The only signers of its status lists, if the entity lists such a service. */
  readonly revocation: readonly ListedCertificate[] | undefined;
} & Pick<SelectedCertificate, 'periods' | 'isFormer'>;

/** A certificate that lists vouch for, with all its entries. */
export type ListedAnchor = ListedCertificate & { readonly listings: readonly Listing[] };

/** Limit of certificates of all lists of a configuration; more specific lists or service types are needed beyond it. */
export const MAX_LISTED_ANCHORS = 5_000;

/** The trust anchor of a listed certificate, without its entries, so that it is small. */
export function anchorOf({ certificate, hash, authority }: ListedCertificate): TrustAnchor {
  return { certificate, hash, ...(authority !== undefined && { authority }) };
}

/**
 * The anchors of lists by the hash of their certificates, in the order of the lists. Twenty lists may have a hundred thousand
 * entries, so other requests run after each part of a list, and between two lists.
 */
export async function collectAnchors(lists: readonly QueriedList[]): Promise<ReadonlyMap<string, ListedAnchor>> {
  const anchors = new Map<string, ListedCertificate & { readonly listings: Listing[] }>();
  const add = (selected: SelectedCertificate, list: Listing['list']) => {
    const { hash, certificate, authority, entity, revocation, periods, isFormer } = selected;
    let anchor = anchors.get(hash);
    if (anchor === undefined) {
      if (anchors.size >= MAX_LISTED_ANCHORS) return;
      anchor = { certificate, hash, ...(authority !== undefined && { authority }), listings: [] };
      anchors.set(hash, anchor);
    }
    const dates = periods === undefined ? {} : { periods, ...defined({ isFormer }) };
    anchor.listings.push({ entity, revocation, ...dates, list });
  };
  let parts = 0;
  for (const queried of lists) {
    if (!('list' in queried)) continue;
    const { source, list } = queried;
    const { uri, via } = source;
    const origin = { uri, sequenceNumber: list.sequenceNumber, ...defined({ via }) };
    for (const part of selectInChunks(list, source.purpose)) {
      // A small list has one part, and is processed at once.
      if (parts++ > 0) await new Promise((resolve) => setImmediate(resolve));
      for (const selected of part) add(selected, origin);
    }
  }
  return anchors;
}

/** True if an entry is on one of these lists, or on one that they point to (OpenID4VP 1.0 section 6.1.1.2). */
export function isOn({ list }: Listing, uris: ReadonlySet<string>): boolean {
  return uris.has(list.uri) || (list.via !== undefined && uris.has(list.via));
}

/** Cached by entries and considered lists: path validation caches by the identity of the array. */
const revocations = new WeakMap<readonly Listing[], Map<string, readonly TrustAnchor[] | undefined>>();

/**
 * The authorities for the revocation of an anchor's credentials (Token Status List section 11.3). If an entity lists a revocation service,
 * only that is used, regardless of other lists with the same certificate.
 * @param uris the considered lists; all by default.
 * @returns undefined when no entity lists such a service.
 */
export function revocationOf({ listings }: ListedAnchor, uris?: ReadonlySet<string>): readonly TrustAnchor[] | undefined {
  const byUris = revocations.get(listings) ?? new Map<string, readonly TrustAnchor[] | undefined>();
  revocations.set(listings, byUris);
  const name = uris === undefined ? '' : [...uris].sort().join(' ');
  if (!byUris.has(name)) {
    const considered = listings.filter((listing) => uris === undefined || isOn(listing, uris));
    // Listings of one entity share the list of its revokers, which may be as long as there are listings.
    const revokerLists = new Set(considered.flatMap(({ revocation }) => (revocation === undefined ? [] : [revocation])));
    const anchors = new Map<string, TrustAnchor>();
    for (const revokers of revokerLists) for (const revoker of revokers) anchors.set(revoker.certificate, revoker);
    byUris.set(name, revokerLists.size === 0 ? undefined : [...anchors.values()]);
  }
  return byUris.get(name);
}
