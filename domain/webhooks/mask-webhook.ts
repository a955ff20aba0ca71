import { hideSecrets } from '../shared/secrets.ts';

const KEY = { secrets: { 'auth.config.value': { variable: 'KEY' } } };

/** A webhook as it may be shown: without its key. */
export function maskWebhook<T extends object>(webhook: T): T {
  return hideSecrets(KEY, webhook);
}
