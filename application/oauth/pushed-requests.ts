import {
  type Authorization,
  handleOfRequestUri,
  isCurrent,
  REQUEST_URI_LIFETIME_SECONDS,
  requestUriSince,
  wasOpened,
} from '../../domain/oauth/authorization.ts';
import type { AuthorizationServer } from '../../domain/oauth/grant.ts';
import { readHandle } from '../../domain/oauth/handle.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Store } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';
import type { TenantConfigurations } from '../tenant-configurations.ts';
import { assertServed, type OAuthCaller, replayed } from './oauth-callers.ts';

/** What a browser brings to an authorization endpoint. */
export type BrowserRequest = {
  readonly clientId: string | undefined;
  readonly requestUri: string | undefined;
};

const unknown = () => new Failure('invalid_request', 'the request_uri is unknown, expired or used');

/**
 * Finds the pushed request that a browser comes with. Whatever is wrong ends on a page: where the browser could be
 * sent is not known to be safe before the request is found (RFC 9126 section 4).
 * @param options `opening`: the first look at it is only good as long as `expires_in` said (RFC 9126 section 2.2); users
 *   who were in time may look again until the authorization ends.
 *   `interactive`: also the web step of an interactive authorization, which no approval may replace.
 * @throws Failure `invalid_request`.
 */
export async function findPushedRequest(
  ports: { readonly store: Store; readonly tenantConfigurations: TenantConfigurations },
  tenantId: TenantId,
  server: AuthorizationServer,
  { clientId, requestUri }: BrowserRequest,
  now: Date,
  options: { readonly opening: boolean; readonly interactive?: boolean },
): Promise<{ configured: TenantConfiguration; authorization: Authorization }> {
  const { store, tenantConfigurations } = ports;
  if (requestUri === undefined) {
    tenantConfigurations.ofWallet(await store.read(tenantId).state());
    throw new Failure('invalid_request', 'push the authorization request first (RFC 9126)');
  }
  const handle = handleOfRequestUri(requestUri);
  const id = readHandle(handle)?.id;
  const found = await store.read(tenantId).authorization(id ?? '');
  const configured = tenantConfigurations.ofWallet(found?.tenant);
  await assertServed(configured, server);
  const authorization = found?.authorization;
  if (!isCurrent(authorization, 'request_uri', handle, now)) throw unknown();
  if (authorization.interaction !== undefined && options.interactive !== true) throw unknown();
  const age = (now.getTime() - requestUriSince(authorization).getTime()) / 1000;
  const isFirst = options.opening && !wasOpened(authorization);
  if (isFirst && age > REQUEST_URI_LIFETIME_SECONDS) throw unknown();
  if (authorization.server !== server || authorization.request.clientId !== clientId) throw unknown();
  return { configured, authorization };
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
