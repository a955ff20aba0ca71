import { object, z } from 'zod';
import { InteractiveAuthorization } from '../../../application/oauth/interactive-authorization.ts';
import { ReturnToInteraction } from '../../../application/oauth/return-to-interaction.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { MAX_RESPONSE_BYTES } from '../../../domain/formats/credential-size.ts';
import { family, reply, route } from '../route.ts';
import { ProtocolError, TenantPath } from '../shapes.ts';
import { expiredBrowserCookie, parseBrowserCookies, redirectTo, VISIT } from './browser-cookie.ts';
import { EXAMPLE_HANDLE, RETURN_QUERY } from './described-parameters.ts';
import { EXAMPLE_REQUEST, oauthRequest } from './server-endpoints.ts';

const USE_CASES = {
  interactiveAuthorization: InteractiveAuthorization,
  returnToInteraction: ReturnToInteraction,
  settings: ServiceSettings,
};

const common = { tag: 'Wallet: issuance', access: 'public', params: TenantPath } as const;

const Details = {
  auth_session: z.string(),
  openid4vp_request: z.record(z.string(), z.unknown()).optional(),
  request_uri: z.string().optional(),
  expires_in: z.number().optional(),
};
const Code = object({ authorization_code: z.string() });
const EarlierCode = object({ status: z.literal('ok'), code: z.string() });
const EarlierInteraction = object({ status: z.literal('require_interaction'), type: z.string(), ...Details });
const RequiredInteraction = object({
  error: z.literal('insufficient_authorization'),
  interaction_type_required: z.string(),
  ...Details,
}).meta({ id: 'RequiredInteraction', description: 'Interaction that the user has to complete first' });

const Returned = object({
  auth_session: z.string().max(512).optional().describe('value of the address of the page'),
  error: z.string().max(512).optional().describe('set when the user gave up'),
});

/** Steps of the user before a credential is issued (OpenID4VCI 1.1 section 6). */
export const interactiveRoutes = family(USE_CASES, ({ interactiveAuthorization, returnToInteraction, settings }) => [
  route({
    ...common,
    method: 'post',
    path: '/:tenant/interactive-authorization',
    operationId: 'authorizeInteractively',
    summary: 'Get an authorization code by interactions with the issuer (OpenID4VCI 1.1 section 6)',
    description:
      'Begins with an authorization request and `interaction_types_supported`; continues with `auth_session` and `openid4vp_response` or ' +
      '`code_verifier`. The names in `interaction_types_supported`, separated by commas, select the version of the draft, ' +
      'the newest matching one first:\n\n- `urn:openid:dcp:ia:openid4vp_presentation`, `urn:openid:dcp:ia:auth_via_web`\n- ' +
      '`urn:openid:dcp:iae:openid4vp_presentation`, `urn:openid:dcp:iae:redirect_to_web`\n- `openid4vp_presentation`, ' +
      '`redirect_to_web`\n\nOther names are ignored. A presentation is bound to this endpoint: `aud` of an SD-JWT VC is `ia:` and ' +
      'its address in the newest version, `iae:` and its origin in the others; an mdoc has the handover `OpenID4VCIIAEHandover`. Each response ' +
      'has its own `auth_session`, and only the last one is valid; after a page it is that of the redirect, which contains the code instead ' +
      'if the page was the last step. Configurations without `iaeActions` have no interaction, so the code is returned immediately; a wallet ' +
      'that lists no types gets `redirect_to_web` there, and continues with a pushed request.',
    surface: 'oauth',
    body: z.record(z.string(), z.string()),
    example: { ...EXAMPLE_REQUEST, interaction_types_supported: 'urn:openid:dcp:ia:openid4vp_presentation' },
    bodyKind: 'form',
    bodyLimit: MAX_RESPONSE_BYTES,
    rateLimit: { group: 'token', perAddress: true },
    responses: { 200: z.union([Code, EarlierCode, EarlierInteraction]), 401: z.union([RequiredInteraction, ProtocolError]) },
    async handle({ params, body, request }) {
      const wallet = oauthRequest(body, request);
      const answer = await interactiveAuthorization.execute(params.tenant, wallet);
      return reply(answer.status, answer.body);
    },
  }),
  route({
    ...common,
    method: 'get',
    path: '/:tenant/interactive-authorization/return',
    operationId: 'returnFromWebStep',
    exampleParameters: { auth_session: EXAMPLE_HANDLE },
    summary: 'Return address for the page of the tenant at the end',
    description:
      'Only the browser that was redirected to the page is redirected further, by a cookie: with the code after the last step, with ' +
      '`auth_session` before that.',
    surface: 'page',
    query: Returned,
    described: { query: RETURN_QUERY },
    responses: { 302: 'Redirect to the wallet' },
    async handle({ params: { tenant: tenantId }, query, request }) {
      const context = { settings, tenantId, roundTrip: VISIT };
      const { location, authorizationId } = await returnToInteraction.execute(tenantId, {
        pageHandle: query.auth_session,
        error: query.error,
        browserSecrets: parseBrowserCookies(context, request.headers.cookie),
      });
      return redirectTo(location, expiredBrowserCookie(context, authorizationId));
    },
  }),
]);
