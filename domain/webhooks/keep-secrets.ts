import { invalidInput } from '../shared/failure.ts';
import type { WebhookConfig } from './webhook.ts';

/** Stands for a stored key in every answer; keys are never read back. */
export const HIDDEN = '***';

/** A webhook as an answer shows it. */
export function hideSecret<T extends WebhookConfig | null | undefined>(webhook: T): T {
  if (webhook?.auth === undefined) return webhook;
  const { headerName } = webhook.auth.config;
  return { ...webhook, auth: { type: 'apiKey', config: { headerName, value: HIDDEN } } } as T;
}

/**
 * A client that reads a configuration and writes it back sends the placeholder: then the stored key stays, as long
 * as it would go to the same address in the same header.
 * @throws Failure `invalid_input` when there is no such key to keep.
 */
export function keepSecrets<T extends WebhookConfig | null | undefined>(
  next: T,
  before: WebhookConfig | null | undefined,
  path: string,
): T {
  if (next?.auth?.config.value !== HIDDEN) return next;
  const known = before?.auth?.config;
  if (known === undefined || before?.url !== next.url || known.headerName !== next.auth.config.headerName) {
    throw invalidInput(`${path}.auth.config.value`, 'give the key itself: address or header changed');
  }
  return { ...next, auth: { type: 'apiKey', config: known } } as T;
}
