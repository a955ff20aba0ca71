import { createSecretKey } from 'node:crypto';
import { attestationChallenge } from '../../../application/oauth/challenges.ts';
import { ClientAuthenticator, type ClientCredentials } from '../../../application/oauth/client-authenticator.ts';
import { ClientKeys } from '../../../application/oauth/client-keys.ts';
import type { ShownConsent } from '../../../application/oauth/decide-authorization.ts';
import type { UpstreamResponse } from '../../../application/oauth/finish-upstream-login.ts';
import type { OAuthRequest } from '../../../application/oauth/oauth-callers.ts';
import { WalletProviderTrust } from '../../../application/oauth/wallet-provider-trust.ts';
import type { ServiceSettings } from '../../../application/ports/settings.ts';
import type { ConfigurationCache } from '../../../application/tenant-cache/configuration-cache.ts';
import { TenantConfiguration } from '../../../application/tenant-cache/tenant-configuration.ts';
import { TrustLists } from '../../../application/trust-lists/remote-trust-lists.ts';
import {
  defaultIssuance,
  type EffectiveIssuance,
  effectiveIssuance,
  IssuanceConfigurationBody,
} from '../../../domain/issuance/issuance-configuration.ts';
import type { Authorization } from '../../../domain/oauth/authorization.ts';
import { parseHandle } from '../../../domain/oauth/handle.ts';
import type { InteractionResponse } from '../../../domain/oauth/interaction-draft.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { Profile } from '../../../domain/shared/finding.ts';
import type { SessionId } from '../../../domain/shared/ids.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { firstRevisions } from '../../../domain/tenants/revisions.ts';
import { inlineTrustLists, UPSTREAM } from '../../support/fakes.ts';
import { AUTHORIZATION_REQUEST, CODE_VERIFIER, type HolderKey, newKey } from '../../support/raw-wallet.ts';
import { type AttestationOptions, type PopOptions, WalletProvider } from '../../support/wallet-provider.ts';
import { ACME, type FetchedRequest, type PresentationChanges, PUBLIC_URL, present, query, World } from '../verification/kit.ts';
import { anOffer, Wallet, WalletWorld } from '../wallet-kit.ts';

export const SERVER = `${PUBLIC_URL}/acme`;

/** A tenant with a fixed issuance configuration. */
class ConfiguredView extends TenantConfiguration {
  readonly #body: EffectiveIssuance;

  constructor(world: World, body: IssuanceConfigurationBody, profile: Profile | null, memory?: ConfigurationCache) {
    const revisions = firstRevisions(new Date(0));
    super(world, { id: ACME, status: 'active', revision: 1, revisions, profile }, memory);
    this.#body = effectiveIssuance(body, profile);
  }

  override async issuance(): Promise<EffectiveIssuance> {
    return this.#body;
  }
}

export type ClientRequest = {
  readonly form?: Record<string, string>;
  readonly attestation?: AttestationOptions;
  readonly pop?: PopOptions;
  readonly audience?: string;
  /** Replaces the header fields. */
  readonly fields?: Partial<Pick<ClientCredentials, 'attestation' | 'attestationPop'>>;
};

/** An authorization server, a wallet provider with a trust list, and one wallet instance. */
export class ClientWorld {
  readonly world: World;
  readonly provider: WalletProvider;
  readonly settings: ServiceSettings;
  readonly instance: HolderKey = newKey();
  readonly trustLists: TrustLists;
  readonly walletProviderTrust: WalletProviderTrust;
  readonly authenticator: ClientAuthenticator;
  tenant: TenantConfiguration;

  private constructor(world: World, provider: WalletProvider) {
    this.world = world;
    this.provider = provider;
    this.settings = { ...world.settings, nonceKeys: [createSecretKey(Buffer.alloc(32, 1))] };
    this.trustLists = new TrustLists({ ...world, trustListReader: inlineTrustLists() });
    this.walletProviderTrust = new WalletProviderTrust({ ...world, trustLists: this.trustLists });
    this.authenticator = new ClientAuthenticator({
      ...world,
      settings: this.settings,
      walletProviderTrust: this.walletProviderTrust,
      clientKeys: new ClientKeys(world),
    });
    this.tenant = this.configure();
    world.remote.answer = (url) => {
      const { status, type, body } = provider.answer(new URL(url).pathname);
      return { status, contentType: type, body: Buffer.from(body) };
    };
  }

  static async make(): Promise<ClientWorld> {
    const world = await World.make();
    return new ClientWorld(world, await WalletProvider.make(() => world.seconds));
  }

  /** @param changes to a configuration that requires attestations of the provider. */
  configure(changes: Record<string, unknown> = {}, profile: Profile | null = null, memory?: ConfigurationCache): TenantConfiguration {
    const base = { ...defaultIssuance('Acme'), ...this.provider.configuration(), ...changes };
    this.tenant = new ConfiguredView(this.world, IssuanceConfigurationBody.parse(base), profile, memory);
    return this.tenant;
  }

  challenge(issuer = SERVER): string {
    return attestationChallenge({ ...this.world, settings: this.settings }, ACME, issuer, this.now);
  }

  get now(): Date {
    return this.world.clock.now();
  }

  /** Returns the credentials of an attested wallet, valid except for the changes in `clientRequest`. */
  credentials(clientRequest: ClientRequest = {}): ClientCredentials {
    const pop = { challenge: this.challenge(), ...clientRequest.pop };
    return {
      form: clientRequest.form ?? { client_id: this.provider.clientId },
      attestation: [this.provider.attestation(this.instance, clientRequest.attestation)],
      attestationPop: [this.provider.pop(this.instance, SERVER, pop)],
      ...clientRequest.fields,
    };
  }

  authenticate(clientRequest: ClientRequest = {}) {
    const { audience = SERVER } = clientRequest;
    return this.authenticator.execute(this.tenant, audience, this.credentials(clientRequest), this.now);
  }

  /** Returns the code of the failure, or the kind of the client. */
  async outcome(clientRequest: ClientRequest = {}): Promise<string> {
    try {
      return (await this.authenticate(clientRequest)).kind;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      return error.code;
    }
  }

  async failure(clientRequest: ClientRequest = {}): Promise<Failure> {
    try {
      await this.authenticate(clientRequest);
    } catch (error) {
      if (error instanceof Failure) return error;
      throw error;
    }
    throw new Error('nothing failed');
  }
}

export const PRESENTATION = 'urn:openid:dcp:ia:openid4vp_presentation';
export const WEB = 'urn:openid:dcp:ia:auth_via_web';
export const PAGE = 'https://shop.example/page?visit={auth_session}';

type Form = Readonly<Record<string, string | undefined>>;

/** The step that the server requires from an interactive wallet. */
export type InteractionStep = {
  /** The id of the authorization. */
  readonly id: string;
  readonly authSession: string;
  readonly request: JsonObject;
  readonly requestUri: string;
};

/**
 * An issuer with these configurations: `badge` requires a card, `notified` the same with a webhook, `encrypted` the same with encryption,
 * `visitor` a visit of a page, `confirmed` a page with a callback, `both` a card and a page, `tour` two pages.
 */
export async function interactiveWorld(): Promise<WalletWorld> {
  const world = await WalletWorld.open();
  await world.putIssuance({ builtInAs: { walletInitiated: true } });
  const check = { dcql_query: query({ id: 'card' }), responseMode: 'direct_post' };
  await world.putPresentation({ ...check, id: 'check', webhook: null });
  await world.putPresentation({ ...check, id: 'notified' });
  await world.putPresentation({ ...check, id: 'encrypted', webhook: null, responseMode: 'direct_post.jwt' });
  const presents = (presentationConfigId: string) => ({ type: 'openid4vp_presentation', presentationConfigId });
  const page = { type: 'redirect_to_web', url: PAGE };
  await world.putCredential({ id: 'badge', iaeActions: [presents('check')] });
  await world.putCredential({ id: 'notified', iaeActions: [presents('notified')] });
  await world.putCredential({ id: 'encrypted', iaeActions: [presents('encrypted')] });
  await world.putCredential({ id: 'visitor', iaeActions: [page] });
  await world.putCredential({ id: 'both', iaeActions: [presents('check'), page] });
  await world.putCredential({ id: 'tour', iaeActions: [page, { ...page, url: `${PAGE}&second=1` }] });
  const callbackUrl = 'https://shop.example/done';
  await world.putCredential({ id: 'confirmed', iaeActions: [{ ...page, callbackUrl }] });
  return world;
}

/** A wallet for interactive authorizations. */
export class InteractiveWallet extends Wallet {
  /** Cookies of its browser. */
  readonly browserSecrets = new Map<string, string>();

  send(form: Form, overrides: Partial<OAuthRequest> = {}): Promise<InteractionResponse> {
    const fields = Object.entries(form).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const request = this.createOAuthRequest('interactive-authorization', Object.fromEntries(fields), overrides);
    return this.world.interactiveAuthorization.execute(this.tenantId, request);
  }

  beginInteraction(scope: string, form: Form = {}, overrides: Partial<OAuthRequest> = {}): Promise<InteractionResponse> {
    const supportedTypes = `${PRESENTATION},${WEB}`;
    return this.send({ ...AUTHORIZATION_REQUEST, scope, interaction_types_supported: supportedTypes, ...form }, overrides);
  }

  /** Starts an authorization and returns its first step. */
  async startInteraction(scope: string, form: Form = {}): Promise<InteractionStep> {
    return parseStep(await this.beginInteraction(scope, form));
  }

  /** Starts an authorization for an offer, which has a session. */
  async startOfferedInteraction(scope: string) {
    const ids = { credentialConfigurationIds: [scope] };
    const { session } = await anOffer(this.world, { flow: 'authorization_code', ...ids });
    return { ...(await this.startInteraction(scope, { issuer_state: session.publicId })), session: session.id };
  }

  /** Continues with the current `auth_session`. */
  continueInteraction({ authSession }: Pick<InteractionStep, 'authSession'>, form: Form = {}, overrides: Partial<OAuthRequest> = {}) {
    return this.send({ auth_session: authSession, code_verifier: CODE_VERIFIER, ...form }, overrides);
  }

  /** Returns a vp_token that is valid except for `changes`. */
  vpToken({ request }: Pick<InteractionStep, 'request'>, changes: PresentationChanges = {}): JsonObject {
    const presentationRequest = { clientId: `ia:${PUBLIC_URL}`, nonce: request['nonce'] };
    return { card: [present(this.world, { request: presentationRequest } as unknown as FetchedRequest, changes)] };
  }

  sendPresentation(step: InteractionStep, changes: PresentationChanges = {}): Promise<InteractionResponse> {
    const response = JSON.stringify({ vp_token: this.vpToken(step, changes) });
    return this.continueInteraction(step, { openid4vp_response: response });
  }

  /** Opens the request URI in the browser and approves it. @returns the address of the page. */
  async visitPage({ id, requestUri }: InteractionStep): Promise<URL> {
    const { world, tenantId } = this;
    const browser = { clientId: AUTHORIZATION_REQUEST.client_id, requestUri };
    const consent = (await world.showAuthorization.execute(tenantId, browser)) as ShownConsent;
    this.browserSecrets.set(id, consent.cookie?.browserSecret ?? '');
    const { decision_token: decisionToken } = consent.fields;
    const { browserSecrets } = this;
    const decision = { ...browser, decision: 'approve', decisionToken, browserSecrets };
    const redirect = await world.decideAuthorization.execute(tenantId, decision);
    if (!('cookie' in redirect)) throw new Error('no page');
    this.browserSecrets.set(id, redirect.cookie.browserSecret);
    return new URL(redirect.location);
  }

  /** Returns from the page. @returns the parameters for the wallet. */
  async returnFromPage(page: URL): Promise<{ readonly authSession: string; readonly parameters: URLSearchParams }> {
    const pageHandle = page.searchParams.get('visit') ?? '';
    const { browserSecrets } = this;
    const pageReturn = { pageHandle, error: undefined, browserSecrets };
    const { location } = await this.world.returnToInteraction.execute(this.tenantId, pageReturn);
    const { searchParams: parameters } = new URL(location);
    return { authSession: parameters.get('auth_session') ?? '', parameters };
  }

  async storedAuthorization({ id }: Pick<InteractionStep, 'id'>): Promise<Authorization | undefined> {
    return (await this.world.store.read(ACME).authorization(id))?.authorization;
  }
}

export function parseStep({ body }: InteractionResponse): InteractionStep {
  const authSession = String(body['auth_session']);
  return {
    id: parseHandle(authSession)?.id ?? '',
    authSession,
    request: (body['openid4vp_request'] ?? {}) as JsonObject,
    requestUri: String(body['request_uri'] ?? ''),
  };
}

/** Returns the authorization code of a successful interactive authorization. */
export function authorizationCodeOf({ body }: InteractionResponse): string {
  const { authorization_code: code, ...rest } = body;
  if (typeof code !== 'string' || Object.keys(rest).length > 0) throw new Error('this is no code');
  return code;
}

export type Login = {
  /** The id of the authorization. */
  readonly id: string;
  readonly session: SessionId;
  /** The login page of the provider. */
  readonly location: URL;
  readonly browserSecrets: ReadonlyMap<string, string>;
};

/** A tenant whose users log in at a provider, an unauthenticated wallet, and a browser. */
export class LoginWorld {
  readonly world: WalletWorld;
  readonly wallet: Wallet;

  private constructor(world: WalletWorld) {
    this.world = world;
    this.wallet = new Wallet(world);
  }

  static async open(): Promise<LoginWorld> {
    const logins = new LoginWorld(await WalletWorld.open());
    await logins.configure();
    return logins;
  }

  async configure(changes: object = {}, upstream: object = {}): Promise<void> {
    const provider = { issuer: UPSTREAM, clientId: 'vidimus', clientSecret: 'secret', ...upstream };
    await this.world.putIssuance({ chainedAs: { upstream: provider, ...changes } });
  }

  get server(): string {
    return `${this.wallet.issuer}/chained-as`;
  }

  /** Pushes an authorization request for an offer. */
  async push(): Promise<{ readonly requestUri: string; readonly session: SessionId }> {
    const { session } = await anOffer(this.world, { flow: 'authorization_code' });
    const form = { issuer_state: session.publicId };
    return { requestUri: await this.wallet.push(form, { server: 'chained' }), session: session.id };
  }

  openLogin(requestUri: string) {
    const clientId = AUTHORIZATION_REQUEST.client_id;
    return this.world.startUpstreamLogin.execute(ACME, { clientId, requestUri });
  }

  /** Starts a login: the browser was redirected to the provider. */
  async start(): Promise<Login> {
    const { requestUri, session } = await this.push();
    const { location, cookie } = await this.openLogin(requestUri);
    if (cookie === undefined) throw new Error('no login was started');
    const { authorizationId: id, browserSecret } = cookie;
    return { id, session, location: new URL(location), browserSecrets: new Map([[id, browserSecret]]) };
  }

  /** Returns to the service with a code. Undefined parameters are omitted. */
  finish({ location, browserSecrets }: Login, changes: { readonly [name in keyof UpstreamResponse]?: UpstreamResponse[name] } = {}) {
    const state = location.searchParams.get('state') ?? undefined;
    const response = { code: 'the code', state, error: undefined, iss: UPSTREAM, browserSecrets, ...changes };
    return this.world.finishUpstreamLogin.execute(ACME, response);
  }

  async storedAuthorization(id: string): Promise<Authorization | undefined> {
    return (await this.world.store.read(ACME).authorization(id))?.authorization;
  }

  async failSession({ session: id }: Pick<Login, 'session'>): Promise<void> {
    const change = { id, anytime: ['active', 'fetched'], to: 'failed' } as const;
    await this.world.store.commit(ACME, { session: change }, this.world.clock.now());
  }

  /** Returns the parameters of a redirect to the wallet, without the error description. */
  redirectParameters(location: string): Record<string, string> {
    const { keep: _, error_description: __, ...rest } = Object.fromEntries(new URL(location).searchParams);
    return rest;
  }

  /** Returns the parameters of a redirect with an error. */
  errorParameters(error: string): Record<string, string> {
    return { error, state: AUTHORIZATION_REQUEST.state, iss: this.server };
  }
}
