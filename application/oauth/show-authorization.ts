import { makeChallenge } from '../../domain/oauth/challenge.ts';
import { pageOf } from '../../domain/oauth/interaction.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import { interactionEndpoint } from '../steps/interaction-steps.ts';
import { type BrowserRequest, findPushedRequest } from '../steps/pushed-requests.ts';
import type { TenantViews } from '../steps/tenant-views.ts';

type Ports = {
  readonly store: Store;
  readonly tenantViews: TenantViews;
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: ServiceSettings;
};

/** What the approval page shows and sends back. */
export type Consent = {
  readonly issuerName: string;
  readonly credentials: readonly string[];
  readonly clientId: string;
  readonly requestUri: string;
  /** Proves to the answer that this page was shown a few minutes ago. */
  readonly decision: string;
  /** Address that the answer goes to. */
  readonly action: string;
};

/** Purpose of the token that the page carries, per request. */
export function decisionPurpose(authorizationId: string): string {
  return `decision ${authorizationId}`;
}

/** The built-in authorization endpoint (RFC 6749 section 4.1.1). Looking changes nothing; a reload shows the same. */
export class ShowAuthorization {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * @returns a page to show, or where the browser goes: to the customer's page of an interactive authorization.
   * @throws Failure `invalid_request`.
   */
  async execute(
    tenantId: TenantId,
    browser: BrowserRequest,
  ): Promise<Consent | { readonly location: string }> {
    const { clock, random, settings } = this.#ports;
    const now = clock.now();
    const { view, authorization } = await findPushedRequest(this.#ports, tenantId, 'built-in', browser, now, {
      opening: true,
      interactive: true,
    });
    const { request, interaction } = authorization;
    if (interaction !== undefined) {
      return { location: pageOf(interaction, interactionEndpoint(settings, tenantId)) };
    }
    const configurations = await view.credentialConfigurations();
    const [key] = settings.nonceKeys;
    if (key === undefined) throw new Error('no key for nonces');
    const purpose = decisionPurpose(authorization.id);
    return {
      issuerName: (await view.issuance()).display[0]?.name ?? (await view.tenant()).name,
      credentials: request.credentialConfigurationIds.map(
        (id) => configurations.find((entry) => entry.id === id)?.config.display[0]?.name ?? id,
      ),
      clientId: request.clientId,
      requestUri: browser.requestUri ?? '',
      decision: makeChallenge(key, tenantId, purpose, now, random.bytes(10)),
      action: `${issuerIdentifier(settings, tenantId)}/authorize`,
    };
  }
}
