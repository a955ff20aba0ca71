import type { Store } from '../../application/ports/store.ts';
import type { CommitResult } from '../../domain/changes/change.ts';
import { isTerminal } from '../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import { aBatch, aSession, aUse, REDEMPTION } from '../contract/store/builders.ts';
import { batchIssuance, grantRedemption, responseDelivery, stepsOf } from '../contract/store/steps.ts';

const isDone = ({ done }: CommitResult) => done;

/** Keys of existing rows for all runners of a race. */
export type RaceKeys = {
  readonly tenantId: TenantId;
  readonly grantId: string;
  /** Hash of the contested single-use value. */
  readonly hash: string;
  readonly claimedSessionId: SessionId;
  readonly issuedSessionId: SessionId;
  readonly listId: string;
};

/** Result of one runner with `count` concurrent callers. */
export type RaceResult = {
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
export async function race(store: Store, track: RaceKeys, count: number, runner = 0): Promise<RaceResult> {
  const steps = stepsOf(store, track.tenantId);
  const callAll = <T>(call: (index: number) => Promise<T>) => Promise.all(Array.from({ length: count }, (_, i) => call(i)));
  const value = aUse('c_nonce', { hash: track.hash });
  const session = aSession(track.tenantId, { id: track.issuedSessionId });

  const grant = (await steps.grant(track.grantId))?.grant;
  if (grant === undefined) throw new Error(`the race has no grant ${track.grantId}`);

  const [consumed, remembered, claimed, counters, issued] = await Promise.all([
    callAll(() => steps.commit(grantRedemption(grant, REDEMPTION, [aUse()]))),
    callAll(() => steps.commit({ uses: [aUse(), value] })),
    callAll(() => steps.commit(responseDelivery(track.claimedSessionId))),
    callAll(() => steps.allocateStatusRun({ id: track.listId, keyChainId: null }, 1)),
    callAll((i) => steps.commit(batchIssuance(session.id, aBatch(session), 1 << (i % 2), 0b11))),
    callAll((i) => {
      const index = runner * count + i;
      return steps.commit({ statuses: [{ listId: track.listId, index, status: 1 }] });
    }),
  ]);
  return {
    consumed: consumed.filter(isDone).length,
    remembered: remembered.filter(isDone).length,
    claimed: claimed.filter(isDone).length,
    counters,
    completed: issued.filter((result) => result.done && result.session?.moved).length,
    issued: issued.filter(
      (result) => result.done && result.session !== undefined && (!result.session.moved || isTerminal(result.session.status)),
    ).length,
  };
}
