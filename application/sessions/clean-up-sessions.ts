import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import type { CleanedUpTenant, CleanUpCursor, CleanUpTenant } from '../ports/maintenance.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';

/** Interval after which sessions that had to be kept are visited again. */
const REVISIT_INTERVAL_MS = 600_000;
const COMPLETE_PASS_INTERVAL_MS = 86_400_000;
/** Limit of stored marks. A tenant without a mark is visited from its oldest session. */
const MAX_MARKS = 20_000;

type Mark = {
  readonly mode: string;
  /** Sessions that were created up to this time are cleaned up, */
  readonly until: Date;
  /** except for some of those that were created after this time. */
  readonly leftFrom: Date | undefined;
  readonly leftAgainAt: number;
  readonly completeWalkAt: number;
};
type CleanUpStep = { readonly removed: number; readonly anonymized: number; readonly unsent: number; readonly mayBeMore: boolean };

/**
 * Removes or anonymizes sessions after their retention time. A run visits only the sessions that became due since the last pass over
 * their tenant, so its cost does not depend on the number of stored anonymous sessions. The first pass of a process and one pass a
 * day visit all sessions that are past their retention time.
 */
export class CleanUpSessions extends needs({ store: Store, settings: ServiceSettings }) {
  readonly #marks = new Map<TenantId, Mark>();
  #cursor: CleanUpCursor | undefined;

  /** @param now of the database. @returns a function that processes one batch of at most `limit` sessions. */
  begin(now: Date, limit: number): () => Promise<CleanUpStep> {
    const options = { ttlSeconds: this.ports.settings.sessionTtlSeconds, startOf: (tenant: CleanUpTenant) => this.#startOf(tenant, now) };
    return async () => {
      const { maintenance } = this.ports.store;
      // Continues a pass that the previous run had no time to finish.
      const batch = await maintenance.cleanUpSessions(now, limit, options, this.#cursor);
      for (const tenant of batch.walked ?? []) this.#mark(tenant, now);
      this.#cursor = batch.next;
      const { removed, anonymized, unsent = 0 } = batch;
      return { removed, anonymized, unsent, mayBeMore: batch.next !== undefined };
    };
  }

  #startOf({ id, mode }: CleanUpTenant, now: Date): Date | undefined {
    const mark = this.#marks.get(id);
    if (mark === undefined || mark.mode !== mode || mark.completeWalkAt <= now.getTime()) {
      this.#marks.delete(id);
      return undefined;
    }
    const { leftFrom, leftAgainAt, until } = mark;
    return leftFrom !== undefined && leftAgainAt <= now.getTime() ? new Date(leftFrom.getTime() - 1) : until;
  }

  #mark({ id, mode, until, leftFrom }: CleanedUpTenant, now: Date): void {
    const previousMark = this.#marks.get(id);
    const revisitAt = now.getTime() + REVISIT_INTERVAL_MS;
    const pendingMark = previousMark?.leftFrom !== undefined && previousMark.leftAgainAt > now.getTime() ? previousMark : undefined;
    if (this.#marks.size >= MAX_MARKS) this.#marks.clear();
    this.#marks.set(id, {
      mode,
      until: previousMark === undefined || previousMark.until < until ? until : previousMark.until,
      leftFrom: pendingMark?.leftFrom ?? leftFrom,
      leftAgainAt: pendingMark?.leftAgainAt ?? revisitAt,
      completeWalkAt: previousMark?.completeWalkAt ?? now.getTime() + COMPLETE_PASS_INTERVAL_MS,
    });
  }
}
