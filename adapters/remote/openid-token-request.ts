import {
  AuthorizationServerError,
  type CodeExchange,
  type TokenAnswer,
} from '../../application/ports/authorization-servers.ts';
import type { ServerMetadata } from '../../domain/oauth/server-metadata.ts';
import type { JsonObject } from '../../domain/shared/json.ts';

/** RFC 6749 section 5.2: the characters of an error code; nothing longer is one. */
const ERROR_CODE = /^[\x20-\x21\x23-\x5b\x5d-\x7e]{1,100}$/;

/** RFC 6749 section 4.1.3, RFC 7636 section 4.5. */
export function codeRequest(
  metadata: ServerMetadata,
  exchange: CodeExchange,
): { readonly headers: Readonly<Record<string, string>>; readonly body: string } {
  const { headers, parameters } = authenticate(metadata, exchange);
  const body = new URLSearchParams({
    grant_type: 'authorization_code',
    code: exchange.code,
    redirect_uri: exchange.redirectUri,
    code_verifier: exchange.codeVerifier,
    ...parameters,
  });
  return {
    headers: {
      ...headers,
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
    },
    body: body.toString(),
  };
}

type Authentication = {
  readonly headers: Readonly<Record<string, string>>;
  readonly parameters: Readonly<Record<string, string>>;
};

/** The first of the two ways with a secret that the server takes. A public client only names itself. */
export function authenticate(
  metadata: ServerMetadata,
  { clientId, clientSecret }: Pick<CodeExchange, 'clientId' | 'clientSecret'>,
): Authentication {
  if (clientSecret === undefined) return { headers: {}, parameters: { client_id: clientId } };
  const methods = metadata.clientAuthenticationMethods;
  if (methods.includes('client_secret_basic')) {
    // RFC 6749 section 2.3.1: both halves are form-encoded before they are joined.
    const credentials = `${formEncode(clientId)}:${formEncode(clientSecret)}`;
    return {
      headers: { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
      parameters: {},
    };
  }
  if (methods.includes('client_secret_post')) {
    return { headers: {}, parameters: { client_id: clientId, client_secret: clientSecret } };
  }
  throw new AuthorizationServerError(
    'client_authentication',
    `${metadata.issuer} takes neither client_secret_basic nor client_secret_post.`,
  );
}

function formEncode(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1);
}

/**
 * Reads what the token endpoint answered (RFC 6749 section 5, OpenID Connect Core 1.0 section 3.1.3.3).
 * @throws AuthorizationServerError `refused` with the server's `error`, `bad_status`, `bad_answer`.
 */
export function readTokenAnswer(
  issuer: string,
  { status, body }: { readonly status: number; readonly body: JsonObject | undefined },
): TokenAnswer {
  const error = body?.['error'];
  if (typeof error === 'string' && ERROR_CODE.test(error)) {
    const message = `The token endpoint of ${issuer} refused the request: ${error}.`;
    throw new AuthorizationServerError('refused', message, { error });
  }
  if (status !== 200) {
    throw new AuthorizationServerError(
      'bad_status',
      `The token endpoint of ${issuer} answered with status ${status}.`,
    );
  }
  const { id_token: idToken, access_token: accessToken } = body ?? {};
  if (typeof idToken !== 'string' || (accessToken !== undefined && typeof accessToken !== 'string')) {
    throw new AuthorizationServerError(
      'bad_answer',
      `The token endpoint of ${issuer} answered without a readable ID token.`,
    );
  }
  return { idToken, accessToken };
}
