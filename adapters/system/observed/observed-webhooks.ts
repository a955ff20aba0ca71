import { WebhookError, Webhooks } from '../../../application/ports/webhooks.ts';
import type { Observer } from './observer.ts';

/** Webhook calls that are measured and traced. */
export class ObservedWebhooks extends Webhooks {
  readonly #webhooks: Webhooks;
  readonly #observer: Observer;

  constructor(webhooks: Webhooks, observer: Observer) {
    super();
    this.#webhooks = webhooks;
    this.#observer = observer;
  }

  override refuses(...parameters: Parameters<Webhooks['refuses']>): boolean {
    return this.#webhooks.refuses(...parameters);
  }

  override post(...parameters: Parameters<Webhooks['post']>): ReturnType<Webhooks['post']> {
    return this.#observer.run(
      'webhook',
      {},
      () => this.#webhooks.post(...parameters),
      (metrics, seconds, error) => metrics.webhook(outcomeOf(error), seconds),
    );
  }
}

function outcomeOf(error: unknown) {
  if (error === undefined) return 'delivered';
  return error instanceof WebhookError ? error.reason : 'failed';
}
