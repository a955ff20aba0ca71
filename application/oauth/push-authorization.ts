import { REQUEST_URI_LIFETIME_SECONDS, REQUEST_URI_PREFIX } from '../../domain/oauth/authorization.ts';
import type { AuthorizationRequest } from '../../domain/oauth/authorization-request.ts';
import type { AuthorizationServer } from '../../domain/oauth/grant.ts';
import { createHandle, hashSecret } from '../../domain/oauth/handle.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { boundTo, findOffer, newAuthorization, parseRequest } from './authorization-requests.ts';
import { DpopProofs } from './dpop-proofs.ts';
import { OAuthCallers, type OAuthRequest } from './oauth-callers.ts';
import { openAuthorization } from './pushed-requests.ts';

export type PushedRequest = {
  readonly body: { readonly request_uri: string; readonly expires_in: number };
  /** Nonce for the proof of the token request, also if the wallet sent no proof yet (RFC 9449 section 8.2). */
  readonly dpopNonce: string | undefined;
};

/** A pushed authorization request (RFC 9126, OpenID4VCI 1.0 section 5.1.4). */
export class PushAuthorization extends needs({
  ...TRANSACTION_PORTS,
  oauthCallers: OAuthCallers,
  dpopProofs: DpopProofs,
  random: Random,
  settings: ServiceSettings,
}) {
  /** @throws Failure `invalid_request`, `invalid_scope` and others of the request, and the failures of `OAuthCallers`. */
  async execute(tenantId: TenantId, server: AuthorizationServer, oauth: OAuthRequest): Promise<PushedRequest> {
    const { store, tenantConfigurations, oauthCallers, dpopProofs, clock, random } = this.ports;
    const now = clock.now();
    const tenant = await tenantConfigurations.readServing(tenantId);
    const caller = await oauthCallers.identify(tenant, server, 'par', oauth, now);
    const pushed = await parseRequest(this.ports, tenant, oauth.form, caller);
    const { request } = pushed;
    await assertNotInteractive(tenant, request);
    const session = await findOffer(this.ports, tenant, server, pushed, now);
    const secret = random.token(256);
    const authorization = newAuthorization(random, now, {
      server,
      stage: 'pushed',
      request,
      holder: boundTo(caller, oauth.form['dpop_jkt']),
      session,
      handles: { request_uri: hashSecret(secret) },
    });
    await openAuthorization(store, tenantId, authorization, caller, now);
    return {
      body: { request_uri: REQUEST_URI_PREFIX + createHandle(authorization.id, secret), expires_in: REQUEST_URI_LIFETIME_SECONDS },
      dpopNonce: await dpopProofs.nonce(tenant, { issuer: tenant.issuerOf(server), now }),
    };
  }
}

async function assertNotInteractive(tenant: TenantConfiguration, { credentialConfigurationIds: ids }: AuthorizationRequest): Promise<void> {
  const interactive = (await tenant.credentialConfigurations()).find(
    ({ id, iaeActions }) => ids.includes(id) && (iaeActions?.length ?? 0) > 0,
  );
  if (interactive === undefined) return;
  throw new Failure('invalid_request', `${interactive.id} is issued by interactive authorization only`);
}
