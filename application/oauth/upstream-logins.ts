import type { ChainedAsConfig } from '../../domain/issuance/issuance-configuration.ts';
import { type Authorization, moveOn } from '../../domain/oauth/authorization.ts';
import { authorizationResponse } from '../../domain/oauth/authorization-response.ts';
import { ForeignTokenError } from '../../domain/oauth/foreign-token.ts';
import { issuerOf } from '../../domain/oauth/servers.ts';
import type { WalletError } from '../../domain/oauth/upstream.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { AuthorizationServerError, type AuthorizationServerFault } from '../ports/authorization-servers.ts';
import type { Clock } from '../ports/clock.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';

/** Issuer of the chained authorization server; its endpoints stand below it. */
export function chainedIssuer(settings: ServiceSettings, tenantId: TenantId): string {
  return issuerOf('chained', issuerIdentifier(settings, tenantId));
}

/** Where the upstream provider sends the browser back to. */
export function callbackAddress(settings: ServiceSettings, tenantId: TenantId): string {
  return `${chainedIssuer(settings, tenantId)}/callback`;
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
 * provider would see nothing of it (RFC 9700 section 4.11.2).
 */
export async function needsConfirmation(
  configured: TenantConfiguration,
  { holder }: Authorization,
): Promise<boolean> {
  if (holder.authenticated === true) return false;
  return (await configured.issuance()).chainedAs?.confirmUnverifiedWallets !== false;
}

/** What the wallet is told; `reason` is for the operator. */
export type Refused = {
  readonly error: WalletError;
  readonly description: string;
  readonly reason: string;
};

/** Faults that may be over when the user tries again. */
const PASSING: ReadonlySet<AuthorizationServerFault> = new Set([
  'timeout',
  'unreachable',
  'busy',
  'bad_status',
]);

/** What a failed call of the upstream provider means. @throws what is no such failure. */
export function refusedBy(error: unknown): Refused {
  if (error instanceof AuthorizationServerError) {
    const reason = error.error === undefined ? error.fault : `${error.fault} ${nameOf(error.error)}`;
    return PASSING.has(error.fault)
      ? { error: 'temporarily_unavailable', description: 'the login cannot be reached at the moment', reason }
      : { error: 'server_error', description: 'the login failed', reason };
  }
  if (error instanceof ForeignTokenError) {
    return { error: 'server_error', description: 'the login failed', reason: `id_token ${error.reason}` };
  }
  throw error;
}

/** What the user is told in place of the wallet, when no browser may be sent there yet. */
export function failureFor({ error, description }: Refused): Failure {
  return new Failure(error === 'temporarily_unavailable' ? 'unavailable' : 'access_denied', description);
}

/** A name that came from outside, fit for a log. */
export function nameOf(error: string): string {
  return /^[a-z_]{1,64}$/.test(error) ? error : 'unknown_error';
}

/** The address that ends an authorization at the wallet (RFC 6749 section 4.1.2, RFC 9207 section 2). */
export function responseTo(
  settings: ServiceSettings,
  tenantId: TenantId,
  { request: { redirectUri, state } }: Authorization,
  response: { readonly code: string } | { readonly error: string; readonly description: string },
): string {
  if (redirectUri === undefined) throw new Error('a chained authorization without a redirect address');
  return authorizationResponse(redirectUri, {
    issuer: chainedIssuer(settings, tenantId),
    state,
    ...response,
  });
}

export const OFFER_IS_OVER: Refused = {
  error: 'access_denied',
  description: 'the offer is over',
  reason: 'the offer ended during the login',
};

/** Ends an authorization without a code. @returns undefined when another step was first. */
export async function endWithout(
  {
    store,
    settings,
    clock,
  }: { readonly store: Store; readonly settings: ServiceSettings; readonly clock: Clock },
  tenantId: TenantId,
  authorization: Authorization,
  { error, description }: Refused,
): Promise<string | undefined> {
  const done = moveOn(authorization, { stage: 'done', handles: {} });
  if (!(await store.commit(tenantId, { authorization: done }, clock.now())).done) return undefined;
  return responseTo(settings, tenantId, authorization, { error, description });
}
