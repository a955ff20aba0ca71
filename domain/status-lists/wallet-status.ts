import type { SessionId, TenantId } from '../shared/ids.ts';
import type { EntryBits } from './bits.ts';

/** A status list entry of a wallet provider that credentials follow: they are revoked with it. */
export type WalletStatus = {
  readonly uri: string;
  readonly idx: number;
  /** Hash of the trust list certificate under which the attestation was signed. */
  readonly anchor: string;
  /** The provider on that list; its certificates may change over the years. */
  readonly provider?: string;
  /** End of the entry's maintenance in seconds since 1970; absent if the provider states none. */
  readonly keptUntil?: number;
};

/** The statuses that the credentials of one request follow. */
export type FollowingBatch = {
  readonly sessionId: SessionId;
  readonly batchId: string;
  /** Null for credentials that do not expire. */
  readonly endsAt: Date | null;
  /** `listId` identifies the list without its address. */
  readonly statuses: readonly (WalletStatus & { readonly listId: string })[];
};

export type FollowedList = {
  readonly tenantId: TenantId;
  readonly id: string;
  readonly uri: string;
  readonly anchor: string;
  readonly provider?: string;
  /** Time of the last comparison; null before the first one. */
  readonly checkedAt: Date | null;
  /** Start and reason of its unavailability; null while it is available. */
  readonly failure: { readonly since: Date; readonly count: number; readonly reason: string } | null;
};

/** The last instant that a `Date` holds. */
const LAST_INSTANT_SECONDS = 8_640_000_000_000;
/** Token Status List section 7.1. A suspended wallet may be reinstated, but a revocation of credentials is final. */
const INVALID = 1;

/**
 * The end of credentials that follow these entries: the earliest end of their maintenance.
 * @returns undefined if none of them has an end.
 */
export function endOfStatuses(statuses: readonly WalletStatus[]): Date | undefined {
  const ends = statuses.flatMap(({ keptUntil }) => (keptUntil === undefined ? [] : [keptUntil]));
  return ends.length === 0 ? undefined : new Date(Math.min(...ends, LAST_INSTANT_SECONDS) * 1000);
}

/** Removes duplicates, because several attestations of a request may reference one entry. */
export function distinctStatuses(statuses: readonly WalletStatus[]): readonly WalletStatus[] {
  const byEntry = new Map<string, WalletStatus>();
  for (const status of statuses) {
    const entryKey = `${status.anchor} ${status.idx} ${status.uri}`;
    const existing = byEntry.get(entryKey);
    const isSooner = (status.keptUntil ?? Infinity) < (existing?.keptUntil ?? Infinity);
    if (existing === undefined || isSooner) byEntry.set(entryKey, status);
  }
  return [...byEntry.values()];
}

/**
 * Revoked entries of a list in ascending order. Lists are long and nearly all of their bytes are zero.
 * @param from the first index.
 * @param limit of returned entries.
 */
export function revokedIndices(bytes: Uint8Array, bits: EntryBits, from: number, limit: number): number[] {
  const perByte = 8 / bits;
  const mask = (1 << bits) - 1;
  const indices: number[] = [];
  for (let byteIndex = Math.floor(from / perByte); byteIndex < bytes.length; byteIndex++) {
    const byte = bytes[byteIndex] ?? 0;
    if (byte === 0) continue;
    for (let entryKey = 0; entryKey < perByte; entryKey++) {
      const index = byteIndex * perByte + entryKey;
      if (index < from || ((byte >> (entryKey * bits)) & mask) !== INVALID) continue;
      indices.push(index);
      if (indices.length === limit) return indices;
    }
  }
  return indices;
}
