import { z } from 'zod';
import type { AnswerTokenRequest } from '../../../application/oauth/answer-token-request.ts';
import type { PushAuthorization } from '../../../application/oauth/push-authorization.ts';
import type { AuthorizationServer } from '../../../domain/oauth/grant.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { type Route, reply, route } from '../route.ts';
import { dpopNonceHeader, oauthRequest } from './oauth-request.ts';

type UseCases = {
  readonly pushAuthorization: PushAuthorization;
  readonly answerTokenRequest: AnswerTokenRequest;
};

export const Tenant = z.object({ tenant: z.string().max(63) });
export const Form = z.record(z.string(), z.string());

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

/** What both authorization servers of a tenant have: the endpoints for pushed requests and for tokens. */
export function serverEndpoints(
  place: {
    readonly server: AuthorizationServer;
    /** Path of the server's issuer. */
    readonly base: `/:tenant${string}`;
    readonly tag: string;
    /** What tokens are given for. */
    readonly grants: string;
  },
  { pushAuthorization, answerTokenRequest }: UseCases,
): Route[] {
  const { server, base, tag, grants } = place;
  const common = {
    method: 'post',
    tag,
    surface: 'oauth',
    access: 'public',
    params: Tenant,
    body: Form,
    bodyKind: 'form',
  } as const;
  return [
    route({
      ...common,
      path: `${base}/par`,
      rateLimit: { group: 'token', perAddress: true },
      summary: `Push an authorization request to the ${server} server (RFC 9126)`,
      responses: { 201: PushedRequestView, 401: 'The client did not authenticate' },
      async handle({ params, body, request }) {
        const asked = oauthRequest(body, request);
        const pushed = await pushAuthorization.execute(params.tenant as TenantId, server, asked);
        return reply(201, pushed, PUSHED_HEADERS);
      },
    }),
    route({
      ...common,
      path: `${base}/token`,
      rateLimit: { group: 'token', perAddress: true },
      summary: `Get an access token of the ${server} server (OpenID4VCI 1.0 section 6)`,
      description: grants,
      responses: { 200: TokenView, 401: 'The client did not authenticate' },
      async handle({ params, body, request }) {
        const asked = oauthRequest(body, request);
        const answer = await answerTokenRequest.execute(params.tenant as TenantId, server, asked);
        return reply(200, answer.body, { Pragma: 'no-cache', ...dpopNonceHeader(answer.dpopNonce) });
      },
    }),
  ];
}
