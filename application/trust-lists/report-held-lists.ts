import { defined } from '../../domain/shared/defined.ts';
import { problemKey } from '../../domain/trust-lists/stored-list.ts';
import type { EventPublisher } from '../ports/event-publisher.ts';
import type { Log } from '../ports/log.ts';
import type { StoredTrustListJobs } from '../ports/stored-trust-lists.ts';
import { thumbprintOf } from './verify-trust-list.ts';

type Ports = {
  readonly maintenance: Pick<StoredTrustListJobs, 'unreportedProblems' | 'markProblemReported'>;
  readonly publisher: EventPublisher;
  readonly log: Log;
};

const BATCH = 50;

/**
 * Reports problems of lists that need a decision to other systems, at least once: a problem is marked after the broker accepted it.
 * @returns true if there may be more.
 */
export async function reportHeldLists({ maintenance, publisher, log }: Ports): Promise<boolean> {
  if (!publisher.isReady) return false;
  const problems = await maintenance.unreportedProblems(BATCH);
  for (const problem of problems) {
    const { tenantId, id, place, finding, since } = problem;
    const { origin, pathname } = new URL(place.uri);
    const signer = finding.signer === undefined ? undefined : thumbprintOf(finding.signer);
    const notice = { tenantId, listId: id, list: origin + pathname, reason: finding.reason };
    const heldListNotice = { ...notice, key: problemKey(finding), at: since, ...defined({ signer }) };
    // A queue that rejects the event is not retried, since all others would get it again.
    if (!(await publisher.publishHeldList(heldListNotice)))
      log.warn('an event of a trust list was rejected by the broker and skipped', { tenantId, list: notice.list });
    await maintenance.markProblemReported(problem);
  }
  return problems.length >= BATCH;
}
