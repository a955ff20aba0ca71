import type { Delivery } from '../../domain/sessions/session.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import { isJsonObject, type Json } from '../../domain/shared/json.ts';
import { RedirectUri } from '../../domain/verification/configuration.ts';
import type { CredentialResult } from '../../domain/verification/verdict.ts';
import type { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Log } from '../ports/log.ts';
import { Random } from '../ports/random.ts';
import { Webhooks } from '../ports/webhooks.ts';
import { createIntent, type DeliveryContext, deliver } from '../webhooks/deliveries.ts';

export type DeliveryResult = {
  readonly delivery: Delivery;
  /** Redirect address of the backend, which overrides the configured one. */
  readonly redirectUri?: string;
};

/** Delivers the result of a presentation to the tenant's backend: one attempt. */
export class ResultDelivery extends needs({ webhooks: Webhooks, clock: Clock, random: Random, log: Log }) {
  /** The delivery to store before the call. @param rejectedResults entries without values, which are stored nowhere else. */
  intend(rejectedResults?: readonly CredentialResult[]): Delivery {
    return createIntent(this.ports, 'presentation', rejectedResults && { credentials: rejectedResults });
  }

  /** Failures of the backend are not thrown: the delivery then says `failed` and why. */
  async call(
    webhook: WebhookConfig,
    intent: Delivery,
    context: DeliveryContext,
    credentials: readonly CredentialResult[],
  ): Promise<DeliveryResult> {
    const content = { credentials: credentials as unknown as Json };
    const { delivery, answer } = await deliver(this.ports, webhook, intent, content, context);
    return { delivery, ...defined({ redirectUri: this.#redirectOf(answer, context.session.id) }) };
  }

  /** An address of a backend is validated like one in a configuration. */
  #redirectOf(body: Json | undefined, session: SessionId): string | undefined {
    const redirectUri = isJsonObject(body) ? body['redirectUri'] : undefined;
    if (redirectUri === undefined || redirectUri === null) return undefined;
    const parsed = RedirectUri.safeParse(redirectUri);
    if (parsed.success) return parsed.data;
    this.ports.log.warn('the redirectUri in the webhook answer is not an address', { sessionId: session });
    return undefined;
  }
}
