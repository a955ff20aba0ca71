import { type Authorization, advance } from '../../domain/oauth/authorization.ts';
import { createHandle, hashSecret } from '../../domain/oauth/handle.ts';
import { upstreamAuthorizationUrl } from '../../domain/oauth/upstream.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { AuthorizationServerError, AuthorizationServers } from '../ports/authorization-servers.ts';
import { Log } from '../ports/log.ts';
import { Random } from '../ports/random.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { type BrowserCookie, cookieFor } from './page-visits.ts';
import { type BrowserRequest, visit } from './pushed-requests.ts';
import { callbackAddress, failureFor, failureOfError, needsConfirmation, upstreamOf } from './upstream-logins.ts';
import { endWithout } from './wallet-responses.ts';

export type StartedLogin = {
  /** Address of the upstream provider, or of the wallet. */
  readonly location: string;
  /** Cookie for the return of the browser; absent without a login. */
  readonly cookie?: BrowserCookie;
};

/** The authorization endpoint of the chained server: users log in at the upstream provider of the tenant. */
export class StartUpstreamLogin extends needs({
  ...TRANSACTION_PORTS,
  authorizationServers: AuthorizationServers,
  random: Random,
  log: Log,
}) {
  /**
   * May be called again until the login is finished; the last visit counts.
   * @throws Failure `invalid_request` for a page, `not_found`; `unavailable` and `access_denied` if the provider cannot
   *   be reached and the browser may not be redirected to the wallet without confirmation.
   */
  execute(tenantId: TenantId, browser: BrowserRequest): Promise<StartedLogin> {
    return visit(this.ports, tenantId, 'chained', browser, (tenant, authorization, now) => this.#start(tenant, authorization, now));
  }

  /** @returns undefined when a concurrent request advanced the authorization. */
  async #start(tenant: TenantConfiguration, authorization: Authorization, now: Date): Promise<StartedLogin | undefined> {
    const { store, random } = this.ports;
    const { tenantId } = tenant;
    const { issuer, clientId, scopes } = await upstreamOf(tenant);
    let endpoint: string;
    try {
      endpoint = await this.#endpointOf(issuer, tenantId);
    } catch (error) {
      const failure = failureOfError(error);
      this.ports.log.warn('no login at the upstream provider', { tenantId, issuer, reason: failure.reason });
      if (await needsConfirmation(tenant, authorization)) {
        // The authorization stays open, so that the user can retry when the provider is back.
        const visited = advance(authorization, { isOpened: true });
        if (authorization.isOpened !== true) await store.commit(tenantId, { authorization: visited }, now);
        throw failureFor(tenant, authorization, failure);
      }
      // The wallet and its request are known to be valid, so it gets the error.
      const location = await endWithout(this.ports, tenant, authorization, failure);
      return location === undefined ? undefined : { location };
    }
    const [nonce, codeVerifier] = [random.token(256), random.token(256)];
    const [stateSecret, browserSecret] = [random.token(256), random.token(256)];
    const nextAuthorization = advance(authorization, {
      stage: 'upstream',
      isOpened: true,
      handles: { ...authorization.handles, upstream: hashSecret(stateSecret) },
      upstream: { issuer, clientId, nonce, codeVerifier, browserHash: hashSecret(browserSecret) },
    });
    if (!(await store.commit(tenantId, { authorization: nextAuthorization }, now)).done) return undefined;
    const location = upstreamAuthorizationUrl(endpoint, {
      clientId,
      redirectUri: callbackAddress(tenant),
      scopes,
      state: createHandle(authorization.id, stateSecret),
      nonce,
      codeVerifier,
    });
    return { location, cookie: cookieFor(authorization, browserSecret, now) };
  }

  /** @throws AuthorizationServerError */
  async #endpointOf(issuer: string, tenantId: TenantId): Promise<string> {
    const { authorizationEndpoint } = await this.ports.authorizationServers.discover(issuer, tenantId);
    if (authorizationEndpoint !== undefined) return authorizationEndpoint;
    const message = `The metadata of ${issuer} have no authorization_endpoint.`;
    throw new AuthorizationServerError('bad_metadata', message);
  }
}
