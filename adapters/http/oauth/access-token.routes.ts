import { object, z } from 'zod';
import { IssueAccessToken } from '../../../application/clients/issue-access-token.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { isText } from '../../../domain/shared/json.ts';
import { family, reply, route } from '../route.ts';

const TokenRequest = object({
  grant_type: z.string().max(200).describe('`client_credentials`'),
  client_id: z.string().max(256).optional(),
  client_secret: z.string().max(512).optional(),
}).meta({ id: 'AccessTokenRequest' });

export const TokenView = object({
  access_token: z.string(),
  token_type: z.literal('Bearer'),
  expires_in: z.number().int().describe('Seconds'),
}).meta({ id: 'AccessToken' });

export const tokenRoutes = family({ issueAccessToken: IssueAccessToken }, ({ issueAccessToken }) => [
  route({
    method: 'post',
    path: '/oauth2/token',
    operationId: 'createAccessToken',
    summary: 'Get an access token',
    description:
      'Client credentials grant (RFC 6749 section 4.4), with the credentials in a Basic header or in the body. The body is JSON or a form.',
    tag: 'Authentication',
    surface: 'oauth',
    access: 'public',
    body: TokenRequest,
    bodyKind: 'json-or-form',
    example: { grant_type: 'client_credentials', client_id: 'acme-admin', client_secret: '<client secret>' },
    rateLimit: { group: 'token', perAddress: true, perClient: ({ body, request }) => parseRequest(body, request).clientId },
    responses: { 200: TokenView, 401: 'The credentials are missing or wrong' },
    async handle({ body, request }) {
      const { clientId, secret } = parseRequest(body, request);
      const { token, expiresInSeconds } = await issueAccessToken.execute(clientId, secret);
      const view = { access_token: token, token_type: 'Bearer', expires_in: expiresInSeconds } as const;
      // RFC 6749 section 5.1
      return reply(200, view, { 'Cache-Control': 'no-store', Pragma: 'no-cache' });
    },
  }),
]);

function parseRequest(
  body: z.infer<typeof TokenRequest>,
  { headers }: { readonly headers: { readonly authorization?: string | undefined } },
) {
  // A client that wants another grant has other credentials, or none.
  if (body.grant_type === '') throw new Failure('invalid_request', 'grant_type is missing');
  if (body.grant_type !== 'client_credentials') throw new Failure('unsupported_grant_type', 'only client_credentials is supported here');
  return parseClientCredentials(headers.authorization, body);
}

export type ClientCredentials = { readonly clientId: string; readonly secret: string };

type Body = { readonly client_id?: string | undefined; readonly client_secret?: string | undefined };

const invalidClientError = (message: string) => new Failure('invalid_client', { message, basic: true });

const BASIC = /^basic +([A-Za-z0-9+/]+={0,2})$/i;

/**
 * Reads the client credentials of a token request from `Authorization: Basic` or from the body (RFC 6749 section 2.3.1).
 * @throws Failure `invalid_client` if there are none, `invalid_request` if the two name different clients.
 */
export function parseClientCredentials(authorization: string | undefined, body: Body): ClientCredentials {
  const { client_id: clientId, client_secret: secret } = body;
  if (authorization === undefined) {
    if (clientId === undefined || secret === undefined)
      throw invalidClientError('send the client credentials in the header or in the body');
    return { clientId, secret };
  }
  const basic = parseBasic(authorization);
  if (basic === undefined) throw invalidClientError('the Authorization header must use the Basic scheme');
  // RFC 6749 section 2.3 allows one method per request; equal credentials in both are harmless.
  if ((clientId ?? basic.clientId) !== basic.clientId || (secret ?? basic.secret) !== basic.secret) {
    throw new Failure('invalid_request', 'the header and the body contain different client credentials');
  }
  return basic;
}

function parseBasic(authorization: string): ClientCredentials | undefined {
  const [, encoded] = BASIC.exec(authorization) ?? [];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  if (colon < 0) return undefined;
  const [clientId, secret] = [decode(text.slice(0, colon)), decode(text.slice(colon + 1))];
  return isText(clientId) && isText(secret) ? { clientId, secret } : undefined;
}

/**
 * RFC 6749 section 2.3.1 form-encodes both parts, yet many clients send them unencoded. A text that is no valid encoding is used unchanged,
 * and so is `+`, because no client id and no secret of this service contains a space.
 */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
