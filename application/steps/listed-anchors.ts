import type { TenantId } from '../../domain/shared/ids.ts';
import type { TrustList } from '../../domain/trust-lists/lote.ts';
import {
  type SelectedCertificate,
  selectCertificates,
  type TrustPurpose,
} from '../../domain/trust-lists/select-certificates.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import type { TrustAnchor } from '../ports/certificates.ts';
import type { TrustLists } from './trust-lists.ts';
import type { PinnedSigners } from './verify-trust-list.ts';

/** A trust list that a tenant relies on. */
export type ListSource = {
  readonly uri: string;
  readonly signers: PinnedSigners;
  readonly purpose: TrustPurpose;
};

export type AskedList = { readonly source: ListSource } & (
  | { readonly list: TrustList }
  /** It vouches for nobody at present. */
  | { readonly refusal: TrustListRefusal }
);

/** Asks for all lists at once. Those that cannot be had vouch for nobody; the others still do. */
export function askLists(
  trustLists: TrustLists,
  tenantId: TenantId,
  sources: readonly ListSource[],
): Promise<readonly AskedList[]> {
  return Promise.all(
    sources.map(async (source): Promise<AskedList> => {
      try {
        return { source, list: await trustLists.get(tenantId, source.uri, source.signers) };
      } catch (error) {
        if (error instanceof TrustListRefusal) return { source, refusal: error };
        throw error;
      }
    }),
  );
}

/** Whether two rounds of asking brought the same lists, so that what was made of them can stay. */
export function areSame(one: readonly AskedList[], other: readonly AskedList[]): boolean {
  return one.length === other.length && one.every((asked, index) => isSame(asked, other[index]));
}

function isSame(one: AskedList, other: AskedList | undefined): boolean {
  if (other === undefined || one.source !== other.source) return false;
  if ('list' in one) return 'list' in other && one.list === other.list;
  return 'refusal' in other && one.refusal.message === other.refusal.message;
}

/** What the certificate of a list stands for. */
export type ListedAnchor = {
  readonly certificate: string;
  readonly entity: SelectedCertificate['entity'];
  readonly list: { readonly uri: string; readonly sequenceNumber: number };
  /** Who alone may sign status lists for it, where the entity lists such a service. */
  readonly revocation: readonly TrustAnchor[] | undefined;
};

/** The anchors of lists by the hash of their certificates. Where two entries hold one certificate the first counts. */
export function gatherAnchors(asked: readonly AskedList[]): ReadonlyMap<string, ListedAnchor> {
  const anchors = new Map<string, ListedAnchor>();
  for (const one of asked) {
    if (!('list' in one)) continue;
    const { source, list } = one;
    for (const { hash, certificate, entity, revocation } of selectCertificates(list, source.purpose)) {
      if (anchors.has(hash)) continue;
      anchors.set(hash, {
        certificate,
        entity,
        list: { uri: source.uri, sequenceNumber: list.sequenceNumber },
        revocation: revocation?.map((each) => ({ certificate: each })),
      });
    }
  }
  return anchors;
}
