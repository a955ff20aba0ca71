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

/** Limit of deliveries that a session stores. */
const MAX_DELIVERIES = 50;

export function withDelivery(outcome: SessionOutcome | null, delivery?: Delivery, failure?: string): SessionOutcome {
  const otherDeliveries = (outcome?.deliveries ?? []).filter((entry) => entry.id !== delivery?.id);
  return {
    ...outcome,
    ...(delivery !== undefined && { deliveries: [...otherDeliveries, delivery].slice(-MAX_DELIVERIES) }),
    ...(failure !== undefined && { failure: { code: 'claims_unavailable', message: failure } }),
  };
}

/**
 * The delivery to store before the call.
 * @param content content that is stored for retries until it was delivered; absent if the session contains it anyway.
 */
export function createIntent(
  { random, clock }: { readonly random: Random; readonly clock: Clock },
  webhook: Delivery['webhook'],
  content?: JsonObject,
): Delivery {
  const timestamp = clock.now().toISOString();
  return { id: random.token(), webhook, at: timestamp, result: 'pending', ...defined({ told: content }) };
}

type CallMeasurements = Pick<Delivery, 'status' | 'durationMs'>;

/** @returns a function that gives the measurements at the end of the call. It uses a monotonic clock. */
export function beginCall(): (status: number | undefined) => CallMeasurements {
  const startedAt = performance.now();
  return (status) => ({ ...defined({ status }), durationMs: Math.round(performance.now() - startedAt) });
}

/** A delivery whose outcome is unknown because of an internal error. */
export function lostDelivery(intent: Delivery): Delivery {
  return { ...intent, result: 'failed', detail: 'internal error; see the log' };
}

export type DeliveryContext = {
  readonly tenant: TenantConfiguration;
  readonly session: Pick<Session, 'id' | 'request'>;
  readonly needsAnswer?: boolean;
};

/**
 * Makes one attempt. Failures of the backend are not thrown: the delivery then says `failed` and why.
 * @param content properties of the body besides the session.
 * @param context tenant and session; with `needsAnswer` a success without JSON counts as a failure.
 */
export async function deliver(
  { webhooks, log }: { readonly webhooks: Webhooks; readonly log: Log },
  webhook: WebhookConfig,
  intent: Delivery,
  content: JsonObject,
  context: DeliveryContext,
): Promise<{ readonly delivery: Delivery; readonly answer?: Json }> {
  const { tenant, session, needsAnswer } = context;
  const { tenantId } = tenant;
  const secret = await tenant.webhookSecret();
  const endCall = beginCall();
  try {
    const options = { deliveryId: intent.id, tenantId, secret, isAnswerOptional: needsAnswer !== true };
    const { body: answer, status } = await webhooks.post(webhook, { ...sessionFields(session), ...content }, options);
    const { told: _told, ...deliveryFields } = intent;
    return { delivery: { ...deliveryFields, result: 'delivered', ...endCall(status) }, ...defined({ answer }) };
  } catch (error) {
    if (!(error instanceof WebhookError)) throw error;
    log.warn(`${intent.webhook} webhook failed`, { tenantId, sessionId: session.id, delivery: intent.id, reason: error.reason });
    return { delivery: { ...intent, result: 'failed', detail: error.message, ...endCall(error.status) } };
  }
}
