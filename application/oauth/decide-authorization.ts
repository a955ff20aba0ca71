import { AUTHORIZATION_LIFETIME_SECONDS, type Authorization, advance } from '../../domain/oauth/authorization.ts';
import { parseChallenge } from '../../domain/oauth/challenge.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { AuthorizationCodes } from './authorization-codes.ts';
import { issueChallenge } from './challenges.ts';
import { type Consent, consentSubject } from './consents.ts';
import { type BrowserCookie, bindBrowser, isBoundBrowser, type PageRedirect, sendToPage } from './page-visits.ts';
import { type BrowserRequest, findPushedRequest, visit } from './pushed-requests.ts';
import { DENIED, endWithout, responseTo } from './wallet-responses.ts';

/** Purpose of the token in the page, unique per request. */
export function decisionPurpose(authorizationId: string): string {
  return `decision ${authorizationId}`;
}

/** A consent page; for an interactive authorization with the cookie that binds the answer to the browser. */
export type ShownConsent = Consent & { readonly cookie?: BrowserCookie };

/** The built-in authorization endpoint (RFC 6749 section 4.1.1). A reload shows the same page. */
export class ShowAuthorization extends needs({ ...TRANSACTION_PORTS, random: Random, settings: ServiceSettings }) {
  /**
   * @returns a page to show, or a redirect to the tenant's web page: in an interactive authorization of an authenticated wallet
   *   with a registered redirect URI. In an interactive authorization the last visit counts.
   * @throws Failure `invalid_request`.
   */
  async execute(tenantId: TenantId, browser: BrowserRequest): Promise<ShownConsent | PageRedirect> {
    return visit(this.ports, tenantId, 'built-in', browser, async (tenant, authorization, now) => {
      if (authorization.interaction !== undefined) return this.#interact(tenant, authorization, browser, now);
      const isOpen = await this.#recordVisit(tenantId, authorization);
      return isOpen ? this.#consent(tenant, authorization, browser, now) : undefined;
    });
  }

  /**
   * An attacker can begin in the name of any wallet, or with a wallet of his own, and send the address to a victim; so the user is
   * told where the response goes before the web step.
   * @returns undefined when a concurrent request advanced the authorization.
   */
  async #interact(
    tenant: TenantConfiguration,
    authorization: Authorization,
    browser: BrowserRequest,
    now: Date,
  ): Promise<ShownConsent | PageRedirect | undefined> {
    if (authorization.request.isRegisteredRedirect === true) return sendToPage(this.ports, tenant, authorization, now);
    const cookie = await bindBrowser(this.ports, tenant, authorization, now);
    if (cookie === undefined) return undefined;
    return { ...(await this.#consent(tenant, authorization, browser, now)), cookie };
  }

  /**
   * Records the first visit, the only one that the request URI must be valid for.
   * @returns false when a concurrent request advanced the authorization.
   */
  async #recordVisit(tenantId: TenantId, authorization: Authorization): Promise<boolean> {
    if (authorization.isOpened === true) return true;
    const visited = advance(authorization, { isOpened: true });
    const { store, clock } = this.ports;
    return (await store.commit(tenantId, { authorization: visited }, clock.now())).done;
  }

  async #consent(
    tenant: TenantConfiguration,
    authorization: Authorization,
    { requestUri = '' }: BrowserRequest,
    now: Date,
  ): Promise<Consent> {
    const { issuer, tenantId } = tenant;
    const purpose = decisionPurpose(authorization.id);
    return {
      ...(await consentSubject(tenant, authorization)),
      action: `${issuer}/authorize`,
      fields: {
        client_id: authorization.request.clientId,
        request_uri: requestUri,
        decision_token: issueChallenge(this.ports, tenantId, purpose, now),
      },
    };
  }
}

export type Decision = BrowserRequest & {
  readonly decision: string | undefined;
  readonly decisionToken: string | undefined;
  /** Cookies of the browser by the id of the interactive authorization. */
  readonly browserSecrets: ReadonlyMap<string, string>;
};

/** A redirect to the wallet, or to the tenant's page of an interactive authorization. */
export type Decided = { readonly location: string } | PageRedirect;

/** The user approves or denies on the page of the built-in server. */
export class DecideAuthorization extends needs({
  ...TRANSACTION_PORTS,
  authorizationCodes: AuthorizationCodes,
  random: Random,
  settings: ServiceSettings,
  log: Log,
}) {
  /** @throws Failure `invalid_request` for a page. */
  async execute(tenantId: TenantId, decision: Decision): Promise<Decided> {
    const { authorizationCodes, clock, settings } = this.ports;
    const now = clock.now();
    const pushed = await findPushedRequest(this.ports, tenantId, 'built-in', decision, now);
    const { tenant, authorization } = pushed;
    const purpose = decisionPurpose(authorization.id);
    const token = decision.decisionToken ?? '';
    // The token is valid as long as its authorization, which was found above.
    const lifetime = AUTHORIZATION_LIFETIME_SECONDS;
    if (parseChallenge(settings.nonceKeys, tenantId, purpose, now, token, lifetime) === undefined) {
      throw new Failure('invalid_request', 'this answer does not belong to a page of the request');
    }
    const { interaction, request } = authorization;
    // An attacker who began the authorization knows a token, but a cross-site form in the user's browser sends no cookie.
    if (interaction !== undefined && !isBoundBrowser(authorization, decision.browserSecrets)) throw createRequestOverError();
    if (request.redirectUri === undefined) throw createRequestOverError();
    if (decision.decision === 'deny') {
      const location = await endWithout(this.ports, tenant, authorization, DENIED);
      if (location === undefined) throw createRequestOverError();
      return { location };
    }
    if (decision.decision !== 'approve') throw new Failure('invalid_request', 'the decision is missing');
    if (interaction !== undefined) {
      // An approval replaces no web step: the user still has to complete it.
      const redirect = await sendToPage(this.ports, tenant, authorization, now);
      if (redirect === undefined) throw createRequestOverError();
      return redirect;
    }
    const code = await authorizationCodes.grant(tenant, authorization, now);
    if (code === undefined) throw createRequestOverError();
    return { location: responseTo(tenant, authorization, { code }) };
  }
}

function createRequestOverError(): Failure {
  return new Failure('invalid_request', 'the request was already answered, or its offer has ended');
}
