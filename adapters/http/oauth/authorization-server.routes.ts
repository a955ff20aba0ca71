import { object, z } from 'zod';
import type { PortsOf } from '../../../application/needs.ts';
import { AnswerTokenRequest } from '../../../application/oauth/answer-token-request.ts';
import { DecideAuthorization, ShowAuthorization } from '../../../application/oauth/decide-authorization.ts';
import type { BrowserCookie } from '../../../application/oauth/page-visits.ts';
import { PushAuthorization } from '../../../application/oauth/push-authorization.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { defined } from '../../../domain/shared/defined.ts';
import { consentPage } from '../pages/consent-page.ts';
import { pageReply } from '../pages/page.ts';
import { readerOf } from '../pages/reader.ts';
import { family, type Route, route } from '../route.ts';
import { TenantPath } from '../shapes.ts';
import { browserCookie, CONSENT, parseBrowserCookies, redirectTo, seeOther, VISIT } from './browser-cookie.ts';
import { AUTHORIZE_QUERY, DECISION_FORM, EXAMPLE_REQUEST_URI } from './described-parameters.ts';
import { Form, serverEndpoints } from './server-endpoints.ts';

const USE_CASES = {
  pushAuthorization: PushAuthorization,
  showAuthorization: ShowAuthorization,
  decideAuthorization: DecideAuthorization,
  answerTokenRequest: AnswerTokenRequest,
  settings: ServiceSettings,
};
type UseCases = PortsOf<typeof USE_CASES>;

const tag = 'Wallet: issuance';
const page = { tag, surface: 'page', access: 'public', params: TenantPath } as const;

/** Query of an authorization endpoint; other parameters are ignored, because the values of the pushed request apply. */
export const BrowserQuery = object({ client_id: z.string().max(2048).optional(), request_uri: z.string().max(512).optional() }).transform(
  ({ client_id: clientId, request_uri: requestUri }) => ({ clientId, requestUri }),
);

export const authorizationServerRoutes = family(USE_CASES, (useCases) => {
  const endpoint = {
    server: 'built-in',
    base: '/:tenant',
    tag,
    grants: 'For a pre-authorized code, an authorization code or a refresh token.',
  } as const;
  return [...serverEndpoints(endpoint, useCases), ...pageRoutes(useCases)];
});

function pageRoutes({ showAuthorization, decideAuthorization, settings }: UseCases): Route[] {
  /** `Set-Cookie` value for a browser that is redirected to a page of the tenant. */
  const visitCookie = (tenantId: string, cookie: BrowserCookie | undefined) =>
    cookie && browserCookie({ settings, tenantId, roundTrip: VISIT }, cookie);
  return [
    route({
      ...page,
      method: 'get',
      path: '/:tenant/authorize',
      operationId: 'authorize',
      exampleParameters: { client_id: 'https://wallet.example', request_uri: EXAMPLE_REQUEST_URI },
      summary: 'Ask the user to approve the credentials for the wallet (RFC 6749 section 4.1.1)',
      query: BrowserQuery,
      described: { query: AUTHORIZE_QUERY },
      responses: {
        200: 'A page with a form to approve or deny',
        302: 'Redirect to the page of the tenant, if an interactive authorization of a verified wallet has one',
      },
      async handle({ params: { tenant: tenantId }, query, request }) {
        const view = await showAuthorization.execute(tenantId, query);
        if ('location' in view) return redirectTo(view.location, visitCookie(tenantId, view.cookie));
        const context = { settings, tenantId, roundTrip: CONSENT };
        const cookie = view.cookie && browserCookie(context, view.cookie);
        const reader = readerOf(request, view.branding);
        return pageReply(consentPage(view, reader), defined({ 'Set-Cookie': cookie }));
      },
    }),
    route({
      ...page,
      method: 'post',
      path: '/:tenant/authorize',
      operationId: 'decideAuthorization',
      exampleParameters: { client_id: 'https://wallet.example', request_uri: EXAMPLE_REQUEST_URI },
      summary: 'Accept the decision of the user',
      body: Form,
      described: { form: DECISION_FORM },
      example: {
        client_id: 'https://wallet.example',
        request_uri: EXAMPLE_REQUEST_URI,
        decision: 'approve',
        decision_token: '<decision token>',
      },
      bodyKind: 'form',
      responses: { 303: 'Redirect to the wallet with a code or an error, or to the page of the tenant' },
      async handle({ params: { tenant: tenantId }, body, request }) {
        const context = { settings, tenantId, roundTrip: CONSENT };
        const decision = await decideAuthorization.execute(tenantId, {
          clientId: body['client_id'],
          requestUri: body['request_uri'],
          decision: body['decision'],
          decisionToken: body['decision_token'],
          browserSecrets: parseBrowserCookies(context, request.headers.cookie),
        });
        return seeOther(decision.location, visitCookie(tenantId, 'cookie' in decision ? decision.cookie : undefined));
      },
    }),
  ];
}
