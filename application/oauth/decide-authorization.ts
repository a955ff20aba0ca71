import { AUTHORIZATION_LIFETIME_SECONDS, moveOn } from '../../domain/oauth/authorization.ts';
import { authorizationResponse } from '../../domain/oauth/authorization-response.ts';
import { readChallenge } from '../../domain/oauth/challenge.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Clock } from '../ports/clock.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import type { AuthorizationCodes } from '../steps/authorization-codes.ts';
import { type BrowserRequest, findPushedRequest } from '../steps/pushed-requests.ts';
import type { TenantViews } from '../steps/tenant-views.ts';
import { decisionPurpose } from './show-authorization.ts';

type Ports = {
  readonly store: Store;
  readonly tenantViews: TenantViews;
  readonly authorizationCodes: AuthorizationCodes;
  readonly clock: Clock;
  readonly settings: ServiceSettings;
};

export type Decision = BrowserRequest & {
  readonly decision: string | undefined;
  readonly decisionToken: string | undefined;
};

/** The user approves or denies on the page of the built-in server. */
export class DecideAuthorization {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @returns where the browser goes: to the wallet. @throws Failure `invalid_request` for a page. */
  async execute(tenantId: TenantId, decision: Decision): Promise<string> {
    const { store, authorizationCodes, clock, settings } = this.#ports;
    const now = clock.now();
    const { view, authorization } = await findPushedRequest(
      this.#ports,
      tenantId,
      'built-in',
      decision,
      now,
      { opening: false },
    );
    const purpose = decisionPurpose(authorization.id);
    const token = decision.decisionToken ?? '';
    // A page that was shown is good as long as its authorization, which was found above.
    const lifetime = AUTHORIZATION_LIFETIME_SECONDS;
    if (readChallenge(settings.nonceKeys, tenantId, purpose, now, token, lifetime) === undefined) {
      throw new Failure('invalid_request', 'this answer belongs to no page that was shown for the request');
    }
    const { redirectUri, state } = authorization.request;
    const issuer = issuerIdentifier(settings, tenantId);
    if (redirectUri === undefined) throw over();
    if (decision.decision === 'deny') {
      const denied = moveOn(authorization, { stage: 'done', handles: {} });
      if ((await store.beats(tenantId).advanceAuthorization(denied, [])) !== 'advanced') throw over();
      // RFC 6749 section 4.1.2.1, RFC 9207 section 2
      return authorizationResponse(redirectUri, {
        issuer,
        state,
        error: 'access_denied',
        description: 'the user denied the request',
      });
    }
    if (decision.decision !== 'approve') throw new Failure('invalid_request', 'the decision is missing');
    const code = await authorizationCodes.grant(view, authorization, now);
    if (code === undefined) throw over();
    return authorizationResponse(redirectUri, { issuer, state, code });
  }
}

function over(): Failure {
  return new Failure('invalid_request', 'the request was answered already, or its offer is over');
}
