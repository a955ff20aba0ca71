import type { Store } from '../../application/ports/store.ts';
import { isTerminal } from '../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import { aBatch, aSession, aUse, NOW, REDEMPTION } from '../contract/store/builders.ts';
import { stepsOf } from '../contract/store/steps.ts';

/** What all runners of a race know; the rows it names exist already. */
export type Track = {
  readonly tenantId: TenantId;
  readonly grantId: string;
  /** Hash of the value that all try to use. */
  readonly hash: string;
  readonly claimedSessionId: SessionId;
  readonly issuedSessionId: SessionId;
  readonly listId: string;
};

/** What one runner, with `count` callers at once, achieved. */
export type Result = {
  readonly consumed: number;
  readonly remembered: number;
  readonly claimed: number;
  readonly counters: readonly (number | undefined)[];
  readonly completed: number;
  readonly issued: number;
};

/**
 * Runs every race with `count` callers at the same time.
 * @param runner number from 0; runners change different entries of the status list.
 */
export async function race(store: Store, track: Track, count: number, runner = 0): Promise<Result> {
  const steps = stepsOf(store, track.tenantId);
  const all = <T>(call: (index: number) => Promise<T>) =>
    Promise.all(Array.from({ length: count }, (_, i) => call(i)));
  const value = aUse('c_nonce', { hash: track.hash });
  const session = aSession(track.tenantId, { id: track.issuedSessionId });

  const [consumed, remembered, claimed, counters, issued] = await Promise.all([
    all(() => steps.consumeGrant(track.grantId, REDEMPTION, [aUse()], NOW)),
    all(() => steps.remember([aUse(), value])),
    all(() => steps.claimResponse(track.claimedSessionId, NOW)),
    all(() => steps.takeStatusRun({ id: track.listId, keyChainId: null }, 1)),
    all((i) => steps.recordIssuance(session.id, aBatch(session), 1 << (i % 2), 0b11, NOW)),
    all((i) => {
      const index = runner * count + i;
      return steps.changeStatuses([{ listId: track.listId, index, status: 1 }], NOW);
    }),
  ]);
  return {
    consumed: consumed.filter((result) => result === 'consumed').length,
    remembered: remembered.filter(Boolean).length,
    claimed: claimed.filter(Boolean).length,
    counters,
    completed: issued.filter((result) => result?.changed).length,
    issued: issued.filter((result) => result !== undefined && (!result.changed || isTerminal(result.status)))
      .length,
  };
}
