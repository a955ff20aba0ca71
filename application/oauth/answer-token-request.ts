import type { AuthorizationServer } from '../../domain/oauth/grant.ts';
import {
  AUTHORIZATION_CODE_GRANT,
  REFRESH_TOKEN_GRANT,
  readTokenRequest,
  type TokenRequest,
} from '../../domain/oauth/token-request.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { issuerIdentifier, ServiceSettings } from '../ports/settings.ts';
import { TenantConfigurations } from '../tenant-configurations.ts';
import type { OAuthRequest } from './oauth-callers.ts';
import { RedeemCode } from './redeem-code.ts';
import { RedeemGrant } from './redeem-grant.ts';
import { RefreshAccess } from './refresh-access.ts';
import type { TokenAnswer } from './token-issuer.ts';

/** The token endpoint of the built-in and of the chained authorization server, grant by grant. */
export class AnswerTokenRequest extends needs({
  redeemGrant: RedeemGrant,
  redeemCode: RedeemCode,
  refreshAccess: RefreshAccess,
  tenantConfigurations: TenantConfigurations,
  settings: ServiceSettings,
}) {
  /** @throws Failure `invalid_request`, `unsupported_grant_type`, and what the grants throw. */
  async execute(
    tenantId: TenantId,
    server: AuthorizationServer,
    request: OAuthRequest,
  ): Promise<TokenAnswer> {
    const { redeemGrant, redeemCode, refreshAccess } = this.ports;
    const wanted = await this.#read(tenantId, server, request);
    switch (wanted.grantType) {
      case AUTHORIZATION_CODE_GRANT:
        return redeemCode.execute(tenantId, server, request, wanted);
      case REFRESH_TOKEN_GRANT:
        return refreshAccess.execute(tenantId, server, request, wanted);
      default:
        return redeemGrant.execute(tenantId, request, wanted);
    }
  }

  /** Who calls where no tenant is learns that, whatever else is wrong. */
  async #read(
    tenantId: TenantId,
    server: AuthorizationServer,
    { form }: OAuthRequest,
  ): Promise<TokenRequest> {
    try {
      return readTokenRequest(form, server, issuerIdentifier(this.ports.settings, tenantId));
    } catch (error) {
      await this.ports.tenantConfigurations.serving(tenantId);
      throw error;
    }
  }
}
