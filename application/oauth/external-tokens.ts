import { scopeOf } from '../../domain/issuance/metadata.ts';
import type { RequestableConfiguration } from '../../domain/oauth/authorization-request.ts';
import { EXTERNAL_TOKEN_TYPES, type ExternalToken, namedIssuer, parseExternalToken } from '../../domain/oauth/external-token.ts';
import { ForeignTokenError } from '../../domain/oauth/foreign-token.ts';
import { serverOf } from '../../domain/oauth/servers.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { isSameIssuer } from '../../domain/shared/web-address.ts';
import { needs } from '../needs.ts';
import { AuthorizationServerError, AuthorizationServers } from '../ports/authorization-servers.ts';
import { Log } from '../ports/log.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** What a wallet is told to wait for when the keys of its authorization server cannot be had. */
const RETRY_SECONDS = 15;

/** Verifies access tokens of the external authorization servers that a tenant names. */
export class ExternalTokens extends needs({ authorizationServers: AuthorizationServers, log: Log }) {
  /**
   * Nothing is asked of anybody but the configured server that the token names.
   * @returns undefined for a token of no such server.
   * @throws Failure `invalid_token`, `unavailable`.
   */
  async verify(configured: TenantConfiguration, token: string, now: Date): Promise<ExternalToken | undefined> {
    const { authServers } = await configured.issuance();
    if (authServers.length === 0) return undefined;
    const { authorizationServers, log } = this.ports;
    const credentialIssuer = configured.issuer;
    const named = namedIssuer(token);
    const issuer = authServers.find((server) => named !== undefined && isSameIssuer(server, named));
    if (issuer === undefined || serverOf(issuer, credentialIssuer) !== undefined) return undefined;
    try {
      const { tenantId } = configured;
      const expected = { tenantId, audience: credentialIssuer, types: EXTERNAL_TOKEN_TYPES, now };
      const verified = await authorizationServers.verifyToken(issuer, token, expected);
      return parseExternalToken(verified, { credentialIssuer, configurations: await grantable(configured) });
    } catch (error) {
      const { tenantId } = configured;
      if (error instanceof ForeignTokenError) {
        const { reason } = error;
        log.warn('an access token of an external authorization server was refused', { tenantId, issuer, reason });
        throw new Failure('invalid_token', 'the access token is invalid or expired');
      }
      if (!(error instanceof AuthorizationServerError)) throw error;
      log.warn('an external authorization server cannot be used', { tenantId, issuer, reason: error.fault });
      throw new Failure('unavailable', {
        message: 'the keys of the authorization server cannot be had at the moment',
        retryAfterSeconds: RETRY_SECONDS,
      });
    }
  }
}

/** What asks for an interaction first is issued at our own server, which sees to that. */
async function grantable(configured: TenantConfiguration): Promise<readonly RequestableConfiguration[]> {
  return configured.derive('external-tokens/configurations', async () =>
    (await configured.credentialConfigurations())
      .filter(({ iaeActions }) => (iaeActions?.length ?? 0) === 0)
      .map((configuration) => ({ id: configuration.id, scope: scopeOf(configuration) })),
  );
}
