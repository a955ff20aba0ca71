import { deliveryEffect } from '../../domain/sessions/delivery-effect.ts';
import { deliveryContent } from '../../domain/sessions/redelivery.ts';
import type { Delivery, Session } from '../../domain/sessions/session.ts';
import { updateOutcome } from '../../domain/sessions/session-change.ts';
import { isServing } from '../../domain/tenants/tenant-end.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import type { PendingDelivery } from '../ports/pending-deliveries.ts';
import { Webhooks } from '../ports/webhooks.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { record } from '../transactions/attempt.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { deliver, lostDelivery, withDelivery } from '../webhooks/deliveries.ts';
import { webhookOfDelivery } from '../webhooks/outcome-webhook.ts';
import { SessionNotes } from './session-notes.ts';

/** Limit per tenant, so that a hanging backend does not delay other tenants. */
const PER_TENANT = 4;
/** Delay after a delivery could not be read, or while its tenant is suspended. */
const POSTPONE_MS = 600_000;

/**
 * Completes deliveries whose process ended during the call: the backend is called again with the same delivery, and
 * the session ends as it would have.
 */
export class FinishDeliveries extends needs({ ...TRANSACTION_PORTS, sessionNotes: SessionNotes, webhooks: Webhooks, log: Log }) {
  /** @param now of the database. @returns the number of processed deliveries, at most `limit`, all concurrently. */
  async execute(now: Date, limit: number): Promise<number> {
    const { store, log } = this.ports;
    const due = await store.maintenance.dueDeliveries(now, limit, PER_TENANT);
    const postpone = (pending: PendingDelivery) => store.maintenance.postponeDelivery(pending, new Date(now.getTime() + POSTPONE_MS));
    await Promise.all(
      due.map(async (pending) => {
        try {
          await this.#finish(pending, postpone);
        } catch (error) {
          const { tenantId, sessionId } = pending;
          log.error('an interrupted delivery could not be finished', { tenantId, sessionId }, error);
          await postpone(pending);
        }
      }),
    );
    return due.length;
  }

  async #finish(pending: PendingDelivery, postpone: (pending: PendingDelivery) => Promise<void>): Promise<void> {
    const { store, tenantConfigurations, clock } = this.ports;
    const { tenantId, sessionId, id } = pending;
    const session = (await store.read(tenantId).session(sessionId))?.session;
    const intent = session?.outcome?.deliveries?.find((delivery) => delivery.id === id);
    const tenant = await tenantConfigurations.readStored(tenantId);
    // The session was cleaned up, or another process recorded the outcome.
    if (session === undefined || intent?.result !== 'pending' || tenant === undefined) return store.maintenance.forgetDelivery(pending);
    // Nothing, least of all personal data, is sent while the tenant is suspended.
    if (!isServing(tenant.state, clock.now())) return postpone(pending);
    const retriedDelivery = { ...intent, at: clock.now().toISOString() };
    const outcome = withDelivery(session.outcome, retriedDelivery);
    // The version decides between concurrent attempts; the later one finds a pending delivery.
    const committed = await record(this.ports, tenantId, { session: updateOutcome(session, outcome) });
    if (!committed.done) return;
    const claimedSession = { ...session, ...committed.session, outcome };
    await this.#record(claimedSession, await this.#deliver(tenant, claimedSession, retriedDelivery));
  }

  async #deliver(tenant: TenantConfiguration, session: Session, intent: Delivery): Promise<Delivery> {
    const webhook = await webhookOfDelivery(tenant, session, intent);
    const content = deliveryContent(session, intent);
    if (webhook === undefined || content === undefined) {
      const detail = webhook === undefined ? 'its webhook is no longer configured' : 'it is no longer stored';
      return { ...intent, result: 'failed', detail };
    }
    try {
      const context = { tenant, session };
      return (await deliver(this.ports, webhook, intent, content, context)).delivery;
    } catch (error) {
      const { tenantId, id: sessionId } = session;
      this.ports.log.error('an interrupted delivery could not be made', { tenantId, sessionId }, error);
      return lostDelivery(intent);
    }
  }

  async #record(session: Session, delivery: Delivery): Promise<void> {
    const { sessionNotes, log } = this.ports;
    const { tenantId, id } = session;
    const end = deliveryEffect(session, delivery);
    await sessionNotes.note(session, (outcome) => ({ ...withDelivery(outcome, delivery), ...end.outcome }), end.event);
    log.info('an interrupted delivery is finished', { tenantId, sessionId: id, delivery: delivery.id, result: delivery.result });
  }
}
