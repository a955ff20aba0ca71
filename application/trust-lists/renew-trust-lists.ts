import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { configurationOf } from '../../domain/trust-lists/list-configuration.ts';
import { RENEW_BEFORE_MS, selectListSigner } from '../../domain/trust-lists/published-list.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import type { EndingTrustList } from '../ports/maintenance.ts';
import { Store } from '../ports/store.ts';
import type { OfferTask } from '../ports/work-queue.ts';
import { TrustListPublisher, type VersionBasis } from './trust-list-publisher.ts';

export type RenewedLists = {
  readonly renewed: number;
  /** Cursor of the next batch; undefined when this was the last one. */
  readonly last: EndingTrustList | undefined;
};

/**
 * Renews published lists before they expire, with current key chains and certificates. A list that cannot be signed does not affect the
 * the others.
 */
export class RenewTrustLists extends needs({ store: Store, log: Log, trustListPublisher: TrustListPublisher }) {
  /** @param offerTask offers a list to all processes; a list that none accepts is signed here. */
  async execute(now: Date, limit: number, previousList?: EndingTrustList, offerTask?: OfferTask): Promise<RenewedLists> {
    const deadline = new Date(now.getTime() + RENEW_BEFORE_MS);
    const dueLists = await this.ports.store.maintenance.endingTrustLists(deadline, limit, previousList);
    let renewed = 0;
    for (const list of dueLists) {
      if (await offerTask?.({ type: 'trust-list', ...list })) continue;
      if (await this.renew(list)) renewed++;
    }
    return { renewed, last: dueLists.length < limit ? undefined : dueLists.at(-1) };
  }

  /** @returns true if a new version was published; false when the list is not due any more. */
  async renew({ tenantId, id, nextUpdate }: EndingTrustList): Promise<boolean> {
    const { log, trustListPublisher } = this.ports;
    const logFields = { tenantId, trustListId: id, nextUpdate: nextUpdate.toISOString() };
    const advice = 'set a key chain for the usage trustList that expires later, or create one';
    try {
      let isEnding = false;
      const list = await trustListPublisher.publish(tenantId, id, SYSTEM, (basis) => {
        const { storedList } = basis;
        if (storedList === undefined || !isDue(basis)) return undefined;
        isEnding = !isExtended(basis);
        return isEnding ? undefined : configurationOf(id, storedList);
      });
      if (isEnding) log.warn(`a trust list expires with the certificate of its signer: ${advice}`, logFields);
      return list !== undefined;
    } catch (error) {
      log.error(`a trust list cannot be signed again and will expire: ${advice}`, logFields, error);
      return false;
    }
  }
}

/** Checks again, since another process may have renewed the list, or it was written. */
function isDue({ storedList, lastNumber, now }: VersionBasis): boolean {
  // After a rollback of the database readers may have seen a version that it does not know.
  if (storedList !== undefined && lastNumber > storedList.sequenceNumber) return true;
  return storedList !== undefined && storedList.nextUpdate.getTime() - now.getTime() <= RENEW_BEFORE_MS;
}

/** False for a version that would not expire later than the current one, which would be signed again and again. */
function isExtended({ chains, storedList, lastNumber, now }: VersionBasis): boolean {
  if (storedList !== undefined && lastNumber > storedList.sequenceNumber) return true;
  const { nextUpdate } = selectListSigner(chains, now, storedList?.keyChainId);
  return storedList !== undefined && nextUpdate > storedList.nextUpdate;
}
