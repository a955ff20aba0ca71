import type { TenantId } from '../../domain/shared/ids.ts';
import type { Json } from '../../domain/shared/json.ts';
import type { WebhookFault } from '../../domain/shared/webhook-fault.ts';
import type { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import type { WebhookSecret } from '../../domain/webhooks/webhook-secret.ts';

export class WebhookError extends Error {
  readonly reason: WebhookFault;
  /** Present with `bad_status`, unless the backend answered with a redirect. */
  readonly status: number | undefined;

  /** @param message for the operator. Never contains the key, the query of the address or any part of a body. */
  constructor(reason: WebhookFault, message: string, options: { status?: number; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = 'WebhookError';
    this.reason = reason;
    this.status = options.status;
  }
}

export type PostOptions = {
  readonly tenantId: TenantId;
  /** The same for each attempt of one delivery, so that the backend can recognize it. */
  readonly deliveryId: string;
  /** The answer is not used: any success is accepted, and a body that is not JSON is ignored. */
  readonly isAnswerOptional?: boolean;
  /** Secret that signs the call. */
  readonly secret: WebhookSecret;
};

/** Calls backends of tenants. */
export abstract class Webhooks {
  /** True if a delivery to this address is certainly refused (`refused_address`). No DNS look-up. */
  abstract refuses(url: string, tenantId: TenantId): boolean;

  /**
   * Makes one attempt: sends JSON, expects JSON or nothing, within ten seconds and 1 MiB.
   * @returns the successful status and the answer; `undefined` for an empty body, and for a body that is not JSON if the answer
   *   is optional.
   * @throws WebhookError for everything else.
   */
  abstract post(
    webhook: WebhookConfig,
    body: Json,
    options: PostOptions,
  ): Promise<{ readonly status: number; readonly body: Json | undefined }>;
}
