import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { configurationOf } from '../../domain/trust-lists/list-configuration.ts';
import { chooseSigner, RENEW_BEFORE_MS } from '../../domain/trust-lists/published-list.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import type { EndingTrustList } from '../ports/maintenance.ts';
import { Store } from '../ports/store.ts';
import type { HandOver } from '../ports/work-queue.ts';
import { type Ground, TrustListPublisher } from './trust-list-publisher.ts';

export type RenewedLists = {
  readonly renewed: number;
  /** Where the next batch begins; undefined when this was the last one. */
  readonly last: EndingTrustList | undefined;
};

/**
 * Signs lists anew before they end, made again of what was configured: a key chain that was rotated is listed as it is
 * now. One list that cannot be signed keeps no other from it.
 */
export class RenewTrustLists extends needs({ store: Store, log: Log, trustListPublisher: TrustListPublisher }) {
  /** @param handOver gives a list to any process; those that it does not take are signed here. */
  async execute(now: Date, limit: number, after?: EndingTrustList, handOver?: HandOver): Promise<RenewedLists> {
    const until = new Date(now.getTime() + RENEW_BEFORE_MS);
    const ending = await this.ports.store.maintenance.endingTrustLists(until, limit, after);
    let renewed = 0;
    for (const list of ending) {
      if (await handOver?.({ type: 'trust-list', ...list })) continue;
      if (await this.renew(list)) renewed++;
    }
    return { renewed, last: ending.length < limit ? undefined : ending.at(-1) };
  }

  /** @returns whether there is a new release; there is none when the list is not due any more. */
  async renew({ tenantId, id, nextUpdate }: EndingTrustList): Promise<boolean> {
    const { log, trustListPublisher } = this.ports;
    const about = { tenantId, trustListId: id, nextUpdate: nextUpdate.toISOString() };
    const advice = 'give it a key chain for the usage trustList that lasts longer, or make one';
    try {
      let ends = false;
      const list = await trustListPublisher.publish(tenantId, id, SYSTEM, (ground) => {
        const { known } = ground;
        if (known === undefined || !isDue(ground)) return undefined;
        ends = !isExtended(ground);
        return ends ? undefined : configurationOf(id, known);
      });
      if (ends) log.warn(`a trust list ends with the certificate of its signer: ${advice}`, about);
      return list !== undefined;
    } catch (error) {
      log.error(`a trust list cannot be signed anew and will end: ${advice}`, about, error);
      return false;
    }
  }
}

/** Another process may have been here, or somebody wrote the list. */
function isDue({ known, lastNumber, now }: Ground): boolean {
  // After the database was put back, readers may have seen a release that it does not know.
  if (known !== undefined && lastNumber > known.sequenceNumber) return true;
  return known !== undefined && known.nextUpdate.getTime() - now.getTime() <= RENEW_BEFORE_MS;
}

/** A release that ends no later than the present one would be signed for nothing, again and again. */
function isExtended({ chains, known, lastNumber, now }: Ground): boolean {
  if (known !== undefined && lastNumber > known.sequenceNumber) return true;
  const { nextUpdate } = chooseSigner(chains, now, known?.keyChainId);
  return known !== undefined && nextUpdate > known.nextUpdate;
}
