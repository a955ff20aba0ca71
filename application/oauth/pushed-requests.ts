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
import type { TenantConfiguration, TenantConfigurations } from '../tenant-configuration.ts';
import { assertServed } from './oauth-callers.ts';

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
  const beats = store.beats(tenantId);
  if (requestUri === undefined) {
    tenantConfigurations.ofWallet(await beats.head());
    throw new Failure('invalid_request', 'push the authorization request first (RFC 9126)');
  }
  const handle = handleOfRequestUri(requestUri);
  const id = readHandle(handle)?.id;
  const found = await beats.findAuthorization(id ?? '');
  const configured = tenantConfigurations.ofWallet(found?.head);
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
