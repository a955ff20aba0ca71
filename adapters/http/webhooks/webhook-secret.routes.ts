import {
  GetWebhookSecret,
  RotateWebhookSecret,
  UpdateWebhookSecret,
} from '../../../application/webhooks/webhook-secrets.ts';
import { WebhookSecretRotation, WebhookSecretUpdate } from '../../../domain/webhooks/webhook-secret.ts';
import { resourceRoutes } from '../resource-routes.ts';
import { families, family, route, show } from '../route.ts';
import { NewWebhookSecretView, toWebhookSecretView, WebhookSecretView } from './webhook-secret.view.ts';

const common = {
  tag: 'Webhooks',
  surface: 'admin',
  access: { anyOf: ['issuance:manage', 'presentation:manage'] },
} as const;
/** It signs the calls of all configurations. */
const written = { ...common, access: { ...common.access, unrestricted: true } } as const;

const secret = resourceRoutes({
  ...common,
  kind: 'webhook-secret',
  path: '/webhook-secret',
  writes: { access: written.access },
  view: WebhookSecretView,
  get: GetWebhookSecret,
  toView: toWebhookSecretView,
  stored: ({ stored }) => stored,
});

/** What the calls of the tenant's backends are signed with. */
export const webhookSecretRoutes = families(
  secret.get({
    summary: 'Read how calls of backends are signed',
    description: 'Secrets are never shown; one who lost the secret rotates it.',
  }),
  secret.update({
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
      ...written,
      method: 'post',
      path: '/webhook-secret/rotate',
      summary: 'Make a new secret for calls of backends',
      description:
        'Needs both roles. The new secret is returned here, once. Until the end of the overlap calls bear a signature of each secret; ' +
        'there are at most 3 former ones, and the oldest ends early. This does not switch signing on.',
      body: WebhookSecretRotation,
      edits: { kind: 'webhook-secret', id: () => 'default' },
      example: { overlapSeconds: 86_400 },
      responses: { 201: NewWebhookSecretView },
      async handle({ caller, body }) {
        const { secret: told, ...state } = await rotateWebhookSecret.execute(caller, body);
        return show(201, { ...toWebhookSecretView(state), secret: told }, state.stored);
      },
    }),
  ]),
);
