import { invalidInput } from '../shared/failure.ts';
import type { WebhookConfig } from '../webhooks/webhook.ts';

/** Stands in answers where a webhook has a key, and in requests that leave the key as it is. */
export const MASK = '***';

/** The webhook as it may be shown. */
export function maskWebhook(webhook: WebhookConfig): WebhookConfig {
  const { url, auth } = webhook;
  return auth === undefined ? { url } : { url, auth: { ...auth, config: { ...auth.config, value: MASK } } };
}

/**
 * Puts the stored key back where a written webhook shows the mask.
 * @throws Failure `invalid_input` when there is no such key: a key goes only where it was meant to go.
 */
export function unmaskWebhook(
  written: WebhookConfig | null | undefined,
  stored: WebhookConfig | null | undefined,
): WebhookConfig | null | undefined {
  if (written?.auth?.config.value !== MASK) return written;
  const known = stored?.auth?.config;
  const isSame = stored?.url === written.url && known?.headerName === written.auth.config.headerName;
  if (stored === null || stored === undefined || known === undefined || !isSame) {
    throw invalidInput(
      'webhook.auth.config.value',
      'Give the key again when the address or the header changes.',
    );
  }
  return stored;
}
