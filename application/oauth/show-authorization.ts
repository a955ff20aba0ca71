import { type Authorization, moveOn } from '../../domain/oauth/authorization.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { WORLD } from '../known.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { issuerIdentifier, ServiceSettings } from '../ports/settings.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';
import { freshChallenge } from './challenges.ts';
import { type Consent, consentSubject } from './consents.ts';
import { bindBrowser, type KeptByBrowser, type SentBrowser, sendToPage } from './page-visits.ts';
import { type BrowserRequest, findPushedRequest } from './pushed-requests.ts';

/** Visits of one address at the same time that are told apart. */
const MAX_ATTEMPTS = 3;

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
    const { clock } = this.ports;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const now = clock.now();
      const options = { opening: true, interactive: true };
      const found = await findPushedRequest(this.ports, tenantId, 'built-in', browser, now, options);
      const { configured, authorization } = found;
      if (authorization.interaction !== undefined) {
        const shown = await this.#interact(configured, authorization, browser, now);
        if (shown !== undefined) return shown;
      } else if (await this.#opens(tenantId, authorization))
        return this.#consent(configured, authorization, browser, now);
    }
    throw new Failure('invalid_request', 'the request is open elsewhere');
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
    const { tenantId } = configured;
    if (authorization.holder.authenticated === true) {
      return sendToPage(this.ports, tenantId, authorization, now);
    }
    const keep = await bindBrowser(this.ports, tenantId, authorization, now);
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
    const { tenantId } = configured;
    const purpose = decisionPurpose(authorization.id);
    return {
      ...(await consentSubject(configured, authorization)),
      action: `${issuerIdentifier(this.ports.settings, tenantId)}/authorize`,
      fields: {
        client_id: authorization.request.clientId,
        request_uri: requestUri,
        decision_token: freshChallenge(this.ports, tenantId, purpose, now),
      },
    };
  }
}
