import { type Authorization, isCurrent, moveOn, type UpstreamLeg } from '../../domain/oauth/authorization.ts';
import type { Identity } from '../../domain/oauth/grant.ts';
import { hashSecret, isSecret, makeHandle } from '../../domain/oauth/handle.ts';
import { errorForWallet, isResponseFrom, mergeClaims } from '../../domain/oauth/upstream.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { AuthorizationServers, type CodeExchange } from '../ports/authorization-servers.ts';
import { Log } from '../ports/log.ts';
import { Random } from '../ports/random.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { WORLD } from '../transactions/known.ts';
import { AuthorizationCodes } from './authorization-codes.ts';
import { type Consent, consentSubject } from './consents.ts';
import { assertServed } from './oauth-callers.ts';
import { authorizationOf } from './pushed-requests.ts';
import {
  callbackAddress,
  type FailedLogin,
  failureFor,
  nameOf,
  needsConfirmation,
  OFFER_IS_OVER,
  refusedBy,
  upstreamOf,
} from './upstream-logins.ts';
import { endWithout, responseTo } from './wallet-responses.ts';

/** What the browser brings from the upstream provider (RFC 6749 section 4.1.2, RFC 9207 section 2). */
export type UpstreamResponse = {
  readonly code: string | undefined;
  readonly state: string | undefined;
  readonly error: string | undefined;
  readonly iss: string | undefined;
  /** What the browser was given to keep, by the id of the authorization. */
  readonly browserSecrets: ReadonlyMap<string, string>;
};

/** Where the browser goes, to the wallet, or a page that asks the user whether it shall. */
export type FinishedLogin = { readonly location: string; readonly authorizationId: string } | Consent;

type Login = { readonly configured: TenantConfiguration; readonly authorization: Authorization; readonly leg: UpstreamLeg };

/** One sentence for everything that is not the answer to a login of this browser; nothing has changed then. */
const unknown = () => new Failure('invalid_request', 'this login is unknown, over, or of another browser');

/** The redirect address that the upstream provider knows: from its code to one of this service. */
export class FinishUpstreamLogin extends needs({
  ...WORLD,
  authorizationServers: AuthorizationServers,
  authorizationCodes: AuthorizationCodes,
  random: Random,
  log: Log,
}) {
  /**
   * @throws Failure `invalid_request` for a page, `not_found`; `unavailable` and `access_denied` for a login that failed
   *   where no browser may be sent to the wallet unseen.
   */
  async execute(tenantId: TenantId, response: UpstreamResponse): Promise<FinishedLogin> {
    const login = await this.#find(tenantId, response);
    const { configured, authorization, leg } = login;
    const outcome = await this.#judge(login, response);
    if (!('reason' in outcome)) return outcome;
    const { issuer } = leg;
    const { reason } = outcome;
    this.ports.log.warn('a login at the upstream provider failed', { tenantId, issuer, reason });
    const ended = await endWithout(this.ports, configured, outcome.authorization, outcome);
    if (ended === undefined) throw unknown();
    if (await needsConfirmation(configured, authorization)) throw failureFor(configured, authorization, outcome);
    return { location: ended, authorizationId: authorization.id };
  }

  /** The login that this browser started and has not finished. */
  async #find(tenantId: TenantId, { state = '', browserSecrets }: UpstreamResponse): Promise<Login> {
    const { configured, authorization } = await authorizationOf(this.ports, tenantId, state);
    await assertServed(configured, 'chained');
    if (!isCurrent(authorization, 'upstream', state, this.ports.clock.now())) throw unknown();
    const { upstream: leg, server } = authorization;
    if (leg === undefined || server !== 'chained') throw unknown();
    // RFC 9700 section 4.7: the one who comes back is who was sent
    if (!isSecret(browserSecrets.get(authorization.id) ?? '', leg.browserHash)) throw unknown();
    return { configured, authorization, leg };
  }

  /** @returns how the login ends, or why there is no code. */
  async #judge(login: Login, response: UpstreamResponse): Promise<FinishedLogin | Failed> {
    const { authorization, leg } = login;
    const metadata = await this.ports.authorizationServers.discover(leg.issuer, login.configured.tenantId).catch(refusedBy);
    if ('reason' in metadata) return { ...metadata, authorization };
    // RFC 9207 section 2.4: an answer of another server is none, be it a code or an error
    if (!isResponseFrom(metadata, response.iss)) throw unknown();
    if (response.error !== undefined) return { ...refusedWith(response.error), authorization };
    if (response.code === undefined) throw unknown();
    return this.#redeem(login, response.code);
  }

  /** From here on no second answer finds the login, whatever becomes of this one. */
  async #redeem({ configured, authorization, leg }: Login, code: string): Promise<FinishedLogin | Failed> {
    const { store, authorizationCodes, clock } = this.ports;
    const claimed = moveOn(authorization, { handles: {} });
    if (!(await store.commit(configured.tenantId, { authorization: claimed }, clock.now())).done) throw unknown();
    const identity = await this.#identify(configured, leg, code).catch(refusedBy);
    if ('reason' in identity) return { ...identity, authorization: claimed };
    if (await needsConfirmation(configured, claimed)) return this.#ask(configured, claimed, identity);
    const granted = await authorizationCodes.grant(configured, claimed, clock.now(), { identity });
    if (granted === undefined) return { ...OFFER_IS_OVER, authorization: claimed };
    const location = responseTo(configured, claimed, { code: granted });
    return { location, authorizationId: claimed.id };
  }

  /** Keeps who logged in until the user has said that the wallet is the right one; there is no code before. */
  async #ask(configured: TenantConfiguration, authorization: Authorization, identity: Identity): Promise<Consent> {
    const { store, random, clock } = this.ports;
    const secret = random.token(256);
    const asking = moveOn(authorization, { stage: 'confirming', handles: { confirmation: hashSecret(secret) }, identity });
    if (!(await store.commit(configured.tenantId, { authorization: asking }, clock.now())).done) throw unknown();
    return {
      ...(await consentSubject(configured, asking)),
      action: `${configured.issuerOf('chained')}/confirm`,
      fields: { confirmation: makeHandle(asking.id, secret) },
    };
  }

  async #identify(configured: TenantConfiguration, leg: UpstreamLeg, code: string): Promise<Identity | FailedLogin> {
    const { authorizationServers, clock } = this.ports;
    const { issuer, clientId, nonce, codeVerifier } = leg;
    const upstream = await upstreamOf(configured);
    if (upstream.issuer !== issuer || upstream.clientId !== clientId) return UPSTREAM_CHANGED;
    return completeUpstreamLogin(authorizationServers, {
      tenantId: configured.tenantId,
      issuer,
      clientId,
      clientSecret: upstream.clientSecret,
      code,
      codeVerifier,
      nonce,
      redirectUri: callbackAddress(configured),
      // A configuration of an earlier release says nothing.
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

/** RFC 6749 section 4.1.2.1; what the provider wrote beside the code is between us and the provider. */
function refusedWith(error: string): FailedLogin {
  const known = errorForWallet(error);
  const description = known === 'access_denied' ? 'the user was not logged in' : 'the login failed';
  return { error: known, description, reason: nameOf(error) };
}

/**
 * Turns the code of an upstream provider into who logged in: exchange, ID token, then the claims of both tokens and of the
 * userinfo endpoint, where a provider may have what the scopes ask for (OpenID Connect Core 1.0 section 5.4). The tokens themselves end here.
 * @param login `issuer` is the configured one; `nonce` went into the authorization request.
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
  const others = await authorizationServers.readOwnAccessToken(issuer, accessToken, { tenantId, now });
  const userinfo = asksUserinfo
    ? await authorizationServers.readUserinfo(issuer, { tenantId, clientId, subject, accessToken, now })
    : undefined;
  return { iss: issuer, sub: subject, token_claims: mergeClaims(others, userinfo, claims) };
}
