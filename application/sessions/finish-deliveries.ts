import { endedBy } from '../../domain/sessions/delivered.ts';
import { contentOf } from '../../domain/sessions/redelivery.ts';
import type { Delivery, Session } from '../../domain/sessions/session.ts';
import { noted } from '../../domain/sessions/session-change.ts';
import { isServing } from '../../domain/tenants/tenant-end.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import type { PendingDelivery } from '../ports/pending-deliveries.ts';
import { Webhooks } from '../ports/webhooks.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { record } from '../transactions/attempt.ts';
import { WORLD } from '../transactions/known.ts';
import { deliver, lost, withDelivery } from '../webhooks/deliveries.ts';
import { webhookOfDelivery } from '../webhooks/outcome-webhook.ts';
import { SessionNotes } from './session-notes.ts';

/** Of one tenant at a time, so that a backend that hangs holds up no other tenant's. */
const OF_EACH_TENANT = 4;
/** Until one that could not even be read, or whose tenant is suspended, is looked at again. */
const POSTPONED_MS = 600_000;

/**
 * Brings deliveries to an end whose process died during the call: the backend is called once more with the same delivery, and
 * the session ends by that as it would have.
 */
export class FinishDeliveries extends needs({ ...WORLD, sessionNotes: SessionNotes, webhooks: Webhooks, log: Log }) {
  /** @param now of the database. @returns how many were looked at, at most `limit`, all at the same time. */
  async execute(now: Date, limit: number): Promise<number> {
    const { store, log } = this.ports;
    const due = await store.maintenance.dueDeliveries(now, limit, OF_EACH_TENANT);
    const postpone = (pending: PendingDelivery) => store.maintenance.postponeDelivery(pending, new Date(now.getTime() + POSTPONED_MS));
    await Promise.all(
      due.map(async (pending) => {
        try {
          await this.#finish(pending, postpone);
        } catch (error) {
          const { tenantId, sessionId } = pending;
          log.error('a delivery that was broken off could not be finished', { tenantId, sessionId }, error);
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
    const configured = await tenantConfigurations.stored(tenantId);
    // What it was about is cleaned up, or somebody said meanwhile what came of it.
    if (session === undefined || intent?.result !== 'pending' || configured === undefined) return store.maintenance.forgetDelivery(pending);
    // Nobody's backend is told anything while the tenant is suspended, least of all who a person is.
    if (!isServing(configured.state, clock.now())) return postpone(pending);
    const again = { ...intent, at: clock.now().toISOString() };
    const outcome = withDelivery(session.outcome, again);
    // The version decides between those that come at once; who is late finds it under way.
    const taken = await record(this.ports, tenantId, { session: noted(session, outcome) });
    if (!taken.done) return;
    const known = { ...session, ...taken.session, outcome };
    await this.#record(known, await this.#deliver(configured, known, again));
  }

  async #deliver(configured: TenantConfiguration, session: Session, intent: Delivery): Promise<Delivery> {
    const webhook = await webhookOfDelivery(configured, session, intent);
    const content = contentOf(session, intent);
    if (webhook === undefined || content === undefined) {
      const detail = webhook === undefined ? 'its webhook is not configured any more' : 'it is not kept';
      return { ...intent, result: 'failed', detail };
    }
    try {
      const about = { configured, session };
      return (await deliver(this.ports, webhook, intent, content, about)).delivery;
    } catch (error) {
      const { tenantId, id: sessionId } = session;
      this.ports.log.error('a delivery that was broken off could not be made', { tenantId, sessionId }, error);
      return lost(intent);
    }
  }

  async #record(session: Session, delivery: Delivery): Promise<void> {
    const { sessionNotes, log } = this.ports;
    const { tenantId, id } = session;
    const end = endedBy(session, delivery);
    await sessionNotes.note(session, (outcome) => ({ ...withDelivery(outcome, delivery), ...end.outcome }), end.event);
    log.info('a delivery that was broken off is finished', { tenantId, sessionId: id, delivery: delivery.id, result: delivery.result });
  }
}
