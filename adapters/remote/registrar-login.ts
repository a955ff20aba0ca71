import { AuthorizationServerError } from '../../application/ports/authorization-servers.ts';
import { type RegistrarAccount, RegistrarError, type RegistrarFault } from '../../application/ports/registrar.ts';
import type { Remote } from '../../application/ports/remote.ts';
import type { ServerMetadata } from '../../domain/oauth/server-metadata.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { fetchMetadata } from './authorization-server-documents.ts';
import { badStatus, requestToken } from './openid-token-request.ts';

const TIMEOUT_MS = 5_000;
/** Lifetime of a token whose response states none. */
const DEFAULT_SECONDS = 60;
/** A token that is about to expire would be rejected when it arrives. */
const MARGIN_SECONDS = 5;
const MAX_SECONDS = 24 * 60 * 60;
/** RFC 6750 section 2.1 */
const BEARER = /^[A-Za-z0-9\-._~+/]{1,16384}={0,2}$/;

export type RegistrarToken = { readonly token: string; readonly usableUntil: number };

/** Reasons of rejected logins in fixed texts, because those of the provider could contain anything. */
const REFUSALS: ReadonlyMap<string, string> = new Map([
  ['invalid_grant', 'does not accept this username and password'],
  ['invalid_client', 'does not accept this client'],
  ['unauthorized_client', 'does not allow this client to log in with a password'],
  ['unsupported_grant_type', 'does not allow logins with a password'],
  ['invalid_scope', 'requires a scope'],
  ['invalid_request', 'rejects the login request as invalid'],
  ['access_denied', 'rejects this account'],
]);

/**
 * Logs in with the password of the account (RFC 6749 section 4.3).
 * @param now milliseconds since the epoch.
 * @throws RegistrarError
 */
export async function logIn(remote: Remote, { tenantId, configuration }: RegistrarAccount, now: number): Promise<RegistrarToken> {
  const { oidcUrl, clientId, clientSecret, username, password } = configuration;
  try {
    const metadata = await fetchMetadata(remote, oidcUrl, tenantId);
    const client = { tenantId, clientId, clientSecret: clientSecret ?? undefined };
    const grant = { grant_type: 'password', username, password };
    const answer = await requestToken(remote, metadata, client, grant, TIMEOUT_MS);
    return parseToken(metadata, answer, now);
  } catch (error) {
    if (!(error instanceof AuthorizationServerError)) throw error;
    throw new RegistrarError(faultOf(error), error.message, { cause: error });
  }
}

/** Outages are temporary; every other fault lasts until the configuration changes. */
function faultOf({ fault }: AuthorizationServerError): RegistrarFault {
  return ['timeout', 'unreachable', 'busy'].includes(fault) ? 'unavailable' : 'bad_provider';
}

function parseToken(
  { issuer }: ServerMetadata,
  { status, body }: { readonly status: number; readonly body: JsonObject | undefined },
  now: number,
): RegistrarToken {
  if (status >= 500 || status === 429) throw new RegistrarError('unavailable', badStatus(issuer, status).message);
  if (status !== 200) {
    const reason = REFUSALS.get(String(body?.['error'])) ?? `answered the login with status ${status}`;
    throw new RegistrarError('login_refused', `The provider ${issuer} ${reason}.`);
  }
  const { access_token: token, token_type: type } = body ?? {};
  const isBearer = typeof type === 'string' && type.toLowerCase() === 'bearer';
  if (typeof token !== 'string' || !BEARER.test(token) || !isBearer) {
    throw new RegistrarError('bad_provider', `The token endpoint of ${issuer} returned no bearer token.`);
  }
  return { token, usableUntil: now + (lifetimeOf(body) - MARGIN_SECONDS) * 1000 };
}

function lifetimeOf(body: JsonObject | undefined): number {
  const seconds = Number(body?.['expires_in'] ?? DEFAULT_SECONDS);
  return Number.isFinite(seconds) ? Math.min(seconds, MAX_SECONDS) : DEFAULT_SECONDS;
}
