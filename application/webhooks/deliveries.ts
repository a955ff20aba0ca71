import type { Delivery, SessionOutcome } from '../../domain/sessions/session.ts';

/** Deliveries that a session remembers. */
const MAX_DELIVERIES = 50;

export function withDelivery(
  outcome: SessionOutcome | null,
  delivery?: Delivery,
  failure?: string,
): SessionOutcome {
  const others = (outcome?.deliveries ?? []).filter((entry) => entry.id !== delivery?.id);
  return {
    ...outcome,
    ...(delivery === undefined ? {} : { deliveries: [...others, delivery].slice(-MAX_DELIVERIES) }),
    ...(failure === undefined ? {} : { failure: { code: 'claims_unavailable', message: failure } }),
  };
}
