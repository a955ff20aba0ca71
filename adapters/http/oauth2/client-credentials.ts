import { Failure } from '../../../domain/shared/failure.ts';
import { isText } from '../../../domain/shared/json.ts';

export type ClientCredentials = { readonly clientId: string; readonly secret: string };

type Body = { readonly client_id?: string | undefined; readonly client_secret?: string | undefined };

const refused = (message: string) => new Failure('invalid_client', { message, basic: true });

const BASIC = /^basic +([A-Za-z0-9+/]+={0,2})$/i;

/**
 * Who asks for a token: by `Authorization: Basic` or by members of the body (RFC 6749 section 2.3.1).
 * @throws Failure `invalid_client` when there are none, `invalid_request` when the two name different clients.
 */
export function readClientCredentials(authorization: string | undefined, body: Body): ClientCredentials {
  const { client_id: clientId, client_secret: secret } = body;
  if (authorization === undefined) {
    if (clientId === undefined || secret === undefined) {
      throw refused('send the client credentials in the header or in the body');
    }
    return { clientId, secret };
  }
  const basic = readBasic(authorization);
  if (basic === undefined) throw refused('the Authorization header is not a Basic one');
  // RFC 6749 section 2.3: not more than one method in one request; saying the same twice harms nobody.
  if ((clientId ?? basic.clientId) !== basic.clientId || (secret ?? basic.secret) !== basic.secret) {
    throw new Failure('invalid_request', 'the header and the body carry different client credentials');
  }
  return basic;
}

function readBasic(authorization: string): ClientCredentials | undefined {
  const [, encoded] = BASIC.exec(authorization) ?? [];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  if (colon < 0) return undefined;
  const [clientId, secret] = [decode(text.slice(0, colon)), decode(text.slice(colon + 1))];
  return isText(clientId) && isText(secret) ? { clientId, secret } : undefined;
}

/**
 * RFC 6749 section 2.3.1 form-encodes both parts, yet many clients send them as they are. A text that is no valid
 * encoding stands for itself, and so does `+`, because no client id and no secret of this service contains a space.
 */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
