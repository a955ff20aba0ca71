import type { Delivery, Session, SessionOutcome } from '../../domain/sessions/session.ts';
import { sessionFields } from '../../domain/sessions/session-fields.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { Json, JsonObject } from '../../domain/shared/json.ts';
import type { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { Random } from '../ports/random.ts';
import { WebhookError, type Webhooks } from '../ports/webhooks.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** Deliveries that a session remembers. */
const MAX_DELIVERIES = 50;

export function withDelivery(outcome: SessionOutcome | null, delivery?: Delivery, failure?: string): SessionOutcome {
  const others = (outcome?.deliveries ?? []).filter((entry) => entry.id !== delivery?.id);
  return {
    ...outcome,
    ...(delivery !== undefined && { deliveries: [...others, delivery].slice(-MAX_DELIVERIES) }),
    ...(failure !== undefined && { failure: { code: 'claims_unavailable', message: failure } }),
  };
}

/**
 * The intent to call a webhook, which is stored before the call is made.
 * @param told kept for another attempt, until it was delivered; absent where the session has it anyway.
 */
export function intend(
  { random, clock }: { readonly random: Random; readonly clock: Clock },
  webhook: Delivery['webhook'],
  told?: JsonObject,
): Delivery {
  const at = clock.now().toISOString();
  return { id: random.token(), webhook, at, result: 'pending', ...defined({ told }) };
}

/** What is told of a call beside its result. */
type CallMade = Pick<Delivery, 'status' | 'durationMs'>;

/** @returns what is told once the call that begins now is over. The clock may be set meanwhile, so it is not asked. */
export function beginCall(): (status: number | undefined) => CallMade {
  const began = performance.now();
  return (status) => ({ ...defined({ status }), durationMs: Math.round(performance.now() - began) });
}

/** A delivery of which nothing is known but that a fault of ours ended it. */
export function lost(intent: Delivery): Delivery {
  return { ...intent, result: 'failed', detail: 'an internal error; the log has it' };
}

/** What a delivery is about. */
export type About = {
  readonly configured: TenantConfiguration;
  readonly session: Pick<Session, 'id' | 'request'>;
  readonly needsAnswer?: boolean;
};

/**
 * One attempt. Never throws for what the backend does: the delivery then says `failed` and why.
 * @param content what the body holds besides the session.
 * @param about whose backend it is, and for which session; `needsAnswer` where a success that is no JSON does not count.
 */
export async function deliver(
  { webhooks, log }: { readonly webhooks: Webhooks; readonly log: Log },
  webhook: WebhookConfig,
  intent: Delivery,
  content: JsonObject,
  about: About,
): Promise<{ readonly delivery: Delivery; readonly answer?: Json }> {
  const { configured, session, needsAnswer } = about;
  const { tenantId } = configured;
  const secret = await configured.webhookSecret();
  const ended = beginCall();
  try {
    const options = { deliveryId: intent.id, tenantId, secret, isAnswerOptional: needsAnswer !== true };
    const { body: answer, status } = await webhooks.post(webhook, { ...sessionFields(session), ...content }, options);
    const { told: _told, ...made } = intent;
    return { delivery: { ...made, result: 'delivered', ...ended(status) }, ...defined({ answer }) };
  } catch (error) {
    if (!(error instanceof WebhookError)) throw error;
    log.warn(`${intent.webhook} webhook failed`, { tenantId, sessionId: session.id, delivery: intent.id, reason: error.reason });
    return { delivery: { ...intent, result: 'failed', detail: error.message, ...ended(error.status) } };
  }
}
