import { z } from 'zod';
import type { AnswerTokenRequest } from '../../../application/oauth/answer-token-request.ts';
import { CreateChallenge } from '../../../application/oauth/create-challenge.ts';
import type { OAuthRequest } from '../../../application/oauth/oauth-callers.ts';
import type { PushAuthorization } from '../../../application/oauth/push-authorization.ts';
import type { AuthorizationServer } from '../../../domain/oauth/grant.ts';
import type { Json } from '../../../domain/shared/json.ts';
import { headerValues } from '../input/header-values.ts';
import { family, type RawRequest, type Route, reply, route } from '../route.ts';
import { TenantPath } from '../shapes.ts';
import { CLIENT_HEADERS, PUSHED_FORM, PUSHED_JSON, TOKEN_FORMS } from './described-parameters.ts';

/** Request of a wallet to an authorization server: the form and every header field that authenticates the wallet. */
export function oauthRequest(form: Readonly<Record<string, string>>, request: RawRequest): OAuthRequest {
  return {
    form,
    dpop: headerValues(request, 'dpop'),
    attestation: headerValues(request, 'oauth-client-attestation'),
    attestationPop: headerValues(request, 'oauth-client-attestation-pop'),
    requestId: request.requestId,
  };
}

/** Header with the nonce for the next proof (RFC 9449 section 8.2). */
export function dpopNonceHeader(nonce: string | undefined): Record<string, string> {
  return nonce === undefined ? {} : { 'DPoP-Nonce': nonce };
}

type UseCases = { readonly pushAuthorization: PushAuthorization; readonly answerTokenRequest: AnswerTokenRequest };

export const Form = z.record(z.string(), z.string());

/** Form parameters as one JSON object, in which some are no strings. */
const JsonForm = z.record(z.string(), z.json()).transform(asForm);

/** Converts to form parameters: `authorization_details` becomes JSON text, and null parameters are left out. */
function asForm(body: Readonly<Record<string, Json>>): Readonly<Record<string, string>> {
  const entries = Object.entries(body).filter(([, value]) => value !== null);
  return Object.fromEntries(entries.map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)] as const));
}

const PushedRequestView = z.object({ request_uri: z.string(), expires_in: z.number() });
const TokenView = z.object({
  access_token: z.string(),
  token_type: z.enum(['DPoP', 'Bearer']),
  expires_in: z.number(),
  refresh_token: z.string().optional(),
  scope: z.string().optional(),
  authorization_details: z.array(z.record(z.string(), z.unknown())).optional(),
});

/** RFC 9126 section 2.2 */
const PUSHED_HEADERS = { 'Cache-Control': 'no-cache, no-store' };

/** Example of RFC 7636 appendix B. */
const EXAMPLE_PROOF = {
  client_id: 'https://wallet.example',
  redirect_uri: 'https://wallet.example/back',
  code_verifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk',
};

export const EXAMPLE_REQUEST = {
  response_type: 'code',
  client_id: 'https://wallet.example',
  redirect_uri: 'https://wallet.example/back',
  scope: 'pid',
  state: 'af0ifjsldkj',
  issuer_state: '<issuer state>',
  code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  code_challenge_method: 'S256',
};

type ServerEndpoint = {
  readonly server: AuthorizationServer;
  /** Path of the server's issuer. */
  readonly base: `/:tenant${string}`;
  readonly tag: string;
};

const OPERATION_IDS = {
  'built-in': { challenge: 'createAttestationChallenge', par: 'pushAuthorizationRequest', token: 'redeemGrant' },
  chained: { challenge: 'createChainedChallenge', par: 'pushChainedAuthorizationRequest', token: 'redeemChainedGrant' },
} as const;

const common = { method: 'post', surface: 'oauth', access: 'public', params: TenantPath } as const;

/** Endpoint for the challenge that a proof of possession of a wallet must contain. */
export function challengeRoute({ server, base, tag }: ServerEndpoint, summary: string, createChallenge: CreateChallenge): Route {
  return route({
    ...common,
    path: `${base}/challenge`,
    operationId: OPERATION_IDS[server].challenge,
    rateLimit: { group: 'nonce', perAddress: true },
    summary,
    tag,
    responses: { 200: z.object({ attestation_challenge: z.string() }) },
    handle: async ({ params }) => reply(200, { attestation_challenge: await createChallenge.execute(params.tenant, server) }),
  });
}

/**
 * Endpoints for pushed requests and tokens, which both authorization servers of a tenant have.
 * @param place `grants`: the supported grants.
 */
export function serverEndpoints(
  {
    server,
    base,
    tag,
    grants,
    bodyKind = 'form',
  }: ServerEndpoint & {
    readonly grants: string;
    /** Body format besides a form, which every client sends. */
    readonly bodyKind?: 'form' | 'json-or-form';
  },
  { pushAuthorization, answerTokenRequest }: UseCases,
): Route[] {
  const endpoint = { ...common, tag, body: JsonForm, bodyKind, rateLimit: { group: 'token', perAddress: true } } as const;
  return [
    route({
      ...endpoint,
      path: `${base}/par`,
      operationId: OPERATION_IDS[server].par,
      described: { json: PUSHED_JSON, form: PUSHED_FORM, headers: CLIENT_HEADERS },
      example: EXAMPLE_REQUEST,
      summary: `Push an authorization request to the ${server} server (RFC 9126)`,
      description: 'The header `DPoP-Nonce` has the nonce for the DPoP proof of the token request.',
      responses: { 201: PushedRequestView, 401: 'The client did not authenticate' },
      async handle({ params, body, request }) {
        const walletRequest = oauthRequest(body, request);
        const { body: pushed, dpopNonce } = await pushAuthorization.execute(params.tenant, server, walletRequest);
        return reply(201, pushed, { ...PUSHED_HEADERS, ...dpopNonceHeader(dpopNonce) });
      },
    }),
    route({
      ...endpoint,
      path: `${base}/token`,
      operationId: OPERATION_IDS[server].token,
      described: { ...TOKEN_FORMS[server], headers: CLIENT_HEADERS },
      example: { grant_type: 'authorization_code', code: '<authorization code>', ...EXAMPLE_PROOF },
      summary: `Get an access token of the ${server} server (OpenID4VCI 1.0 section 6)`,
      description: grants,
      responses: { 200: TokenView, 401: 'The client did not authenticate' },
      async handle({ params, body, request }) {
        const walletRequest = oauthRequest(body, request);
        const answer = await answerTokenRequest.execute(params.tenant, server, walletRequest);
        return reply(200, answer.body, { Pragma: 'no-cache', ...dpopNonceHeader(answer.dpopNonce) });
      },
    }),
  ];
}

const BUILT_IN_SERVER = { server: 'built-in', base: '/:tenant', tag: 'Wallet: issuance' } as const;
const SUMMARY = 'Get a challenge for a client attestation (attestation-based client authentication section 6.1)';

export const challengeRoutes = family({ createChallenge: CreateChallenge }, ({ createChallenge }) => [
  challengeRoute(BUILT_IN_SERVER, SUMMARY, createChallenge),
]);
