import type { SessionFailure } from '../shared/session-failure.ts';
import { type Delivery, isTerminal, type Session } from './session.ts';

const NOT_DELIVERED = 'the webhook failed';

export type DeliveryEnd = { readonly event?: 'complete' | 'fail'; readonly outcome: { readonly failure?: SessionFailure } };

/** What a delivery that somebody brought to its end means for its session: an open presentation waited for nothing but this. */
export function endedBy({ status }: Pick<Session, 'status'>, { webhook, result, detail = NOT_DELIVERED }: Delivery): DeliveryEnd {
  if (webhook !== 'presentation' || isTerminal(status)) return { outcome: {} };
  if (result === 'delivered') return { event: 'complete', outcome: {} };
  return { event: 'fail', outcome: { failure: { code: 'webhook_failed', message: detail } } };
}
