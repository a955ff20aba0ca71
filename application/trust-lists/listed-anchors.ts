import { defined } from '../../domain/shared/defined.ts';
import type { ListedCertificate } from '../../domain/trust-lists/listed-certificate.ts';
import type { TrustList } from '../../domain/trust-lists/lote.ts';
import { type SelectedCertificate, selectInParts, type TrustPurpose } from '../../domain/trust-lists/select-certificates.ts';
import type { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import type { TrustAnchor } from '../ports/certificates.ts';
import type { PinnedSigners } from './verify-trust-list.ts';

/** A trust list that a tenant relies on. */
export type ListSource = {
  readonly uri: string;
  readonly signers: PinnedSigners;
  readonly purpose: TrustPurpose;
  /** Lists that it points to count, too: of these territories, or of all. */
  readonly follow?: { readonly territories?: readonly string[] | undefined };
  /** The list of lists that points to it, and whose list it is there. */
  readonly via?: string;
  readonly territory?: string;
};

export type AskedList = { readonly source: ListSource } & (
  | { readonly list: TrustList }
  /** It vouches for nobody at present. */
  | { readonly refusal: TrustListRefusal }
);

/** Whether two rounds of asking brought the same lists, so that what was made of them can stay. */
export function areSame(one: readonly AskedList[], other: readonly AskedList[]): boolean {
  return one.length === other.length && one.every((asked, index) => isSame(asked, other[index]));
}

function isSame(one: AskedList, other: AskedList | undefined): boolean {
  if (other === undefined || one.source !== other.source) return false;
  if ('list' in one) return 'list' in other && one.list === other.list;
  return 'refusal' in other && one.refusal.message === other.refusal.message;
}

/** One place where a certificate is listed. */
export type Listing = {
  readonly entity: SelectedCertificate['entity'];
  /** `via`: the list of lists that points there. */
  readonly list: { readonly uri: string; readonly sequenceNumber: number; readonly via?: string };
  /** Who alone may sign status lists for it, where the entity lists such a service. */
  readonly revocation: readonly ListedCertificate[] | undefined;
} & Pick<SelectedCertificate, 'periods' | 'isFormer'>;

/** A certificate that lists vouch for, with every place where it stands. */
export type ListedAnchor = ListedCertificate & { readonly listings: readonly Listing[] };

/** Certificates of all lists together; who relies on more names fewer lists or types of services. */
export const MAX_LISTED_ANCHORS = 5_000;

/** What a listed certificate is as a trust anchor: its listings are left out, so that the anchor is small. */
export function anchorOf({ certificate, hash, authority }: ListedCertificate): TrustAnchor {
  return { certificate, hash, ...(authority !== undefined && { authority }) };
}

/**
 * The anchors of lists by the hash of their certificates, in the order of the lists. Twenty lists may have a hundred thousand
 * listings, so other requests have their turn after each part of a list, and between two lists.
 */
export async function gatherAnchors(asked: readonly AskedList[]): Promise<ReadonlyMap<string, ListedAnchor>> {
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
  for (const one of asked) {
    if (!('list' in one)) continue;
    const { source, list } = one;
    const { uri, via } = source;
    const origin = { uri, sequenceNumber: list.sequenceNumber, ...defined({ via }) };
    for (const part of selectInParts(list, source.purpose)) {
      // One small list has one part, and is gathered at once.
      if (parts++ > 0) await new Promise((resolve) => setImmediate(resolve));
      for (const selected of part) add(selected, origin);
    }
  }
  return anchors;
}

/** Whether a listing stands on one of these lists, or on one that they point to (OpenID4VP 1.0 section 6.1.1.2). */
export function isOn({ list }: Listing, uris: ReadonlySet<string>): boolean {
  return uris.has(list.uri) || (list.via !== undefined && uris.has(list.via));
}

/** By the listings and the lists that count: path validation remembers what it knows by the array itself. */
const revocations = new WeakMap<readonly Listing[], Map<string, readonly TrustAnchor[] | undefined>>();

/**
 * Who may speak of the revocation of what an anchor vouches for (Token Status List section 11.3). An entity that
 * names a service for it is taken by its word, whatever other lists say of the same certificate.
 * @param uris the lists that count; all unless given.
 * @returns undefined when no entity names such a service.
 */
export function revocationOf({ listings }: ListedAnchor, uris?: ReadonlySet<string>): readonly TrustAnchor[] | undefined {
  const known = revocations.get(listings) ?? new Map<string, readonly TrustAnchor[] | undefined>();
  revocations.set(listings, known);
  const name = uris === undefined ? '' : [...uris].sort().join(' ');
  if (!known.has(name)) {
    const counting = listings.filter((listing) => uris === undefined || isOn(listing, uris));
    // Listings of one entity share the list of its revokers, which may be as long as there are listings.
    const named = new Set(counting.flatMap(({ revocation }) => (revocation === undefined ? [] : [revocation])));
    const anchors = new Map<string, TrustAnchor>();
    for (const revokers of named) for (const revoker of revokers) anchors.set(revoker.certificate, revoker);
    known.set(name, named.size === 0 ? undefined : [...anchors.values()]);
  }
  return known.get(name);
}
