import { configurationOf } from '../../domain/trust-lists/list-configuration.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import { Store } from '../ports/store.ts';
import { TrustListPublisher } from './trust-list-publisher.ts';

/** Replaces the signatures of trust lists whose signer was compromised, with the current key of their key chain. */
export class ResignTrustLists extends needs({ store: Store, log: Log, trustListPublisher: TrustListPublisher }) {
  /** A list that cannot be signed does not affect the others; it remains as it is, and readers reject it. */
  async execute(caller: TenantCaller, signers: readonly { readonly id: string }[]): Promise<void> {
    if (signers.length === 0) return;
    const { store, log, trustListPublisher } = this.ports;
    const { tenantId } = caller;
    const lists = await store.forTenant(tenantId, ({ trustLists }) => trustLists.list());
    for (const { id, signedBy } of lists) {
      if (!signers.some((signer) => signer.id === signedBy)) continue;
      try {
        await trustListPublisher.publish(tenantId, id, caller, ({ storedList }) =>
          storedList === undefined ? undefined : configurationOf(id, storedList),
        );
      } catch (error) {
        log.error('a trust list keeps the signature of a compromised key', { tenantId, trustListId: id }, error);
      }
    }
  }
}
