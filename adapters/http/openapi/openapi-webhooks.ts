import { looseObject, object, z } from 'zod';
import type { ZodOpenApiOperationObject, ZodOpenApiPathsObject } from 'zod-openapi';
import { NOTIFICATION_EVENTS } from '../../../domain/issuance/notification.ts';
import { Presented } from '../sessions/presented.view.ts';

const sessionShape = {
  session: z.string().describe('The session id in the response of `POST /issuer/offer` or `/verifier/offer`'),
  reference: z
    .string()
    .optional()
    .describe('`reference` of that offer or presentation request; absent if it had none or if the session was erased'),
};
const Values = z.record(z.string(), z.unknown());

const Identity = object({
  iss: z.string().optional().describe('Issuer of the identity: the login provider, or the server of the token'),
  sub: z.string().optional().describe('The user at `iss`; without a login, an identifier of this offer'),
  token_claims: Values.optional().describe('All claims of the verified tokens'),
}).describe(
  'Identity of the user. Empty for a pre-authorized code. With the chained server, the user at its upstream provider and the ' +
    'claims of the login; with an external server, `sub` and claims of its access token. With the built-in server, ' +
    'the claims of its own access token, which identify no user, since its page has no login.',
);

const ClaimsRequest = object({
  ...sessionShape,
  credential_configuration_id: z.string().describe('Credential to be issued'),
  identity: Identity,
  credentials: z.array(Presented).describe('Presentations of an interactive authorization; otherwise empty'),
}).meta({ id: 'ClaimsRequest' });

const ClaimsAnswer = z
  .union([
    z.record(z.string(), Values).describe('Claims by configuration id. Only the requested configuration is read; it is required.'),
    looseObject({
      deferred: z.literal(true),
      interval: z.number().min(1).max(86_400).nullish().describe('Seconds that the wallet waits between two polls. Default: 5'),
    }).describe(
      'The claims are not available yet. Ends with `POST /issuer/deferred/{transactionId}/complete` or `/fail`; ' +
        '`GET /issuer/deferred?session=…` lists the transaction. It expires after 24 hours.',
    ),
  ])
  .meta({ id: 'ClaimsAnswer' });

const NotificationDelivery = object({
  ...sessionShape,
  notification: object({
    id: z.string().describe('The `notification_id`, one for all credentials of one response'),
    event: z
      .enum([...NOTIFICATION_EVENTS, 'credential_revoked'])
      .describe('`credential_revoked` comes from the service and not from the wallet: the credentials were revoked with their wallet'),
    credentialConfigurationId: z.string(),
    eventDescription: z.string().optional().describe('Text of the wallet or of the service'),
  }),
}).meta({ id: 'NotificationDelivery' });

const PresentationDelivery = object({
  ...sessionShape,
  credentials: z.array(Presented).describe('One entry per credential query; optional ones may be absent'),
}).meta({ id: 'PresentationDelivery' });

const PresentationAnswer = looseObject({
  redirectUri: z.string().nullish().describe('Redirect address instead of the configured one; ignored if it is not an address'),
}).meta({ id: 'PresentationAnswer' });

const WebStepQuestion = object({
  ...sessionShape,
  auth_session: z.string().describe('The visit, by `{auth_session}` in the address of the page'),
}).meta({ id: 'WebStepQuestion' });

const HEADERS = object({
  'Idempotency-Key': z.string().describe('Id of this delivery; except for web steps also `deliveries[].id` of the session'),
  'webhook-id': z.string().optional().describe('Same value, as the header of Standard Webhooks'),
  'webhook-timestamp': z
    .string()
    .regex(/^\d+$/)
    .optional()
    .describe('Time of this call in seconds since 1970. Reject calls that differ by more than five minutes'),
  'webhook-signature': z
    .string()
    .optional()
    .describe(
      '`v1,` and the base64 of HMAC-SHA-256 over `<webhook-id>.<webhook-timestamp>.<body>`, the body byte for byte; one for ' +
        'each secret that signs, separated by spaces',
    ),
});

const DELIVERY =
  'One `POST` of JSON, never retried automatically. The response must be a 2xx, complete within 10 seconds, ' +
  'at most 1 MiB; redirects are not followed. The address is public https or allowed by `OUTBOUND_ALLOW`. ' +
  'Anything else is a failure, and so is a body that is not JSON when it is required: for claims, and in interactive authorizations.';
const SIGNED =
  'It is signed (Standard Webhooks) with the secret of `POST /webhook-secret/rotate`, unless the tenant has ' +
  'disabled signatures; then the three headers are absent.';
const KEYED = 'With `auth` the header that it names carries its value; without, the signature alone says who calls.';

type Webhook = {
  readonly id: string;
  readonly summary: string;
  readonly description: readonly string[];
  readonly body: z.ZodType;
  readonly answer?: z.ZodType;
};

function webhook({ id, summary, description, body, answer }: Webhook): { post: ZodOpenApiOperationObject } {
  const accepted =
    answer === undefined
      ? { description: 'Accepted; the body is ignored' }
      : { description: 'Taken', content: { 'application/json': { schema: answer } } };
  return {
    post: {
      operationId: id,
      summary,
      description: [...description, DELIVERY, SIGNED].join('\n\n'),
      tags: ['Webhook calls'],
      security: [],
      requestParams: { header: HEADERS },
      requestBody: { required: true, content: { 'application/json': { schema: body } } },
      responses: { '2XX': accepted },
    },
  };
}

/** Requests that the service sends to backends. */
export const WEBHOOKS: ZodOpenApiPathsObject = {
  claims: webhook({
    id: 'claimsWebhook',
    summary: 'Claims for a credential that a wallet requests',
    description: [
      '`claimsWebhook` of a credential configuration, or a source of type `webhook` in `credentialClaims` of an offer.',
      'A failure, and claims that do not match schema and format, fail the session with `claims_unavailable` and a ' +
        'reason; the wallet gets `credential_request_denied` without a reason, and the backend is not called again. ' +
        'In an SD-JWT VC the claims that the issuer sets itself (`iss`, `iat`, `exp`, `cnf`, `vct`, `status`, …) are rejected.',
      KEYED,
    ],
    body: ClaimsRequest,
    answer: ClaimsAnswer,
  }),
  notification: webhook({
    id: 'notificationWebhook',
    summary: 'Notification about a credential in the wallet',
    description: [
      '`notifyWebhook` of an offer, otherwise `notificationWebhook` of the credential configuration. A repeated notification ' +
        'is delivered once. An offer that becomes invalid before any credential was issued is a `credential_failure` of each of its ' +
        'credentials, under the id of the delivery.',
      'A failure is recorded in `deliveries` of the session and changes nothing else; the wallet is not notified.',
      KEYED,
    ],
    body: NotificationDelivery,
  }),
  presentation: webhook({
    id: 'presentationWebhook',
    summary: 'Presentation of a wallet',
    description: [
      '`webhook` of a presentation configuration or of a request. Called with `error` and without any `values` for a ' +
        'rejected response.',
      'A failure fails the session with `webhook_failed`, and the response of the wallet is rejected. In an interactive ' +
        'authorization the wallet gets `access_denied` and must begin again. A failed delivery of a rejection changes nothing.',
      KEYED,
    ],
    body: PresentationDelivery,
    answer: PresentationAnswer,
  }),
  webStep: webhook({
    id: 'webStepWebhook',
    summary: 'Confirmation that the user has completed a page before an issuance',
    description: [
      '`callbackUrl` of an interactive action of type `redirect_to_web`. Any 2xx confirms it.',
      'After a failure the wallet gets `access_denied` and must begin again; the session stays open and its ' +
        'report contains the reason.',
      'The call contains no API key; `auth_session` is known only to the service, the page and its visitor.',
    ],
    body: WebStepQuestion,
  }),
};
