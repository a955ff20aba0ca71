import { Failure } from '../shared/failure.ts';
import type { Json, JsonObject } from '../shared/json.ts';
import { ABANDONED_AFTER_MS } from './delivery-mark.ts';
import type { Delivery, Session } from './session.ts';

export type Redelivery = {
  /** The delivery to repeat, in its pending state. */
  readonly intent: Delivery;
  /** Content of its body besides the session. */
  readonly content: JsonObject;
};

/**
 * Prepares the repetition of a delivery that failed, or whose result was not recorded.
 * @throws Failure `not_found`; `conflict` for one that was delivered, is in progress, or whose wallet no longer waits; `gone` when its
 * content is no longer stored.
 */
export function prepareRedelivery(session: Session, deliveryId: string, now: Date): Redelivery {
  const delivery = session.outcome?.deliveries?.find(({ id }) => id === deliveryId);
  if (delivery === undefined) throw new Failure('not_found', 'there is no such delivery');
  if (delivery.result === 'delivered') throw new Failure('conflict', 'it was already delivered');
  if (delivery.result === 'pending' && now.getTime() < Date.parse(delivery.at) + ABANDONED_AFTER_MS) {
    throw new Failure('conflict', 'it is in progress');
  }
  if (delivery.webhook === 'claims') throw new Failure('conflict', 'the wallet no longer waits for these claims; create another offer');
  const content = deliveryContent(session, delivery);
  if (content === undefined) throw new Failure('gone', 'its result is no longer stored');
  const { detail: _detail, status: _status, durationMs: _durationMs, ...pendingDelivery } = delivery;
  return { intent: { ...pendingDelivery, result: 'pending', at: now.toISOString() }, content };
}

/** Content of a delivery's body besides the session; undefined if it is no longer stored. */
export function deliveryContent(session: Session, delivery: Delivery): JsonObject | undefined {
  return delivery.told ?? credentialsContent(session);
}

function credentialsContent({ outcome }: Session): JsonObject | undefined {
  const credentials = outcome?.credentials;
  return credentials && { credentials: credentials as Json };
}
