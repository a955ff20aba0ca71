import { object, z } from 'zod';
import type { PortsOf } from '../../../application/needs.ts';
import { AnswerTokenRequest } from '../../../application/oauth/answer-token-request.ts';
import { DecideAuthorization, ShowAuthorization } from '../../../application/oauth/decide-authorization.ts';
import type { KeptByBrowser } from '../../../application/oauth/page-visits.ts';
import { PushAuthorization } from '../../../application/oauth/push-authorization.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { defined } from '../../../domain/shared/defined.ts';
import { consentPage } from '../pages/consent-page.ts';
import { pageReply } from '../pages/page.ts';
import { readerOf } from '../pages/reader.ts';
import { family, type Route, route } from '../route.ts';
import { TenantPath } from '../shapes.ts';
import { browserCookie, CONSENT, found, parseBrowserCookies, seeOther, VISIT } from './browser-cookie.ts';
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

/** Query of an authorization endpoint; what else is there was pushed, and the pushed values count. */
export const BrowserQuery = object({ client_id: z.string().max(2048).optional(), request_uri: z.string().max(512).optional() }).transform(
  ({ client_id: clientId, request_uri: requestUri }) => ({ clientId, requestUri }),
);

/** The tenant's built-in authorization server. */
export const authorizationServerRoutes = family(USE_CASES, (useCases) => {
  const place = {
    server: 'built-in',
    base: '/:tenant',
    tag,
    grants: 'For a pre-authorized code, an authorization code or a refresh token.',
  } as const;
  return [...serverEndpoints(place, useCases), ...pageRoutes(useCases)];
});

function pageRoutes({ showAuthorization, decideAuthorization, settings }: UseCases): Route[] {
  /** A browser that goes to the customer's page takes a cookie along. */
  const taken = (tenantId: string, keep: KeptByBrowser | undefined) => keep && browserCookie({ settings, tenantId, errand: VISIT }, keep);
  return [
    route({
      ...page,
      method: 'get',
      path: '/:tenant/authorize',
      operationId: 'authorize',
      exampleParameters: { client_id: 'https://wallet.example', request_uri: EXAMPLE_REQUEST_URI },
      summary: 'Ask the user whether the wallet shall have the credentials (RFC 6749 section 4.1.1)',
      query: BrowserQuery,
      described: { query: AUTHORIZE_QUERY },
      responses: {
        200: 'A page with a form to approve or deny',
        302: "On to the customer's page, where an interactive authorization of a verified wallet has one",
      },
      async handle({ params: { tenant: tenantId }, query, request }) {
        const shown = await showAuthorization.execute(tenantId, query);
        if ('location' in shown) return found(shown.location, taken(tenantId, shown.keep));
        const place = { settings, tenantId, errand: CONSENT };
        const cookie = shown.keep && browserCookie(place, shown.keep);
        const reader = readerOf(request, shown.look);
        return pageReply(consentPage(shown, reader), defined({ 'Set-Cookie': cookie }));
      },
    }),
    route({
      ...page,
      method: 'post',
      path: '/:tenant/authorize',
      operationId: 'decideAuthorization',
      exampleParameters: { client_id: 'https://wallet.example', request_uri: EXAMPLE_REQUEST_URI },
      summary: "Take the user's decision",
      body: Form,
      described: { form: DECISION_FORM },
      example: {
        client_id: 'https://wallet.example',
        request_uri: EXAMPLE_REQUEST_URI,
        decision: 'approve',
        decision_token: '<decision token>',
      },
      bodyKind: 'form',
      responses: { 303: "Back to the wallet, with a code or an error, or on to the customer's page" },
      async handle({ params: { tenant: tenantId }, body, request }) {
        const place = { settings, tenantId, errand: CONSENT };
        const decided = await decideAuthorization.execute(tenantId, {
          clientId: body['client_id'],
          requestUri: body['request_uri'],
          decision: body['decision'],
          decisionToken: body['decision_token'],
          browserSecrets: parseBrowserCookies(place, request.headers.cookie),
        });
        return seeOther(decided.location, taken(tenantId, 'keep' in decided ? decided.keep : undefined));
      },
    }),
  ];
}
