import { scopeOf } from '../../domain/issuance/metadata.ts';
import type { AuthorizationServer, Grant, Redeemer } from '../../domain/oauth/grant.ts';
import { isStolen, parseRefreshToken } from '../../domain/oauth/refresh-token.ts';
import { narrow, type RefreshRequest } from '../../domain/oauth/token-request.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { ServiceSettings } from '../ports/settings.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { attempt } from '../transactions/attempt.ts';
import { type Known, WORLD } from '../transactions/known.ts';
import { BurntOffers, isWithoutOffer } from './burnt-offers.ts';
import { holderOf, type OAuthCaller, OAuthCallers, type OAuthRequest, replayedBy } from './oauth-callers.ts';
import { type TokenAnswer, TokenIssuer } from './token-issuer.ts';

const refused = (message: string) => new Failure('invalid_grant', message);

/** A refresh token for the next access token (RFC 6749 section 6, HAIP 1.0 section 4.4). */
export class RefreshTokenGrant extends needs({
  ...WORLD,
  oauthCallers: OAuthCallers,
  tokenIssuer: TokenIssuer,
  burntOffers: BurntOffers,
  settings: ServiceSettings,
}) {
  /** @throws Failure `invalid_grant`, `invalid_scope`, and what `OAuthCallers` throws. */
  answer(tenantId: TenantId, server: AuthorizationServer, request: OAuthRequest, refresh: RefreshRequest): Promise<TokenAnswer> {
    const { oauthCallers, tokenIssuer, settings } = this.ports;
    const token = parseRefreshToken(settings.refreshTokenKeys, tenantId, refresh.refreshToken);
    return attempt(this.ports, tenantId, async (known) => {
      const { configured, now } = known;
      const caller = await oauthCallers.identify(configured, server, 'token', request, now);

      const found = token && (await known.confirm(known.reads.grant(token.grantId)));
      const { grant, holder } = live(found?.grant, server, now);
      const { refreshTokenSeconds } = await configured.issuance();
      if (refreshTokenSeconds === 0) throw refused('this issuer takes no refresh tokens any more');
      if (token === undefined) throw refused('the refresh token is unknown');
      assertSameHolder(holder, caller);
      const granted = holder.configurationIds ?? grant.credentialConfigurationIds;
      const configurationIds = await withinScope(configured, narrow(granted, refresh.wanted), refresh.scope);
      if (isStolen(token.generation, grant.generation)) {
        await this.#revoke(known, grant);
        throw refused('the refresh token was used before');
      }
      // FAPI 2.0 section 5.3.2.1: what is bound to a client or a key is not replaced; a copy is of no use to anybody else
      const answer = await tokenIssuer.respond(configured, grant, caller, configurationIds, now);
      const change = { unrevoked: grant.id, uses: caller.used };
      await known.claim(change, { unrevoked: () => refused('the refresh token was revoked'), uses: replayedBy(caller) });
      return answer;
    });
  }

  /** From now on no token of the grant counts. A pre-authorized code was its offer's only one. */
  async #revoke(known: Known, { id, publicId, kind }: Grant): Promise<void> {
    const isBurnt = kind === 'pre_authorized_code' ? () => true : isWithoutOffer;
    const revocation = { id, act: 'revoke' } as const;
    await this.ports.burntOffers.burn(known, revocation, publicId, 'refresh_token_replayed', isBurnt);
  }
}

/** @throws Failure `invalid_grant` unless the grant brings tokens of this server. */
function live(grant: Grant | undefined, server: AuthorizationServer, now: Date): { grant: Grant; holder: Redeemer } {
  const holder = grant?.holder ?? null;
  if (grant === undefined || holder === null || grant.server !== server || grant.revokedAt !== null) {
    throw refused('the refresh token is unknown or revoked');
  }
  if (grant.expiresAt <= now || holder.refreshableUntil * 1000 <= now.getTime()) throw refused('the refresh token has expired');
  return { grant, holder };
}

function assertSameHolder(holder: Redeemer, caller: OAuthCaller): void {
  const { client, proof } = caller;
  if (holder.clientId !== client.clientId) throw refused('the refresh token belongs to another client');
  // Whoever takes the name of a wallet that is registered no more is not that wallet (RFC 6749 section 10.4).
  if (holder.authenticated === true && holderOf(caller).authenticated !== true) {
    throw refused('the refresh token belongs to a client that authenticates');
  }
  // Attestation-based client authentication (draft 10) section 9.3
  if (holder.instance !== client.instance) throw refused('the refresh token belongs to another installation of the wallet');
  // RFC 9449 section 5: a wallet that proves who it is may change its key, any other may not
  if (holder.authenticated !== true && holder.keyThumbprint !== proof?.thumbprint) {
    throw refused('the refresh token is bound to another key');
  }
}

/** @throws Failure `invalid_scope` when the wallet asks for more than it was granted (RFC 6749 section 6). */
async function withinScope(
  configured: TenantConfiguration,
  granted: readonly string[],
  scope: string | undefined,
): Promise<readonly string[]> {
  if (scope === undefined) return granted;
  const scopes = new Map((await configured.credentialConfigurations()).map((configuration) => [configuration.id, scopeOf(configuration)]));
  const wanted = scope.split(' ').filter((value) => value !== '');
  const names = new Set(granted.map((id) => scopes.get(id)));
  if (wanted.length === 0 || !wanted.every((value) => names.has(value))) {
    throw new Failure('invalid_scope', 'the refresh token does not cover this scope');
  }
  return granted.filter((id) => wanted.includes(scopes.get(id) ?? ''));
}
