import { Failure } from '../shared/failure.ts';
import type { Json, JsonObject } from '../shared/json.ts';
import { ABANDONED_AFTER_MS } from './delivery-mark.ts';
import type { Delivery, Session } from './session.ts';

export type Redelivery = {
  /** The same delivery, about to be made again. */
  readonly intent: Delivery;
  /** What its body holds besides the session. */
  readonly content: JsonObject;
};

/**
 * A delivery that failed, or whose outcome nobody recorded, once more.
 * @throws Failure `not_found`; `conflict` for one that was delivered, is under way, or had an answer that nobody waits for
 *   any more; `gone` when what it told is not kept.
 */
export function redelivery(session: Session, deliveryId: string, now: Date): Redelivery {
  const delivery = session.outcome?.deliveries?.find(({ id }) => id === deliveryId);
  if (delivery === undefined) throw new Failure('not_found', 'there is no such delivery');
  if (delivery.result === 'delivered') throw new Failure('conflict', 'it was delivered');
  if (delivery.result === 'pending' && now.getTime() < Date.parse(delivery.at) + ABANDONED_AFTER_MS) {
    throw new Failure('conflict', 'it is under way');
  }
  if (delivery.webhook === 'claims') throw new Failure('conflict', 'a wallet waited for these claims and has gone; make another offer');
  const content = contentOf(session, delivery);
  if (content === undefined) throw new Failure('gone', 'what it told is not kept any more');
  const { detail: _detail, status: _status, durationMs: _durationMs, ...rest } = delivery;
  return {
    intent: { ...rest, result: 'pending', at: now.toISOString() },
    content,
  };
}

/** What the body of a delivery holds besides the session; undefined when it is not kept any more. */
export function contentOf(session: Session, delivery: Delivery): JsonObject | undefined {
  return delivery.told ?? toldBy(session);
}

function toldBy({ outcome }: Session): JsonObject | undefined {
  const credentials = outcome?.credentials;
  return credentials && { credentials: credentials as Json };
}
