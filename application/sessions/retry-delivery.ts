import { describeRedelivery } from '../../domain/audit/describe-change.ts';
import { endedBy } from '../../domain/sessions/delivered.ts';
import { redelivery } from '../../domain/sessions/redelivery.ts';
import type { Delivery } from '../../domain/sessions/session.ts';
import { noted } from '../../domain/sessions/session-change.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import { Webhooks } from '../ports/webhooks.ts';
import { record } from '../transactions/attempt.ts';
import { WORLD } from '../transactions/known.ts';
import { deliver, withDelivery } from '../webhooks/deliveries.ts';
import { webhookOfDelivery } from '../webhooks/outcome-webhook.ts';
import { readVisibleSession } from './visibility.ts';

/** Times that somebody else may write to the session meanwhile. */
const MAX_ATTEMPTS = 20;

/**
 * Makes a delivery again that failed: the same one, with its id, so that the backend can tell. The session stays as it
 * ended, and its backend learns what it missed; one whose process died before it could end ends by this.
 */
export class RetryDelivery extends needs({ ...WORLD, webhooks: Webhooks, log: Log }) {
  /**
   * One attempt, whose outcome the delivery tells.
   * @throws Failure `not_found`, `conflict` and `gone` as `redelivery` says; of several at once all but one get `conflict`.
   */
  async execute(caller: TenantCaller, id: SessionId, deliveryId: string): Promise<Delivery> {
    const { store, clock } = this.ports;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const session = await readVisibleSession(store, caller, id);
      const { intent, content } = redelivery(session, deliveryId, clock.now());
      const webhook = await webhookOfDelivery(caller.configured, session, intent);
      if (webhook === undefined) throw new Failure('gone', 'its webhook is not configured any more');
      const audit = { by: caller, change: describeRedelivery(id, deliveryId) };
      const change = { session: noted(session, withDelivery(session.outcome, intent)), audit };
      if (!(await record(this.ports, caller.tenantId, change)).done) continue;
      const about = { configured: caller.configured, session };
      const { delivery } = await deliver(this.ports, webhook, intent, content, about);
      await this.#note(caller, id, delivery);
      return delivery;
    }
    throw new Failure('conflict', 'the session changes all the time; try again');
  }

  /** A session that is gone meanwhile keeps nothing. */
  async #note({ tenantId }: TenantCaller, id: SessionId, delivery: Delivery): Promise<void> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const session = (await this.ports.store.read(tenantId).session(id))?.session;
      if (session === undefined) return;
      const { event, outcome } = endedBy(session, delivery);
      const change = {
        session: noted(session, { ...withDelivery(session.outcome, delivery), ...outcome }, event),
      };
      if ((await record(this.ports, tenantId, change)).done) return;
    }
  }
}
