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

const MAX_REPORTED_PROBLEMS = 50;

/**
 * Publishes the problems of trust lists that an administrator must decide on, each at least once: a problem is marked as reported after
 * the broker has accepted it.
 * @returns true if there may be more.
 */
export async function reportHeldLists({ maintenance, publisher, log }: Ports): Promise<boolean> {
  if (!publisher.isReady) return false;
  const problems = await maintenance.unreportedProblems(MAX_REPORTED_PROBLEMS);
  for (const problem of problems) {
    const { tenantId, id, place, finding, since } = problem;
    const { origin, pathname } = new URL(place.uri);
    const signer = finding.signer === undefined ? undefined : thumbprintOf(finding.signer);
    const listNotice = { tenantId, listId: id, list: origin + pathname, reason: finding.reason };
    const heldListNotice = { ...listNotice, key: problemKey(finding), at: since, ...defined({ signer }) };
    // An event that one queue rejects is not published again, since all other queues would get it twice.
    if (!(await publisher.publishHeldList(heldListNotice)))
      log.warn('an event of a trust list was rejected by the broker and skipped', { tenantId, list: listNotice.list });
    await maintenance.markProblemReported(problem);
  }
  return problems.length >= MAX_REPORTED_PROBLEMS;
}
