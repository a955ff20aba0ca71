import {
  type Authorization,
  handleOfRequestUri,
  isCurrentHandle,
  REQUEST_URI_LIFETIME_SECONDS,
  requestUriIssuedAt,
  wasOpenedInBrowser,
} from '../../domain/oauth/authorization.ts';
import type { AuthorizationServer } from '../../domain/oauth/grant.ts';
import { parseHandle } from '../../domain/oauth/handle.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Clock } from '../ports/clock.ts';
import type { Store } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import type { TenantConfigurations } from '../tenant-cache/tenant-configurations.ts';
import { assertServed, type OAuthCaller, replayError } from './oauth-callers.ts';

/** Parameters of a browser's request to an authorization endpoint. */
export type BrowserRequest = { readonly clientId: string | undefined; readonly requestUri: string | undefined };

type LookUpPorts = { readonly store: Store; readonly tenantConfigurations: TenantConfigurations };

/**
 * The authorization of a handle, with its tenant. The caller checks if the handle is current.
 * @throws Failure `not_found` for an unknown or suspended tenant.
 */
export async function authorizationOf(
  { store, tenantConfigurations }: LookUpPorts,
  tenantId: TenantId,
  handle: string,
): Promise<{ readonly tenant: TenantConfiguration; readonly authorization: Authorization | undefined }> {
  const match = await store.read(tenantId).authorization(parseHandle(handle)?.id ?? '');
  return { tenant: tenantConfigurations.admitWallet(match?.tenant), authorization: match?.authorization };
}

const createUnknownRequestError = () => new Failure('invalid_request', 'the request_uri is unknown, expired or used');

/**
 * Finds the pushed request of a browser. Every problem is shown on a page: before the request is found, no redirect target is known
 * to be safe (RFC 9126 section 4).
 * @param isVisit true when the browser opens the address; the first visit must happen within `expires_in` (RFC 9126 section 2.2). Later
 *   visits are allowed until the authorization ends.
 * @throws Failure `invalid_request`.
 */
export async function findPushedRequest(
  ports: LookUpPorts,
  tenantId: TenantId,
  server: AuthorizationServer,
  { clientId, requestUri }: BrowserRequest,
  now: Date,
  isVisit = false,
): Promise<{ tenant: TenantConfiguration; authorization: Authorization }> {
  if (requestUri === undefined) {
    await ports.tenantConfigurations.readServing(tenantId);
    throw new Failure('invalid_request', 'push the authorization request first (RFC 9126)');
  }
  const handle = handleOfRequestUri(requestUri);
  const { tenant, authorization } = await authorizationOf(ports, tenantId, handle);
  await assertServed(tenant, server);
  if (!isCurrentHandle(authorization, 'request_uri', handle, now)) throw createUnknownRequestError();
  const age = (now.getTime() - requestUriIssuedAt(authorization).getTime()) / 1000;
  const isFirst = isVisit && !wasOpenedInBrowser(authorization);
  if (isFirst && age > REQUEST_URI_LIFETIME_SECONDS) throw createUnknownRequestError();
  if (authorization.server !== server || authorization.request.clientId !== clientId) throw createUnknownRequestError();
  return { tenant, authorization };
}

/** Limit of retries for concurrent visits of one address. */
const MAX_ATTEMPTS = 3;

/**
 * Answers a browser with a pushed request, possibly on its first visit.
 * @param answer returns undefined when a concurrent request advanced the authorization, which causes a retry.
 * @throws Failure `invalid_request`.
 */
export async function visit<Answer>(
  ports: LookUpPorts & { readonly clock: Clock },
  tenantId: TenantId,
  server: AuthorizationServer,
  browser: BrowserRequest,
  answer: (tenant: TenantConfiguration, authorization: Authorization, now: Date) => Promise<Answer | undefined>,
): Promise<Answer> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const now = ports.clock.now();
    const pushed = await findPushedRequest(ports, tenantId, server, browser, now, true);
    const reply = await answer(pushed.tenant, pushed.authorization, now);
    if (reply !== undefined) return reply;
  }
  throw new Failure('invalid_request', 'the request is opened concurrently');
}

/**
 * Stores a new authorization, and consumes the values of the caller.
 * @throws Failure `not_found` when the tenant was removed or suspended; the error of `replayError` if a value was already consumed.
 */
export async function openAuthorization(
  store: Store,
  tenantId: TenantId,
  authorization: Authorization,
  { client, used }: Pick<OAuthCaller, 'client' | 'used'>,
  now: Date,
): Promise<void> {
  const change = { serving: true, opens: { authorization }, uses: used } as const;
  const committed = await store.commit(tenantId, change, now);
  if (committed.done) return;
  if (committed.part === 'uses') throw replayError(committed.kind, client);
  throw new Failure('not_found', 'unknown address');
}
