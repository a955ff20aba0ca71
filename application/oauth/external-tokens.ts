import { scopeOf } from '../../domain/issuance/metadata.ts';
import type { RequestableConfiguration } from '../../domain/oauth/authorization-request.ts';
import { EXTERNAL_TOKEN_TYPES, type ExternalToken, parseExternalToken, unverifiedIssuer } from '../../domain/oauth/external-token.ts';
import { ForeignTokenError } from '../../domain/oauth/foreign-token.ts';
import { serverOf } from '../../domain/oauth/servers.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { isSameIssuer } from '../../domain/shared/web-address.ts';
import { needs } from '../needs.ts';
import { AuthorizationServerError, AuthorizationServers } from '../ports/authorization-servers.ts';
import { Log } from '../ports/log.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** Retry-After when the keys of an external authorization server cannot be fetched. */
const RETRY_SECONDS = 15;

export class ExternalTokens extends needs({ authorizationServers: AuthorizationServers, log: Log }) {
  /**
   * Calls only the configured server that the token names.
   * @returns undefined for a token of another issuer.
   * @throws Failure `invalid_token`, `unavailable`.
   */
  async verify(tenant: TenantConfiguration, token: string, now: Date): Promise<ExternalToken | undefined> {
    const { authServers } = await tenant.issuance();
    if (authServers.length === 0) return undefined;
    const { authorizationServers, log } = this.ports;
    const credentialIssuer = tenant.issuer;
    const issuerOfToken = unverifiedIssuer(token);
    const issuer = authServers.find((server) => issuerOfToken !== undefined && isSameIssuer(server, issuerOfToken));
    if (issuer === undefined || serverOf(issuer, credentialIssuer) !== undefined) return undefined;
    try {
      const { tenantId } = tenant;
      const expected = { tenantId, audience: credentialIssuer, types: EXTERNAL_TOKEN_TYPES, now };
      const verifiedToken = await authorizationServers.verifyToken(issuer, token, expected);
      return parseExternalToken(verifiedToken, { credentialIssuer, configurations: await externallyGrantable(tenant) });
    } catch (error) {
      const { tenantId } = tenant;
      if (error instanceof ForeignTokenError) {
        const { reason } = error;
        log.warn('an access token of an external authorization server was rejected', { tenantId, issuer, reason });
        throw new Failure('invalid_token', 'the access token is invalid or expired');
      }
      if (!(error instanceof AuthorizationServerError)) throw error;
      log.warn('an external authorization server cannot be used', { tenantId, issuer, reason: error.fault });
      throw new Failure('unavailable', {
        message: 'the keys of the authorization server are unavailable at present',
        retryAfterSeconds: RETRY_SECONDS,
      });
    }
  }
}

/** Configurations that require an interaction are issued by the built-in server only. */
async function externallyGrantable(tenant: TenantConfiguration): Promise<readonly RequestableConfiguration[]> {
  return tenant.derive('external-tokens/configurations', async () =>
    (await tenant.credentialConfigurations())
      .filter(({ iaeActions }) => (iaeActions?.length ?? 0) === 0)
      .map((configuration) => ({ id: configuration.id, scope: scopeOf(configuration) })),
  );
}
