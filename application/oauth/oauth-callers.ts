import { hasBuiltInServer } from '../../domain/issuance/issuance-configuration.ts';
import type { ConsumedValue } from '../../domain/oauth/consumed-value.ts';
import type { VerifiedDpopProof } from '../../domain/oauth/dpop.ts';
import type { AuthorizationServer, GrantHolder } from '../../domain/oauth/grant.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { needs } from '../needs.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { type AuthenticatedClient, ClientAuthenticator, type ClientCredentials } from './client-authenticator.ts';
import { DpopProofs } from './dpop-proofs.ts';

/** A request to an endpoint of an authorization server. */
export type OAuthRequest = Omit<ClientCredentials, 'dpop'> & {
  /** All `DPoP` header fields. */
  readonly dpop: readonly string[];
  readonly requestId?: string;
};

/** Endpoints that wallets post to, relative to the issuer. */
export type OAuthEndpoint = 'par' | 'token' | 'interactive-authorization';

/** An identified client and its key. */
export type OAuthCaller = {
  readonly client: AuthenticatedClient;
  readonly proof: VerifiedDpopProof | undefined;
  /** Values that the commit of the requested operation consumes. */
  readonly used: readonly ConsumedValue[];
};

/** Authenticates callers of the authorization servers: the client, then its DPoP proof. */
export class OAuthCallers extends needs({ clientAuthenticator: ClientAuthenticator, dpopProofs: DpopProofs }) {
  /**
   * Requires a DPoP proof at the token endpoint if the server binds tokens.
   * @throws Failure `not_found` for a tenant without this server, `invalid_client` and the codes of client attestations,
   *   `invalid_dpop_proof`, `use_dpop_nonce`.
   */
  async identify(
    tenant: TenantConfiguration,
    server: AuthorizationServer,
    endpoint: OAuthEndpoint,
    request: OAuthRequest,
    now: Date,
  ): Promise<OAuthCaller> {
    const { clientAuthenticator, dpopProofs } = this.ports;
    await assertServed(tenant, server);
    const issuer = tenant.issuerOf(server);
    const client = await clientAuthenticator.execute(tenant, issuer, request, now);
    if (request.dpop.length === 0) {
      if (endpoint === 'token' && (await bindsTokens(tenant, server))) {
        throw new Failure('invalid_dpop_proof', 'this issuer binds access tokens to keys: send a DPoP proof');
      }
      return { client, proof: undefined, used: client.used };
    }
    const proof = await dpopProofs.verify(tenant, request.dpop, {
      method: 'POST',
      url: `${issuer}/${endpoint}`,
      issuer,
      now,
      ...(client.hasChallengeInDpop && { hasChallenge: true }),
    });
    return { client, proof, used: [...client.used, { kind: 'dpop_jti', hash: proof.hash, expiresAt: proof.expiresAt }] };
  }
}

/** The holder that tokens are bound to. */
export function holderOf({ client, proof }: OAuthCaller): GrantHolder {
  return {
    ...defined({ clientId: client.clientId, instance: client.instance, keyThumbprint: proof?.thumbprint }),
    ...(client.kind === 'attested' || client.kind === 'registered' ? { authenticated: true } : {}),
  };
}

/** True if access tokens of this server are bound to a key. */
async function bindsTokens(tenant: TenantConfiguration, server: AuthorizationServer): Promise<boolean> {
  const { dPopRequired, chainedAs } = await tenant.issuance();
  return server === 'chained' ? (chainedAs?.requireDPoP ?? true) : dPopRequired;
}

/** @throws Failure `not_found` for a tenant without this authorization server. */
export async function assertServed(tenant: TenantConfiguration, server: AuthorizationServer): Promise<void> {
  const issuance = await tenant.issuance();
  const isServed = server === 'built-in' ? hasBuiltInServer(issuance) : issuance.chainedAs?.enabled === true;
  if (!isServed) throw new Failure('not_found', 'unknown address');
}

/** The failure for a consumed value. @param client who sent it to an authorization server. */
export function replayError(kind: ConsumedValue['kind'], client?: AuthenticatedClient): Failure {
  switch (kind) {
    case 'c_nonce':
      return new Failure('invalid_nonce', 'this nonce was already used');
    case 'client_jti':
      // RFC 7523 section 3; attestation-based client authentication (draft 10) section 11.1
      return client?.kind === 'registered'
        ? new Failure('invalid_client', 'this client_assertion was already used')
        : new Failure('invalid_client_attestation', 'this proof of possession was already used');
    case 'dpop_jti':
      // RFC 9449 section 11.1
      return new Failure('invalid_dpop_proof', 'this proof was already used');
  }
}

export function replayErrorFor({ client }: OAuthCaller): (kind: ConsumedValue['kind']) => Failure {
  return (kind) => replayError(kind, client);
}
