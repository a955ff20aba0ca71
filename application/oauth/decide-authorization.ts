import { AUTHORIZATION_LIFETIME_SECONDS, type Authorization, moveOn } from '../../domain/oauth/authorization.ts';
import { parseChallenge } from '../../domain/oauth/challenge.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { WORLD } from '../transactions/known.ts';
import { AuthorizationCodes } from './authorization-codes.ts';
import { freshChallenge } from './challenges.ts';
import { type Consent, consentSubject } from './consents.ts';
import { bindBrowser, isBoundBrowser, type KeptByBrowser, type SentBrowser, sendToPage } from './page-visits.ts';
import { type BrowserRequest, findPushedRequest, visit } from './pushed-requests.ts';
import { DENIED, endWithout, responseTo } from './wallet-responses.ts';

/** Purpose of the token that the page carries, per request. */
export function decisionPurpose(authorizationId: string): string {
  return `decision ${authorizationId}`;
}

/** What the user is asked; the answer about an interactive authorization comes from the browser that was asked. */
export type ShownConsent = Consent & { readonly keep?: KeptByBrowser };

/** The built-in authorization endpoint (RFC 6749 section 4.1.1). A reload shows the same. */
export class ShowAuthorization extends needs({ ...WORLD, random: Random, settings: ServiceSettings }) {
  /**
   * @returns a page to show, or where the browser goes: to the customer's page of an interactive authorization of a wallet
   *   that proved who it is and comes back to an address that is registered for it. Of visits of an interactive authorization the last one counts.
   * @throws Failure `invalid_request`.
   */
  async execute(tenantId: TenantId, browser: BrowserRequest): Promise<ShownConsent | SentBrowser> {
    return visit(this.ports, tenantId, 'built-in', browser, async (configured, authorization, now) => {
      if (authorization.interaction !== undefined) return this.#interact(configured, authorization, browser, now);
      const isOpen = await this.#opens(tenantId, authorization);
      return isOpen ? this.#consent(configured, authorization, browser, now) : undefined;
    });
  }

  /**
   * Anybody can begin in the name of any wallet, or with a wallet of his own, and hand on the address; so the user hears where
   * the answer goes before doing anything for it.
   * @returns undefined when another step was first.
   */
  async #interact(
    configured: TenantConfiguration,
    authorization: Authorization,
    browser: BrowserRequest,
    now: Date,
  ): Promise<ShownConsent | SentBrowser | undefined> {
    if (authorization.request.isRegisteredRedirect === true) return sendToPage(this.ports, configured, authorization, now);
    const keep = await bindBrowser(this.ports, configured, authorization, now);
    if (keep === undefined) return undefined;
    return { ...(await this.#consent(configured, authorization, browser, now)), keep };
  }

  /** Remembers the first visit, which is all that the request URI is for. @returns false when another step was first. */
  async #opens(tenantId: TenantId, authorization: Authorization): Promise<boolean> {
    if (authorization.isOpened === true) return true;
    const opened = moveOn(authorization, { isOpened: true });
    const { store, clock } = this.ports;
    return (await store.commit(tenantId, { authorization: opened }, clock.now())).done;
  }

  async #consent(
    configured: TenantConfiguration,
    authorization: Authorization,
    { requestUri = '' }: BrowserRequest,
    now: Date,
  ): Promise<Consent> {
    const { issuer, tenantId } = configured;
    const purpose = decisionPurpose(authorization.id);
    return {
      ...(await consentSubject(configured, authorization)),
      action: `${issuer}/authorize`,
      fields: {
        client_id: authorization.request.clientId,
        request_uri: requestUri,
        decision_token: freshChallenge(this.ports, tenantId, purpose, now),
      },
    };
  }
}

export type Decision = BrowserRequest & {
  readonly decision: string | undefined;
  readonly decisionToken: string | undefined;
  /** Cookies of browsers that were asked about interactive authorizations, by the id of the authorization. */
  readonly browserSecrets: ReadonlyMap<string, string>;
};

/** Where the browser goes: to the wallet, or to the customer's page of an interactive authorization. */
export type Decided = { readonly location: string } | SentBrowser;

/** The user approves or denies on the page of the built-in server. */
export class DecideAuthorization extends needs({
  ...WORLD,
  authorizationCodes: AuthorizationCodes,
  random: Random,
  settings: ServiceSettings,
  log: Log,
}) {
  /** @throws Failure `invalid_request` for a page. */
  async execute(tenantId: TenantId, decision: Decision): Promise<Decided> {
    const { authorizationCodes, clock, settings } = this.ports;
    const now = clock.now();
    const found = await findPushedRequest(this.ports, tenantId, 'built-in', decision, now);
    const { configured, authorization } = found;
    const purpose = decisionPurpose(authorization.id);
    const token = decision.decisionToken ?? '';
    // A page that was shown is good as long as its authorization, which was found above.
    const lifetime = AUTHORIZATION_LIFETIME_SECONDS;
    if (parseChallenge(settings.nonceKeys, tenantId, purpose, now, token, lifetime) === undefined) {
      throw new Failure('invalid_request', 'this answer belongs to no page that was shown for the request');
    }
    const { interaction, request } = authorization;
    // The one who began knows a token; what is done by another site's form in the user's browser brings no cookie.
    if (interaction !== undefined && !isBoundBrowser(authorization, decision.browserSecrets)) throw over();
    if (request.redirectUri === undefined) throw over();
    if (decision.decision === 'deny') {
      const location = await endWithout(this.ports, configured, authorization, DENIED);
      if (location === undefined) throw over();
      return { location };
    }
    if (decision.decision !== 'approve') throw new Failure('invalid_request', 'the decision is missing');
    if (interaction !== undefined) {
      // An approval replaces no web step: the user still has to go there.
      const sent = await sendToPage(this.ports, configured, authorization, now);
      if (sent === undefined) throw over();
      return sent;
    }
    const code = await authorizationCodes.grant(configured, authorization, now);
    if (code === undefined) throw over();
    return { location: responseTo(configured, authorization, { code }) };
  }
}

function over(): Failure {
  return new Failure('invalid_request', 'the request was answered already, or its offer is over');
}
