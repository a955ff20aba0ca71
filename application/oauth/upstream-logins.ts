import type { ChainedAsConfig } from '../../domain/issuance/issuance-configuration.ts';
import type { Authorization } from '../../domain/oauth/authorization.ts';
import { redirectDestination } from '../../domain/oauth/authorization-response.ts';
import { ForeignTokenError } from '../../domain/oauth/foreign-token.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { AuthorizationServerError, type AuthorizationServerFault } from '../ports/authorization-servers.ts';
import { remoteDetailOf } from '../ports/remote.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { type ErrorResponse, responseTo } from './wallet-responses.ts';

/** Redirect URI at the upstream provider. */
export function callbackAddress(tenant: TenantConfiguration): string {
  return `${tenant.issuerOf('chained')}/callback`;
}

/** The provider where users of a tenant with a chained server log in. */
export async function upstreamOf(tenant: TenantConfiguration): Promise<ChainedAsConfig['upstream']> {
  const { chainedAs } = await tenant.issuance();
  if (chainedAs === null || chainedAs === undefined) throw new Error('a tenant without a chained server');
  return chainedAs.upstream;
}

/**
 * True if the user has to confirm the wallet before the browser is redirected to it. An attacker can push a request in the name of any
 * client with any redirect URI, and a user with a session at the upstream provider would not notice (RFC 9700 section 4.11.2).
 * An authenticated wallet may be the attacker's own: only a registered redirect URI is known to belong to the wallet.
 */
export async function needsConfirmation(tenant: TenantConfiguration, { request }: Authorization): Promise<boolean> {
  if (request.isRegisteredRedirect === true) return false;
  return (await tenant.issuance()).chainedAs?.confirmUnverifiedWallets !== false;
}

/** A failed login; `reason` is for the operator. */
export type FailedLogin = ErrorResponse & { readonly reason: string };

/** Faults after which a retry by the user may succeed. */
const TRANSIENT_FAULTS: ReadonlySet<AuthorizationServerFault> = new Set(['timeout', 'unreachable', 'busy', 'bad_status']);

/** Maps a failed call of the upstream provider. @throws any other error. */
export function failureOfError(error: unknown): FailedLogin {
  if (error instanceof AuthorizationServerError) {
    const detail = remoteDetailOf(error);
    const fault = detail === undefined ? error.fault : `${error.fault} (${detail})`;
    const reason = error.error === undefined ? fault : `${fault} ${nameOf(error.error)}`;
    return TRANSIENT_FAULTS.has(error.fault)
      ? { error: 'temporarily_unavailable', description: 'the login is unavailable at present', reason }
      : { error: 'server_error', description: 'the login failed', reason };
  }
  if (error instanceof ForeignTokenError) {
    return { error: 'server_error', description: 'the login failed', reason: `id_token ${error.reason}` };
  }
  throw error;
}

/**
 * The failure for a user whose browser may not be redirected without confirmation. Its page has a button that leads to the wallet
 * with the error (RFC 6749 section 4.1.2.1), so that the wallet learns of it.
 */
export function failureFor(tenant: TenantConfiguration, authorization: Authorization, { error, description }: ErrorResponse): Failure {
  const { redirectUri = '' } = authorization.request;
  const url = responseTo(tenant, authorization, { error, description });
  return new Failure(error === 'temporarily_unavailable' ? 'unavailable' : 'access_denied', {
    message: description,
    wayBack: { url, place: redirectDestination(redirectUri) },
  });
}

/** An error code of a third party, safe for the log. */
export function nameOf(error: string): string {
  return /^[a-z_]{1,64}$/.test(error) ? error : 'unknown_error';
}

export const OFFER_IS_OVER: FailedLogin = {
  error: 'access_denied',
  description: 'the offer has ended',
  reason: 'the offer ended during the login',
};
