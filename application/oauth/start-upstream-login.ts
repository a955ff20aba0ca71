import { type Authorization, moveOn } from '../../domain/oauth/authorization.ts';
import { hashSecret, makeHandle } from '../../domain/oauth/handle.ts';
import { upstreamAuthorizationUrl } from '../../domain/oauth/upstream.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { AuthorizationServerError, AuthorizationServers } from '../ports/authorization-servers.ts';
import { Log } from '../ports/log.ts';
import { Random } from '../ports/random.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { WORLD } from '../transactions/known.ts';
import { type KeptByBrowser, keepFor } from './page-visits.ts';
import { type BrowserRequest, visit } from './pushed-requests.ts';
import { callbackAddress, failureFor, needsConfirmation, refusedBy, upstreamOf } from './upstream-logins.ts';
import { endWithout } from './wallet-responses.ts';

export type StartedLogin = {
  /** Where the browser goes: to the upstream provider, or back to the wallet. */
  readonly location: string;
  /** What the browser has to keep until it comes back; absent when nobody logs in. */
  readonly keep?: KeptByBrowser;
};

/** The authorization endpoint of the chained server: users log in at the upstream provider of the tenant. */
export class StartUpstreamLogin extends needs({ ...WORLD, authorizationServers: AuthorizationServers, random: Random, log: Log }) {
  /**
   * May be called again until the login is finished; the last visit counts.
   * @throws Failure `invalid_request` for a page, `not_found`; `unavailable` and `access_denied` where the provider cannot
   *   be asked and no browser may be sent to the wallet unseen.
   */
  execute(tenantId: TenantId, browser: BrowserRequest): Promise<StartedLogin> {
    return visit(this.ports, tenantId, 'chained', browser, (configured, authorization, now) => this.#start(configured, authorization, now));
  }

  /** @returns undefined when another visit was first. */
  async #start(configured: TenantConfiguration, authorization: Authorization, now: Date): Promise<StartedLogin | undefined> {
    const { store, random } = this.ports;
    const { tenantId } = configured;
    const { issuer, clientId, scopes } = await upstreamOf(configured);
    let endpoint: string;
    try {
      endpoint = await this.#endpointOf(issuer, tenantId);
    } catch (error) {
      const refused = refusedBy(error);
      this.ports.log.warn('no login at the upstream provider', { tenantId, issuer, reason: refused.reason });
      if (await needsConfirmation(configured, authorization)) {
        // Nothing ends: who comes again when the provider is back is in time.
        const opened = moveOn(authorization, { isOpened: true });
        if (authorization.isOpened !== true) await store.commit(tenantId, { authorization: opened }, now);
        throw failureFor(configured, authorization, refused);
      }
      // The wallet is known and its request is good, so it may hear of it.
      const location = await endWithout(this.ports, configured, authorization, refused);
      return location === undefined ? undefined : { location };
    }
    const [nonce, codeVerifier] = [random.token(256), random.token(256)];
    const [stateSecret, browserSecret] = [random.token(256), random.token(256)];
    const next = moveOn(authorization, {
      stage: 'upstream',
      isOpened: true,
      handles: { ...authorization.handles, upstream: hashSecret(stateSecret) },
      upstream: { issuer, clientId, nonce, codeVerifier, browserHash: hashSecret(browserSecret) },
    });
    if (!(await store.commit(tenantId, { authorization: next }, now)).done) return undefined;
    const location = upstreamAuthorizationUrl(endpoint, {
      clientId,
      redirectUri: callbackAddress(configured),
      scopes,
      state: makeHandle(authorization.id, stateSecret),
      nonce,
      codeVerifier,
    });
    return { location, keep: keepFor(authorization, browserSecret, now) };
  }

  /** @throws AuthorizationServerError */
  async #endpointOf(issuer: string, tenantId: TenantId): Promise<string> {
    const { authorizationEndpoint } = await this.ports.authorizationServers.discover(issuer, tenantId);
    if (authorizationEndpoint !== undefined) return authorizationEndpoint;
    const message = `The metadata of ${issuer} name no authorization_endpoint.`;
    throw new AuthorizationServerError('bad_metadata', message);
  }
}
