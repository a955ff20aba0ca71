import {
  type Authorization,
  handleOfRequestUri,
  isCurrent,
  REQUEST_URI_LIFETIME_SECONDS,
  requestUriSince,
  wasOpened,
} from '../../domain/oauth/authorization.ts';
import type { AuthorizationServer } from '../../domain/oauth/grant.ts';
import { parseHandle } from '../../domain/oauth/handle.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Clock } from '../ports/clock.ts';
import type { Store } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import type { TenantConfigurations } from '../tenant-cache/tenant-configurations.ts';
import { assertServed, type OAuthCaller, replayed } from './oauth-callers.ts';

/** What a browser brings to an authorization endpoint. */
export type BrowserRequest = { readonly clientId: string | undefined; readonly requestUri: string | undefined };

type Finding = { readonly store: Store; readonly tenantConfigurations: TenantConfigurations };

/**
 * What a handle names, with its tenant. Whether the handle is the present one is for the caller to ask.
 * @throws Failure `not_found` for an unknown or suspended tenant.
 */
export async function authorizationOf(
  { store, tenantConfigurations }: Finding,
  tenantId: TenantId,
  handle: string,
): Promise<{ readonly configured: TenantConfiguration; readonly authorization: Authorization | undefined }> {
  const found = await store.read(tenantId).authorization(parseHandle(handle)?.id ?? '');
  return { configured: tenantConfigurations.ofWallet(found?.tenant), authorization: found?.authorization };
}

const unknown = () => new Failure('invalid_request', 'the request_uri is unknown, expired or used');

/**
 * Finds the pushed request that a browser comes with. Whatever is wrong ends on a page: where the browser could be
 * sent is not known to be safe before the request is found (RFC 9126 section 4).
 * @param opening whether this may be the first look at it, which is only good as long as `expires_in` said (RFC 9126
 *   section 2.2); users who were in time may look again until the authorization ends.
 * @throws Failure `invalid_request`.
 */
export async function findPushedRequest(
  ports: Finding,
  tenantId: TenantId,
  server: AuthorizationServer,
  { clientId, requestUri }: BrowserRequest,
  now: Date,
  opening = false,
): Promise<{ configured: TenantConfiguration; authorization: Authorization }> {
  if (requestUri === undefined) {
    await ports.tenantConfigurations.serving(tenantId);
    throw new Failure('invalid_request', 'push the authorization request first (RFC 9126)');
  }
  const handle = handleOfRequestUri(requestUri);
  const { configured, authorization } = await authorizationOf(ports, tenantId, handle);
  await assertServed(configured, server);
  if (!isCurrent(authorization, 'request_uri', handle, now)) throw unknown();
  const age = (now.getTime() - requestUriSince(authorization).getTime()) / 1000;
  const isFirst = opening && !wasOpened(authorization);
  if (isFirst && age > REQUEST_URI_LIFETIME_SECONDS) throw unknown();
  if (authorization.server !== server || authorization.request.clientId !== clientId) throw unknown();
  return { configured, authorization };
}

/** Visits of one address at the same time that are told apart. */
const MAX_ATTEMPTS = 3;

/**
 * Answers a browser that comes with a pushed request, maybe for the first time.
 * @param answer undefined when another step was first: then it is looked at anew.
 * @throws Failure `invalid_request`.
 */
export async function visit<Answer>(
  ports: Finding & { readonly clock: Clock },
  tenantId: TenantId,
  server: AuthorizationServer,
  browser: BrowserRequest,
  answer: (configured: TenantConfiguration, found: Authorization, now: Date) => Promise<Answer | undefined>,
): Promise<Answer> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const now = ports.clock.now();
    const found = await findPushedRequest(ports, tenantId, server, browser, now, true);
    const answered = await answer(found.configured, found.authorization, now);
    if (answered !== undefined) return answered;
  }
  throw new Failure('invalid_request', 'the request is open elsewhere');
}

/**
 * Writes a new authorization, and spends what the caller brought.
 * @throws Failure `not_found` when the tenant is gone or suspended, or for a value that was used before.
 */
export async function openAuthorization(
  store: Store,
  tenantId: TenantId,
  authorization: Authorization,
  { client, used }: Pick<OAuthCaller, 'client' | 'used'>,
  now: Date,
): Promise<void> {
  const change = { serving: true, opens: { authorization }, uses: used } as const;
  const opened = await store.commit(tenantId, change, now);
  if (opened.done) return;
  if (opened.part === 'uses') throw replayed(opened.kind, client);
  throw new Failure('not_found', 'unknown address');
}
