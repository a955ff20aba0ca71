import type { ChainedAsConfig } from '../../domain/issuance/issuance-configuration.ts';
import type { Authorization } from '../../domain/oauth/authorization.ts';
import { destinationOf } from '../../domain/oauth/authorization-response.ts';
import { ForeignTokenError } from '../../domain/oauth/foreign-token.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { AuthorizationServerError, type AuthorizationServerFault } from '../ports/authorization-servers.ts';
import { remoteDetailOf } from '../ports/remote.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { type Refused, responseTo } from './wallet-responses.ts';

/** Where the upstream provider sends the browser back to. */
export function callbackAddress(configured: TenantConfiguration): string {
  return `${configured.issuerOf('chained')}/callback`;
}

/** The provider where users of a tenant with a chained server log in. */
export async function upstreamOf(configured: TenantConfiguration): Promise<ChainedAsConfig['upstream']> {
  const { chainedAs } = await configured.issuance();
  if (chainedAs === null || chainedAs === undefined) throw new Error('a tenant without a chained server');
  return chainedAs.upstream;
}

/**
 * Whether the user has to say that the wallet is the right one before a browser is sent to it. Anybody can push a
 * request in the name of any client and have the answer sent anywhere, and a user with a session at the upstream
 * provider would see nothing of it (RFC 9700 section 4.11.2). A wallet that proved who it is may be the attacker's own: only an
 * address that is registered for it is known to be its own.
 */
export async function needsConfirmation(configured: TenantConfiguration, { request }: Authorization): Promise<boolean> {
  if (request.isRegisteredRedirect === true) return false;
  return (await configured.issuance()).chainedAs?.confirmUnverifiedWallets !== false;
}

/** `reason` is for the operator. */
export type FailedLogin = Refused & { readonly reason: string };

/** Faults that may be over when the user tries again. */
const PASSING: ReadonlySet<AuthorizationServerFault> = new Set(['timeout', 'unreachable', 'busy', 'bad_status']);

/** What a failed call of the upstream provider means. @throws what is no such failure. */
export function refusedBy(error: unknown): FailedLogin {
  if (error instanceof AuthorizationServerError) {
    const detail = remoteDetailOf(error);
    const fault = detail === undefined ? error.fault : `${error.fault} (${detail})`;
    const reason = error.error === undefined ? fault : `${fault} ${nameOf(error.error)}`;
    return PASSING.has(error.fault)
      ? { error: 'temporarily_unavailable', description: 'the login cannot be reached at the moment', reason }
      : { error: 'server_error', description: 'the login failed', reason };
  }
  if (error instanceof ForeignTokenError) {
    return { error: 'server_error', description: 'the login failed', reason: `id_token ${error.reason}` };
  }
  throw error;
}

/**
 * The failure for a user whose browser may not be sent to the wallet unseen. Its page has a button that leads there with the error
 * (RFC 6749 section 4.1.2.1), so that the wallet learns of it.
 */
export function failureFor(configured: TenantConfiguration, authorization: Authorization, { error, description }: Refused): Failure {
  const { redirectUri = '' } = authorization.request;
  const url = responseTo(configured, authorization, { error, description });
  return new Failure(error === 'temporarily_unavailable' ? 'unavailable' : 'access_denied', {
    message: description,
    wayBack: { url, place: destinationOf(redirectUri) },
  });
}

/** A name that came from outside, fit for a log. */
export function nameOf(error: string): string {
  return /^[a-z_]{1,64}$/.test(error) ? error : 'unknown_error';
}

export const OFFER_IS_OVER: FailedLogin = {
  error: 'access_denied',
  description: 'the offer is over',
  reason: 'the offer ended during the login',
};
