import type { WireAnswer } from '../../domain/oauth/interaction-wire.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { BeginInteraction } from './begin-interaction.ts';
import { ContinueInteraction } from './continue-interaction.ts';
import type { OAuthRequest } from './oauth-callers.ts';

/**
 * The interactive authorization endpoint of the built-in server, which later drafts call the authorization challenge
 * endpoint (OpenID4VCI 1.1 section 6).
 */
export class InteractiveAuthorization extends needs({
  beginInteraction: BeginInteraction,
  continueInteraction: ContinueInteraction,
}) {
  /** @throws Failure as `BeginInteraction` and `ContinueInteraction` do. */
  async execute(tenantId: TenantId, oauth: OAuthRequest): Promise<WireAnswer> {
    const { beginInteraction, continueInteraction } = this.ports;
    const authSession = oauth.form['auth_session'];
    return authSession === undefined
      ? beginInteraction.execute(tenantId, oauth)
      : continueInteraction.execute(tenantId, authSession, oauth);
  }
}
