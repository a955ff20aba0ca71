import { defined } from '../../domain/shared/defined.ts';
import { findingKey } from '../../domain/trust-lists/kept-list.ts';
import type { EventPublisher } from '../ports/event-publisher.ts';
import type { KeptTrustListJobs } from '../ports/kept-trust-lists.ts';
import type { Log } from '../ports/log.ts';
import { thumbprintOf } from './verify-trust-list.ts';

type Ports = {
  readonly maintenance: Pick<KeptTrustListJobs, 'untoldFindings' | 'toldFinding'>;
  readonly publisher: EventPublisher;
  readonly log: Log;
};

const BATCH = 50;

/**
 * Tells other systems of lists that somebody has to look at, each thing at least once: it is noted as told when the broker
 * has it. @returns whether there may be more.
 */
export async function tellHeldLists({ maintenance, publisher, log }: Ports): Promise<boolean> {
  if (!publisher.isReady) return false;
  const untold = await maintenance.untoldFindings(BATCH);
  for (const one of untold) {
    const { tenantId, id, place, finding, since } = one;
    const { origin, pathname } = new URL(place.uri);
    const signer = finding.signer === undefined ? undefined : thumbprintOf(finding.signer);
    const notice = { tenantId, listId: id, list: origin + pathname, reason: finding.reason };
    const about = { ...notice, key: findingKey(finding), at: since, ...defined({ signer }) };
    // Who refuses it does not get it again, since all others would.
    if (!(await publisher.tellHeldList(about)))
      log.warn('an event of a trust list was refused by the broker and given up', { tenantId, list: notice.list });
    await maintenance.toldFinding(one);
  }
  return untold.length >= BATCH;
}
