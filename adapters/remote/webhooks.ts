import {
  type Remote,
  RemoteError,
  type RemoteFault,
  type RemoteResponse,
} from '../../application/ports/remote.ts';
import { WebhookError, Webhooks } from '../../application/ports/webhooks.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { type Json, parseJson } from '../../domain/shared/json.ts';
import { decodeUtf8 } from '../../domain/shared/utf8.ts';
import type { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import { FAULT_WORDS } from './fault-words.ts';

const TIMEOUT_MS = 10_000;
const ANSWER_BYTES = 256 * 1024;

/** What is said better of a webhook than of any other address. */
const WORDS: Partial<Record<RemoteFault, string>> = {
  timeout: `did not answer within ${TIMEOUT_MS / 1000} seconds`,
  too_large: `answered with more than ${ANSWER_BYTES / 1024} KiB`,
  redirected: 'answered with a redirect; give the final address',
};

type DeliveryOptions = { readonly deliveryId: string; readonly tenantId: TenantId };

/** Delivers webhooks through the one way out of the service. */
export class RemoteWebhooks extends Webhooks {
  readonly #remote: Remote;

  constructor(ports: { readonly remote: Remote }) {
    super();
    this.#remote = ports.remote;
  }

  override refuses(url: string, tenantId: TenantId): boolean {
    return this.#remote.refuses(url, tenantId);
  }

  override async post(
    webhook: WebhookConfig,
    body: Json,
    options: DeliveryOptions,
  ): Promise<{ status: number; body: Json | undefined }> {
    const place = describe(webhook.url);
    const answer = await this.#deliver(webhook, JSON.stringify(body), options, place);
    const { status } = answer;
    if (status < 200 || status > 299) {
      throw new WebhookError('bad_status', `${place} answered with status ${status}.`, { status });
    }
    if (answer.body.length === 0) return { status, body: undefined };
    // RFC 8259 section 8.1: a byte order mark may be ignored.
    const parsed = parseJson((decodeUtf8(answer.body) ?? '').replace(/^\uFEFF/, ''));
    if (parsed === undefined)
      throw new WebhookError('not_json', `${place} answered with something that is no JSON.`);
    return { status, body: parsed };
  }

  async #deliver(
    webhook: WebhookConfig,
    body: string,
    { tenantId, deliveryId: id }: DeliveryOptions,
    place: string,
  ): Promise<RemoteResponse> {
    const key = webhook.auth?.config;
    try {
      return await this.#remote.request(webhook.url, {
        tenantId,
        method: 'POST',
        headers: {
          ...(key === undefined ? {} : { [key.headerName]: key.value }),
          'content-type': 'application/json',
          accept: 'application/json',
          'idempotency-key': id,
        },
        body,
        timeoutMs: TIMEOUT_MS,
        maxBytes: ANSWER_BYTES,
      });
    } catch (error) {
      if (!(error instanceof RemoteError)) throw error;
      const { fault } = error;
      const message = `${place} ${WORDS[fault] ?? FAULT_WORDS[fault]}.`;
      throw new WebhookError(fault === 'redirected' ? 'bad_status' : fault, message, { cause: error });
    }
  }
}

/** Origin and path: the query may carry a customer's secret. */
function describe(url: string): string {
  if (!URL.canParse(url)) return 'The webhook';
  const { origin, pathname } = new URL(url);
  return `The webhook ${origin}${pathname}`;
}
