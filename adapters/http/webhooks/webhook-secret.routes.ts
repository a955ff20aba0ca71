import { object, z } from 'zod';
import {
  GetWebhookSecret,
  RotateWebhookSecret,
  type SigningState,
  UpdateWebhookSecret,
} from '../../../application/webhooks/webhook-secrets.ts';
import { WebhookSecretRotation, WebhookSecretUpdate } from '../../../domain/webhooks/webhook-secret.ts';
import { viewOf } from '../output/view-of.ts';
import { resourceRoutes } from '../resource-routes.ts';
import { families, family, route, show } from '../route.ts';

const FormerSecretView = object({
  createdAt: z.iso.datetime(),
  signsUntil: z.iso.datetime().describe('Until then calls bear a signature of it, too'),
});

const WebhookSecretView = object({
  signing: WebhookSecretUpdate.shape.signing,
  createdAt: z.iso
    .datetime()
    .nullable()
    .describe('Time when the present secret was created; null if none was shown yet, so that no backend can verify signatures'),
  former: z.array(FormerSecretView).describe('Former secrets that sign still, the newest first; at most 3'),
}).meta({ id: 'WebhookSecret', description: 'Secrets that sign calls to backends. Secrets are never shown.' });

const NewWebhookSecretView = object({
  ...WebhookSecretView.shape,
  secret: z.string().describe('`whsec_` and base64. Shown once. Save it now.'),
}).meta({ id: 'CreatedWebhookSecret', description: 'A new secret, which signs from now on' });

function toWebhookSecretView({ stored: storedSecrets, signing }: SigningState) {
  return viewOf(WebhookSecretView, {
    signing: storedSecrets.signing,
    createdAt: storedSecrets.current?.createdAt ?? null,
    former: signing.map((formerSecret) => viewOf(FormerSecretView, formerSecret)),
  });
}

const common = { tag: 'Webhooks', surface: 'admin', access: { anyOf: ['issuance:manage', 'presentation:manage'] } } as const;
/** The secret signs the calls of all configurations. */
const writeAccess = { ...common, access: { ...common.access, unrestricted: true } } as const;

const secret = resourceRoutes({
  ...common,
  kind: 'webhook-secret',
  path: '/webhook-secret',
  writes: { access: writeAccess.access },
  view: WebhookSecretView,
  get: GetWebhookSecret,
  toView: toWebhookSecretView,
  stored: ({ stored: storedSecrets }) => storedSecrets,
});

/** Secrets that sign the calls to the backends of a tenant. */
export const webhookSecretRoutes = families(
  secret.get({
    operationId: 'getWebhookSecret',
    summary: 'Read how calls of backends are signed',
    description: 'Secrets are never shown; one who lost the secret rotates it.',
  }),
  secret.update({
    operationId: 'updateWebhookSecret',
    summary: 'Switch the signatures of calls of backends on or off',
    description:
      'Needs both roles. Every call is signed unless this says otherwise. Without signatures backends have the key of a webhook alone, ' +
      'and for the `callbackUrl` of a web step nothing at all.',
    body: WebhookSecretUpdate,
    example: { signing: 'v1' },
    by: UpdateWebhookSecret,
  }),
  family({ rotateWebhookSecret: RotateWebhookSecret }, ({ rotateWebhookSecret }) => [
    route({
      ...writeAccess,
      method: 'post',
      path: '/webhook-secret/rotate',
      operationId: 'rotateWebhookSecret',
      summary: 'Make a new secret for calls of backends',
      description:
        'Needs both roles. The new secret is returned here, once. Until the end of the overlap calls bear a signature of each secret; ' +
        'there are at most 3 former ones, and the oldest ends early. This does not switch signing on.',
      body: WebhookSecretRotation,
      edits: { kind: 'webhook-secret', id: () => 'default' },
      example: { overlapSeconds: 86_400 },
      responses: { 201: NewWebhookSecretView },
      async handle({ caller, body }) {
        const { secret: newSecret, ...state } = await rotateWebhookSecret.execute(caller, body);
        return show(201, { ...toWebhookSecretView(state), secret: newSecret }, state.stored);
      },
    }),
  ]),
);
