import { hash } from 'node:crypto';
import { canonicalJson, isJsonObject, type JsonObject } from '../shared/json.ts';
import type { TrustList } from './lote.ts';
import { TrustListRefusal } from './trust-list-refusal.ts';

const MAX_SECONDS = 60 * 60;
/** Lists of this service need no request, so changes take effect almost immediately. */
export const INTERNAL_LIST_SECONDS = 10;
/** A valid list is not requested more often than this, even if it ends soon. */
const MIN_REFRESH_SECONDS = 5 * 60;

export type ListLifetime = {
  /** Time from which a newer copy is fetched while this one is still used. */
  readonly refreshAt: Date;
  /** Time from which the copy is not trusted any more. */
  readonly expiresAt: Date;
};

/** `NextUpdate` ends the use (TS 119 602 section 6.3.15); a removed entity stays trusted for at most an hour. */
export function listLifetime({ nextUpdate }: TrustList, fetchedAt: Date, maxSeconds = MAX_SECONDS): ListLifetime {
  const start = fetchedAt.getTime();
  const expiresAt = Math.min(nextUpdate?.getTime() ?? Number.POSITIVE_INFINITY, start + maxSeconds * 1000);
  const half = Math.max((expiresAt - start) / 2, MIN_REFRESH_SECONDS * 1000);
  return { refreshAt: new Date(start + half), expiresAt: new Date(expiresAt) };
}

/** The newest list version that was seen at an address. `contentHash` covers its content without dates. */
export type SeenListVersion = { readonly sequenceNumber: number; readonly contentHash: string };

/** Operators may sign the same list version again with new dates and the same number. */
const DATES: readonly string[] = ['ListIssueDateTime', 'NextUpdate'];

/** @param payload of a signed list. @returns SHA-256 of its content without dates, base64url. */
export function contentHashOf(payload: JsonObject): string {
  const { LoTE: list } = payload;
  const scheme = isJsonObject(list) ? list['ListAndSchemeInformation'] : undefined;
  if (!isJsonObject(list) || !isJsonObject(scheme)) return hash('sha256', canonicalJson(payload), 'base64url');
  const dateless = Object.fromEntries(
    // A list without an end is closed; this is content, not a date.
    Object.entries(scheme).filter(([name, value]) => value === null || !DATES.includes(name)),
  );
  const content = { ...payload, LoTE: { ...list, ListAndSchemeInformation: dateless } };
  return hash('sha256', canonicalJson(content), 'base64url');
}

/**
 * Sequence numbers increase with each list version and are never reused (TS 119 602 section 6.3.2), so a replayed older list, or another
 * one with the same number, does not replace the stored one.
 * @param newest the newest version: `candidate` itself, or one that prevents it.
 * @param candidate `documentHash` covers the whole document; earlier releases stored it instead.
 * @throws TrustListRefusal `sequence_went_back`, `sequence_reused`.
 */
export function assertSequenceIncreases(newest: SeenListVersion, candidate: SeenListVersion & { readonly documentHash?: string }): void {
  if (candidate.sequenceNumber < newest.sequenceNumber) {
    throw new TrustListRefusal(
      'sequence_went_back',
      `its number is ${candidate.sequenceNumber}, the newest one is ${newest.sequenceNumber}`,
    );
  }
  const isKnown = [candidate.contentHash, candidate.documentHash].includes(newest.contentHash);
  if (candidate.sequenceNumber === newest.sequenceNumber && !isKnown) {
    throw new TrustListRefusal('sequence_reused', `its number ${candidate.sequenceNumber} is that of a list with other content`);
  }
}

export type DatedListVersion = SeenListVersion & { readonly seenAt: Date };

/** Permitted increase of a number, for operators that count; and per second since, for operators that use milliseconds. */
const MAX_UNDATED_JUMP = 1_000;
/** Limit of the first number of a list that does not begin with a date. Milliseconds since 1970 reach it in the year 5138. */
const MAX_FIRST = 1e14;
/** `20261231`, followed by a counter or the time of day. */
const DATED = /^(?<year>20\d{2})(?<month>0[1-9]|1[0-2])(?<day>0[1-9]|[12]\d|3[01])\d{0,7}$/;
const DAY_MS = 86_400_000;

/**
 * A list with a number near the maximum would block all later versions forever, so a number may only increase as far as counting or dates
 * explain.
 * @param newest undefined if none was seen.
 * @throws TrustListRefusal `sequence_jumped`.
 */
export function assertNoSequenceJump(newest: DatedListVersion | undefined, candidate: SeenListVersion, now: Date): void {
  const { sequenceNumber } = candidate;
  if (isDated(sequenceNumber, now)) return;
  const seconds = newest === undefined ? 0 : Math.max(0, now.getTime() - newest.seenAt.getTime()) / 1000;
  const limit = newest === undefined ? MAX_FIRST : newest.sequenceNumber + MAX_UNDATED_JUMP * (1 + seconds);
  if (sequenceNumber <= limit) return;
  const jump =
    newest === undefined
      ? `its first number is ${sequenceNumber}`
      : `its number is ${sequenceNumber}, the newest one is ${newest.sequenceNumber}`;
  throw new TrustListRefusal(
    'sequence_jumped',
    `${jump}; if this is correct, DELETE /cache/trust-list?releases=true accepts restarted numbers`,
  );
}

/** True if a number begins with a date that is not in the future. */
function isDated(sequenceNumber: number, now: Date): boolean {
  const { year, month, day } = DATED.exec(String(sequenceNumber))?.groups ?? {};
  const date = Date.parse(`${year}-${month}-${day}T00:00:00Z`);
  return date <= now.getTime() + DAY_MS;
}
