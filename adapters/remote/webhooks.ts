import type { Cipher } from '../../application/ports/cipher.ts';
import type { Clock } from '../../application/ports/clock.ts';
import { type Remote, RemoteError, type RemoteFault, type RemoteResponse } from '../../application/ports/remote.ts';
import type { Traces } from '../../application/ports/traces.ts';
import { type PostOptions, WebhookError, Webhooks } from '../../application/ports/webhooks.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { type Json, parseJson } from '../../domain/shared/json.ts';
import { decodeUtf8 } from '../../domain/shared/utf8.ts';
import { signatureHeaders } from '../../domain/webhooks/sign-webhook.ts';
import type { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import { signingKeys, type WebhookSecret } from '../../domain/webhooks/webhook-secret.ts';
import { faultMessage } from './fault-messages.ts';

const TIMEOUT_MS = 10_000;
/** A claims webhook may return an image. */
const ANSWER_BYTES = 1024 * 1024;

/** Messages that are more specific for webhooks than for other addresses. */
const MESSAGES: Partial<Record<RemoteFault, string>> = {
  timeout: `did not answer within ${TIMEOUT_MS / 1000} seconds`,
  too_large: `answered with more than ${ANSWER_BYTES / 1024} KiB`,
  redirected: 'answered with a redirect; set the final address',
};

/** Purpose of the keys that sign for tenants without a secret. */
const DEFAULT_KEYS_PURPOSE = 'vidimus/webhook-signature';

type Headers = Readonly<Record<string, string>>;
type Ports = {
  readonly remote: Remote;
  readonly clock: Clock;
  readonly cipher: Cipher;
  /** A backend may continue the trace. Other servers do not get it: the same trace at two servers would link a person. */
  readonly traces?: Traces | undefined;
};

/** Delivers webhooks through the outgoing client of the service. */
export class RemoteWebhooks extends Webhooks {
  readonly #remote: Remote;
  readonly #clock: Clock;
  readonly #traces: Traces | undefined;
  readonly #defaultKeys: ReturnType<Cipher['macs']>;

  constructor({ remote, clock, cipher, traces }: Ports) {
    super();
    this.#remote = remote;
    this.#clock = clock;
    this.#traces = traces;
    this.#defaultKeys = cipher.macs(DEFAULT_KEYS_PURPOSE);
  }

  override refuses(url: string, tenantId: TenantId): boolean {
    return this.#remote.refuses(url, tenantId);
  }

  override async post(webhook: WebhookConfig, body: Json, options: PostOptions): Promise<{ status: number; body: Json | undefined }> {
    const endpoint = describe(webhook.url);
    const answer = await this.#deliver(webhook, JSON.stringify(body), options, endpoint);
    const { status } = answer;
    if (status < 200 || status > 299) throw new WebhookError('bad_status', `${endpoint} answered with status ${status}.`, { status });
    if (answer.body.length === 0) return { status, body: undefined };
    // RFC 8259 section 8.1: a byte order mark may be ignored.
    const parsed = parseJson((decodeUtf8(answer.body) ?? '').replace(/^\uFEFF/, ''));
    if (parsed === undefined && options.isAnswerOptional !== true)
      throw new WebhookError('not_json', `${endpoint} returned a response that is not JSON.`);
    return { status, body: parsed };
  }

  /** Signs one attempt. A tenant without a secret gets an unpublished key, so that no call is unsigned. */
  #sign(id: string, body: string, tenantId: TenantId, secret: WebhookSecret): Headers {
    const now = this.#clock.now();
    const keys = signingKeys(secret, now, () => Buffer.from(this.#defaultKeys.make(tenantId)));
    return signatureHeaders(id, body, keys, now);
  }

  async #deliver(
    webhook: WebhookConfig,
    body: string,
    { tenantId, deliveryId: id, secret }: PostOptions,
    endpoint: string,
  ): Promise<RemoteResponse> {
    const signature = this.#sign(id, body, tenantId, secret);
    try {
      return await this.#remote.request(webhook.url, {
        tenantId,
        method: 'POST',
        headers: {
          ...keyHeader(webhook, signature),
          'content-type': 'application/json',
          accept: 'application/json',
          'idempotency-key': id,
          ...this.#traces?.headers(),
          ...signature,
        },
        body,
        timeoutMs: TIMEOUT_MS,
        maxBytes: ANSWER_BYTES,
      });
    } catch (error) {
      if (!(error instanceof RemoteError)) throw error;
      const { fault } = error;
      const message = `${endpoint} ${faultMessage(error, MESSAGES)}.`;
      throw new WebhookError(fault === 'redirected' ? 'bad_status' : fault, message, { cause: error });
    }
  }
}

/** A configuration of an earlier release may have its key in a header of the signature, which takes precedence. */
function keyHeader({ auth }: WebhookConfig, signature: Headers): Headers {
  if (auth === undefined) return {};
  const { headerName, value } = auth.config;
  return headerName.toLowerCase() in signature ? {} : { [headerName]: value };
}

/** Origin and path: the query may contain a secret of the customer. */
function describe(url: string): string {
  if (!URL.canParse(url)) return 'The webhook';
  const { origin, pathname } = new URL(url);
  return `The webhook ${origin}${pathname}`;
}
