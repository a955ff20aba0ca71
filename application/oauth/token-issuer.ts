import { scopeOf } from '../../domain/issuance/metadata.ts';
import { followsWallet } from '../../domain/issuance/wallet-following.ts';
import {
  authorizationDetails,
  BEARER_LIFETIME_SECONDS,
  BOUND_LIFETIME_SECONDS,
  type WalletTokenClaims,
} from '../../domain/oauth/access-token.ts';
import type { Grant, GrantHolder, Redemption, RequestedRights } from '../../domain/oauth/grant.ts';
import { createRefreshToken } from '../../domain/oauth/refresh-token.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { WalletStatus } from '../../domain/status-lists/wallet-status.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { DpopProofs } from './dpop-proofs.ts';
import { holderOf, type OAuthCaller } from './oauth-callers.ts';
import { WalletTokens } from './wallet-tokens.ts';

export type TokenResponse = {
  readonly access_token: string;
  readonly token_type: 'DPoP' | 'Bearer';
  readonly expires_in: number;
  readonly refresh_token?: string;
  readonly scope?: string;
  readonly authorization_details?: readonly JsonObject[];
};

export type TokenAnswer = {
  readonly body: TokenResponse;
  /** Nonce for the next DPoP proof (RFC 9449 section 8.2). */
  readonly dpopNonce: string | undefined;
};

/** Creates responses of the token endpoint. */
export class TokenIssuer extends needs({ walletTokens: WalletTokens, dpopProofs: DpopProofs, random: Random, settings: ServiceSettings }) {
  /** The holder of a grant after redemption, and the expiry of its tokens. */
  async redemption(tenant: TenantConfiguration, caller: OAuthCaller, requestedRights: RequestedRights, now: Date): Promise<Redemption> {
    const { refreshTokenSeconds, chainedAs } = await tenant.issuance();
    const { configurationIds } = requestedRights;
    const holder = holderOf(caller);
    // Without a refresh token the grant is not needed after the access token expired.
    const refreshable = now.getTime() + (isBound(holder) ? refreshTokenSeconds * 1000 : 0);
    // The last access token may be issued at the end of the refresh period.
    const longest = Math.max(BOUND_LIFETIME_SECONDS, chainedAs?.token.lifetimeSeconds ?? 0);
    return {
      holder: {
        ...holder,
        identifiers: requestedRights.identifiers,
        refreshableUntil: Math.floor(refreshable / 1000),
        ...defined({ configurationIds }),
      },
      until: new Date(refreshable + longest * 1000),
    };
  }

  /** @param grant after its redemption or the use of a refresh token. */
  async respond(
    tenant: TenantConfiguration,
    grant: Grant,
    caller: OAuthCaller,
    configurationIds: readonly string[],
    now: Date,
  ): Promise<TokenAnswer> {
    const { walletTokens, dpopProofs, random } = this.ports;
    const issuer = tenant.issuerOf(grant.server);
    const { holder, authorization } = grant;
    const issuedAtSeconds = Math.floor(now.getTime() / 1000);
    const lifetime = await this.#lifetime(tenant, grant, caller);
    const identifiers = holder?.identifiers ?? false;
    const subject = authorization?.identity?.sub;
    const scope = await scopeWithin(tenant, authorization?.scope, configurationIds);
    const walletStatuses = await followedStatuses(tenant, configurationIds, caller);
    const claims: WalletTokenClaims = {
      issuer,
      audience: tenant.issuer,
      subject: subject ?? grant.publicId,
      publicId: grant.publicId,
      grantId: grant.id,
      tokenId: random.token(),
      issuedAtSeconds,
      expiresAtSeconds: issuedAtSeconds + lifetime,
      credentialConfigurationIds: configurationIds,
      identifiers,
      ...defined({
        scope,
        clientId: caller.client.clientId,
        actionsDone: authorization?.actionsDone,
        keyThumbprint: caller.proof?.thumbprint,
        walletStatuses,
      }),
    };
    const refreshToken = await this.#refreshToken(tenant, grant);
    return {
      body: {
        access_token: await walletTokens.issue(tenant, claims, grant.server),
        token_type: caller.proof === undefined ? 'Bearer' : 'DPoP',
        expires_in: lifetime,
        ...defined({ refresh_token: refreshToken, scope }),
        ...(identifiers ? { authorization_details: authorizationDetails(configurationIds) } : {}),
      },
      dpopNonce: caller.proof && (await dpopProofs.nonce(tenant, { issuer, now })),
    };
  }

  async #lifetime(tenant: TenantConfiguration, { server }: Grant, { proof }: OAuthCaller): Promise<number> {
    const longest = proof === undefined ? BEARER_LIFETIME_SECONDS : Number.POSITIVE_INFINITY;
    const { chainedAs } = await tenant.issuance();
    const configuredSeconds = server === 'chained' ? chainedAs?.token.lifetimeSeconds : undefined;
    return Math.min(longest, configuredSeconds ?? BOUND_LIFETIME_SECONDS);
  }

  async #refreshToken(tenant: TenantConfiguration, { id, generation, holder }: Grant): Promise<string | undefined> {
    const { refreshTokenSeconds } = await tenant.issuance();
    const [key] = this.ports.settings.refreshTokenKeys;
    if (refreshTokenSeconds === 0 || key === undefined || !isBound(holder)) return undefined;
    return createRefreshToken(key, tenant.tenantId, { grantId: id, generation });
  }
}

/** The wallet statuses, if one of the credentials follows them. */
async function followedStatuses(
  tenant: TenantConfiguration,
  configurationIds: readonly string[],
  { client: { statuses } }: OAuthCaller,
): Promise<readonly WalletStatus[] | undefined> {
  if (statuses === undefined) return undefined;
  const [issuance, configurations] = [await tenant.issuance(), await tenant.credentialConfigurations()];
  const isFollowed = configurations.some(
    (configuration) => configurationIds.includes(configuration.id) && followsWallet(configuration, issuance),
  );
  return isFollowed ? statuses : undefined;
}

/** RFC 6749 section 5.1: the response names the scope if it is less than was granted. */
async function scopeWithin(
  tenant: TenantConfiguration,
  granted: string | undefined,
  configurationIds: readonly string[],
): Promise<string | undefined> {
  if (granted === undefined) return undefined;
  const configurations = await tenant.credentialConfigurations();
  const covered = new Set(configurations.filter(({ id }) => configurationIds.includes(id)).map(scopeOf));
  const coveredScopes = granted.split(' ').filter((value) => covered.has(value));
  return coveredScopes.length === 0 ? undefined : coveredScopes.join(' ');
}

/** True if refresh tokens are bound to the client or to its DPoP key (RFC 9449 section 5). */
function isBound(holder: GrantHolder | null): boolean {
  return holder?.authenticated === true || holder?.keyThumbprint !== undefined;
}
