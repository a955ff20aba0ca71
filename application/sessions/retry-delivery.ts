import { describeRedelivery } from '../../domain/audit/describe-change.ts';
import { deliveryEffect } from '../../domain/sessions/delivery-effect.ts';
import { prepareRedelivery } from '../../domain/sessions/redelivery.ts';
import type { Delivery } from '../../domain/sessions/session.ts';
import { updateOutcome } from '../../domain/sessions/session-change.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import { Webhooks } from '../ports/webhooks.ts';
import { record } from '../transactions/attempt.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { deliver, withDelivery } from '../webhooks/deliveries.ts';
import { webhookOfDelivery } from '../webhooks/outcome-webhook.ts';
import { readVisibleSession } from './visibility.ts';

/** Limit of retries after concurrent writes to the session. */
const MAX_ATTEMPTS = 20;

/**
 * Repeats a failed delivery with the same id, so that the backend can recognize it. The status of an ended session does not change;
 * a session whose process ended during the delivery ends by this.
 */
export class RetryDelivery extends needs({ ...TRANSACTION_PORTS, webhooks: Webhooks, log: Log }) {
  /**
   * Makes one attempt, whose outcome is in the delivery.
   * @throws Failure `not_found`, `conflict` and `gone` as `redelivery` says; all but one of several concurrent calls get `conflict`.
   */
  async execute(caller: TenantCaller, id: SessionId, deliveryId: string): Promise<Delivery> {
    const { store, clock } = this.ports;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const session = await readVisibleSession(store, caller, id);
      const { intent, content } = prepareRedelivery(session, deliveryId, clock.now());
      const webhook = await webhookOfDelivery(caller.tenant, session, intent);
      if (webhook === undefined) throw new Failure('gone', 'its webhook is no longer configured');
      const audit = { by: caller, change: describeRedelivery(id, deliveryId) };
      const change = { session: updateOutcome(session, withDelivery(session.outcome, intent)), audit };
      if (!(await record(this.ports, caller.tenantId, change)).done) continue;
      const context = { tenant: caller.tenant, session };
      const { delivery } = await deliver(this.ports, webhook, intent, content, context);
      await this.#note(caller, id, delivery);
      return delivery;
    }
    throw new Failure('conflict', 'the session is changed repeatedly; try again');
  }

  /** Records the outcome, unless the session was removed meanwhile. */
  async #note({ tenantId }: TenantCaller, id: SessionId, delivery: Delivery): Promise<void> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const session = (await this.ports.store.read(tenantId).session(id))?.session;
      if (session === undefined) return;
      const { event, outcome } = deliveryEffect(session, delivery);
      const change = { session: updateOutcome(session, { ...withDelivery(session.outcome, delivery), ...outcome }, event) };
      if ((await record(this.ports, tenantId, change)).done) return;
    }
  }
}
