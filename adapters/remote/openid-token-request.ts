import { AuthorizationServerError, type CodeExchange, type TokenAnswer } from '../../application/ports/authorization-servers.ts';
import type { Remote } from '../../application/ports/remote.ts';
import type { ServerMetadata } from '../../domain/oauth/server-metadata.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { call, parseBody } from './authorization-server-documents.ts';

/** RFC 6749 section 5.2: characters of an error code, with a limited length. */
const ERROR_CODE = /^[\x20-\x21\x23-\x5b\x5d-\x7e]{1,100}$/;

const TIMEOUT_MS = 10_000;
const ANSWER_BYTES = 256 * 1024;

type Client = Pick<CodeExchange, 'clientId' | 'clientSecret'> & { readonly tenantId: string | undefined };

/**
 * Calls the token endpoint of a server (RFC 6749 section 3.2) as its client.
 * @throws AuthorizationServerError if it has none, or if no complete response arrived.
 */
export async function requestToken(
  remote: Remote,
  metadata: ServerMetadata,
  client: Client,
  grant: Readonly<Record<string, string>>,
  timeoutMs = TIMEOUT_MS,
): Promise<{ readonly status: number; readonly body: JsonObject | undefined }> {
  const { tokenEndpoint, issuer } = metadata;
  if (tokenEndpoint === undefined) throw new AuthorizationServerError('bad_metadata', `The metadata of ${issuer} have no token_endpoint.`);
  const { headers, parameters } = authenticate(metadata, client);
  const answer = await call(remote, tokenEndpoint, {
    tenantId: client.tenantId,
    readsErrors: true,
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    body: new URLSearchParams({ ...grant, ...parameters }).toString(),
    timeoutMs,
    maxBytes: ANSWER_BYTES,
  });
  return { status: answer.status, body: parseBody(answer) };
}

type Authentication = { readonly headers: Readonly<Record<string, string>>; readonly parameters: Readonly<Record<string, string>> };

/** Uses the first of the two methods with a secret that the server supports. A public client only sends its id. */
function authenticate(metadata: ServerMetadata, { clientId, clientSecret }: Client): Authentication {
  if (clientSecret === undefined) return { headers: {}, parameters: { client_id: clientId } };
  const methods = metadata.clientAuthenticationMethods;
  if (methods.includes('client_secret_basic')) {
    // RFC 6749 section 2.3.1: both halves are form-encoded before they are joined.
    const credentials = `${formEncode(clientId)}:${formEncode(clientSecret)}`;
    return { headers: { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` }, parameters: {} };
  }
  if (methods.includes('client_secret_post')) return { headers: {}, parameters: { client_id: clientId, client_secret: clientSecret } };
  throw new AuthorizationServerError(
    'client_authentication',
    `${metadata.issuer} supports neither client_secret_basic nor client_secret_post.`,
  );
}

function formEncode(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1);
}

export function badStatus(issuer: string, status: number): AuthorizationServerError {
  const message = `The token endpoint of ${issuer} answered with status ${status}.`;
  return new AuthorizationServerError('bad_status', message);
}

/**
 * Parses the response of the token endpoint (RFC 6749 section 5, OpenID Connect Core 1.0 section 3.1.3.3).
 * @throws AuthorizationServerError `refused` with the server's `error`, `bad_status`, `bad_answer`.
 */
export function parseTokenAnswer(
  issuer: string,
  { status, body }: { readonly status: number; readonly body: JsonObject | undefined },
): TokenAnswer {
  const error = body?.['error'];
  if (typeof error === 'string' && ERROR_CODE.test(error)) {
    const message = `The token endpoint of ${issuer} rejected the request: ${error}.`;
    throw new AuthorizationServerError('refused', message, { error });
  }
  if (status !== 200) throw badStatus(issuer, status);
  const { id_token: idToken, access_token: accessToken } = body ?? {};
  if (typeof idToken !== 'string' || (accessToken !== undefined && typeof accessToken !== 'string')) {
    throw new AuthorizationServerError('bad_answer', `The token endpoint of ${issuer} returned no valid ID token.`);
  }
  return { idToken, accessToken };
}
