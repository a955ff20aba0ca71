import { scopeOf } from '../../domain/issuance/metadata.ts';
import type { AuthorizationServer, Grant, Redeemer } from '../../domain/oauth/grant.ts';
import { isReplayedGeneration, parseRefreshToken } from '../../domain/oauth/refresh-token.ts';
import { narrowConfigurations, type RefreshRequest } from '../../domain/oauth/token-request.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { ServiceSettings } from '../ports/settings.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { attempt } from '../transactions/attempt.ts';
import { type TenantTransaction, TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { FailedOffers, isWithoutOffer } from './failed-offers.ts';
import { holderOf, type OAuthCaller, OAuthCallers, type OAuthRequest, replayErrorFor } from './oauth-callers.ts';
import { type TokenAnswer, TokenIssuer } from './token-issuer.ts';

const invalidGrantError = (message: string) => new Failure('invalid_grant', message);

/** Exchanges a refresh token for an access token (RFC 6749 section 6, HAIP 1.0 section 4.4). */
export class RefreshTokenGrant extends needs({
  ...TRANSACTION_PORTS,
  oauthCallers: OAuthCallers,
  tokenIssuer: TokenIssuer,
  burntOffers: FailedOffers,
  settings: ServiceSettings,
}) {
  /** @throws Failure `invalid_grant`, `invalid_scope`, and what `OAuthCallers` throws. */
  answer(tenantId: TenantId, server: AuthorizationServer, request: OAuthRequest, refresh: RefreshRequest): Promise<TokenAnswer> {
    const { oauthCallers, tokenIssuer, settings } = this.ports;
    const token = parseRefreshToken(settings.refreshTokenKeys, tenantId, refresh.refreshToken);
    return attempt(this.ports, tenantId, async (transaction) => {
      const { tenant, now } = transaction;
      const caller = await oauthCallers.identify(tenant, server, 'token', request, now);

      const storedGrant = token && (await transaction.confirm(transaction.reads.grant(token.grantId)));
      const { grant, holder } = assertUsableGrant(storedGrant?.grant, server, now);
      const { refreshTokenSeconds } = await tenant.issuance();
      if (refreshTokenSeconds === 0) throw invalidGrantError('this issuer no longer accepts refresh tokens');
      if (token === undefined) throw invalidGrantError('the refresh token is unknown');
      assertSameHolder(holder, caller);
      const granted = holder.configurationIds ?? grant.credentialConfigurationIds;
      const configurationIds = await withinScope(tenant, narrowConfigurations(granted, refresh.requestedIds), refresh.scope);
      if (isReplayedGeneration(token.generation, grant.generation)) {
        await this.#revoke(transaction, grant);
        throw invalidGrantError('the refresh token was already used');
      }
      // FAPI 2.0 section 5.3.2.1: sender-constrained tokens are not rotated; a copy is of no use to an attacker
      const answer = await tokenIssuer.respond(tenant, grant, caller, configurationIds, now);
      const change = { unrevoked: grant.id, uses: caller.used };
      await transaction.claim(change, {
        unrevoked: () => invalidGrantError('the refresh token was revoked'),
        uses: replayErrorFor(caller),
      });
      return answer;
    });
  }

  /** Revokes the tokens of the grant. For a pre-authorized code the offer fails as well, since it has no other code. */
  async #revoke(transaction: TenantTransaction, { id, publicId, kind }: Grant): Promise<void> {
    const isBurnt = kind === 'pre_authorized_code' ? () => true : isWithoutOffer;
    const revocation = { id, act: 'revoke' } as const;
    await this.ports.burntOffers.fail(transaction, revocation, publicId, 'refresh_token_replayed', isBurnt);
  }
}

/** @throws Failure `invalid_grant` unless the grant produces tokens of this server. */
function assertUsableGrant(grant: Grant | undefined, server: AuthorizationServer, now: Date): { grant: Grant; holder: Redeemer } {
  const holder = grant?.holder ?? null;
  if (grant === undefined || holder === null || grant.server !== server || grant.revokedAt !== null) {
    throw invalidGrantError('the refresh token is unknown or revoked');
  }
  if (grant.expiresAt <= now || holder.refreshableUntil * 1000 <= now.getTime()) throw invalidGrantError('the refresh token has expired');
  return { grant, holder };
}

function assertSameHolder(holder: Redeemer, caller: OAuthCaller): void {
  const { client, proof } = caller;
  if (holder.clientId !== client.clientId) throw invalidGrantError('the refresh token belongs to another client');
  // A wallet that takes over the name of an unregistered client is not that client (RFC 6749 section 10.4).
  if (holder.authenticated === true && holderOf(caller).authenticated !== true) {
    throw invalidGrantError('the refresh token belongs to a client that authenticates');
  }
  // Attestation-based client authentication (draft 10) section 9.3
  if (holder.instance !== client.instance) throw invalidGrantError('the refresh token belongs to another wallet instance');
  // RFC 9449 section 5: an authenticated wallet may change its key, any other may not
  if (holder.authenticated !== true && holder.keyThumbprint !== proof?.thumbprint) {
    throw invalidGrantError('the refresh token is bound to another key');
  }
}

/** @throws Failure `invalid_scope` when the wallet requests more than it was granted (RFC 6749 section 6). */
async function withinScope(tenant: TenantConfiguration, granted: readonly string[], scope: string | undefined): Promise<readonly string[]> {
  if (scope === undefined) return granted;
  const scopes = new Map((await tenant.credentialConfigurations()).map((configuration) => [configuration.id, scopeOf(configuration)]));
  const requestedScopes = scope.split(' ').filter((value) => value !== '');
  const names = new Set(granted.map((id) => scopes.get(id)));
  if (requestedScopes.length === 0 || !requestedScopes.every((value) => names.has(value))) {
    throw new Failure('invalid_scope', 'the refresh token does not cover this scope');
  }
  return granted.filter((id) => requestedScopes.includes(scopes.get(id) ?? ''));
}
