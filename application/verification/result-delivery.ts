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
import { type About, deliver, intend } from '../webhooks/deliveries.ts';

export type Delivered = {
  readonly delivery: Delivery;
  /** What the backend wants instead of the configured address. */
  readonly redirectUri?: string;
};

/** Hands the result of a presentation to the customer's backend: one attempt. */
export class ResultDelivery extends needs({ webhooks: Webhooks, clock: Clock, random: Random, log: Log }) {
  /** What is stored before the call is made. @param refused entries without values, which nothing else keeps. */
  intend(refused?: readonly CredentialResult[]): Delivery {
    return intend(this.ports, 'presentation', refused && { credentials: refused });
  }

  /** Never throws for what the backend does: the delivery then says `failed` and why. */
  async call(webhook: WebhookConfig, intent: Delivery, about: About, credentials: readonly CredentialResult[]): Promise<Delivered> {
    const content = { credentials: credentials as unknown as Json };
    const { delivery, answer } = await deliver(this.ports, webhook, intent, content, about);
    return { delivery, ...defined({ redirectUri: this.#redirectOf(answer, about.session.id) }) };
  }

  /** An address that we would not have taken in a configuration is not taken from a backend either. */
  #redirectOf(body: Json | undefined, session: SessionId): string | undefined {
    const wanted = isJsonObject(body) ? body['redirectUri'] : undefined;
    if (wanted === undefined || wanted === null) return undefined;
    const read = RedirectUri.safeParse(wanted);
    if (read.success) return read.data;
    this.ports.log.warn('the redirectUri in the webhook answer is not an address', { sessionId: session });
    return undefined;
  }
}
