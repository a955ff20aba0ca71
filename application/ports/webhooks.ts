import type { TenantId } from '../../domain/shared/ids.ts';
import type { Json } from '../../domain/shared/json.ts';
import type { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import type { WebhookSecret } from '../../domain/webhooks/webhook-secret.ts';
import type { RemoteFault } from './remote.ts';

/** Why a delivery counts as failed. `refused_address`: nothing left the machine. `busy`: too many calls were under way. */
export const WEBHOOK_FAULTS = [
  'refused_address',
  'timeout',
  'too_large',
  'unreachable',
  'busy',
  'bad_status',
  'not_json',
] as const satisfies readonly (Exclude<RemoteFault, 'redirected'> | 'bad_status' | 'not_json')[];
export type WebhookFault = (typeof WEBHOOK_FAULTS)[number];

export class WebhookError extends Error {
  readonly reason: WebhookFault;
  /** Present with `bad_status`, unless the backend answered with a redirect. */
  readonly status: number | undefined;

  /** @param message for the operator. Never the key, the query of the address or any part of a body. */
  constructor(reason: WebhookFault, message: string, options: { status?: number; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = 'WebhookError';
    this.reason = reason;
    this.status = options.status;
  }
}

export type PostOptions = {
  /** Whose backend it is. */
  readonly tenantId: TenantId;
  /** The same for each attempt of one delivery, so the backend can recognize it. */
  readonly deliveryId: string;
  /** Nothing rests on the answer: any success will do, and what is no JSON is passed over. */
  readonly isAnswerOptional?: boolean;
  /** Of the tenant; says what the call is signed with. */
  readonly secret: WebhookSecret;
};

/** Calls customers' backends. */
export abstract class Webhooks {
  /** Whether a delivery to this address would fail for sure, as `refused_address`. Nothing is looked up. */
  abstract refuses(url: string, tenantId: TenantId): boolean;

  /**
   * One attempt: JSON out, JSON or nothing back, within ten seconds and 1 MiB.
   * @returns the successful status and what was answered; `undefined` for an empty body, and for what is no JSON where
   *   the answer is optional.
   * @throws WebhookError for everything else.
   */
  abstract post(
    webhook: WebhookConfig,
    body: Json,
    options: PostOptions,
  ): Promise<{ readonly status: number; readonly body: Json | undefined }>;
}
