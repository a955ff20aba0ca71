import { type AuthorizationServer, type Grant, type GrantedAuthorization, redeemable } from '../../domain/oauth/grant.ts';
import { verifies } from '../../domain/oauth/pkce.ts';
import { type AuthorizationCodeRequest, narrow } from '../../domain/oauth/token-request.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { attempt } from '../transactions/attempt.ts';
import { type Known, WORLD } from '../transactions/known.ts';
import { BurntOffers, isWithoutOffer } from './burnt-offers.ts';
import { holderOf, type OAuthCaller, OAuthCallers, type OAuthRequest, replayedBy } from './oauth-callers.ts';
import { hashCode } from './pre-authorized-code-grant.ts';
import { type TokenAnswer, TokenIssuer } from './token-issuer.ts';

const refused = (message: string) => new Failure('invalid_grant', message);

/** An authorization code for an access token (RFC 6749 section 4.1.3, RFC 7636 section 4.6). */
export class AuthorizationCodeGrant extends needs({
  ...WORLD,
  oauthCallers: OAuthCallers,
  tokenIssuer: TokenIssuer,
  burntOffers: BurntOffers,
}) {
  /** @throws Failure `invalid_grant`, and what `OAuthCallers` throws. */
  answer(
    tenantId: TenantId,
    server: AuthorizationServer,
    request: OAuthRequest,
    redemption: AuthorizationCodeRequest,
  ): Promise<TokenAnswer> {
    const { oauthCallers, tokenIssuer } = this.ports;
    return attempt(this.ports, tenantId, async (known) => {
      const { configured, now } = known;
      const caller = await oauthCallers.identify(configured, server, 'token', request, now);

      const { grant, authorization } = ofServer(await known.grant(hashCode(redemption.code)), server);
      if (grant.consumedAt === null && grant.expiresAt <= now) throw refused('the code has expired');
      assertSameRequest(authorization, redemption);
      assertSameHolder(authorization, caller);
      if (grant.consumedAt !== null) {
        // RFC 6749 section 4.1.2: one of two who can prove the same is not who should. Who cannot takes nothing away.
        await this.#revoke(known, grant);
        throw refused('the code was used before');
      }
      const configurationIds = narrow(grant.credentialConfigurationIds, redemption.wanted);
      // OpenID4VCI 1.0 section 6.2: details in either request are answered with identifiers
      const identifiers = authorization.byDetails || redemption.wanted !== undefined;
      const asked = {
        identifiers,
        configurationIds: redemption.wanted === undefined ? undefined : configurationIds,
      };
      const redeemed = await tokenIssuer.redemption(configured, caller, asked, now);
      const holder = { ...grant, holder: redeemed.holder };
      // Made before the code is spent: a key provider that does not answer costs the wallet nothing.
      const answer = await tokenIssuer.respond(configured, holder, caller, configurationIds, now);
      const over = () => refused('the code was used before, or its offer is over');
      const change = { grant: { id: grant.id, act: 'redeem', redemption: redeemed }, session: redeemable(grant) } as const;
      try {
        await known.claim({ ...change, uses: caller.used }, { session: over, uses: replayedBy(caller), grant: over });
      } catch (error) {
        // Somebody else was first: of two who hold the code, one is not who should.
        if (error instanceof Failure && error.code === 'invalid_grant') await this.#revoke(known, grant);
        throw error;
      }
      return answer;
    });
  }

  /** From now on no token of the grant counts. An offer stays: another wallet may come with it. */
  async #revoke(known: Known, { id, publicId }: Grant): Promise<void> {
    await this.ports.burntOffers.burn(known, { id, act: 'revoke' }, publicId, 'code_replayed', isWithoutOffer);
  }
}

/** @throws Failure `invalid_grant` for an unknown code and for one of another server alike. */
function ofServer(grant: Grant | undefined, server: AuthorizationServer): { grant: Grant; authorization: GrantedAuthorization } {
  const authorization = grant?.authorization ?? null;
  if (grant === undefined || authorization === null || grant.server !== server) throw refused('the code is unknown, used or expired');
  return { grant, authorization };
}

function assertSameRequest(authorization: GrantedAuthorization, redemption: AuthorizationCodeRequest): void {
  // RFC 6749 section 4.1.3
  if (authorization.redirectUri !== redemption.redirectUri) {
    // OAuth 2.0 for First-Party Applications section 6: no redirect brought the code
    const isOptional = authorization.interactive === true && redemption.redirectUri === undefined;
    if (!isOptional) throw refused('redirect_uri is not the one of the authorization request');
  }
  // RFC 7636 section 4.6
  if (authorization.codeChallenge !== undefined && !verifies(redemption.codeVerifier, authorization.codeChallenge)) {
    throw refused('code_verifier is missing or wrong');
  }
}

function assertSameHolder({ holder }: GrantedAuthorization, caller: OAuthCaller): void {
  const { client, proof } = caller;
  if (holder.clientId !== client.clientId) throw refused('the code belongs to another client');
  // Whoever takes the name of a wallet that is registered no more is not that wallet.
  if (holder.authenticated === true && holderOf(caller).authenticated !== true) {
    throw refused('the code belongs to a client that authenticates');
  }
  // Attestation-based client authentication (draft 10) section 9.4
  if (holder.instance !== undefined && holder.instance !== client.instance) {
    throw refused('the code belongs to another installation of the wallet');
  }
  // RFC 9449 section 10
  if (holder.keyThumbprint !== undefined && holder.keyThumbprint !== proof?.thumbprint) throw refused('the code is bound to another key');
}
