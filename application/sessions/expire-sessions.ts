import { needs } from '../needs.ts';
import { EventBus } from '../ports/event-bus.ts';
import type { ExpiryCursor, SessionKey } from '../ports/maintenance.ts';
import { Store } from '../ports/store.ts';

/** A session can appear behind a finished pass: created by a process with a slow clock, or by a long transaction. */
const OVERLAP_MS = 120_000;
/** A session with a response, or one that waited for a delivery, is visited again so long after its expiry. */
const SECOND_VISIT_MS = 3_600_000;
const COMPLETE_PASS_INTERVAL_MS = 86_400_000;

type Range = { readonly from?: Date; readonly until: Date };
type Pass = {
  readonly now: Date;
  readonly isComplete: boolean;
  readonly ranges: Range[];
  /** Position in the first range. */
  after: ExpiryCursor | undefined;
};
export type ExpiryStep = {
  readonly expired: number;
  /** Expired sessions with a response, see `EndOverdueResponses`. */
  readonly overdue: readonly SessionKey[];
  readonly mayBeMore: boolean;
};

/**
 * Marks expired sessions.
 *
 * A run visits the sessions that expired since the last completed run of this process, and those of an hour before that, so its cost
 * does not depend on the number of stored sessions. The first run of a process and one run a day visit all sessions.
 */
export class ExpireSessions extends needs({ store: Store, eventBus: EventBus }) {
  #pass: Pass | undefined;
  #completedAt: Date | undefined;
  #completePassAt: Date | undefined;

  /** @param now of the database. @returns a function that processes one batch of at most `limit` sessions. */
  begin(now: Date, limit: number): () => Promise<ExpiryStep> {
    // Continues a pass that the previous run had no time to finish.
    this.#pass ??= this.#startPass(now);
    const pass = this.#pass;
    return async () => {
      const [range] = pass.ranges;
      if (range === undefined) return { expired: 0, overdue: [], mayBeMore: false };
      const cursor = pass.after ?? (range.from && ([range.from.getTime()] as const));
      const batch = await this.ports.store.maintenance.expireSessions(pass.now, limit, {
        until: range.until,
        ...(cursor !== undefined && { after: cursor }),
      });
      for (const { tenantId, id } of batch.expired) this.ports.eventBus.publish({ type: 'session', tenantId, sessionId: id });
      pass.after = batch.next;
      if (batch.next === undefined) pass.ranges.shift();
      const mayBeMore = pass.ranges.length > 0;
      if (!mayBeMore) this.#complete(pass);
      return { expired: batch.expired.length, overdue: batch.overdue, mayBeMore };
    };
  }

  #startPass(now: Date): Pass {
    const [completedMs, completePassMs] = [this.#completedAt?.getTime(), this.#completePassAt?.getTime()];
    const time = now.getTime();
    const isComplete =
      completedMs === undefined || completePassMs === undefined || time < completedMs || time - completePassMs >= COMPLETE_PASS_INTERVAL_MS;
    const from = completedMs ?? 0;
    const ranges = isComplete
      ? [{ until: now }]
      : [
          { from: new Date(from - OVERLAP_MS), until: now },
          // An hour later the range contains everything that appeared behind the first pass.
          { from: new Date(from - SECOND_VISIT_MS), until: new Date(time - SECOND_VISIT_MS) },
        ];
    return { now, isComplete, ranges, after: undefined };
  }

  #complete({ now, isComplete }: Pass): void {
    this.#pass = undefined;
    this.#completedAt = now;
    if (isComplete) this.#completePassAt = now;
  }
}
