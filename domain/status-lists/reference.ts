import { isJsonObject, type JsonObject } from '../shared/json.ts';
import { Refusal, type RefusalReason } from '../shared/refusal.ts';
import { capacityOf, type EntryBits, readStatus } from './bits.ts';

/** Reference to the status of a credential (Token Status List section 6). */
export type StatusReference = { readonly idx: number; readonly uri: string };

export type StatusVerdict = 'valid' | Extract<RefusalReason, 'status_revoked' | 'status_suspended' | 'status_unknown'>;

const VERDICT_OF_STATUS: ReadonlyMap<number, StatusVerdict> = new Map([
  [0, 'valid'],
  [1, 'status_revoked'],
  [2, 'status_suspended'],
]);

/**
 * Parses the `status` claim of a credential; other mechanisms beside `status_list` are ignored.
 * @returns undefined for a credential without one.
 * @throws Refusal `status_invalid`, also for an unsupported mechanism.
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
  // Token Status List section 8.3: an index outside the list is invalid.
  if (index >= capacityOf(bytes, bits)) throw new Refusal('status_invalid', 'idx is outside the list');
  return readStatus(bytes, bits, index);
}

/** Token Status List section 7. The entry is one value, not a set of flags; application-specific and reserved values are unknown. */
export function verdictOf(status: number): StatusVerdict {
  return VERDICT_OF_STATUS.get(status) ?? 'status_unknown';
}
