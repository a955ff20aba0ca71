import type { AuthorizationServer, Grant, GrantedAuthorization } from '../../domain/oauth/grant.ts';
import { verifies } from '../../domain/oauth/pkce.ts';
import { type AuthorizationCodeRequest, narrow } from '../../domain/oauth/token-request.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Clock } from '../ports/clock.ts';
import type { Store } from '../ports/store.ts';
import type { TenantConfigurations } from '../tenant-configuration.ts';
import {
  assertServed,
  bindsTokens,
  type OAuthCaller,
  type OAuthCallers,
  type OAuthRequest,
  replayed,
} from './oauth-callers.ts';
import { hashCode } from './redeem-grant.ts';
import type { TokenAnswer, TokenIssuer } from './token-issuer.ts';

type Ports = {
  readonly store: Store;
  readonly tenantConfigurations: TenantConfigurations;
  readonly oauthCallers: OAuthCallers;
  readonly tokenIssuer: TokenIssuer;
  readonly clock: Clock;
};

const refused = (message: string) => new Failure('invalid_grant', message);

/** An authorization code for an access token (RFC 6749 section 4.1.3, RFC 7636 section 4.6). */
export class RedeemCode {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `invalid_grant`, and what `OAuthCallers` throws. */
  async execute(
    tenantId: TenantId,
    server: AuthorizationServer,
    request: OAuthRequest,
    redemption: AuthorizationCodeRequest,
  ): Promise<TokenAnswer> {
    const { store, tenantConfigurations, oauthCallers, tokenIssuer, clock } = this.#ports;
    const now = clock.now();
    const beats = store.beats(tenantId);
    const found = await beats.findGrant(hashCode(redemption.code));
    const configured = tenantConfigurations.ofWallet(found?.head);
    await assertServed(configured, server);
    const dpopRequired = await bindsTokens(configured, server);
    const caller = await oauthCallers.identify(configured, server, 'token', request, now, { dpopRequired });

    const { grant, authorization } = ofServer(found?.grant, server);
    if (grant.consumedAt !== null) {
      // RFC 6749 section 4.1.2: a code that comes back was stolen, from whomever
      await beats.revokeGrant(grant.id, now);
      throw refused('the code was used before');
    }
    if (grant.expiresAt <= now) throw refused('the code has expired');
    assertSameRequest(authorization, redemption);
    assertSameHolder(authorization, caller);
    const configurationIds = narrow(grant.credentialConfigurationIds, redemption.wanted);
    // OpenID4VCI 1.0 section 6.2: details in either request are answered with identifiers
    const identifiers = authorization.byDetails || redemption.wanted !== undefined;
    const asked = {
      identifiers,
      configurationIds: redemption.wanted === undefined ? undefined : configurationIds,
    };
    const redeemed = await tokenIssuer.redemption(configured, caller, asked, now);
    const claimed = await beats.consumeGrant(grant.id, redeemed, caller.used, now);
    if (claimed === 'spent') {
      await beats.revokeGrant(grant.id, now);
      throw refused('the code was used before, or its offer is over');
    }
    if (claimed !== 'consumed') throw replayed(claimed, caller.client);
    const holder = { ...grant, holder: redeemed.holder };
    return tokenIssuer.respond(configured, holder, caller, configurationIds, now);
  }
}

/** @throws Failure `invalid_grant` for an unknown code and for one of another server alike. */
function ofServer(
  grant: Grant | undefined,
  server: AuthorizationServer,
): { grant: Grant; authorization: GrantedAuthorization } {
  const authorization = grant?.authorization ?? null;
  if (grant === undefined || authorization === null || grant.server !== server) {
    throw refused('the code is unknown, used or expired');
  }
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
  if (
    authorization.codeChallenge !== undefined &&
    !verifies(redemption.codeVerifier, authorization.codeChallenge)
  ) {
    throw refused('code_verifier is missing or wrong');
  }
}

function assertSameHolder({ holder }: GrantedAuthorization, { client, proof }: OAuthCaller): void {
  if (holder.clientId !== client.clientId) throw refused('the code belongs to another client');
  // Attestation-based client authentication (draft 10) section 9.4
  if (holder.instance !== undefined && holder.instance !== client.instance) {
    throw refused('the code belongs to another installation of the wallet');
  }
  // RFC 9449 section 10
  if (holder.keyThumbprint !== undefined && holder.keyThumbprint !== proof?.thumbprint) {
    throw refused('the code is bound to another key');
  }
}
