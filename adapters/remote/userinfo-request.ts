import { AuthorizationServerError } from '../../application/ports/authorization-servers.ts';
import type { Remote, RemoteResponse } from '../../application/ports/remote.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { call } from './authorization-server-documents.ts';

const TIMEOUT_MS = 10_000;
/** What is kept of a login is stored until its wallet has collected. */
const ANSWER_BYTES = 64 * 1024;
/** RFC 6750 section 2.1, `b64token`. */
const BEARER = /^[A-Za-z0-9._~+/-]+=*$/;

/** What is wrong is told by `error`, so that an operator knows that the login itself was good. */
export function userinfoFault(
  fault: AuthorizationServerError['fault'],
  what: string,
  error = 'userinfo',
  cause?: unknown,
): AuthorizationServerError {
  return new AuthorizationServerError(fault, `The userinfo endpoint ${what}.`, { error, cause });
}

/**
 * Asks a userinfo endpoint (OpenID Connect Core 1.0 section 5.3.1). One attempt, and no redirect is followed.
 * @throws AuthorizationServerError
 */
export async function askForUserinfo(
  remote: Remote,
  endpoint: string,
  { tenantId, accessToken }: { readonly tenantId: TenantId; readonly accessToken: string },
): Promise<RemoteResponse> {
  if (!BEARER.test(accessToken)) throw userinfoFault('bad_answer', 'cannot be asked with that access token');
  const answer = await call(remote, endpoint, {
    tenantId,
    method: 'GET',
    headers: { authorization: `Bearer ${accessToken}`, accept: 'application/json, application/jwt' },
    timeoutMs: TIMEOUT_MS,
    maxBytes: ANSWER_BYTES,
  }).catch((error: unknown) => {
    if (!(error instanceof AuthorizationServerError)) throw error;
    throw userinfoFault(error.fault, 'gave no complete answer', 'userinfo', error);
  });
  if (answer.status === 200) return answer;
  const fault = answer.status >= 500 ? 'bad_status' : 'refused';
  throw userinfoFault(fault, `answered with status ${answer.status}`);
}
