import { z } from 'zod';
import { GetIssuerMetadata } from '../../../application/issuance/issuer-metadata.ts';
import type { PortsOf } from '../../../application/needs.ts';
import { AnswerTokenRequest } from '../../../application/oauth/answer-token-request.ts';
import { ConfirmWallet } from '../../../application/oauth/confirm-wallet.ts';
import { CreateChallenge } from '../../../application/oauth/create-challenge.ts';
import { FinishUpstreamLogin } from '../../../application/oauth/finish-upstream-login.ts';
import { PushAuthorization } from '../../../application/oauth/push-authorization.ts';
import { StartUpstreamLogin } from '../../../application/oauth/start-upstream-login.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { textUpTo } from '../../../domain/shared/bounds.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { DOCUMENT_HEADERS } from '../issuance/metadata.routes.ts';
import { consentPage } from '../pages/consent-page.ts';
import { PAGE_HEADERS, PAGE_TYPE } from '../pages/page.ts';
import { family, type Reply, type Route, reply, route } from '../route.ts';
import { BrowserQuery } from './authorization-server.routes.ts';
import { browserCookie, LOGIN, readBrowserCookies, spentBrowserCookie } from './browser-cookie.ts';
import { Form, serverEndpoints, Tenant } from './server-endpoints.ts';

const USE_CASES = {
  pushAuthorization: PushAuthorization,
  startUpstreamLogin: StartUpstreamLogin,
  finishUpstreamLogin: FinishUpstreamLogin,
  confirmWallet: ConfirmWallet,
  answerTokenRequest: AnswerTokenRequest,
  createChallenge: CreateChallenge,
  getIssuerMetadata: GetIssuerMetadata,
  settings: ServiceSettings,
};
type UseCases = PortsOf<typeof USE_CASES>;

const Document = z.record(z.string(), z.unknown());
const tag = 'Wallet: chained authorization server';

/** RFC 6749 section 4.1.2, RFC 9207 section 2. Codes of some providers are tokens themselves, so they may be long. */
const CallbackQuery = z.object({
  code: textUpTo(8192).optional(),
  state: z.string().max(512).optional(),
  error: textUpTo(512).optional(),
  error_description: z.string().max(8192).optional(),
  iss: z.string().max(2048).optional(),
});

/** The tenant's authorization server that has users log in at an upstream provider. */
export const chainedAsRoutes = family(USE_CASES, (useCases) => [
  ...endpointRoutes(useCases),
  ...browserRoutes(useCases),
  ...documentRoutes(useCases),
]);

function endpointRoutes(useCases: UseCases): Route[] {
  const place = {
    server: 'chained',
    base: '/:tenant/chained-as',
    tag,
    grants: 'For an authorization code or a refresh token.',
  } as const;
  return [
    ...serverEndpoints(place, useCases),
    route({
      method: 'post',
      path: '/:tenant/chained-as/challenge',
      rateLimit: { group: 'nonce', perAddress: true },
      summary: 'Get a challenge for a client attestation at the chained server',
      tag,
      surface: 'oauth',
      access: 'public',
      params: Tenant,
      responses: { 200: z.object({ attestation_challenge: z.string() }) },
      async handle({ params }) {
        const challenge = await useCases.createChallenge.execute(params.tenant as TenantId, 'chained');
        return reply(200, { attestation_challenge: challenge });
      },
    }),
  ];
}

/** FAPI 2.0 section 5.3.2.2: 303, never 307 */
function seeOther(location: string, cookie: string | undefined): Reply {
  const headers = { Location: location, ...(cookie !== undefined && { 'Set-Cookie': cookie }) };
  return { status: 303, empty: true, headers };
}

function browserRoutes(useCases: UseCases): Route[] {
  const { startUpstreamLogin, finishUpstreamLogin, settings } = useCases;
  return [
    route({
      method: 'get',
      path: '/:tenant/chained-as/authorize',
      summary: 'Send the user to the upstream provider (RFC 6749 section 4.1.1)',
      tag,
      surface: 'page',
      access: 'public',
      params: Tenant,
      query: BrowserQuery,
      responses: {
        303: 'To the upstream provider; to a verified wallet with an error when it cannot be reached',
      },
      async handle({ params: { tenant: tenantId }, query }) {
        const { location, keep } = await startUpstreamLogin.execute(tenantId as TenantId, {
          clientId: query.client_id,
          requestUri: query.request_uri,
        });
        return seeOther(location, keep && browserCookie({ settings, tenantId, errand: LOGIN }, keep));
      },
    }),
    route({
      method: 'get',
      path: '/:tenant/chained-as/callback',
      summary: 'Take the answer of the upstream provider (OpenID Connect Core 1.0 section 3.1.2.5)',
      tag,
      surface: 'page',
      access: 'public',
      params: Tenant,
      query: CallbackQuery,
      responses: {
        200: 'A page with a form to approve or deny a wallet that did not authenticate',
        303: 'Back to the wallet, with a code or an error',
      },
      async handle({ params: { tenant: tenantId }, query: { code, state, error, iss }, request }) {
        const place = { settings, tenantId, errand: LOGIN };
        const finished = await finishUpstreamLogin.execute(tenantId as TenantId, {
          code,
          state,
          error,
          iss,
          browserSecrets: readBrowserCookies(place, request.headers.cookie),
        });
        if (!('location' in finished)) {
          const text = consentPage(finished);
          return { status: 200, text, contentType: PAGE_TYPE, headers: PAGE_HEADERS };
        }
        return seeOther(finished.location, spentBrowserCookie(place, finished.authorizationId));
      },
    }),
    confirmRoute(useCases),
  ];
}

function confirmRoute({ confirmWallet, settings }: UseCases): Route {
  return route({
    method: 'post',
    path: '/:tenant/chained-as/confirm',
    summary: "Take the user's decision about a wallet that did not authenticate",
    tag,
    surface: 'page',
    access: 'public',
    params: Tenant,
    body: Form,
    example: { confirmation: 'wJalrXUtnFEMI', decision: 'approve' },
    bodyKind: 'form',
    responses: { 303: 'Back to the wallet, with a code or an error' },
    async handle({ params: { tenant: tenantId }, body, request }) {
      const place = { settings, tenantId, errand: LOGIN };
      const { location, authorizationId } = await confirmWallet.execute(tenantId as TenantId, {
        decision: body['decision'],
        confirmation: body['confirmation'],
        browserSecrets: readBrowserCookies(place, request.headers.cookie),
      });
      return seeOther(location, spentBrowserCookie(place, authorizationId));
    },
  });
}

function documentRoutes({ getIssuerMetadata }: UseCases): Route[] {
  const json = (text: string): Reply => ({
    status: 200,
    text,
    contentType: 'application/json',
    headers: DOCUMENT_HEADERS,
  });
  const metadata = (tenant: string) => getIssuerMetadata.execute(tenant as TenantId, 'chained-as');
  // RFC 8414 section 3.1 inserts the well-known name; the contract publishes the other form.
  const addresses = [
    '/:tenant/chained-as/.well-known/oauth-authorization-server',
    '/.well-known/oauth-authorization-server/:tenant/chained-as',
  ];
  const document = { method: 'get', tag, surface: 'document', access: 'public', params: Tenant } as const;
  return [
    ...addresses.map((path) =>
      route({
        ...document,
        path,
        summary: 'Metadata of the chained authorization server (RFC 8414)',
        responses: { 200: Document },
        handle: async ({ params }) => json(await metadata(params.tenant)),
      }),
    ),
    route({
      ...document,
      path: '/:tenant/chained-as/.well-known/jwks.json',
      summary: 'Keys that sign access tokens of the chained server (RFC 7517)',
      responses: { 200: z.object({ keys: z.array(Document) }) },
      async handle({ params }) {
        // The keys are the tenant's; without the server there is nothing to verify here.
        await metadata(params.tenant);
        return json(await getIssuerMetadata.execute(params.tenant as TenantId, 'jwks'));
      },
    }),
  ];
}
