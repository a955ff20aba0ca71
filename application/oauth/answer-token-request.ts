import type { AuthorizationServer } from '../../domain/oauth/grant.ts';
import { parseRefreshToken } from '../../domain/oauth/refresh-token.ts';
import { AUTHORIZATION_CODE_GRANT, parseTokenRequest, REFRESH_TOKEN_GRANT, type TokenRequest } from '../../domain/oauth/token-request.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { issuerIdentifier, ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { RefusedAttempts } from '../sessions/refused-attempts.ts';
import { TenantConfigurations } from '../tenant-cache/tenant-configurations.ts';
import { AuthorizationCodeGrant } from './authorization-code-grant.ts';
import type { OAuthRequest } from './oauth-callers.ts';
import { hashCode, PreAuthorizedCodeGrant } from './pre-authorized-code-grant.ts';
import { RefreshTokenGrant } from './refresh-token-grant.ts';
import type { TokenAnswer } from './token-issuer.ts';

/** The token endpoint of the built-in and of the chained authorization server (RFC 6749 section 3.2). Each grant type has its handler. */
export class AnswerTokenRequest extends needs({
  preAuthorizedCode: PreAuthorizedCodeGrant,
  authorizationCode: AuthorizationCodeGrant,
  refreshToken: RefreshTokenGrant,
  tenantConfigurations: TenantConfigurations,
  refusedAttempts: RefusedAttempts,
  store: Store,
  clock: Clock,
  settings: ServiceSettings,
}) {
  /**
   * A rejected request whose code or refresh token is valid is noted with its session.
   * @throws Failure `invalid_request`, `unsupported_grant_type`, and what the grants throw.
   */
  async execute(tenantId: TenantId, server: AuthorizationServer, request: OAuthRequest): Promise<TokenAnswer> {
    try {
      return await this.#answer(tenantId, server, request);
    } catch (error) {
      await this.ports.refusedAttempts.note(tenantId, request.requestId, error, () => this.#sessionOf(tenantId, server, request));
      throw error;
    }
  }

  async #answer(tenantId: TenantId, server: AuthorizationServer, request: OAuthRequest): Promise<TokenAnswer> {
    const { authorizationCode, preAuthorizedCode, refreshToken } = this.ports;
    const wanted = await this.#read(tenantId, server, request);
    switch (wanted.grantType) {
      case AUTHORIZATION_CODE_GRANT:
        return authorizationCode.answer(tenantId, server, request, wanted);
      case REFRESH_TOKEN_GRANT:
        return refreshToken.answer(tenantId, server, request, wanted);
      default:
        return preAuthorizedCode.answer(tenantId, request, wanted);
    }
  }

  /** @returns undefined unless the request has a code that can be redeemed, or a refresh token that can be used. */
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

  /** Who calls where no tenant is learns that, whatever else is wrong. */
  async #read(tenantId: TenantId, server: AuthorizationServer, { form }: OAuthRequest): Promise<TokenRequest> {
    try {
      return parseTokenRequest(form, server, issuerIdentifier(this.ports.settings, tenantId));
    } catch (error) {
      await this.ports.tenantConfigurations.serving(tenantId);
      throw error;
    }
  }
}
