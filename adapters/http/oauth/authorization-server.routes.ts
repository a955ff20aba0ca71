import { z } from 'zod';
import type { PortsOf } from '../../../application/needs.ts';
import { AnswerTokenRequest } from '../../../application/oauth/answer-token-request.ts';
import { DecideAuthorization } from '../../../application/oauth/decide-authorization.ts';
import type { KeptByBrowser } from '../../../application/oauth/page-visits.ts';
import { PushAuthorization } from '../../../application/oauth/push-authorization.ts';
import { ShowAuthorization } from '../../../application/oauth/show-authorization.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { consentPage } from '../pages/consent-page.ts';
import { PAGE_HEADERS, PAGE_TYPE } from '../pages/page.ts';
import { family, type Reply, type Route, route } from '../route.ts';
import { browserCookie, CONSENT, readBrowserCookies, VISIT } from './browser-cookie.ts';
import { Form, serverEndpoints, Tenant } from './server-endpoints.ts';

const USE_CASES = {
  pushAuthorization: PushAuthorization,
  showAuthorization: ShowAuthorization,
  decideAuthorization: DecideAuthorization,
  answerTokenRequest: AnswerTokenRequest,
  settings: ServiceSettings,
};
type UseCases = PortsOf<typeof USE_CASES>;

const tag = 'Wallet: issuance';

/** Query of an authorization endpoint; what else is there was pushed, and the pushed values count. */
export const BrowserQuery = z.object({
  client_id: z.string().max(2048).optional(),
  request_uri: z.string().max(512).optional(),
});

/** The tenant's built-in authorization server. */
export const authorizationServerRoutes = family(USE_CASES, routesOf);

function routesOf(useCases: PortsOf<typeof USE_CASES>): readonly Route[] {
  const place = {
    server: 'built-in',
    base: '/:tenant',
    tag,
    grants: 'For a pre-authorized code, an authorization code or a refresh token.',
  } as const;
  return [...serverEndpoints(place, useCases), ...pageRoutes(useCases)];
}

/** A browser that goes to the customer's page takes a cookie along. */
function seeOther(
  place: { readonly settings: ServiceSettings; readonly tenantId: string },
  { location, keep }: { readonly location: string; readonly keep?: KeptByBrowser },
): Reply {
  const cookie = keep && browserCookie({ ...place, errand: VISIT }, keep);
  const headers = { Location: location, ...(cookie !== undefined && { 'Set-Cookie': cookie }) };
  return { status: 303, empty: true, headers };
}

function pageRoutes({ showAuthorization, decideAuthorization, settings }: UseCases): Route[] {
  return [
    route({
      method: 'get',
      path: '/:tenant/authorize',
      summary: 'Ask the user whether the wallet shall have the credentials (RFC 6749 section 4.1.1)',
      tag,
      surface: 'page',
      access: 'public',
      params: Tenant,
      query: BrowserQuery,
      responses: {
        200: 'A page with a form to approve or deny',
        303: "On to the customer's page, where an interactive authorization of a verified wallet has one",
      },
      async handle({ params: { tenant: tenantId }, query }) {
        const shown = await showAuthorization.execute(tenantId as TenantId, {
          clientId: query.client_id,
          requestUri: query.request_uri,
        });
        if ('location' in shown) return seeOther({ settings, tenantId }, shown);
        const place = { settings, tenantId, errand: CONSENT };
        const headers = {
          ...PAGE_HEADERS,
          ...(shown.keep !== undefined && { 'Set-Cookie': browserCookie(place, shown.keep) }),
        };
        return { status: 200, text: consentPage(shown), contentType: PAGE_TYPE, headers };
      },
    }),
    route({
      method: 'post',
      path: '/:tenant/authorize',
      summary: "Take the user's decision",
      tag,
      surface: 'page',
      access: 'public',
      params: Tenant,
      body: Form,
      example: {
        client_id: 'https://wallet.example',
        request_uri: 'urn:ietf:params:oauth:request_uri:6esc_11ACC5bwc014ltc14eY22c',
        decision: 'approve',
        decision_token: 'wJalrXUtnFEMI',
      },
      bodyKind: 'form',
      responses: { 303: "Back to the wallet, with a code or an error, or on to the customer's page" },
      async handle({ params: { tenant: tenantId }, body, request }) {
        const place = { settings, tenantId, errand: CONSENT };
        const decided = await decideAuthorization.execute(tenantId as TenantId, {
          clientId: body['client_id'],
          requestUri: body['request_uri'],
          decision: body['decision'],
          decisionToken: body['decision_token'],
          browserSecrets: readBrowserCookies(place, request.headers.cookie),
        });
        // FAPI 2.0 section 5.3.2.2: 303, so that the browser sends no form to the wallet
        return seeOther(place, decided);
      },
    }),
  ];
}
