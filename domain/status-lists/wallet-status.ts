import type { SessionId, TenantId } from '../shared/ids.ts';
import type { EntryBits } from './bits.ts';

/** An entry of a wallet provider's status list that credentials follow: when it falls they are revoked. */
export type WalletStatus = {
  readonly uri: string;
  readonly idx: number;
  /** Hash of the certificate of a trust list that vouched for the one who signed the attestation. */
  readonly anchor: string;
  /** The provider on that list, whose certificates change as years go by. */
  readonly provider?: string;
  /** Seconds since 1970: until then the provider keeps the entry; absent where nothing says so. */
  readonly keptUntil?: number;
};

/** What the credentials of one request follow, and until when. */
export type FollowingBatch = {
  readonly sessionId: SessionId;
  readonly batchId: string;
  /** Null for credentials without an end. */
  readonly endsAt: Date | null;
  /** `listId` names the list without telling its address. */
  readonly statuses: readonly (WalletStatus & { readonly listId: string })[];
};

/** A provider's list that credentials of a tenant follow. */
export type FollowedList = {
  readonly tenantId: TenantId;
  readonly id: string;
  readonly uri: string;
  readonly anchor: string;
  readonly provider?: string;
  /** When its entries were compared last; null before the first time. */
  readonly checkedAt: Date | null;
  /** Since when it could not be had, and why; null while it can. */
  readonly failure: { readonly since: Date; readonly count: number; readonly reason: string } | null;
};

/** The last instant that a `Date` holds. */
const LAST_INSTANT_SECONDS = 8_640_000_000_000;
/** Token Status List section 7.1. A suspended wallet may come back, and what is revoked stays so. */
const INVALID = 1;

/**
 * The end of what follows these entries: the first of those that their provider keeps.
 * @returns undefined where none of them has an end.
 */
export function endOfStatuses(statuses: readonly WalletStatus[]): Date | undefined {
  const ends = statuses.flatMap(({ keptUntil }) => (keptUntil === undefined ? [] : [keptUntil]));
  return ends.length === 0 ? undefined : new Date(Math.min(...ends, LAST_INSTANT_SECONDS) * 1000);
}

/** Each entry once, also where several attestations of a request name it. */
export function distinctStatuses(statuses: readonly WalletStatus[]): readonly WalletStatus[] {
  const byPlace = new Map<string, WalletStatus>();
  for (const status of statuses) {
    const place = `${status.anchor} ${status.idx} ${status.uri}`;
    const known = byPlace.get(place);
    const isSooner = (status.keptUntil ?? Infinity) < (known?.keptUntil ?? Infinity);
    if (known === undefined || isSooner) byPlace.set(place, status);
  }
  return [...byPlace.values()];
}

/**
 * The entries of a list that are revoked, in their order. Lists are long and nearly all of their bytes are zero.
 * @param from the first entry to look at.
 * @param limit of entries that are returned.
 */
export function revokedFrom(bytes: Uint8Array, bits: EntryBits, from: number, limit: number): number[] {
  const perByte = 8 / bits;
  const mask = (1 << bits) - 1;
  const found: number[] = [];
  for (let at = Math.floor(from / perByte); at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === 0) continue;
    for (let place = 0; place < perByte; place++) {
      const index = at * perByte + place;
      if (index < from || ((byte >> (place * bits)) & mask) !== INVALID) continue;
      found.push(index);
      if (found.length === limit) return found;
    }
  }
  return found;
}
