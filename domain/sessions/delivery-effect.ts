import type { SessionFailure } from '../shared/session-failure.ts';
import { type Delivery, isTerminal, type Session } from './session.ts';

const NOT_DELIVERED = 'the webhook failed';

export type DeliveryEffect = { readonly event?: 'complete' | 'fail'; readonly outcome: { readonly failure?: SessionFailure } };

/** The effect of a finished delivery on its session: it ends an open presentation. */
export function deliveryEffect({ status }: Pick<Session, 'status'>, { webhook, result, detail = NOT_DELIVERED }: Delivery): DeliveryEffect {
  if (webhook !== 'presentation' || isTerminal(status)) return { outcome: {} };
  if (result === 'delivered') return { event: 'complete', outcome: {} };
  return { event: 'fail', outcome: { failure: { code: 'webhook_failed', message: detail } } };
}
