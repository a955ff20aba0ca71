import { z } from 'zod';
import { IssueAccessToken } from '../../../application/clients/issue-access-token.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { family, reply, route } from '../route.ts';
import { readClientCredentials } from './client-credentials.ts';

const TokenRequest = z
  .object({
    grant_type: z.string().max(200).describe('`client_credentials`'),
    client_id: z.string().max(256).optional(),
    client_secret: z.string().max(512).optional(),
  })
  .meta({ id: 'AccessTokenRequest' });

export const TokenView = z
  .object({
    access_token: z.string(),
    token_type: z.literal('Bearer'),
    expires_in: z.number().int().describe('Seconds'),
  })
  .meta({ id: 'AccessToken' });

/** Access tokens for the administrative interface. */
export const tokenRoutes = family({ issueAccessToken: IssueAccessToken }, ({ issueAccessToken }) => [
  route({
    method: 'post',
    path: '/oauth2/token',
    summary: 'Get an access token',
    description:
      'Client credentials grant (RFC 6749 section 4.4), with the credentials in a Basic header or in the body. ' +
      'The body is JSON or a form.',
    tag: 'Authentication',
    surface: 'oauth',
    access: 'public',
    body: TokenRequest,
    bodyKind: 'json-or-form',
    example: { grant_type: 'client_credentials', client_id: 'acme-admin', client_secret: '<client secret>' },
    rateLimit: {
      group: 'token',
      perAddress: true,
      perClient: ({ body, request }) => readRequest(body, request).clientId,
    },
    responses: { 200: TokenView, 401: 'The credentials are missing or wrong' },
    async handle({ body, request }) {
      const { clientId, secret } = readRequest(body, request);
      const { token, expiresInSeconds } = await issueAccessToken.execute(clientId, secret);
      const view = { access_token: token, token_type: 'Bearer', expires_in: expiresInSeconds } as const;
      // RFC 6749 section 5.1
      return reply(200, view, { 'Cache-Control': 'no-store', Pragma: 'no-cache' });
    },
  }),
]);

function readRequest(
  body: z.infer<typeof TokenRequest>,
  { headers }: { readonly headers: { readonly authorization?: string | undefined } },
) {
  // The one who wants another grant has other credentials, or none.
  if (body.grant_type === '') throw new Failure('invalid_request', 'grant_type is missing');
  if (body.grant_type !== 'client_credentials') {
    throw new Failure('unsupported_grant_type', 'only client_credentials is supported here');
  }
  return readClientCredentials(headers.authorization, body);
}
