import { AUTHORIZATION_LIFETIME_SECONDS } from '../../domain/oauth/authorization.ts';
import { readChallenge } from '../../domain/oauth/challenge.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { WORLD } from '../known.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { AuthorizationCodes } from './authorization-codes.ts';
import { isBoundBrowser, type SentBrowser, sendToPage } from './page-visits.ts';
import { type BrowserRequest, findPushedRequest } from './pushed-requests.ts';
import { decisionPurpose } from './show-authorization.ts';
import { DENIED, endWithout, responseTo } from './wallet-responses.ts';

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
    if (readChallenge(settings.nonceKeys, tenantId, purpose, now, token, lifetime) === undefined) {
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
