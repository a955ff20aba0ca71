import type { Session } from '../../domain/sessions/session.ts';
import { needs } from '../needs.ts';
import type { EventPublisher } from '../ports/event-publisher.ts';
import type { WalletRevokedBatch } from '../ports/followed-wallets.ts';
import { Log } from '../ports/log.ts';
import { Random } from '../ports/random.ts';
import { Webhooks } from '../ports/webhooks.ts';
import { SessionNotes } from '../sessions/session-notes.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { createIntent, deliver, withDelivery } from '../webhooks/deliveries.ts';
import { webhookOfOutcome } from '../webhooks/outcome-webhook.ts';

const CONCURRENT_CALLS = 8;

/** Notifies backends of credentials that were revoked with their wallets, and records that in their sessions. */
export class NotifyWalletRevocations extends needs({
  ...TRANSACTION_PORTS,
  sessionNotes: SessionNotes,
  webhooks: Webhooks,
  random: Random,
  log: Log,
}) {
  /**
   * @param publisher for the event subscription of other systems. They are notified when the publisher is ready, without
   *   delaying the backends.
   * @returns the number of notified batches, at most `CONCURRENT_CALLS`.
   */
  async execute(publisher?: EventPublisher): Promise<number> {
    const { store, clock } = this.ports;
    const { maintenance } = store;
    const batches = await maintenance.walletRevokedBatches(CONCURRENT_CALLS);
    await Promise.all(
      batches.map(async (batch) => {
        await this.#notifyBackend(batch);
        if (publisher === undefined) await maintenance.forgetWalletRevoked(batch);
        else await maintenance.markWalletRevocationNotified(batch, clock.now());
      }),
    );
    return batches.length + (await this.#publish(publisher));
  }

  /** Publishes at least once: an interrupted run is repeated. */
  async #publish(publisher: EventPublisher | undefined): Promise<number> {
    const { store, log } = this.ports;
    if (publisher?.isReady === false) return 0;
    let published = 0;
    for (const batch of await store.maintenance.walletRevokedBatches(CONCURRENT_CALLS, true)) {
      try {
        // The batch may have been marked before the publisher was removed from the settings.
        const { fellAt: at, ...batchFields } = batch;
        const isTaken = publisher === undefined || (await publisher.publishRevocation({ ...batchFields, at }));
        if (!isTaken) {
          log.warn('a queue rejects the event of a revocation, which is skipped for it', {
            tenantId: batch.tenantId,
            sessionId: batch.sessionId,
          });
        }
      } catch (error) {
        log.warn('the event of a revocation could not be published; it is sent again', {
          tenantId: batch.tenantId,
          reason: error instanceof Error ? error.message : String(error),
        });
        return published;
      }
      await store.maintenance.forgetWalletRevoked(batch);
      published++;
    }
    return published;
  }

  /** Makes one attempt; the delivery in the session records the outcome, and is retried like any other. */
  async #notifyBackend({ tenantId, sessionId, batchId, credentialConfigurationId, fellAt }: WalletRevokedBatch): Promise<void> {
    const { store, tenantConfigurations, sessionNotes } = this.ports;
    const tenant = await tenantConfigurations.readStored(tenantId);
    if (tenant === undefined) return;
    const session = (await store.read(tenantId).session(sessionId))?.session;
    const notification = {
      id: batchId,
      event: 'credential_revoked',
      credentialConfigurationId,
      eventDescription: 'the wallet provider revoked the wallet or its key storage',
    };
    const webhook = await webhookOfOutcome(tenant, session ?? { request: null }, credentialConfigurationId);
    const intent = createIntent(this.ports, 'notification', { notification });
    // A session that was anonymized records nothing.
    const openSession = session?.request === null ? undefined : session;
    const revocation = { id: batchId, credentialConfigurationId, at: fellAt.toISOString() };
    const notedSession =
      openSession &&
      (await sessionNotes.note(openSession, (outcome) => {
        const nextOutcome = { ...outcome, revokedWithWallet: [...(outcome?.revokedWithWallet ?? []), revocation] };
        return webhook === undefined ? nextOutcome : withDelivery(nextOutcome, intent);
      }));
    if (webhook === undefined) return;
    const context = { tenant, session: session ?? { id: sessionId, request: null } };
    const { delivery } = await deliver(this.ports, webhook, intent, { notification }, context);
    const recordedSession: Session | undefined = notedSession;
    if (recordedSession !== undefined) await sessionNotes.note(recordedSession, (outcome) => withDelivery(outcome, delivery));
  }
}
