import type { AuthorizationServer } from '../../domain/oauth/grant.ts';
import { parseRefreshToken } from '../../domain/oauth/refresh-token.ts';
import { AUTHORIZATION_CODE_GRANT, parseTokenRequest, REFRESH_TOKEN_GRANT, type TokenRequest } from '../../domain/oauth/token-request.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { issuerIdentifier, ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { RejectedAttempts } from '../sessions/rejected-attempts.ts';
import { TenantConfigurations } from '../tenant-cache/tenant-configurations.ts';
import { AuthorizationCodeGrant } from './authorization-code-grant.ts';
import type { OAuthRequest } from './oauth-callers.ts';
import { hashCode, PreAuthorizedCodeGrant } from './pre-authorized-code-grant.ts';
import { RefreshTokenGrant } from './refresh-token-grant.ts';
import type { TokenAnswer } from './token-issuer.ts';

/** Token endpoint of the built-in and the chained authorization server (RFC 6749 section 3.2), with one handler per grant type. */
export class AnswerTokenRequest extends needs({
  preAuthorizedCode: PreAuthorizedCodeGrant,
  authorizationCode: AuthorizationCodeGrant,
  refreshToken: RefreshTokenGrant,
  tenantConfigurations: TenantConfigurations,
  refusedAttempts: RejectedAttempts,
  store: Store,
  clock: Clock,
  settings: ServiceSettings,
}) {
  /**
   * Records a rejected request in the session of its code or refresh token, if that is valid.
   * @throws Failure `invalid_request`, `unsupported_grant_type`, and the failures of the grants.
   */
  async execute(tenantId: TenantId, server: AuthorizationServer, request: OAuthRequest): Promise<TokenAnswer> {
    try {
      return await this.#answer(tenantId, server, request);
    } catch (error) {
      await this.ports.refusedAttempts.recordFailure(tenantId, request.requestId, error, () => this.#sessionOf(tenantId, server, request));
      throw error;
    }
  }

  async #answer(tenantId: TenantId, server: AuthorizationServer, request: OAuthRequest): Promise<TokenAnswer> {
    const { authorizationCode, preAuthorizedCode, refreshToken } = this.ports;
    const tokenRequest = await this.#read(tenantId, server, request);
    switch (tokenRequest.grantType) {
      case AUTHORIZATION_CODE_GRANT:
        return authorizationCode.answer(tenantId, server, request, tokenRequest);
      case REFRESH_TOKEN_GRANT:
        return refreshToken.answer(tenantId, server, request, tokenRequest);
      default:
        return preAuthorizedCode.answer(tenantId, request, tokenRequest);
    }
  }

  /** @returns undefined unless the request has a redeemable code or a usable refresh token. */
  async #sessionOf(tenantId: TenantId, server: AuthorizationServer, { form }: OAuthRequest): Promise<PublicId | undefined> {
    const { store, clock, settings } = this.ports;
    const now = clock.now();
    const reads = store.read(tenantId);
    const { 'pre-authorized_code': preAuthorized, code = preAuthorized, refresh_token: text } = form;
    if (code !== undefined) {
      const grant = (await reads.grantByCode(hashCode(code)))?.grant;
      const isValid = grant?.server === server && grant.consumedAt === null && grant.expiresAt > now;
      return isValid ? grant.publicId : undefined;
    }
    const token = text === undefined ? undefined : parseRefreshToken(settings.refreshTokenKeys, tenantId, text);
    const grant = token && (await reads.grant(token.grantId))?.grant;
    const isValid = grant?.server === server && grant.revokedAt === null && grant.expiresAt > now;
    return isValid ? grant.publicId : undefined;
  }

  /** The response for an unknown tenant takes precedence over other errors. */
  async #read(tenantId: TenantId, server: AuthorizationServer, { form }: OAuthRequest): Promise<TokenRequest> {
    try {
      return parseTokenRequest(form, server, issuerIdentifier(this.ports.settings, tenantId));
    } catch (error) {
      await this.ports.tenantConfigurations.readServing(tenantId);
      throw error;
    }
  }
}
