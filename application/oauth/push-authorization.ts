import { scopeOf } from '../../domain/issuance/metadata.ts';
import {
  AUTHORIZATION_LIFETIME_SECONDS,
  type Authorization,
  REQUEST_URI_LIFETIME_SECONDS,
  REQUEST_URI_PREFIX,
} from '../../domain/oauth/authorization.ts';
import {
  type AuthorizationRequest,
  readAuthorizationRequest,
} from '../../domain/oauth/authorization-request.ts';
import type { AuthorizationServer } from '../../domain/oauth/grant.ts';
import { hashSecret, makeHandle } from '../../domain/oauth/handle.ts';
import { issuerOf } from '../../domain/oauth/servers.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import {
  assertServed,
  holderOf,
  type OAuthCaller,
  type OAuthCallers,
  type OAuthRequest,
  replayed,
} from '../steps/oauth-callers.ts';
import { isMeantFor, isOffered } from '../steps/offered-sessions.ts';
import type { TenantView, TenantViews } from '../steps/tenant-views.ts';

type Ports = {
  readonly store: Store;
  readonly tenantViews: TenantViews;
  readonly oauthCallers: OAuthCallers;
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: ServiceSettings;
};

export type PushedRequest = { readonly request_uri: string; readonly expires_in: number };

/** A pushed authorization request (RFC 9126, OpenID4VCI 1.0 section 5.1.4). */
export class PushAuthorization {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `invalid_request`, `invalid_scope` and the like, and what `OAuthCallers` throws. */
  async execute(
    tenantId: TenantId,
    server: AuthorizationServer,
    oauth: OAuthRequest,
  ): Promise<PushedRequest> {
    const { store, tenantViews, oauthCallers, clock, random } = this.#ports;
    const now = clock.now();
    const beats = store.beats(tenantId);
    const view = tenantViews.ofWallet(await beats.head());
    await assertServed(view, server);
    const caller = await oauthCallers.identify(view, server, 'par', oauth, now, { dpopRequired: false });
    const request = await this.#read(view, oauth, caller);
    const session = await this.#session(view, server, request, now);
    const [id, secret] = [random.token(), random.token(256)];
    const authorization: Authorization = {
      id,
      server,
      version: 1,
      createdAt: now,
      expiresAt: new Date(now.getTime() + AUTHORIZATION_LIFETIME_SECONDS * 1000),
      stage: 'pushed',
      request,
      holder: boundTo(caller, oauth.form['dpop_jkt']),
      session,
      handles: { request_uri: hashSecret(secret) },
    };
    const opened = await beats.openAuthorization(authorization, caller.used);
    if (opened === undefined) throw new Failure('not_found', 'unknown address');
    if (opened !== 'opened') throw replayed(opened);
    return {
      request_uri: REQUEST_URI_PREFIX + makeHandle(id, secret),
      expires_in: REQUEST_URI_LIFETIME_SECONDS,
    };
  }

  async #read(view: TenantView, { form }: OAuthRequest, caller: OAuthCaller): Promise<AuthorizationRequest> {
    const issuer = issuerIdentifier(this.#ports.settings, view.tenantId);
    const configurations = await view.credentialConfigurations();
    const requestable = configurations.map((entry) => ({ id: entry.id, scope: scopeOf(entry) }));
    const { clientId } = caller.client;
    const named = clientId === undefined ? form : { ...form, client_id: clientId };
    const request = readAuthorizationRequest(named, { issuer, configurations: requestable });
    const { redirectUris } = caller.client;
    // FAPI 2.0 section 5.3.2.2: wallets that are registered keep to their registration
    if (redirectUris !== undefined && !redirectUris.includes(request.redirectUri)) {
      throw new Failure('invalid_request', 'redirect_uri is not registered for this client');
    }
    const interactive = configurations.find(
      ({ id, iaeActions }) =>
        request.credentialConfigurationIds.includes(id) && (iaeActions?.length ?? 0) > 0,
    );
    if (interactive !== undefined) {
      throw new Failure('invalid_request', `${interactive.id} is issued by interactive authorization only`);
    }
    return request;
  }

  /** @throws Failure `invalid_request` for an offer that is unknown or over, and without one where it is needed. */
  async #session(
    view: TenantView,
    server: AuthorizationServer,
    { issuerState, credentialConfigurationIds }: AuthorizationRequest,
    now: Date,
  ): Promise<Authorization['session']> {
    if (issuerState === undefined) {
      const { builtInAs } = await view.issuance();
      // Nobody logs in at the built-in server, so an offer has to say who is meant.
      if (server === 'chained' || builtInAs?.walletInitiated === true) return null;
      throw new Failure('invalid_request', 'this issuer needs the issuer_state of an offer');
    }
    const found = await this.#ports.store.beats(view.tenantId).findByPublicId(issuerState as PublicId);
    const session = found?.session;
    const issuer = issuerOf(server, issuerIdentifier(this.#ports.settings, view.tenantId));
    if (!isOffered(session, credentialConfigurationIds, now) || !isMeantFor(session, issuer)) {
      throw new Failure('invalid_request', 'issuer_state belongs to no offer of these credentials');
    }
    return { id: session.id, publicId: session.publicId };
  }
}

/** RFC 9449 section 10.1: the key of the proof and the announced one have to agree. */
function boundTo(caller: OAuthCaller, jkt: string | undefined): Authorization['holder'] {
  const holder = holderOf(caller);
  if (jkt === undefined) return holder;
  if (holder.keyThumbprint !== undefined && holder.keyThumbprint !== jkt) {
    throw new Failure('invalid_dpop_proof', 'dpop_jkt is not the key of the DPoP proof');
  }
  if (!/^[A-Za-z0-9_-]{43}$/.test(jkt)) throw new Failure('invalid_request', 'dpop_jkt is not a thumbprint');
  return { ...holder, keyThumbprint: jkt };
}
