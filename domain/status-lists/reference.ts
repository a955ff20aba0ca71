import { isJsonObject, type JsonObject } from '../shared/json.ts';
import { Refusal, type RefusalReason } from '../shared/refusal.ts';
import { capacityOf, type EntryBits, readStatus } from './bits.ts';

/** Where a credential's status stands (Token Status List section 6). */
export type StatusReference = { readonly idx: number; readonly uri: string };

export type StatusVerdict = 'valid' | Extract<RefusalReason, 'status_revoked' | 'status_suspended' | 'status_unknown'>;

const VERDICT_OF_STATUS: ReadonlyMap<number, StatusVerdict> = new Map([
  [0, 'valid'],
  [1, 'status_revoked'],
  [2, 'status_suspended'],
]);

/**
 * Reads the `status` member of a credential; other mechanisms beside `status_list` are ignored.
 * @returns undefined for a credential without one.
 * @throws Refusal `status_invalid`, also for a mechanism that cannot be asked.
 */
export function parseStatusReference({ status }: JsonObject): StatusReference | undefined {
  if (status === undefined) return undefined;
  const list = isJsonObject(status) ? status['status_list'] : undefined;
  if (!isJsonObject(list)) throw new Refusal('status_invalid', 'no status_list');
  const { idx, uri } = list;
  // Token Status List section 6.2: a non-negative integer.
  if (typeof idx !== 'number' || !Number.isSafeInteger(idx) || idx < 0) throw new Refusal('status_invalid', 'idx');
  // Token Status List section 6.2: a URI.
  if (typeof uri !== 'string' || !URL.canParse(uri)) throw new Refusal('status_invalid', 'uri');
  return { idx, uri };
}

/** The entry of an inflated list. @throws Refusal `status_invalid` when the list is too short. */
export function statusAt(bytes: Uint8Array, bits: EntryBits, index: number): number {
  // Token Status List section 8.3: an index outside the list says nothing about the status.
  if (index >= capacityOf(bytes, bits)) throw new Refusal('status_invalid', 'idx is outside the list');
  return readStatus(bytes, bits, index);
}

/**
 * Token Status List section 7. The entry is one value and not a set of flags; what an application alone could
 * interpret, and what is reserved, is unknown.
 */
export function verdictOf(status: number): StatusVerdict {
  return VERDICT_OF_STATUS.get(status) ?? 'status_unknown';
}
