import { scopeOf } from '../../domain/issuance/metadata.ts';
import { followsWallet } from '../../domain/issuance/wallet-following.ts';
import {
  authorizationDetails,
  BEARER_LIFETIME_SECONDS,
  BOUND_LIFETIME_SECONDS,
  type WalletTokenClaims,
} from '../../domain/oauth/access-token.ts';
import type { Asked, Grant, GrantHolder, Redemption } from '../../domain/oauth/grant.ts';
import { makeRefreshToken } from '../../domain/oauth/refresh-token.ts';
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
  /** For the next DPoP proof (RFC 9449 section 8.2). */
  readonly dpopNonce: string | undefined;
};

/** Makes what the token endpoint answers with. */
export class TokenIssuer extends needs({ walletTokens: WalletTokens, dpopProofs: DpopProofs, random: Random, settings: ServiceSettings }) {
  /** Who redeems a grant, and until when what it brings may live. */
  async redemption(configured: TenantConfiguration, caller: OAuthCaller, asked: Asked, now: Date): Promise<Redemption> {
    const { refreshTokenSeconds, chainedAs } = await configured.issuance();
    const { configurationIds } = asked;
    const holder = holderOf(caller);
    // Who gets no refresh token has no use for the grant after its access token.
    const refreshable = now.getTime() + (isBound(holder) ? refreshTokenSeconds * 1000 : 0);
    // The last access token may come at the end of the last refresh token.
    const longest = Math.max(BOUND_LIFETIME_SECONDS, chainedAs?.token.lifetimeSeconds ?? 0);
    return {
      holder: {
        ...holder,
        identifiers: asked.identifiers,
        refreshableUntil: Math.floor(refreshable / 1000),
        ...defined({ configurationIds }),
      },
      until: new Date(refreshable + longest * 1000),
    };
  }

  /** @param grant as it is after its redemption or the use of a refresh token. */
  async respond(
    configured: TenantConfiguration,
    grant: Grant,
    caller: OAuthCaller,
    configurationIds: readonly string[],
    now: Date,
  ): Promise<TokenAnswer> {
    const { walletTokens, dpopProofs, random } = this.ports;
    const issuer = configured.issuerOf(grant.server);
    const { holder, authorization } = grant;
    const issuedAtSeconds = Math.floor(now.getTime() / 1000);
    const lifetime = await this.#lifetime(configured, grant, caller);
    const identifiers = holder?.identifiers ?? false;
    const subject = authorization?.identity?.sub;
    const scope = await scopeWithin(configured, authorization?.scope, configurationIds);
    const walletStatuses = await followedBy(configured, configurationIds, caller);
    const claims: WalletTokenClaims = {
      issuer,
      audience: configured.issuer,
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
    const refreshToken = await this.#refreshToken(configured, grant);
    return {
      body: {
        access_token: await walletTokens.issue(configured, claims, grant.server),
        token_type: caller.proof === undefined ? 'Bearer' : 'DPoP',
        expires_in: lifetime,
        ...defined({ refresh_token: refreshToken, scope }),
        ...(identifiers ? { authorization_details: authorizationDetails(configurationIds) } : {}),
      },
      dpopNonce: caller.proof && (await dpopProofs.nonce(configured, { issuer, now })),
    };
  }

  async #lifetime(configured: TenantConfiguration, { server }: Grant, { proof }: OAuthCaller): Promise<number> {
    const longest = proof === undefined ? BEARER_LIFETIME_SECONDS : Number.POSITIVE_INFINITY;
    const { chainedAs } = await configured.issuance();
    const own = server === 'chained' ? chainedAs?.token.lifetimeSeconds : undefined;
    return Math.min(longest, own ?? BOUND_LIFETIME_SECONDS);
  }

  async #refreshToken(configured: TenantConfiguration, { id, generation, holder }: Grant): Promise<string | undefined> {
    const { refreshTokenSeconds } = await configured.issuance();
    const [key] = this.ports.settings.refreshTokenKeys;
    if (refreshTokenSeconds === 0 || key === undefined || !isBound(holder)) return undefined;
    return makeRefreshToken(key, configured.tenantId, { grantId: id, generation });
  }
}

/** What the issuer has to know of the wallet, where one of the credentials follows that. */
async function followedBy(
  configured: TenantConfiguration,
  configurationIds: readonly string[],
  { client: { statuses } }: OAuthCaller,
): Promise<readonly WalletStatus[] | undefined> {
  if (statuses === undefined) return undefined;
  const [issuance, all] = [await configured.issuance(), await configured.credentialConfigurations()];
  const isFollowed = all.some((configuration) => configurationIds.includes(configuration.id) && followsWallet(configuration, issuance));
  return isFollowed ? statuses : undefined;
}

/** RFC 6749 section 5.1: a wallet that gets less than was granted is told what it gets. */
async function scopeWithin(
  configured: TenantConfiguration,
  granted: string | undefined,
  configurationIds: readonly string[],
): Promise<string | undefined> {
  if (granted === undefined) return undefined;
  const configurations = await configured.credentialConfigurations();
  const covered = new Set(configurations.filter(({ id }) => configurationIds.includes(id)).map(scopeOf));
  const kept = granted.split(' ').filter((value) => covered.has(value));
  return kept.length === 0 ? undefined : kept.join(' ');
}

/** Whether a refresh token is bound to something (RFC 9449 section 5): to the client or to its DPoP key. */
function isBound(holder: GrantHolder | null): boolean {
  return holder?.authenticated === true || holder?.keyThumbprint !== undefined;
}
