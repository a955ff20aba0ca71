import { hideSecrets } from '../shared/secrets.ts';

const KEY = { secrets: { 'auth.config.value': { variable: 'KEY' } } };

/** A webhook for display, without its key. */
export function maskWebhook<T extends object>(webhook: T): T {
  return hideSecrets(KEY, webhook);
}
