import { hash } from 'node:crypto';
import { canonicalJson, isJsonObject, type JsonObject } from '../shared/json.ts';
import type { TrustList } from './lote.ts';
import { TrustListRefusal } from './trust-list-refusal.ts';

const MAX_SECONDS = 60 * 60;
/** Lists of this service cost no call, so a change of them counts almost at once. */
export const OWN_LIST_SECONDS = 10;
/** However soon a list ends, it is not asked for more often than this while it still counts. */
const MIN_REFRESH_SECONDS = 5 * 60;

export type ListLifetime = {
  /** From then on a newer copy is looked for while this one is still used. */
  readonly refreshAt: Date;
  /** From then on the copy vouches for nobody. */
  readonly expiresAt: Date;
};

/** `NextUpdate` ends any use (TS 119 602 section 6.3.15); an entity that was taken out counts an hour more at most. */
export function listLifetime({ nextUpdate }: TrustList, fetchedAt: Date, maxSeconds = MAX_SECONDS): ListLifetime {
  const start = fetchedAt.getTime();
  const expiresAt = Math.min(nextUpdate?.getTime() ?? Number.POSITIVE_INFINITY, start + maxSeconds * 1000);
  const half = Math.max((expiresAt - start) / 2, MIN_REFRESH_SECONDS * 1000);
  return { refreshAt: new Date(start + half), expiresAt: new Date(expiresAt) };
}

/** The newest release that was seen at an address. `contentHash` is of what it says, without its dates. */
export type SeenRelease = { readonly sequenceNumber: number; readonly contentHash: string };

/** Operators sign a list again, for longer, without another number: that is the same release. */
const DATES: readonly string[] = ['ListIssueDateTime', 'NextUpdate'];

/** @param payload of a signed list. @returns SHA-256 of all that it says but its dates, base64url. */
export function contentHashOf(payload: JsonObject): string {
  const { LoTE: list } = payload;
  const scheme = isJsonObject(list) ? list['ListAndSchemeInformation'] : undefined;
  if (!isJsonObject(list) || !isJsonObject(scheme)) return hash('sha256', canonicalJson(payload), 'base64url');
  const dateless = Object.fromEntries(
    // A list without an end is closed, which is no date.
    Object.entries(scheme).filter(([name, value]) => value === null || !DATES.includes(name)),
  );
  const content = { ...payload, LoTE: { ...list, ListAndSchemeInformation: dateless } };
  return hash('sha256', canonicalJson(content), 'base64url');
}

/**
 * Numbers grow with each release and are never used again (TS 119 602 section 6.3.2), so an older list that somebody
 * sends once more, or another one under the same number, does not replace what is known.
 * @param seen the newest one: `next` itself, or one that keeps it out.
 * @param next `documentHash`: of the very document, by which releases were remembered once.
 * @throws TrustListRefusal `sequence_went_back`, `sequence_reused`.
 */
export function assertSuccession(seen: SeenRelease, next: SeenRelease & { readonly documentHash?: string }): void {
  const numbers = `${next.sequenceNumber} after ${seen.sequenceNumber}`;
  if (next.sequenceNumber < seen.sequenceNumber) throw new TrustListRefusal('sequence_went_back', numbers);
  const isKnown = [next.contentHash, next.documentHash].includes(seen.contentHash);
  if (next.sequenceNumber === seen.sequenceNumber && !isKnown) throw new TrustListRefusal('sequence_reused', numbers);
}

/** A release that was seen, and when. */
export type DatedRelease = SeenRelease & { readonly seenAt: Date };

/** Ahead of the number before, for who counts; and for each second since, for who counts milliseconds. */
const FREE_JUMP = 1_000;
/** The first number of a list that does not begin like a date. Milliseconds since 1970 reach it in the year 5138. */
const MAX_FIRST = 1e14;
/** `20261231`, with a count or the time of day behind it. */
const DATED = /^(?<year>20\d{2})(?<month>0[1-9]|1[0-2])(?<day>0[1-9]|[12]\d|3[01])\d{0,7}$/;
const DAY_MS = 86_400_000;

/**
 * Whoever once signs a number near the end would keep every later release out for good, so numbers grow as far as counting
 * or dates let them.
 * @param seen the newest release that was seen; undefined for none.
 * @throws TrustListRefusal `sequence_jumped`.
 */
export function assertNoJump(seen: DatedRelease | undefined, next: SeenRelease, now: Date): void {
  const { sequenceNumber } = next;
  if (isDated(sequenceNumber, now)) return;
  const seconds = seen === undefined ? 0 : Math.max(0, now.getTime() - seen.seenAt.getTime()) / 1000;
  const limit = seen === undefined ? MAX_FIRST : seen.sequenceNumber + FREE_JUMP * (1 + seconds);
  if (sequenceNumber <= limit) return;
  const before = seen === undefined ? 'as the first number' : `after ${seen.sequenceNumber}`;
  throw new TrustListRefusal(
    'sequence_jumped',
    `${sequenceNumber} ${before}; where this is right, DELETE /cache/trust-list?releases=true lets numbers begin anew`,
  );
}

/** Whether a number begins with a date that has come. */
function isDated(sequenceNumber: number, now: Date): boolean {
  const { year, month, day } = DATED.exec(String(sequenceNumber))?.groups ?? {};
  const date = Date.parse(`${year}-${month}-${day}T00:00:00Z`);
  return date <= now.getTime() + DAY_MS;
}
