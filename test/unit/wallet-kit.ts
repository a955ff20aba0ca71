import { NodeEncryption } from '../../adapters/crypto/encryption.ts';
import { InProcessEventBus } from '../../adapters/dispatch/in-process/event-bus.ts';
import { AjvSchemaValidator } from '../../adapters/system/schema-validator.ts';
import { BatchFactory } from '../../application/issuance/batch-factory.ts';
import { ClaimsProvider } from '../../application/issuance/claims-provider.ts';
import { CreateNonce } from '../../application/issuance/create-nonce.ts';
import { CreateOffer } from '../../application/issuance/create-offer.ts';
import { CredentialFactory } from '../../application/issuance/credential-factory.ts';
import { CredentialMessages } from '../../application/issuance/credential-messages.ts';
import { DecideDeferred } from '../../application/issuance/decide-deferred.ts';
import { FetchOffer } from '../../application/issuance/fetch-offer.ts';
import { HolderKeys } from '../../application/issuance/holder-keys.ts';
import { IssueCredential, type WalletRequest } from '../../application/issuance/issue-credential.ts';
import { GetIssuerMetadata } from '../../application/issuance/issuer-metadata.ts';
import { KeyAttestations } from '../../application/issuance/key-attestations.ts';
import { ReceiveNotification } from '../../application/issuance/receive-notification.ts';
import { RetrieveDeferred } from '../../application/issuance/retrieve-deferred.ts';
import { WalletFollower } from '../../application/issuance/wallet-follower.ts';
import { AcceptInteractionPage, AcceptInteractionPresentation } from '../../application/oauth/accept-interaction.ts';
import { AnswerTokenRequest } from '../../application/oauth/answer-token-request.ts';
import { AuthorizationCodeGrant } from '../../application/oauth/authorization-code-grant.ts';
import { AuthorizationCodes } from '../../application/oauth/authorization-codes.ts';
import { attestationChallenge } from '../../application/oauth/challenges.ts';
import { ClientAuthenticator } from '../../application/oauth/client-authenticator.ts';
import { ClientKeys } from '../../application/oauth/client-keys.ts';
import { ConfirmWallet } from '../../application/oauth/confirm-wallet.ts';
import { CreateChallenge } from '../../application/oauth/create-challenge.ts';
import { DecideAuthorization, ShowAuthorization } from '../../application/oauth/decide-authorization.ts';
import { DpopProofs } from '../../application/oauth/dpop-proofs.ts';
import { ExternalSessions } from '../../application/oauth/external-sessions.ts';
import { ExternalTokens } from '../../application/oauth/external-tokens.ts';
import { FailedOffers } from '../../application/oauth/failed-offers.ts';
import { FinishUpstreamLogin } from '../../application/oauth/finish-upstream-login.ts';
import { InteractionBackends } from '../../application/oauth/interaction-backends.ts';
import { InteractionPresentation } from '../../application/oauth/interaction-presentation.ts';
import { InteractionSteps } from '../../application/oauth/interaction-steps.ts';
import { BeginInteraction, ContinueInteraction, InteractiveAuthorization } from '../../application/oauth/interactive-authorization.ts';
import { OAuthCallers, type OAuthRequest } from '../../application/oauth/oauth-callers.ts';
import { PreAuthorizedCodeGrant } from '../../application/oauth/pre-authorized-code-grant.ts';
import { PushAuthorization } from '../../application/oauth/push-authorization.ts';
import { RefreshTokenGrant } from '../../application/oauth/refresh-token-grant.ts';
import { ReturnToInteraction } from '../../application/oauth/return-to-interaction.ts';
import { StartUpstreamLogin } from '../../application/oauth/start-upstream-login.ts';
import { type TokenAnswer, TokenIssuer } from '../../application/oauth/token-issuer.ts';
import { WalletAuthenticator } from '../../application/oauth/wallet-authenticator.ts';
import { WalletProviderTrust } from '../../application/oauth/wallet-provider-trust.ts';
import { WalletTokens } from '../../application/oauth/wallet-tokens.ts';
import type { RemoteResponse } from '../../application/ports/remote.ts';
import type { TenantRepositories } from '../../application/ports/repositories.ts';
import { RejectedAttempts } from '../../application/sessions/rejected-attempts.ts';
import { SessionNotes } from '../../application/sessions/session-notes.ts';
import { FulfilRevocations } from '../../application/status-lists/fulfil-revocations.ts';
import { RevokeBySubject } from '../../application/status-lists/revoke-by-subject.ts';
import { RevokeSession } from '../../application/status-lists/revoke-session.ts';
import { StatusAllocator } from '../../application/status-lists/status-allocator.ts';
import { SubjectFingerprints } from '../../application/status-lists/subject-fingerprints.ts';
import { SubjectRevoker } from '../../application/status-lists/subject-revoker.ts';
import { TenantConfigurations } from '../../application/tenant-cache/tenant-configurations.ts';
import { PresentationVerifier } from '../../application/verification/presentation-verifier.ts';
import { ResultDelivery } from '../../application/verification/result-delivery.ts';
import { CredentialConfigurationBody } from '../../domain/issuance/configuration.ts';
import { IssuanceConfigurationBody } from '../../domain/issuance/issuance-configuration.ts';
import { OfferRequest } from '../../domain/issuance/offer.ts';
import type { KeyChain, KeyUsage } from '../../domain/keys/key-chain.ts';
import type { AuthorizationServer } from '../../domain/oauth/grant.ts';
import { AUTHORIZATION_CODE_GRANT, PRE_AUTHORIZED_CODE_GRANT, REFRESH_TOKEN_GRANT } from '../../domain/oauth/token-request.ts';
import type { IssuanceRequest, Session } from '../../domain/sessions/session.ts';
import { Failure, type FailureCode } from '../../domain/shared/failure.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { Tenant } from '../../domain/tenants/tenant.ts';
import { FakeAuthorizationServers } from '../support/fakes.ts';
import {
  AUTHORIZATION_REQUEST,
  CLIENT_ID,
  CODE_VERIFIER,
  dpopProof,
  type HolderKey,
  keyProof,
  newKey,
  type Overrides,
} from '../support/raw-wallet.ts';
import { cachedCaller } from '../support/remembered-caller.ts';
import { WalletProvider } from '../support/wallet-provider.ts';
import { ACME, PUBLIC_URL, World } from './verification/kit.ts';

/** Keys and certificates that were made once; every world opens them, since all have one master secret. */
const KEY_CHAINS = new Map<string, Promise<KeyChain>>();

/** The wallet's side of the service, wired by hand: a tenant that issues, real keys, a store in memory, no network. */
export class WalletWorld extends World {
  override readonly encryption = new NodeEncryption(this.settings);
  readonly authorizationServers = new FakeAuthorizationServers();
  readonly schemaValidator = new AjvSchemaValidator();
  readonly statusAllocator: StatusAllocator = new StatusAllocator(this);
  readonly sessionNotes: SessionNotes = new SessionNotes(this);
  readonly walletProviderTrust: WalletProviderTrust = new WalletProviderTrust(this);
  readonly clientKeys: ClientKeys = new ClientKeys(this);
  readonly clientAuthenticator: ClientAuthenticator = new ClientAuthenticator(this);
  readonly dpopProofs: DpopProofs = new DpopProofs(this);
  readonly oauthCallers: OAuthCallers = new OAuthCallers(this);
  readonly walletTokens: WalletTokens = new WalletTokens(this);
  readonly tokenIssuer: TokenIssuer = new TokenIssuer(this);
  readonly burntOffers: FailedOffers = new FailedOffers(this);
  readonly preAuthorizedCode: PreAuthorizedCodeGrant = new PreAuthorizedCodeGrant(this);
  readonly authorizationCode: AuthorizationCodeGrant = new AuthorizationCodeGrant(this);
  readonly refreshToken: RefreshTokenGrant = new RefreshTokenGrant(this);
  readonly answerTokenRequest: AnswerTokenRequest = new AnswerTokenRequest(this);
  readonly authorizationCodes: AuthorizationCodes = new AuthorizationCodes(this);
  readonly pushAuthorization: PushAuthorization = new PushAuthorization(this);
  readonly showAuthorization: ShowAuthorization = new ShowAuthorization(this);
  readonly decideAuthorization: DecideAuthorization = new DecideAuthorization(this);
  readonly startUpstreamLogin: StartUpstreamLogin = new StartUpstreamLogin(this);
  readonly finishUpstreamLogin: FinishUpstreamLogin = new FinishUpstreamLogin(this);
  readonly confirmWallet: ConfirmWallet = new ConfirmWallet(this);
  readonly createChallenge: CreateChallenge = new CreateChallenge(this);
  readonly resultDelivery: ResultDelivery = new ResultDelivery(this);
  readonly presentationVerifier: PresentationVerifier = new PresentationVerifier(this);
  readonly interactionPresentation: InteractionPresentation = new InteractionPresentation(this);
  readonly interactionSteps: InteractionSteps = new InteractionSteps(this);
  readonly interactionBackends: InteractionBackends = new InteractionBackends(this);
  readonly acceptInteractionPage: AcceptInteractionPage = new AcceptInteractionPage(this);
  readonly acceptInteractionPresentation = new AcceptInteractionPresentation({
    interactionPresentation: this.interactionPresentation,
    interactionSteps: this.interactionSteps,
    interactionBackends: this.interactionBackends,
  });
  readonly beginInteraction: BeginInteraction = new BeginInteraction(this);
  readonly continueInteraction: ContinueInteraction = new ContinueInteraction(this);
  readonly interactiveAuthorization: InteractiveAuthorization = new InteractiveAuthorization(this);
  readonly returnToInteraction: ReturnToInteraction = new ReturnToInteraction(this);
  readonly externalTokens: ExternalTokens = new ExternalTokens(this);
  readonly externalSessions: ExternalSessions = new ExternalSessions(this);
  readonly walletAuthenticator: WalletAuthenticator = new WalletAuthenticator(this);
  readonly credentialMessages: CredentialMessages = new CredentialMessages(this);
  readonly keyAttestations: KeyAttestations = new KeyAttestations(this);
  readonly holderKeys: HolderKeys = new HolderKeys(this);
  readonly credentialFactory: CredentialFactory = new CredentialFactory(this);
  readonly walletFollower: WalletFollower = new WalletFollower(this);
  readonly subjectFingerprints: SubjectFingerprints = new SubjectFingerprints(this);
  readonly batchMaker: BatchFactory = new BatchFactory(this);
  readonly claimsProvider: ClaimsProvider = new ClaimsProvider(this);
  readonly createNonce: CreateNonce = new CreateNonce(this);
  readonly createOffer: CreateOffer = new CreateOffer(this);
  readonly fetchOffer: FetchOffer = new FetchOffer(this);
  readonly refusedAttempts: RejectedAttempts = new RejectedAttempts(this);
  readonly issueCredential: IssueCredential = new IssueCredential(this);
  readonly retrieveDeferred: RetrieveDeferred = new RetrieveDeferred(this);
  readonly decideDeferred: DecideDeferred = new DecideDeferred(this);
  readonly receiveNotification: ReceiveNotification = new ReceiveNotification(this);
  readonly readIssuerMetadata: GetIssuerMetadata = new GetIssuerMetadata(this);
  readonly revokeSession: RevokeSession = new RevokeSession(this);
  readonly subjectRevoker: SubjectRevoker = new SubjectRevoker(this);
  readonly revokeBySubject: RevokeBySubject = new RevokeBySubject(this);
  readonly fulfilRevocations: FulfilRevocations = new FulfilRevocations(this);

  #opened = 0;

  /** With the tenant `acme`, which issues a `card` that anybody may have. */
  static async open(): Promise<WalletWorld> {
    const world = new WalletWorld();
    // Values that count once are judged by the time of the database, which is the real one.
    world.clock.time = Math.floor(Date.now() / 1000) * 1000;
    world.#opened = world.clock.time;
    await world.addTenant(ACME);
    await world.issues();
    await world.offers({ id: 'card' });
    return world;
  }

  /** What is stored by then may be some seconds older than the world. */
  protected override prepare<T>(step: string, work: () => Promise<T>): Promise<T> {
    return this.store.prepare(`${step} after ${this.clock.time - this.#opened}`, work);
  }

  override keyChain(tenantId: string, id: string, usages: readonly KeyUsage[]): Promise<KeyChain> {
    const name = [tenantId, id, ...usages].join(' ');
    const made = KEY_CHAINS.get(name) ?? super.keyChain(tenantId, id, usages);
    KEY_CHAINS.set(name, made);
    return made;
  }

  /** Writes the issuance configuration as another process would: nothing here hears of it. */
  async issues(changes: Readonly<Record<string, unknown>> = {}, tenantId = ACME): Promise<void> {
    const body = IssuanceConfigurationBody.parse({ display: [{ name: 'Acme', locale: 'en' }], ...changes });
    const now = this.clock.now();
    const document = { ...body, id: 'default', createdAt: now, updatedAt: now } as const;
    await this.prepare(`issuance of ${tenantId} ${JSON.stringify(body)}`, () =>
      this.store.forTenant(tenantId, (own) => own.issuanceConfiguration.put(document), { by: 'system' }),
    );
  }

  /** Writes a credential configuration as another process would. */
  async offers(changes: Readonly<Record<string, unknown>>, tenantId = ACME): Promise<void> {
    const config = { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] };
    const body = CredentialConfigurationBody.parse({ config, claims: { name: 'Ada' }, ...changes });
    const now = this.clock.now();
    const document = { ...body, createdAt: now, updatedAt: now };
    await this.prepare(`credential configuration of ${tenantId} ${JSON.stringify(body)}`, () =>
      this.store.forTenant(tenantId, (own) => own.credentialConfigurations.put(document), { by: 'system' }),
    );
  }

  /** Writes the presentation configuration `card`, which trusts issuers outside and inside. */
  async verifies(changes: JsonObject = {}): Promise<void> {
    this.issuer ??= await this.keyChain('elsewhere', 'signing', ['signing']);
    await this.configure(changes);
  }

  /** Changes the tenant as another process would. */
  async change(changes: Partial<Tenant>, tenantId = ACME): Promise<void> {
    const save = async ({ tenant }: TenantRepositories) => {
      await tenant.save({ ...(await tenant.get()), ...changes });
    };
    await this.prepare(`tenant ${tenantId} ${JSON.stringify(changes)}`, () => this.store.forTenant(tenantId, save, { by: 'system' }));
  }

  /** Does something when so much time is over. */
  async later<T>(seconds: number, work: () => Promise<T>): Promise<T> {
    this.clock.time += seconds * 1000;
    try {
      return await work();
    } finally {
      this.clock.time -= seconds * 1000;
    }
  }

  /** Ports of another process on the same database: it remembers nothing of what this one does. */
  elsewhere() {
    const eventBus = new InProcessEventBus();
    return { ...this, eventBus, tenantConfigurations: new TenantConfigurations({ ...this, eventBus }) };
  }

  /** A session and what it issued, as stored. */
  async stored(id: string, tenantId: TenantId = ACME) {
    const { batches = [] } = (await this.store.read(tenantId).issued(id as SessionId)) ?? {};
    return { session: await this.session(id, tenantId), batches };
  }
}

/** The failure in which something ends. */
export async function failureOf(work: Promise<unknown>): Promise<Failure> {
  try {
    await work;
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error('nothing failed');
}

/** The code of the failure, or `done`. */
export async function endOf(work: Promise<unknown>): Promise<FailureCode | 'done'> {
  try {
    await work;
    return 'done';
  } catch (error) {
    if (error instanceof Failure) return error.code;
    throw error;
  }
}

export type Offered = {
  readonly session: Session;
  /** Of a pre-authorized offer. */
  readonly code: string;
};

/** Offers credentials, `card` unless stated, by a pre-authorized code unless stated. */
export async function anOffer(world: WalletWorld, changes: object = {}, tenantId = ACME): Promise<Offered> {
  const body = OfferRequest.parse({ response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'], ...changes });
  const caller = cachedCaller(await world.caller(tenantId));
  const { session: id } = await world.createOffer.execute(caller, body);
  const session = await world.session(id, tenantId);
  const { offer } = session.request as IssuanceRequest;
  const grants = offer['grants'] as Record<string, Record<string, string>>;
  return { session, code: grants[PRE_AUTHORIZED_CODE_GRANT]?.['pre-authorized_code'] ?? '' };
}

/** What a wallet sends that is right in every respect which a test does not change. */
export class Wallet {
  readonly world: WalletWorld;
  readonly tenantId: TenantId;
  readonly key: HolderKey = newKey();

  constructor(world: WalletWorld, tenantId = ACME) {
    this.world = world;
    this.tenantId = tenantId;
  }

  get issuer(): string {
    return `${PUBLIC_URL}/${this.tenantId}`;
  }

  #timed({ header = {}, payload = {} }: Overrides): Overrides {
    return { header, payload: { iat: this.world.seconds, ...payload } };
  }

  /** @param path below the issuer. */
  dpop(path: string, options: { token?: string; method?: string; key?: HolderKey } & Overrides = {}): string {
    const { key = this.key, ...rest } = options;
    return dpopProof(key, `${this.issuer}/${path}`, { ...rest, ...this.#timed(options) });
  }

  keyProof(nonce: string, bend: Overrides = {}, key = newKey()): string {
    return keyProof(key, this.issuer, nonce, this.#timed(bend));
  }

  /** A request to an authorization server, with a proof of the wallet's key. */
  oauth(path: string, form: Record<string, string> = {}, more: Partial<OAuthRequest> = {}): OAuthRequest {
    return { form, attestation: [], attestationPop: [], dpop: [this.dpop(path)], ...more };
  }

  redeem(
    code: string,
    more: { readonly txCode?: string; readonly requestedIds?: string[]; readonly request?: OAuthRequest } = {},
  ): Promise<TokenAnswer> {
    const { txCode, requestedIds, request = this.oauth('token') } = more;
    const grantType = PRE_AUTHORIZED_CODE_GRANT;
    return this.world.preAuthorizedCode.answer(this.tenantId, request, { grantType, code, txCode, requestedIds: requestedIds });
  }

  redeemCode(
    code: string,
    more: {
      readonly server?: AuthorizationServer;
      readonly changes?: { redirectUri?: string; codeVerifier?: string; requestedIds?: string[] };
      readonly request?: OAuthRequest;
    } = {},
  ): Promise<TokenAnswer> {
    const { server = 'built-in', changes = {} } = more;
    const path = server === 'chained' ? 'chained-as/token' : 'token';
    const { client_id, redirect_uri: redirectUri } = AUTHORIZATION_REQUEST;
    const request = more.request ?? this.oauth(path, { client_id });
    return this.world.authorizationCode.answer(this.tenantId, server, request, {
      grantType: AUTHORIZATION_CODE_GRANT,
      code,
      redirectUri,
      codeVerifier: CODE_VERIFIER,
      requestedIds: undefined,
      ...changes,
    });
  }

  refresh(
    refreshToken: string | undefined,
    more: { readonly scope?: string; readonly requestedIds?: string[]; readonly request?: OAuthRequest } = {},
  ): Promise<TokenAnswer> {
    const { scope, requestedIds, request = this.oauth('token') } = more;
    const grantType = REFRESH_TOKEN_GRANT;
    const refresh = { grantType, refreshToken: refreshToken ?? '', scope, requestedIds } as const;
    return this.world.refreshToken.answer(this.tenantId, 'built-in', request, refresh);
  }

  async token(offered: Offered, txCode?: string): Promise<string> {
    const { body } = await this.redeem(offered.code, txCode === undefined ? {} : { txCode });
    return body.access_token;
  }

  async nonce(): Promise<string> {
    return (await this.world.createNonce.execute(this.tenantId)).cNonce;
  }

  /** A request to a protected endpoint. */
  asking(token: string, path: string, body: unknown, more: Partial<WalletRequest> = {}): WalletRequest {
    return {
      wallet: { authorization: `DPoP ${token}`, dpop: [this.dpop(path, { token })] },
      contentType: 'application/json',
      body: Buffer.from(JSON.stringify(body)),
      ...more,
    };
  }

  /** A request for one credential, with a fresh proof of a fresh key. */
  async wanting(token: string, changes: object = {}, more: Partial<WalletRequest> = {}): Promise<WalletRequest> {
    const jwt = [this.keyProof(await this.nonce())];
    const body = { credential_configuration_id: 'card', proofs: { jwt }, ...changes };
    return this.asking(token, 'credential', body, more);
  }

  async issue(token: string, changes: object = {}): Promise<Issued> {
    const request = await this.wanting(token, changes);
    const { text } = await this.world.issueCredential.execute(this.tenantId, request);
    return JSON.parse(text) as Issued;
  }

  /** Pushes an authorization request; what is undefined is left out. @returns the request URI. */
  async push(
    changes: Readonly<Record<string, string | undefined>> = {},
    more: { readonly server?: AuthorizationServer; readonly request?: Partial<OAuthRequest> } = {},
  ): Promise<string> {
    const { server = 'built-in', request = {} } = more;
    const path = server === 'chained' ? 'chained-as/par' : 'par';
    const all = Object.entries({ ...AUTHORIZATION_REQUEST, scope: 'card', ...changes });
    const form = Object.fromEntries(all.filter((entry): entry is [string, string] => entry[1] !== undefined));
    const asked = this.oauth(path, form, request);
    return (await this.world.pushAuthorization.execute(this.tenantId, server, asked)).body.request_uri;
  }

  /** The user approves. @returns a code of the built-in server. */
  async approve(requestUri: string): Promise<string> {
    const { world, tenantId } = this;
    const browser = { clientId: AUTHORIZATION_REQUEST.client_id, requestUri };
    const shown = await world.showAuthorization.execute(tenantId, browser);
    const decisionToken = 'fields' in shown ? shown.fields['decision_token'] : undefined;
    const decision = { ...browser, decision: 'approve', decisionToken, browserSecrets: new Map() };
    const { location } = await world.decideAuthorization.execute(tenantId, decision);
    return new URL(location).searchParams.get('code') ?? '';
  }
}

export type Issued = {
  readonly credentials: readonly { readonly credential: string }[];
  readonly notification_id: string;
  readonly transaction_id?: string;
};

/** A wallet whose provider attests it, and whose trust list and status lists are served. */
export class AttestedWallet extends Wallet {
  readonly provider: WalletProvider;
  readonly instance: HolderKey = newKey();
  /** Members of its attestation besides those that every one has. */
  says: Record<string, unknown> = {};

  private constructor(world: WalletWorld, provider: WalletProvider) {
    super(world);
    this.provider = provider;
  }

  /** @param answers other addresses than those of the provider. */
  static async make(world: WalletWorld, answers: (url: string) => RemoteResponse | undefined = () => undefined): Promise<AttestedWallet> {
    const provider = await WalletProvider.make(() => world.seconds);
    world.remote.answer = (url) => {
      const { status, type, body } = provider.answer(new URL(url).pathname);
      return answers(url) ?? { status, contentType: type, body: Buffer.from(body) };
    };
    return new AttestedWallet(world, provider);
  }

  /** The headers of a request to an authorization server of the tenant. */
  attested(server = this.issuer): Pick<OAuthRequest, 'attestation' | 'attestationPop'> {
    const challenge = attestationChallenge(this.world, ACME, server, this.world.clock.now());
    return {
      attestation: [this.provider.attestation(this.instance, { payload: this.says })],
      attestationPop: [this.provider.pop(this.instance, server, { challenge })],
    };
  }

  override oauth(path: string, form: Record<string, string> = {}, more: Partial<OAuthRequest> = {}): OAuthRequest {
    const server = path.startsWith('chained-as/') ? `${this.issuer}/chained-as` : this.issuer;
    return super.oauth(path, { client_id: CLIENT_ID, ...form }, { ...this.attested(server), ...more });
  }

  /** How often a status list was asked for. */
  get asked(): number {
    return this.world.remote.calls.filter(({ url }) => url.includes('/status/')).length;
  }
}
