import { z } from 'zod';
import type { SigningState } from '../../../application/webhooks/webhook-secrets.ts';
import { WebhookSecretUpdate } from '../../../domain/webhooks/webhook-secret.ts';
import { viewOf } from '../view-of.ts';

const FormerSecretView = z.object({
  createdAt: z.iso.datetime(),
  signsUntil: z.iso.datetime().describe('Until then calls bear a signature of it, too'),
});

export const WebhookSecretView = z
  .object({
    signing: WebhookSecretUpdate.shape.signing,
    createdAt: z.iso
      .datetime()
      .nullable()
      .describe(
        'When the present secret was made; null: nobody was told one yet, and nobody can check what signs',
      ),
    former: z.array(FormerSecretView).describe('Former secrets that sign still, the newest first; at most 3'),
  })
  .meta({
    id: 'WebhookSecret',
    description: 'What calls of backends are signed with. Secrets are never shown.',
  });

export const NewWebhookSecretView = z
  .object({
    ...WebhookSecretView.shape,
    secret: z.string().describe('`whsec_` and base64. Shown once. Save it now.'),
  })
  .meta({ id: 'CreatedWebhookSecret', description: 'A new secret, which signs from now on' });

export function toWebhookSecretView({ stored, signing }: SigningState) {
  return viewOf(WebhookSecretView, {
    signing: stored.signing,
    createdAt: stored.current?.createdAt ?? null,
    former: signing.map((former) => viewOf(FormerSecretView, former)),
  });
}
