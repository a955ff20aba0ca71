import { type Authorization, moveOn } from '../../domain/oauth/authorization.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { WORLD } from '../known.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';
import { freshChallenge } from './challenges.ts';
import { type Consent, consentSubject } from './consents.ts';
import { bindBrowser, type KeptByBrowser, type SentBrowser, sendToPage } from './page-visits.ts';
import { type BrowserRequest, visit } from './pushed-requests.ts';

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
   *   that proved who it is. Of visits of an interactive authorization the last one counts.
   * @throws Failure `invalid_request`.
   */
  async execute(tenantId: TenantId, browser: BrowserRequest): Promise<ShownConsent | SentBrowser> {
    return visit(this.ports, tenantId, 'built-in', browser, async (configured, authorization, now) => {
      if (authorization.interaction !== undefined)
        return this.#interact(configured, authorization, browser, now);
      const isOpen = await this.#opens(tenantId, authorization);
      return isOpen ? this.#consent(configured, authorization, browser, now) : undefined;
    });
  }

  /**
   * Anybody can begin in the name of any wallet and hand on the address, so the user hears where the answer goes before
   * doing anything for it.
   * @returns undefined when another step was first.
   */
  async #interact(
    configured: TenantConfiguration,
    authorization: Authorization,
    browser: BrowserRequest,
    now: Date,
  ): Promise<ShownConsent | SentBrowser | undefined> {
    if (authorization.holder.authenticated === true) {
      return sendToPage(this.ports, configured, authorization, now);
    }
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
