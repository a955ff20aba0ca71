import { resource } from '../shared/resource.ts';
import { UNTOLD, type WebhookSecret } from './webhook-secret.ts';

/** What calls of backends are signed with. No file describes it: secrets are made here and told once. */
export const webhookSecretResource = resource<WebhookSecret>()({
  kind: 'webhook-secret',
  repository: 'webhookSecret',
  revision: 'webhookSecret',
  isDocument: true,
  shown: ['signing'],
  // What becomes of former ones follows from the rotation that the entry tells of.
  silent: ['former'],
  actionOf: (_before: WebhookSecret, _after: WebhookSecret, changed: readonly string[]) =>
    changed.includes('current') ? 'rotated' : 'changed',
  edited: ({ signing, current, former }: WebhookSecret) => [signing, current ?? null, former],
  unset: UNTOLD,
});
