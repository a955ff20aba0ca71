import { type AuthorizationServer, type Grant, type GrantedAuthorization, redeemableSession } from '../../domain/oauth/grant.ts';
import { verifyPkce } from '../../domain/oauth/pkce.ts';
import { type AuthorizationCodeRequest, narrowConfigurations } from '../../domain/oauth/token-request.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { attempt } from '../transactions/attempt.ts';
import { type TenantTransaction, TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { FailedOffers, isWithoutOffer } from './failed-offers.ts';
import { holderOf, type OAuthCaller, OAuthCallers, type OAuthRequest, replayErrorFor } from './oauth-callers.ts';
import { hashCode } from './pre-authorized-code-grant.ts';
import { type TokenAnswer, TokenIssuer } from './token-issuer.ts';

const invalidGrantError = (message: string) => new Failure('invalid_grant', message);

/** Exchanges an authorization code for an access token (RFC 6749 section 4.1.3, RFC 7636 section 4.6). */
export class AuthorizationCodeGrant extends needs({
  ...TRANSACTION_PORTS,
  oauthCallers: OAuthCallers,
  tokenIssuer: TokenIssuer,
  burntOffers: FailedOffers,
}) {
  /** @throws Failure `invalid_grant`, and what `OAuthCallers` throws. */
  answer(
    tenantId: TenantId,
    server: AuthorizationServer,
    request: OAuthRequest,
    redemption: AuthorizationCodeRequest,
  ): Promise<TokenAnswer> {
    const { oauthCallers, tokenIssuer } = this.ports;
    return attempt(this.ports, tenantId, async (transaction) => {
      const { tenant, now } = transaction;
      const caller = await oauthCallers.identify(tenant, server, 'token', request, now);

      const { grant, authorization } = ofServer(await transaction.grant(hashCode(redemption.code)), server);
      if (grant.consumedAt === null && grant.expiresAt <= now) throw invalidGrantError('the code has expired');
      assertSameRequest(authorization, redemption);
      assertSameHolder(authorization, caller);
      if (grant.consumedAt !== null) {
        // RFC 6749 section 4.1.2: the code was stolen, so its tokens are revoked. Only a caller that passed the checks can cause that.
        await this.#revoke(transaction, grant);
        throw invalidGrantError('the code was already used');
      }
      const configurationIds = narrowConfigurations(grant.credentialConfigurationIds, redemption.requestedIds);
      // OpenID4VCI 1.0 section 6.2: details in either request are answered with identifiers
      const identifiers = authorization.byDetails || redemption.requestedIds !== undefined;
      const requestedRights = { identifiers, configurationIds: redemption.requestedIds === undefined ? undefined : configurationIds };
      const recordedRedemption = await tokenIssuer.redemption(tenant, caller, requestedRights, now);
      const holder = { ...grant, holder: recordedRedemption.holder };
      // Created before the code is redeemed, so that a failing key provider does not cost the wallet its code.
      const answer = await tokenIssuer.respond(tenant, holder, caller, configurationIds, now);
      const createCodeUsedError = () => invalidGrantError('the code was already used, or its offer has ended');
      const change = { grant: { id: grant.id, act: 'redeem', redemption: recordedRedemption }, session: redeemableSession(grant) } as const;
      try {
        await transaction.claim(
          { ...change, uses: caller.used },
          { session: createCodeUsedError, uses: replayErrorFor(caller), grant: createCodeUsedError },
        );
      } catch (error) {
        // The code was redeemed concurrently by a second holder, one of which is an attacker.
        if (error instanceof Failure && error.code === 'invalid_grant') await this.#revoke(transaction, grant);
        throw error;
      }
      return answer;
    });
  }

  /** Revokes the tokens of the grant. An offer remains open: another wallet may use it. */
  async #revoke(transaction: TenantTransaction, { id, publicId }: Grant): Promise<void> {
    await this.ports.burntOffers.fail(transaction, { id, act: 'revoke' }, publicId, 'code_replayed', isWithoutOffer);
  }
}

/** @throws Failure `invalid_grant` for an unknown code and for a code of another server. */
function ofServer(grant: Grant | undefined, server: AuthorizationServer): { grant: Grant; authorization: GrantedAuthorization } {
  const authorization = grant?.authorization ?? null;
  if (grant === undefined || authorization === null || grant.server !== server)
    throw invalidGrantError('the code is unknown, used or expired');
  return { grant, authorization };
}

function assertSameRequest(authorization: GrantedAuthorization, redemption: AuthorizationCodeRequest): void {
  // RFC 6749 section 4.1.3
  if (authorization.redirectUri !== redemption.redirectUri) {
    // OAuth 2.0 for First-Party Applications section 6: no redirect brought the code
    const isOptional = authorization.interactive === true && redemption.redirectUri === undefined;
    if (!isOptional) throw invalidGrantError('redirect_uri differs from the authorization request');
  }
  // RFC 7636 section 4.6
  if (authorization.codeChallenge !== undefined && !verifyPkce(redemption.codeVerifier, authorization.codeChallenge)) {
    throw invalidGrantError('code_verifier is missing or wrong');
  }
}

function assertSameHolder({ holder }: GrantedAuthorization, caller: OAuthCaller): void {
  const { client, proof } = caller;
  if (holder.clientId !== client.clientId) throw invalidGrantError('the code belongs to another client');
  // A wallet that takes over the name of an unregistered client is not that client.
  if (holder.authenticated === true && holderOf(caller).authenticated !== true) {
    throw invalidGrantError('the code belongs to a client that authenticates');
  }
  // Attestation-based client authentication (draft 10) section 9.4
  if (holder.instance !== undefined && holder.instance !== client.instance) {
    throw invalidGrantError('the code belongs to another wallet instance');
  }
  // RFC 9449 section 10
  if (holder.keyThumbprint !== undefined && holder.keyThumbprint !== proof?.thumbprint)
    throw invalidGrantError('the code is bound to another key');
}
