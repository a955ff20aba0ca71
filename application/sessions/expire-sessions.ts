import { needs } from '../needs.ts';
import { EventBus } from '../ports/event-bus.ts';
import type { ExpiryPlace, SessionKey } from '../ports/maintenance.ts';
import { Store } from '../ports/store.ts';

/** A session can appear behind a walk that is over: by a process whose clock is behind, or by a transaction that took long. */
const OVERLAP_MS = 120_000;
/** A session with a response, or one that waited for a delivery, is looked at again so long after its expiry. */
const SECOND_LOOK_MS = 3_600_000;
const COMPLETE_WALK_EVERY_MS = 86_400_000;

type Range = { readonly from?: Date; readonly until: Date };
type Walk = {
  readonly now: Date;
  readonly isComplete: boolean;
  readonly ranges: Range[];
  /** Where the first range goes on. */
  after: ExpiryPlace | undefined;
};
export type ExpiryStep = {
  readonly expired: number;
  /** Sessions with a response whose time is over, see `EndOverdueAnswers`. */
  readonly overdue: readonly SessionKey[];
  readonly mayBeMore: boolean;
};

/**
 * Expires sessions whose time is over.
 *
 * A run visits the sessions whose expiry passed since the last completed run of this process, and those of an hour before that.
 * It costs what is due, however much is stored. The first run of a process and one run a day visit all sessions.
 */
export class ExpireSessions extends needs({ store: Store, eventBus: EventBus }) {
  #walk: Walk | undefined;
  #completedAt: Date | undefined;
  #completeWalkAt: Date | undefined;

  /** @param now of the database. @returns what works through one batch of at most `limit` sessions. */
  begin(now: Date, limit: number): () => Promise<ExpiryStep> {
    // A walk that the former run had no time to finish goes on.
    this.#walk ??= this.#newWalk(now);
    const walk = this.#walk;
    return async () => {
      const [range] = walk.ranges;
      if (range === undefined) return { expired: 0, overdue: [], mayBeMore: false };
      const after = walk.after ?? (range.from && ([range.from.getTime()] as const));
      const found = await this.ports.store.maintenance.expireSessions(walk.now, limit, {
        until: range.until,
        ...(after !== undefined && { after }),
      });
      for (const { tenantId, id } of found.expired) this.ports.eventBus.publish({ type: 'session', tenantId, sessionId: id });
      walk.after = found.next;
      if (found.next === undefined) walk.ranges.shift();
      const mayBeMore = walk.ranges.length > 0;
      if (!mayBeMore) this.#complete(walk);
      return { expired: found.expired.length, overdue: found.overdue, mayBeMore };
    };
  }

  #newWalk(now: Date): Walk {
    const [since, complete] = [this.#completedAt?.getTime(), this.#completeWalkAt?.getTime()];
    const time = now.getTime();
    const isComplete = since === undefined || complete === undefined || time < since || time - complete >= COMPLETE_WALK_EVERY_MS;
    const from = since ?? 0;
    const ranges = isComplete
      ? [{ until: now }]
      : [
          { from: new Date(from - OVERLAP_MS), until: now },
          // An hour later, what appeared behind the first walk is there: nothing is visited twice.
          { from: new Date(from - SECOND_LOOK_MS), until: new Date(time - SECOND_LOOK_MS) },
        ];
    return { now, isComplete, ranges, after: undefined };
  }

  #complete({ now, isComplete }: Walk): void {
    this.#walk = undefined;
    this.#completedAt = now;
    if (isComplete) this.#completeWalkAt = now;
  }
}
