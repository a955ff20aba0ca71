import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import type { CleanedUpTenant, CleanUpPlace, CleanUpTenant } from '../ports/maintenance.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';

/** Sessions that had to be left are visited again, with what was created after them. */
const LEFT_AGAIN_MS = 600_000;
const COMPLETE_WALK_EVERY_MS = 86_400_000;
/** A tenant without a mark is walked from its oldest session. */
const MAX_MARKS = 20_000;

type Mark = {
  readonly mode: string;
  /** Sessions that were created until then are cleaned up, */
  readonly until: Date;
  /** but for some of those that were created from then on. */
  readonly leftFrom: Date | undefined;
  readonly leftAgainAt: number;
  readonly completeWalkAt: number;
};
type CleanUpStep = { readonly removed: number; readonly anonymized: number; readonly unsent: number; readonly mayBeMore: boolean };

/**
 * Removes or anonymizes the sessions that their tenants keep no longer. A run visits the sessions of a tenant that became due since
 * its last walk, so that it costs what is due, however many anonymous sessions are stored. The first walk of a process and one
 * walk a day visit all that are older than their tenant keeps them.
 */
export class CleanUpSessions extends needs({ store: Store, settings: ServiceSettings }) {
  readonly #marks = new Map<TenantId, Mark>();
  #place: CleanUpPlace | undefined;

  /** @param now of the database. @returns what works through one batch of at most `limit` sessions. */
  begin(now: Date, limit: number): () => Promise<CleanUpStep> {
    const options = {
      ttlSeconds: this.ports.settings.sessionTtlSeconds,
      startOf: (tenant: CleanUpTenant) => this.#startOf(tenant, now),
    };
    return async () => {
      const { maintenance } = this.ports.store;
      // A walk that the former run had no time to finish goes on.
      const done = await maintenance.cleanUpSessions(now, limit, options, this.#place);
      for (const tenant of done.walked ?? []) this.#mark(tenant, now);
      this.#place = done.next;
      const { removed, anonymized, unsent = 0 } = done;
      return { removed, anonymized, unsent, mayBeMore: done.next !== undefined };
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
    const before = this.#marks.get(id);
    const again = now.getTime() + LEFT_AGAIN_MS;
    const isLeftBefore = before?.leftFrom !== undefined && before.leftAgainAt > now.getTime() ? before : undefined;
    if (this.#marks.size >= MAX_MARKS) this.#marks.clear();
    this.#marks.set(id, {
      mode,
      until: before === undefined || before.until < until ? until : before.until,
      leftFrom: isLeftBefore?.leftFrom ?? leftFrom,
      leftAgainAt: isLeftBefore?.leftAgainAt ?? again,
      completeWalkAt: before?.completeWalkAt ?? now.getTime() + COMPLETE_WALK_EVERY_MS,
    });
  }
}
