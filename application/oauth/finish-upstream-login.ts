import { type Authorization, advance, isCurrentHandle, type UpstreamLeg } from '../../domain/oauth/authorization.ts';
import type { Identity } from '../../domain/oauth/grant.ts';
import { createHandle, hashSecret, isSecret } from '../../domain/oauth/handle.ts';
import { errorForWallet, isResponseFrom, mergeClaims } from '../../domain/oauth/upstream.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { AuthorizationServers, type CodeExchange } from '../ports/authorization-servers.ts';
import { Log } from '../ports/log.ts';
import { Random } from '../ports/random.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { AuthorizationCodes } from './authorization-codes.ts';
import { type Consent, consentSubject } from './consents.ts';
import { assertServed } from './oauth-callers.ts';
import { authorizationOf } from './pushed-requests.ts';
import {
  callbackAddress,
  type FailedLogin,
  failureFor,
  failureOfError,
  nameOf,
  needsConfirmation,
  OFFER_IS_OVER,
  upstreamOf,
} from './upstream-logins.ts';
import { endWithout, responseTo } from './wallet-responses.ts';

/** Parameters of the redirect from the upstream provider (RFC 6749 section 4.1.2, RFC 9207 section 2). */
export type UpstreamResponse = {
  readonly code: string | undefined;
  readonly state: string | undefined;
  readonly error: string | undefined;
  readonly iss: string | undefined;
  /** Cookies of the browser by the id of the authorization. */
  readonly browserSecrets: ReadonlyMap<string, string>;
};

/** A redirect to the wallet, or a page that asks the user to confirm the wallet. */
export type FinishedLogin = { readonly location: string; readonly authorizationId: string } | Consent;

type Login = { readonly tenant: TenantConfiguration; readonly authorization: Authorization; readonly leg: UpstreamLeg };

/** The same error for every response that does not belong to a login of this browser; nothing has changed then. */
const createUnknownLoginError = () => new Failure('invalid_request', 'this login is unknown, expired, or belongs to another browser');

/** The redirect URI at the upstream provider: exchanges its code for one of this service. */
export class FinishUpstreamLogin extends needs({
  ...TRANSACTION_PORTS,
  authorizationServers: AuthorizationServers,
  authorizationCodes: AuthorizationCodes,
  random: Random,
  log: Log,
}) {
  /**
   * @throws Failure `invalid_request` for a page, `not_found`; `unavailable` and `access_denied` for a failed login
   *   if the browser may not be redirected to the wallet without confirmation.
   */
  async execute(tenantId: TenantId, response: UpstreamResponse): Promise<FinishedLogin> {
    const login = await this.#find(tenantId, response);
    const { tenant, authorization, leg } = login;
    const outcome = await this.#complete(login, response);
    if (!('reason' in outcome)) return outcome;
    const { issuer } = leg;
    const { reason } = outcome;
    this.ports.log.warn('a login at the upstream provider failed', { tenantId, issuer, reason });
    const redirectTarget = await endWithout(this.ports, tenant, outcome.authorization, outcome);
    if (redirectTarget === undefined) throw createUnknownLoginError();
    if (await needsConfirmation(tenant, authorization)) throw failureFor(tenant, authorization, outcome);
    return { location: redirectTarget, authorizationId: authorization.id };
  }

  /** The login that this browser started and has not finished. */
  async #find(tenantId: TenantId, { state = '', browserSecrets }: UpstreamResponse): Promise<Login> {
    const { tenant, authorization } = await authorizationOf(this.ports, tenantId, state);
    await assertServed(tenant, 'chained');
    if (!isCurrentHandle(authorization, 'upstream', state, this.ports.clock.now())) throw createUnknownLoginError();
    const { upstream: leg, server } = authorization;
    if (leg === undefined || server !== 'chained') throw createUnknownLoginError();
    // RFC 9700 section 4.7: the response must come from the browser that started the login
    if (!isSecret(browserSecrets.get(authorization.id) ?? '', leg.browserHash)) throw createUnknownLoginError();
    return { tenant, authorization, leg };
  }

  /** @returns the result of the login, or the reason for which there is no code. */
  async #complete(login: Login, response: UpstreamResponse): Promise<FinishedLogin | Failed> {
    const { authorization, leg } = login;
    const metadata = await this.ports.authorizationServers.discover(leg.issuer, login.tenant.tenantId).catch(failureOfError);
    if ('reason' in metadata) return { ...metadata, authorization };
    // RFC 9207 section 2.4: a response of another server is ignored, be it a code or an error
    if (!isResponseFrom(metadata, response.iss)) throw createUnknownLoginError();
    if (response.error !== undefined) return { ...failedLogin(response.error), authorization };
    if (response.code === undefined) throw createUnknownLoginError();
    return this.#redeem(login, response.code);
  }

  /** Invalidates the handle first, so that a second response never finds the login. */
  async #redeem({ tenant, authorization, leg }: Login, code: string): Promise<FinishedLogin | Failed> {
    const { store, authorizationCodes, clock } = this.ports;
    const claimed = advance(authorization, { handles: {} });
    if (!(await store.commit(tenant.tenantId, { authorization: claimed }, clock.now())).done) throw createUnknownLoginError();
    const identity = await this.#identify(tenant, leg, code).catch(failureOfError);
    if ('reason' in identity) return { ...identity, authorization: claimed };
    if (await needsConfirmation(tenant, claimed)) return this.#askConfirmation(tenant, claimed, identity);
    const grantedCode = await authorizationCodes.grant(tenant, claimed, clock.now(), { identity });
    if (grantedCode === undefined) return { ...OFFER_IS_OVER, authorization: claimed };
    const location = responseTo(tenant, claimed, { code: grantedCode });
    return { location, authorizationId: claimed.id };
  }

  /** Stores the identity until the user has confirmed the wallet; a code is issued only then. */
  async #askConfirmation(tenant: TenantConfiguration, authorization: Authorization, identity: Identity): Promise<Consent> {
    const { store, random, clock } = this.ports;
    const secret = random.token(256);
    const confirming = advance(authorization, { stage: 'confirming', handles: { confirmation: hashSecret(secret) }, identity });
    if (!(await store.commit(tenant.tenantId, { authorization: confirming }, clock.now())).done) throw createUnknownLoginError();
    return {
      ...(await consentSubject(tenant, confirming)),
      action: `${tenant.issuerOf('chained')}/confirm`,
      fields: { confirmation: createHandle(confirming.id, secret) },
    };
  }

  async #identify(tenant: TenantConfiguration, leg: UpstreamLeg, code: string): Promise<Identity | FailedLogin> {
    const { authorizationServers, clock } = this.ports;
    const { issuer, clientId, nonce, codeVerifier } = leg;
    const upstream = await upstreamOf(tenant);
    if (upstream.issuer !== issuer || upstream.clientId !== clientId) return UPSTREAM_CHANGED;
    return completeUpstreamLogin(authorizationServers, {
      tenantId: tenant.tenantId,
      issuer,
      clientId,
      clientSecret: upstream.clientSecret,
      code,
      codeVerifier,
      nonce,
      redirectUri: callbackAddress(tenant),
      // Configurations of earlier versions lack the setting.
      asksUserinfo: upstream.userinfo !== false,
      now: clock.now(),
    });
  }
}

type Failed = FailedLogin & { readonly authorization: Authorization };

const UPSTREAM_CHANGED: FailedLogin = {
  error: 'server_error',
  description: 'the login failed',
  reason: 'another upstream provider was configured during the login',
};

/** RFC 6749 section 4.1.2.1. The `error_description` of the provider is not passed on. */
function failedLogin(error: string): FailedLogin {
  const walletError = errorForWallet(error);
  const description = walletError === 'access_denied' ? 'the user was not logged in' : 'the login failed';
  return { error: walletError, description, reason: nameOf(error) };
}

/**
 * Exchanges the code of an upstream provider for the identity of the user: from the ID token, the access token and the userinfo
 * endpoint, which may have the claims of the scopes (OpenID Connect Core 1.0 section 5.4). The tokens are not kept.
 * @param login `issuer` is the configured one; `nonce` was sent in the authorization request.
 * @throws AuthorizationServerError, ForeignTokenError
 */
export async function completeUpstreamLogin(
  authorizationServers: AuthorizationServers,
  login: CodeExchange & { readonly issuer: string; readonly nonce: string; readonly asksUserinfo: boolean; readonly now: Date },
): Promise<Identity> {
  const { tenantId, issuer, clientId, nonce, asksUserinfo, now } = login;
  const { idToken, accessToken } = await authorizationServers.exchangeCode(issuer, login);
  const claims = await authorizationServers.verifyIdToken(issuer, idToken, { tenantId, clientId, nonce, accessToken, now });
  const subject = String(claims['sub']);
  if (accessToken === undefined) return { iss: issuer, sub: subject, token_claims: claims };
  const accessTokenClaims = await authorizationServers.readReceivedAccessToken(issuer, accessToken, { tenantId, now });
  const userinfo = asksUserinfo
    ? await authorizationServers.readUserinfo(issuer, { tenantId, clientId, subject, accessToken, now })
    : undefined;
  return { iss: issuer, sub: subject, token_claims: mergeClaims(accessTokenClaims, userinfo, claims) };
}
