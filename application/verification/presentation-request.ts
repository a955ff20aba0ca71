import { object, z } from 'zod';
import { SessionReference } from '../../domain/sessions/session-search.ts';
import { invalidFields, invalidInput } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { type PresentationConfiguration, RedirectUri, TransactionData } from '../../domain/verification/configuration.ts';
import { TRANSACTION_DATA_UNSUPPORTED } from '../../domain/verification/dc-api-settings.ts';
import { ISO_MDOC_PROTOCOL } from '../../domain/verification/iso-mdoc/request.ts';
import { findTransactionDataProblems } from '../../domain/verification/transaction-data-problems.ts';
import { maskWebhook } from '../../domain/webhooks/mask-webhook.ts';
import { WebhookConfig } from '../../domain/webhooks/webhook.ts';

export const PresentationRequestBody = object({
  response_type: z.enum(['uri', 'dc-api']).describe('uri: a link that starts a wallet; dc-api: a request for navigator.credentials.get'),
  requestId: z.string().min(1).max(128).describe('id of the presentation configuration'),
  webhook: WebhookConfig.optional().describe('instead of the configured one'),
  redirectUri: RedirectUri.optional().describe('instead of the configured one; without effect with dc-api'),
  transaction_data: z.array(TransactionData).max(20).optional().describe('instead of the configured; empty: none'),
  reference: SessionReference.optional(),
  origin: z.string().min(1).max(500).optional().describe('With dc-api: the expectedOrigin whose page sends the request'),
}).meta({ id: 'PresentationRequest' });
export type PresentationRequestBody = z.infer<typeof PresentationRequestBody>;

/** OpenID4VP 1.0 section 8.4 */
export function assertTransactionData(
  body: PresentationRequestBody,
  configuration: Partial<PresentationConfiguration> & Pick<PresentationConfiguration, 'dcql_query'>,
): void {
  const entries = body.transaction_data ?? [];
  const faults = findTransactionDataProblems(entries, configuration.dcql_query, configuration);
  if (faults.length > 0) {
    throw invalidFields(faults.map(({ path, message }) => ({ path: ['transaction_data', ...path].join('.'), message })));
  }
  const isOffered = body.response_type === 'dc-api' && configuration.dcApiProtocols?.includes(ISO_MDOC_PROTOCOL);
  if (entries.length > 0 && isOffered === true) throw invalidInput('transaction_data', TRANSACTION_DATA_UNSUPPORTED);
}

/**
 * The origins that the presentation is made for.
 * @throws Failure `invalid_input` for an origin that is not configured.
 */
export function originsOf(
  { expectedOrigins }: PresentationConfiguration,
  requestedOrigin: string | undefined,
  publicUrl: string,
): readonly string[] {
  const configuredOrigins = expectedOrigins ?? [];
  const allowedOrigins = configuredOrigins.length === 0 ? [new URL(publicUrl).origin] : configuredOrigins;
  if (requestedOrigin === undefined) return allowedOrigins;
  if (!allowedOrigins.includes(requestedOrigin)) throw invalidInput('origin', 'It is not one of the expectedOrigins.');
  return [requestedOrigin];
}

/** The request body for the session view, without the webhook's key. */
export function describeRequest({ webhook, ...requestFields }: PresentationRequestBody): JsonObject {
  const body = webhook === undefined ? requestFields : { ...requestFields, webhook: maskWebhook(webhook) };
  return body as unknown as JsonObject;
}
