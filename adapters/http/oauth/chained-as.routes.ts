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
import { documentRoute, KEY_SET } from '../output/document-route.ts';
import { consentPage } from '../pages/consent-page.ts';
import { pageReply } from '../pages/page.ts';
import { readerOf } from '../pages/reader.ts';
import { family, type Route, route } from '../route.ts';
import { TenantPath } from '../shapes.ts';
import { BrowserQuery } from './authorization-server.routes.ts';
import { browserCookie, expiredBrowserCookie, LOGIN, parseBrowserCookies, redirectTo, seeOther } from './browser-cookie.ts';
import { AUTHORIZE_QUERY, CONFIRMATION_FORM, EXAMPLE_HANDLE, EXAMPLE_REQUEST_URI } from './described-parameters.ts';
import { challengeRoute, Form, serverEndpoints } from './server-endpoints.ts';

const USE_CASES = {
  pushAuthorization: PushAuthorization,
  startUpstreamLogin: StartUpstreamLogin,
  finishUpstreamLogin: FinishUpstreamLogin,
  confirmWallet: ConfirmWallet,
  answerTokenRequest: AnswerTokenRequest,
  createChallenge: CreateChallenge,
  metadata: GetIssuerMetadata,
  settings: ServiceSettings,
};
type UseCases = PortsOf<typeof USE_CASES>;

const tag = 'Wallet: chained authorization server';
const base = '/:tenant/chained-as';
const page = { tag, surface: 'page', access: 'public', params: TenantPath } as const;

/** RFC 6749 section 4.1.2, RFC 9207 section 2. Codes of some providers are tokens themselves, so they may be long. */
const CallbackQuery = z.object({
  code: textUpTo(8192).optional(),
  state: z.string().max(512).optional(),
  error: textUpTo(512).optional(),
  error_description: z.string().max(8192).optional(),
  iss: z.string().max(2048).optional(),
});

/** Routes of the tenant's authorization server that logs users in at an upstream provider. */
export const chainedAsRoutes = family(USE_CASES, (useCases) => {
  const endpoint = {
    server: 'chained',
    base,
    tag,
    bodyKind: 'json-or-form',
    grants: 'For an authorization code or a refresh token.',
  } as const;
  const summary = 'Get a challenge for a client attestation at the chained server';
  return [
    ...serverEndpoints(endpoint, useCases),
    challengeRoute(endpoint, summary, useCases.createChallenge),
    ...browserRoutes(useCases),
    ...documentRoutes(useCases),
  ];
});

function browserRoutes(useCases: UseCases): Route[] {
  const { startUpstreamLogin, finishUpstreamLogin, confirmWallet, settings } = useCases;
  return [
    route({
      ...page,
      method: 'get',
      path: `${base}/authorize`,
      operationId: 'authorizeChained',
      exampleParameters: { client_id: 'https://wallet.example', request_uri: EXAMPLE_REQUEST_URI },
      rateLimit: { group: 'login', perAddress: true },
      negotiatesErrorFormat: true,
      summary: 'Redirect the user to the upstream provider (RFC 6749 section 4.1.1)',
      query: BrowserQuery,
      described: { query: AUTHORIZE_QUERY },
      responses: { 302: 'Redirect to the upstream provider; to a verified wallet with an error if the provider is unavailable' },
      async handle({ params: { tenant: tenantId }, query }) {
        const { location, cookie } = await startUpstreamLogin.execute(tenantId, query);
        return redirectTo(location, cookie && browserCookie({ settings, tenantId, roundTrip: LOGIN }, cookie));
      },
    }),
    route({
      ...page,
      method: 'get',
      path: `${base}/callback`,
      operationId: 'returnFromUpstream',
      exampleParameters: { code: '<code of the provider>', state: '<state>', iss: '<issuer of the provider>' },
      rateLimit: { group: 'login', perAddress: true },
      negotiatesErrorFormat: true,
      summary: 'Accept the response of the upstream provider (OpenID Connect Core 1.0 section 3.1.2.5)',
      query: CallbackQuery,
      responses: {
        200: 'A page with a form to approve or deny an unauthenticated wallet',
        302: 'Redirect to the wallet with a code or an error',
      },
      async handle({ params: { tenant: tenantId }, query: { code, state, error, iss }, request }) {
        const context = { settings, tenantId, roundTrip: LOGIN };
        const browserSecrets = parseBrowserCookies(context, request.headers.cookie);
        const login = { code, state, error, iss, browserSecrets };
        const finished = await finishUpstreamLogin.execute(tenantId, login);
        if (!('location' in finished)) return pageReply(consentPage(finished, readerOf(request, finished.branding)));
        return redirectTo(finished.location, expiredBrowserCookie(context, finished.authorizationId));
      },
    }),
    route({
      ...page,
      method: 'post',
      path: `${base}/confirm`,
      operationId: 'confirmChainedWallet',
      summary: 'Accept the decision of the user about an unauthenticated wallet',
      body: Form,
      described: { form: CONFIRMATION_FORM },
      example: { confirmation: EXAMPLE_HANDLE, decision: 'approve' },
      bodyKind: 'form',
      responses: { 303: 'Redirect to the wallet with a code or an error' },
      async handle({ params: { tenant: tenantId }, body, request }) {
        const context = { settings, tenantId, roundTrip: LOGIN };
        const { location, authorizationId } = await confirmWallet.execute(tenantId, {
          decision: body['decision'],
          confirmation: body['confirmation'],
          browserSecrets: parseBrowserCookies(context, request.headers.cookie),
        });
        return seeOther(location, expiredBrowserCookie(context, authorizationId));
      },
    }),
  ];
}

function documentRoutes({ metadata }: UseCases): Route[] {
  const textOf = (tenant: TenantId) => metadata.execute(tenant, 'chained-as');
  // RFC 8414 section 3.1 inserts the well-known name; the contract publishes the other form.
  const addresses = [
    { path: `${base}/.well-known/oauth-authorization-server`, operationId: 'getChainedServerMetadataBelowTenant' },
    { path: `/.well-known/oauth-authorization-server${base}`, operationId: 'getChainedServerMetadata' },
  ];
  return [
    ...addresses.map((address) =>
      documentRoute(
        { ...address, summary: 'Metadata of the chained authorization server (RFC 8414)', tag, params: TenantPath },
        ({ tenant }) => textOf(tenant),
      ),
    ),
    documentRoute(
      {
        ...KEY_SET,
        path: `${base}/.well-known/jwks.json`,
        operationId: 'getChainedServerKeys',
        summary: 'Keys that sign access tokens of the chained server (RFC 7517)',
        tag,
        params: TenantPath,
      },
      async ({ tenant }) => {
        // The keys belong to the tenant; without the chained server there is nothing to verify.
        await textOf(tenant);
        return metadata.execute(tenant, 'jwks');
      },
    ),
  ];
}
