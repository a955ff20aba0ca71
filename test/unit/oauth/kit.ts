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
import type { WireResponse } from '../../../domain/oauth/interaction-wire.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { Profile } from '../../../domain/shared/finding.ts';
import type { SessionId } from '../../../domain/shared/ids.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { firstRevisions } from '../../../domain/tenants/revisions.ts';
import { inlineTrustLists, UPSTREAM } from '../../support/fakes.ts';
import { AUTHORIZATION_REQUEST, CODE_VERIFIER, type HolderKey, newKey } from '../../support/raw-wallet.ts';
import { type AttestationOptions, type PopOptions, WalletProvider } from '../../support/wallet-provider.ts';
import { ACME, type Asked, type Changes, PUBLIC_URL, present, query, World } from '../verification/kit.ts';
import { anOffer, Wallet, WalletWorld } from '../wallet-kit.ts';

export const SERVER = `${PUBLIC_URL}/acme`;

/** A tenant that issues as a test says. */
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

export type Sent = {
  readonly form?: Record<string, string>;
  readonly attestation?: AttestationOptions;
  readonly pop?: PopOptions;
  readonly audience?: string;
  /** Replaces the header fields. */
  readonly fields?: Partial<Pick<ClientCredentials, 'attestation' | 'attestationPop'>>;
};

/** An authorization server, a wallet provider whose list is served, and one installation of its wallet. */
export class ClientWorld {
  readonly world: World;
  readonly provider: WalletProvider;
  readonly settings: ServiceSettings;
  readonly instance: HolderKey = newKey();
  readonly trustLists: TrustLists;
  readonly walletProviderTrust: WalletProviderTrust;
  readonly authenticator: ClientAuthenticator;
  configured: TenantConfiguration;

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
    this.configured = this.configure();
    world.remote.answer = (url) => {
      const { status, type, body } = provider.answer(new URL(url).pathname);
      return { status, contentType: type, body: Buffer.from(body) };
    };
  }

  static async make(): Promise<ClientWorld> {
    const world = await World.make();
    return new ClientWorld(world, await WalletProvider.make(() => world.seconds));
  }

  /** @param changes of a configuration that requires attestations of the provider. */
  configure(changes: Record<string, unknown> = {}, profile: Profile | null = null, memory?: ConfigurationCache): TenantConfiguration {
    const base = { ...defaultIssuance('Acme'), ...this.provider.configuration(), ...changes };
    this.configured = new ConfiguredView(this.world, IssuanceConfigurationBody.parse(base), profile, memory);
    return this.configured;
  }

  challenge(issuer = SERVER): string {
    return attestationChallenge({ ...this.world, settings: this.settings }, ACME, issuer, this.now);
  }

  get now(): Date {
    return this.world.clock.now();
  }

  /** What an attested wallet sends that is right in every respect that `sent` does not touch. */
  credentials(sent: Sent = {}): ClientCredentials {
    const pop = { challenge: this.challenge(), ...sent.pop };
    return {
      form: sent.form ?? { client_id: this.provider.clientId },
      attestation: [this.provider.attestation(this.instance, sent.attestation)],
      attestationPop: [this.provider.pop(this.instance, SERVER, pop)],
      ...sent.fields,
    };
  }

  authenticate(sent: Sent = {}) {
    const { audience = SERVER } = sent;
    return this.authenticator.execute(this.configured, audience, this.credentials(sent), this.now);
  }

  /** The code of the failure, or the kind of client. */
  async outcome(sent: Sent = {}): Promise<string> {
    try {
      return (await this.authenticate(sent)).kind;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      return error.code;
    }
  }

  async failure(sent: Sent = {}): Promise<Failure> {
    try {
      await this.authenticate(sent);
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

/** What an interactive wallet was asked for. */
export type Required = {
  /** The authorization. */
  readonly id: string;
  readonly authSession: string;
  readonly request: JsonObject;
  readonly requestUri: string;
};

/**
 * An issuer of badges: `badge` for holders of a card, `told` and `sealed` the same with a webhook and with encryption,
 * `visitor` for visitors of a page, `confirmed` with a customer who is asked, `both` for one after the other.
 */
export async function interactiveWorld(): Promise<WalletWorld> {
  const world = await WalletWorld.open();
  await world.issues({ builtInAs: { walletInitiated: true } });
  const check = { dcql_query: query({ id: 'card' }), responseMode: 'direct_post' };
  await world.verifies({ ...check, id: 'check', webhook: null });
  await world.verifies({ ...check, id: 'told' });
  await world.verifies({ ...check, id: 'sealed', webhook: null, responseMode: 'direct_post.jwt' });
  const presents = (presentationConfigId: string) => ({ type: 'openid4vp_presentation', presentationConfigId });
  const page = { type: 'redirect_to_web', url: PAGE };
  await world.offers({ id: 'badge', iaeActions: [presents('check')] });
  await world.offers({ id: 'told', iaeActions: [presents('told')] });
  await world.offers({ id: 'sealed', iaeActions: [presents('sealed')] });
  await world.offers({ id: 'visitor', iaeActions: [page] });
  await world.offers({ id: 'both', iaeActions: [presents('check'), page] });
  await world.offers({ id: 'tour', iaeActions: [page, { ...page, url: `${PAGE}&second=1` }] });
  const callbackUrl = 'https://shop.example/done';
  await world.offers({ id: 'confirmed', iaeActions: [{ ...page, callbackUrl }] });
  return world;
}

/** A wallet that goes through interactive authorizations step by step. */
export class InteractiveWallet extends Wallet {
  /** What its browser was given to keep. */
  readonly browserSecrets = new Map<string, string>();

  post(form: Form, more: Partial<OAuthRequest> = {}): Promise<WireResponse> {
    const sent = Object.entries(form).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const request = this.oauth('interactive-authorization', Object.fromEntries(sent), more);
    return this.world.interactiveAuthorization.execute(this.tenantId, request);
  }

  begin(scope: string, form: Form = {}, more: Partial<OAuthRequest> = {}): Promise<WireResponse> {
    const types = `${PRESENTATION},${WEB}`;
    return this.post({ ...AUTHORIZATION_REQUEST, scope, interaction_types_supported: types, ...form }, more);
  }

  /** Begins and reads what is asked for. */
  async asked(scope: string, form: Form = {}): Promise<Required> {
    return required(await this.begin(scope, form));
  }

  /** For an offer, so that there is a session to look at. */
  async offered(scope: string) {
    const ids = { credentialConfigurationIds: [scope] };
    const { session } = await anOffer(this.world, { flow: 'authorization_code', ...ids });
    return { ...(await this.asked(scope, { issuer_state: session.publicId })), session: session.id };
  }

  /** Answers with the present `auth_session`. */
  goOn({ authSession }: Pick<Required, 'authSession'>, form: Form = {}, more: Partial<OAuthRequest> = {}) {
    return this.post({ auth_session: authSession, code_verifier: CODE_VERIFIER, ...form }, more);
  }

  /** What is presented, right in every respect that `changes` does not touch. */
  vpToken({ request }: Pick<Required, 'request'>, changes: Changes = {}): JsonObject {
    const to = { clientId: `ia:${PUBLIC_URL}`, nonce: request['nonce'] };
    return { card: [present(this.world, { request: to } as unknown as Asked, changes)] };
  }

  presenting(asked: Required, changes: Changes = {}): Promise<WireResponse> {
    const response = JSON.stringify({ vp_token: this.vpToken(asked, changes) });
    return this.goOn(asked, { openid4vp_response: response });
  }

  /** The browser opens the address that the wallet was given, and its user approves; then it is at the page. */
  async visit({ id, requestUri }: Required): Promise<URL> {
    const { world, tenantId } = this;
    const browser = { clientId: AUTHORIZATION_REQUEST.client_id, requestUri };
    const shown = (await world.showAuthorization.execute(tenantId, browser)) as ShownConsent;
    this.browserSecrets.set(id, shown.cookie?.browserSecret ?? '');
    const { decision_token: decisionToken } = shown.fields;
    const { browserSecrets } = this;
    const answer = { ...browser, decision: 'approve', decisionToken, browserSecrets };
    const sent = await world.decideAuthorization.execute(tenantId, answer);
    if (!('cookie' in sent)) throw new Error('no page');
    this.browserSecrets.set(id, sent.cookie.browserSecret);
    return new URL(sent.location);
  }

  /** The browser comes back from the page. @returns what it brings to the wallet. */
  async comeBack(page: URL): Promise<{ readonly authSession: string; readonly sent: URLSearchParams }> {
    const pageHandle = page.searchParams.get('visit') ?? '';
    const { browserSecrets } = this;
    const returned = { pageHandle, error: undefined, browserSecrets };
    const { location } = await this.world.returnToInteraction.execute(this.tenantId, returned);
    const { searchParams: sent } = new URL(location);
    return { authSession: sent.get('auth_session') ?? '', sent };
  }

  async stored({ id }: Pick<Required, 'id'>): Promise<Authorization | undefined> {
    return (await this.world.store.read(ACME).authorization(id))?.authorization;
  }
}

export function required({ body }: WireResponse): Required {
  const authSession = String(body['auth_session']);
  return {
    id: parseHandle(authSession)?.id ?? '',
    authSession,
    request: (body['openid4vp_request'] ?? {}) as JsonObject,
    requestUri: String(body['request_uri'] ?? ''),
  };
}

/** The code that ends an interactive authorization well. */
export function codeOf({ body }: WireResponse): string {
  const { authorization_code: code, ...others } = body;
  if (typeof code !== 'string' || Object.keys(others).length > 0) throw new Error('this is no code');
  return code;
}

export type Login = {
  /** The authorization. */
  readonly id: string;
  readonly session: SessionId;
  /** Where the browser is sent to log in. */
  readonly location: URL;
  readonly browserSecrets: ReadonlyMap<string, string>;
};

/** A tenant whose users log in at a provider, a wallet that proves nothing, and the browser between them. */
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
    await this.world.issues({ chainedAs: { upstream: provider, ...changes } });
  }

  get server(): string {
    return `${this.wallet.issuer}/chained-as`;
  }

  /** Pushes a request for an offer. */
  async push(): Promise<{ readonly requestUri: string; readonly session: SessionId }> {
    const { session } = await anOffer(this.world, { flow: 'authorization_code' });
    const form = { issuer_state: session.publicId };
    return { requestUri: await this.wallet.push(form, { server: 'chained' }), session: session.id };
  }

  visit(requestUri: string) {
    const clientId = AUTHORIZATION_REQUEST.client_id;
    return this.world.startUpstreamLogin.execute(ACME, { clientId, requestUri });
  }

  /** A browser that was sent to the provider. */
  async start(): Promise<Login> {
    const { requestUri, session } = await this.push();
    const { location, cookie } = await this.visit(requestUri);
    if (cookie === undefined) throw new Error('nobody logs in');
    const { authorizationId: id, browserSecret } = cookie;
    return { id, session, location: new URL(location), browserSecrets: new Map([[id, browserSecret]]) };
  }

  /** The browser comes back with a code; a member that is undefined is left out. */
  finish({ location, browserSecrets }: Login, changes: { readonly [name in keyof UpstreamResponse]?: UpstreamResponse[name] } = {}) {
    const state = location.searchParams.get('state') ?? undefined;
    const response = { code: 'the code', state, error: undefined, iss: UPSTREAM, browserSecrets, ...changes };
    return this.world.finishUpstreamLogin.execute(ACME, response);
  }

  async stored(id: string): Promise<Authorization | undefined> {
    return (await this.world.store.read(ACME).authorization(id))?.authorization;
  }

  async end({ session: id }: Pick<Login, 'session'>): Promise<void> {
    const failed = { id, anytime: ['active', 'fetched'], to: 'failed' } as const;
    await this.world.store.commit(ACME, { session: failed }, this.world.clock.now());
  }

  /** What the wallet learns, without the words for humans. */
  told(location: string): Record<string, string> {
    const { keep: _, error_description: __, ...rest } = Object.fromEntries(new URL(location).searchParams);
    return rest;
  }

  /** What a wallet is told that gets no code. */
  refusal(error: string): Record<string, string> {
    return { error, state: AUTHORIZATION_REQUEST.state, iss: this.server };
  }
}
