import { resource } from '../shared/resource.ts';
import { INITIAL_WEBHOOK_SECRET, type WebhookSecret } from './webhook-secret.ts';

/** Secrets that sign webhook calls. They have no configuration file, because they are created here and shown once. */
export const webhookSecretResource = resource<WebhookSecret>()({
  kind: 'webhook-secret',
  repository: 'webhookSecret',
  revision: 'webhookSecret',
  isDocument: true,
  auditedValues: ['signing'],
  // Changes of previous secrets follow from the logged rotation.
  unaudited: ['former'],
  actionOf: (_before: WebhookSecret, _after: WebhookSecret, changedMembers: readonly string[]) =>
    changedMembers.includes('current') ? 'rotated' : 'changed',
  editablePart: ({ signing, current, former: previousSecrets }: WebhookSecret) => [signing, current ?? null, previousSecrets],
  unset: INITIAL_WEBHOOK_SECRET,
});
