import { z } from 'zod';
import { strictInput } from '../shared/input-object.ts';
import { WebAddress } from '../shared/web-address.ts';

/** RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/;
/** RFC 9110 section 5.5: visible characters, with spaces and tabs only inside. */
const HEADER_VALUE = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/;

/** Headers of the connection or of the delivery itself (RFC 9110 section 7.6.1). */
const RESERVED_HEADERS = new Set([
  'accept-encoding',
  'connection',
  'expect',
  'host',
  'idempotency-key',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

function isFreeHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return !RESERVED_HEADERS.has(lower) && !lower.startsWith('content-');
}

/** Headers of the body's signature (Standard Webhooks). */
const isNoSignature = (name: string) => !name.toLowerCase().startsWith('webhook-');

const ApiKeyAuth = strictInput({
  type: z.literal('apiKey'),
  config: strictInput({
    headerName: z
      .string()
      .regex(TOKEN, 'Use a valid header name.')
      .refine(isFreeHeader, 'This header is set by the service itself.')
      .refine(isNoSignature, 'The service signs webhooks with headers of this kind; use another name.')
      .describe('Such as `Authorization`; no connection header, none that begins with `content-` or `webhook-`'),
    value: z
      .string()
      .max(4096)
      .regex(HEADER_VALUE, 'Use visible ASCII characters without line breaks.')
      .describe(
        'The whole value of the header, such as `Bearer …`. Responses show `***`; written back for the same address ' +
          'and header, that keeps the stored value',
      ),
  }),
});

/** URL and authentication key of a backend. The key is sealed wherever it is stored. */
export const WebhookConfig = strictInput({
  url: WebAddress.describe('Public https, or an address that `OUTBOUND_ALLOW` names; redirects are not followed'),
  auth: ApiKeyAuth.optional().describe('Header with an API key; optional'),
});
export type WebhookConfig = z.infer<typeof WebhookConfig>;

const DEFAULT_HINT = 'send the API key: address or header changed';

/**
 * The webhook's key in a property of a document, as a secret of that document.
 * @param variable name of the secret in environment variables.
 */
export function webhookKey(member: string, variable: string, hint = DEFAULT_HINT) {
  const sentTo = [`${member}.url`, `${member}.auth.config.headerName`];
  return { [`${member}.auth.config.value`]: { variable, sentTo, hint } };
}
