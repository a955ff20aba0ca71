import { hasBuiltIn } from '../../domain/issuance/issuance-configuration.ts';
import type { AcceptedDpopProof } from '../../domain/oauth/dpop.ts';
import type { AuthorizationServer, GrantHolder } from '../../domain/oauth/grant.ts';
import type { UsedValue } from '../../domain/oauth/used-value.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { needs } from '../needs.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { type AuthenticatedClient, ClientAuthenticator, type ClientCredentials } from './client-authenticator.ts';
import { DpopProofs } from './dpop-proofs.ts';

/** A request to an endpoint of an authorization server, as it came. */
export type OAuthRequest = Omit<ClientCredentials, 'dpop'> & {
  /** Every `DPoP` header field. */
  readonly dpop: readonly string[];
  /** Names the request in the log. */
  readonly requestId?: string;
};

/** The endpoints of an authorization server that wallets post to, below its issuer. */
export type OAuthEndpoint = 'par' | 'token' | 'interactive-authorization';

/** Who calls an authorization server and which key the caller holds. */
export type OAuthCaller = {
  readonly client: AuthenticatedClient;
  readonly proof: AcceptedDpopProof | undefined;
  /** What the call spends, with the commit that does what it asks for. */
  readonly used: readonly UsedValue[];
};

/** Authenticates callers of the authorization servers: the client, then its DPoP proof. */
export class OAuthCallers extends needs({ clientAuthenticator: ClientAuthenticator, dpopProofs: DpopProofs }) {
  /**
   * The one who asks for tokens needs a proof where this server binds them.
   * @throws Failure `not_found` for a tenant without this server, `invalid_client` and the codes of client attestations,
   *   `invalid_dpop_proof`, `use_dpop_nonce`.
   */
  async identify(
    configured: TenantConfiguration,
    server: AuthorizationServer,
    endpoint: OAuthEndpoint,
    request: OAuthRequest,
    now: Date,
  ): Promise<OAuthCaller> {
    const { clientAuthenticator, dpopProofs } = this.ports;
    await assertServed(configured, server);
    const issuer = configured.issuerOf(server);
    const client = await clientAuthenticator.execute(configured, issuer, request, now);
    if (request.dpop.length === 0) {
      if (endpoint === 'token' && (await bindsTokens(configured, server))) {
        throw new Failure('invalid_dpop_proof', 'this issuer binds access tokens: send a DPoP proof');
      }
      return { client, proof: undefined, used: client.used };
    }
    const proof = await dpopProofs.verify(configured, request.dpop, {
      method: 'POST',
      url: `${issuer}/${endpoint}`,
      issuer,
      now,
      ...(client.hasChallengeInDpop && { hasChallenge: true }),
    });
    return {
      client,
      proof,
      used: [...client.used, { kind: 'dpop_jti', hash: proof.hash, expiresAt: proof.expiresAt }],
    };
  }
}

/** What binds tokens to a caller. */
export function holderOf({ client, proof }: OAuthCaller): GrantHolder {
  return {
    ...defined({ clientId: client.clientId, instance: client.instance, keyThumbprint: proof?.thumbprint }),
    ...(client.kind === 'attested' || client.kind === 'registered' ? { authenticated: true } : {}),
  };
}

/** Whether access tokens of this server are bound to a key. */
async function bindsTokens(configured: TenantConfiguration, server: AuthorizationServer): Promise<boolean> {
  const { dPopRequired, chainedAs } = await configured.issuance();
  return server === 'chained' ? (chainedAs?.requireDPoP ?? true) : dPopRequired;
}

/** @throws Failure `not_found` for a tenant without this authorization server. */
export async function assertServed(configured: TenantConfiguration, server: AuthorizationServer): Promise<void> {
  const issuance = await configured.issuance();
  const isServed = server === 'built-in' ? hasBuiltIn(issuance) : issuance.chainedAs?.enabled === true;
  if (!isServed) throw new Failure('not_found', 'unknown address');
}

/** The failure for a value that was used before. @param client who used it, at an authorization server. */
export function replayed(kind: UsedValue['kind'], client?: AuthenticatedClient): Failure {
  switch (kind) {
    case 'c_nonce':
      return new Failure('invalid_nonce', 'this nonce was used before');
    case 'client_jti':
      // RFC 7523 section 3; attestation-based client authentication (draft 10) section 11.1
      return client?.kind === 'registered'
        ? new Failure('invalid_client', 'this client_assertion was used before')
        : new Failure('invalid_client_attestation', 'this proof of possession was used before');
    case 'dpop_jti':
      // RFC 9449 section 11.1
      return new Failure('invalid_dpop_proof', 'this proof was used before');
  }
}

/** Like `replayed`, for a caller of an authorization server. */
export function replayedBy({ client }: OAuthCaller): (kind: UsedValue['kind']) => Failure {
  return (kind) => replayed(kind, client);
}
