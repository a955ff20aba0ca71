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
  signsUntil: z.iso.datetime().describe('Until then calls are also signed with it'),
});

const WebhookSecretView = object({
  signing: WebhookSecretUpdate.shape.signing,
  createdAt: z.iso
    .datetime()
    .nullable()
    .describe('Time of creation of the present secret; null if none was returned yet, so that no backend can verify signatures'),
  former: z.array(FormerSecretView).describe('Former secrets that still sign, the newest first; at most 3'),
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
  writeOverrides: { access: writeAccess.access },
  view: WebhookSecretView,
  get: GetWebhookSecret,
  toView: toWebhookSecretView,
  stored: ({ stored: storedSecrets }) => storedSecrets,
});

/** Secrets that sign the calls to the backends of a tenant. */
export const webhookSecretRoutes = families(
  secret.get({
    operationId: 'getWebhookSecret',
    summary: 'Read the signature settings of webhooks',
    description: 'Secrets are never shown; rotate a lost secret.',
  }),
  secret.update({
    operationId: 'updateWebhookSecret',
    summary: 'Enable or disable the signatures of webhooks',
    description:
      'Requires both roles. By default every call is signed. Without signatures, backends can only check the API key of a webhook, ' +
      'and nothing for the `callbackUrl` of a web step.',
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
      summary: 'Rotate the webhook secret',
      description:
        'Requires both roles. The new secret is returned here, once. Until the end of the overlap calls have a signature of each secret; ' +
        'there are at most 3 former ones, and the oldest ends early. This does not enable signatures.',
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
