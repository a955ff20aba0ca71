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
export function listLifetime(
  { nextUpdate }: TrustList,
  fetchedAt: Date,
  maxSeconds = MAX_SECONDS,
): ListLifetime {
  const start = fetchedAt.getTime();
  const expiresAt = Math.min(nextUpdate?.getTime() ?? Number.POSITIVE_INFINITY, start + maxSeconds * 1000);
  const half = Math.max((expiresAt - start) / 2, MIN_REFRESH_SECONDS * 1000);
  return { refreshAt: new Date(start + half), expiresAt: new Date(expiresAt) };
}

/** The newest release that was seen at an address. */
export type SeenRelease = { readonly sequenceNumber: number; readonly contentHash: string };

/**
 * Numbers grow with each release and are never used again (TS 119 602 section 6.3.2), so an older list that somebody
 * sends once more, or another one under the same number, does not replace what is known.
 * @param seen the newest one: `next` itself, or one that keeps it out.
 * @throws TrustListRefusal `sequence_went_back`, `sequence_reused`.
 */
export function checkSuccession(seen: SeenRelease, next: SeenRelease): void {
  const numbers = `${next.sequenceNumber} after ${seen.sequenceNumber}`;
  if (next.sequenceNumber < seen.sequenceNumber) throw new TrustListRefusal('sequence_went_back', numbers);
  if (next.sequenceNumber === seen.sequenceNumber && next.contentHash !== seen.contentHash) {
    throw new TrustListRefusal('sequence_reused', numbers);
  }
}
