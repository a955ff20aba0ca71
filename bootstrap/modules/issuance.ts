import { ContainerModule } from 'inversify';
import { IssuanceRoutes } from '../../adapters/http/issuance/configuration.routes.ts';
import { DeferredRoutes } from '../../adapters/http/issuance/deferred.routes.ts';
import { IssuanceMetadataRoutes } from '../../adapters/http/issuance/metadata.routes.ts';
import { IssuanceWalletRoutes } from '../../adapters/http/issuance/wallet.routes.ts';
import { AuthorizationServerRoutes } from '../../adapters/http/oauth/authorization-server.routes.ts';
import { ChainedAsRoutes } from '../../adapters/http/oauth/chained-as.routes.ts';
import { ChallengeRoutes } from '../../adapters/http/oauth/challenge.routes.ts';
import { StatusListAdministrationRoutes } from '../../adapters/http/status-lists/administration.routes.ts';
import { StatusListRoutes } from '../../adapters/http/status-lists/status-list.routes.ts';
import { BatchMaker } from '../../application/issuance/batch-maker.ts';
import { ClaimsProvider } from '../../application/issuance/claims-provider.ts';
import {
  ChangeCredentialConfiguration,
  ListCredentialConfigurations,
  ReadCredentialConfiguration,
  RemoveCredentialConfiguration,
  WriteCredentialConfiguration,
} from '../../application/issuance/configure-credentials.ts';
import {
  ReadIssuanceConfiguration,
  WriteIssuanceConfiguration,
} from '../../application/issuance/configure-issuance.ts';
import { CreateNonce } from '../../application/issuance/create-nonce.ts';
import { CreateOffer } from '../../application/issuance/create-offer.ts';
import { CredentialFactory } from '../../application/issuance/credential-factory.ts';
import { CredentialMessages } from '../../application/issuance/credential-messages.ts';
import { DecideDeferred } from '../../application/issuance/decide-deferred.ts';
import { FetchOffer } from '../../application/issuance/fetch-offer.ts';
import { HolderKeys } from '../../application/issuance/holder-keys.ts';
import { IssueCredential } from '../../application/issuance/issue-credential.ts';
import { KeyAttestations } from '../../application/issuance/key-attestations.ts';
import { ReadIssuerMetadata } from '../../application/issuance/read-metadata.ts';
import { ReceiveNotification } from '../../application/issuance/receive-notification.ts';
import { RetrieveDeferred } from '../../application/issuance/retrieve-deferred.ts';
import { AnswerTokenRequest } from '../../application/oauth/answer-token-request.ts';
import { AuthorizationCodes } from '../../application/oauth/authorization-codes.ts';
import { ClientAuthenticator } from '../../application/oauth/client-authenticator.ts';
import { ClientKeys } from '../../application/oauth/client-keys.ts';
import { ConfirmWallet } from '../../application/oauth/confirm-wallet.ts';
import { CreateChallenge } from '../../application/oauth/create-challenge.ts';
import { DecideAuthorization } from '../../application/oauth/decide-authorization.ts';
import { DpopProofs } from '../../application/oauth/dpop-proofs.ts';
import { ExternalSessions } from '../../application/oauth/external-sessions.ts';
import { ExternalTokens } from '../../application/oauth/external-tokens.ts';
import { FinishUpstreamLogin } from '../../application/oauth/finish-upstream-login.ts';
import { OAuthCallers } from '../../application/oauth/oauth-callers.ts';
import { PushAuthorization } from '../../application/oauth/push-authorization.ts';
import { RedeemCode } from '../../application/oauth/redeem-code.ts';
import { RedeemGrant } from '../../application/oauth/redeem-grant.ts';
import { RefreshAccess } from '../../application/oauth/refresh-access.ts';
import { ShowAuthorization } from '../../application/oauth/show-authorization.ts';
import { StartUpstreamLogin } from '../../application/oauth/start-upstream-login.ts';
import { TokenIssuer } from '../../application/oauth/token-issuer.ts';
import { UserIdentities } from '../../application/oauth/user-identities.ts';
import { WalletAuthenticator } from '../../application/oauth/wallet-authenticator.ts';
import { WalletProviderTrust } from '../../application/oauth/wallet-provider-trust.ts';
import { WalletTokens } from '../../application/oauth/wallet-tokens.ts';
import { AuthorizationServers } from '../../application/ports/authorization-servers.ts';
import { Certificates } from '../../application/ports/certificates.ts';
import { Clock } from '../../application/ports/clock.ts';
import { Encryption } from '../../application/ports/encryption.ts';
import { EventBus } from '../../application/ports/event-bus.ts';
import { Kms } from '../../application/ports/kms.ts';
import { Log } from '../../application/ports/log.ts';
import { OwnStatusLists } from '../../application/ports/own-status-lists.ts';
import { Random } from '../../application/ports/random.ts';
import { Remote } from '../../application/ports/remote.ts';
import { SchemaValidator } from '../../application/ports/schema-validator.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { Signatures } from '../../application/ports/signatures.ts';
import { Store } from '../../application/ports/store.ts';
import { Webhooks } from '../../application/ports/webhooks.ts';
import { SessionNotes } from '../../application/sessions/session-notes.ts';
import { AggregateStatusLists } from '../../application/status-lists/aggregate-status-lists.ts';
import { StatusChecker } from '../../application/status-lists/check-status.ts';
import { GetStatusList, ListStatusLists } from '../../application/status-lists/read-status-lists.ts';
import { RevokeSession } from '../../application/status-lists/revoke-session.ts';
import { StatusAllocator } from '../../application/status-lists/status-allocator.ts';
import { StatusCwtPublisher } from '../../application/status-lists/status-cwt-publisher.ts';
import { StatusPublisher } from '../../application/status-lists/status-publisher.ts';
import {
  CreateStatusList,
  DeleteStatusList,
  UpdateStatusList,
} from '../../application/status-lists/write-status-lists.ts';
import { TenantConfigurations } from '../../application/tenant-configuration.ts';
import { TrustLists } from '../../application/trust-lists/remote-trust-lists.ts';
import { wire } from '../wire.ts';

/** Issuing credentials, their status lists, and the authorization server that wallets meet. */
export const issuance = new ContainerModule((options) => {
  const base = { store: Store, clock: Clock, random: Random, settings: ServiceSettings };
  const wallet = { store: Store, tenantConfigurations: TenantConfigurations, clock: Clock };
  wire(options, StatusAllocator, base);
  wire(options, StatusPublisher, { ...wallet, kms: Kms, settings: ServiceSettings, eventBus: EventBus });
  options.bind(OwnStatusLists).toService(StatusPublisher);
  wire(options, AggregateStatusLists, {
    store: Store,
    tenantConfigurations: TenantConfigurations,
    settings: ServiceSettings,
  });
  wire(options, RevokeSession, { ...wallet, statusAllocator: StatusAllocator });
  wire(options, StatusCwtPublisher, {
    statusPublisher: StatusPublisher,
    store: Store,
    tenantConfigurations: TenantConfigurations,
    kms: Kms,
    clock: Clock,
  });
  wire(options, StatusListRoutes, {
    statusPublisher: StatusPublisher,
    statusCwtPublisher: StatusCwtPublisher,
    aggregateStatusLists: AggregateStatusLists,
    revokeSession: RevokeSession,
    clock: Clock,
  });

  wire(options, ListStatusLists, { store: Store });
  wire(options, GetStatusList, { store: Store });
  wire(options, CreateStatusList, base);
  wire(options, UpdateStatusList, { store: Store, clock: Clock, eventBus: EventBus });
  wire(options, DeleteStatusList, { store: Store, eventBus: EventBus });
  wire(options, StatusListAdministrationRoutes, {
    listStatusLists: ListStatusLists,
    getStatusList: GetStatusList,
    createStatusList: CreateStatusList,
    updateStatusList: UpdateStatusList,
    deleteStatusList: DeleteStatusList,
    settings: ServiceSettings,
  });

  wire(options, WalletTokens, { kms: Kms, signatures: Signatures, clock: Clock, settings: ServiceSettings });
  const trust = { signatures: Signatures, certificates: Certificates, clock: Clock };
  wire(options, TrustLists, {
    ...trust,
    store: Store,
    tenantConfigurations: TenantConfigurations,
    settings: ServiceSettings,
    remote: Remote,
    eventBus: EventBus,
    log: Log,
  });
  wire(options, WalletProviderTrust, {
    trustLists: TrustLists,
    certificates: Certificates,
    statusChecker: StatusChecker,
  });
  wire(options, ClientKeys, { remote: Remote, clock: Clock });
  wire(options, ClientAuthenticator, {
    walletProviderTrust: WalletProviderTrust,
    clientKeys: ClientKeys,
    signatures: Signatures,
    random: Random,
    settings: ServiceSettings,
  });
  wire(options, CreateChallenge, { ...base, tenantConfigurations: TenantConfigurations });
  wire(options, ChallengeRoutes, { createChallenge: CreateChallenge });
  wire(options, CredentialFactory, { kms: Kms, random: Random, clock: Clock, settings: ServiceSettings });
  wire(options, SessionNotes, { store: Store, tenantConfigurations: TenantConfigurations, clock: Clock });
  wire(options, UserIdentities, { store: Store });
  wire(options, ClaimsProvider, {
    sessionNotes: SessionNotes,
    userIdentities: UserIdentities,
    webhooks: Webhooks,
    schemaValidator: SchemaValidator,
    clock: Clock,
    random: Random,
  });
  wire(options, CreateOffer, {
    ...base,
    tenantConfigurations: TenantConfigurations,
    schemaValidator: SchemaValidator,
    webhooks: Webhooks,
  });
  wire(options, FetchOffer, wallet);
  wire(options, CreateNonce, { ...base, tenantConfigurations: TenantConfigurations });
  wire(options, DpopProofs, { signatures: Signatures, random: Random, settings: ServiceSettings });
  wire(options, OAuthCallers, {
    clientAuthenticator: ClientAuthenticator,
    dpopProofs: DpopProofs,
    settings: ServiceSettings,
  });
  wire(options, TokenIssuer, {
    walletTokens: WalletTokens,
    dpopProofs: DpopProofs,
    random: Random,
    settings: ServiceSettings,
  });
  const redeem = { ...wallet, oauthCallers: OAuthCallers, tokenIssuer: TokenIssuer };
  wire(options, RedeemGrant, { ...redeem, settings: ServiceSettings });
  wire(options, RedeemCode, redeem);
  wire(options, RefreshAccess, { ...redeem, settings: ServiceSettings });
  wire(options, AnswerTokenRequest, {
    redeemGrant: RedeemGrant,
    redeemCode: RedeemCode,
    refreshAccess: RefreshAccess,
    store: Store,
    tenantConfigurations: TenantConfigurations,
  });
  wire(options, AuthorizationCodes, { store: Store, random: Random, settings: ServiceSettings });
  wire(options, PushAuthorization, {
    ...base,
    tenantConfigurations: TenantConfigurations,
    oauthCallers: OAuthCallers,
  });
  wire(options, ShowAuthorization, { ...base, tenantConfigurations: TenantConfigurations });
  wire(options, DecideAuthorization, {
    ...base,
    tenantConfigurations: TenantConfigurations,
    authorizationCodes: AuthorizationCodes,
  });
  wire(options, AuthorizationServerRoutes, {
    pushAuthorization: PushAuthorization,
    showAuthorization: ShowAuthorization,
    decideAuthorization: DecideAuthorization,
    answerTokenRequest: AnswerTokenRequest,
    settings: ServiceSettings,
  });
  const login = {
    ...wallet,
    authorizationServers: AuthorizationServers,
    log: Log,
    settings: ServiceSettings,
  };
  wire(options, StartUpstreamLogin, { ...login, random: Random });
  const codes = { authorizationCodes: AuthorizationCodes };
  wire(options, FinishUpstreamLogin, { ...login, ...codes, random: Random });
  wire(options, ConfirmWallet, { ...wallet, ...codes, settings: ServiceSettings });
  wire(options, ChainedAsRoutes, {
    pushAuthorization: PushAuthorization,
    startUpstreamLogin: StartUpstreamLogin,
    finishUpstreamLogin: FinishUpstreamLogin,
    confirmWallet: ConfirmWallet,
    answerTokenRequest: AnswerTokenRequest,
    createChallenge: CreateChallenge,
    readIssuerMetadata: ReadIssuerMetadata,
    settings: ServiceSettings,
  });

  wire(options, ExternalTokens, {
    authorizationServers: AuthorizationServers,
    log: Log,
    settings: ServiceSettings,
  });
  wire(options, ExternalSessions, {
    store: Store,
    sessionNotes: SessionNotes,
    random: Random,
    settings: ServiceSettings,
  });
  wire(options, WalletAuthenticator, {
    walletTokens: WalletTokens,
    externalTokens: ExternalTokens,
    externalSessions: ExternalSessions,
    dpopProofs: DpopProofs,
    settings: ServiceSettings,
  });
  wire(options, CredentialMessages, { encryption: Encryption });
  wire(options, KeyAttestations, { signatures: Signatures, walletProviderTrust: WalletProviderTrust });
  wire(options, HolderKeys, {
    signatures: Signatures,
    keyAttestations: KeyAttestations,
    settings: ServiceSettings,
  });
  wire(options, BatchMaker, {
    credentialFactory: CredentialFactory,
    statusAllocator: StatusAllocator,
    clock: Clock,
    random: Random,
  });
  wire(options, IssueCredential, {
    ...base,
    tenantConfigurations: TenantConfigurations,
    walletAuthenticator: WalletAuthenticator,
    credentialMessages: CredentialMessages,
    holderKeys: HolderKeys,
    claimsProvider: ClaimsProvider,
    batchMaker: BatchMaker,
  });
  wire(options, ReadIssuerMetadata, {
    ...wallet,
    kms: Kms,
    encryption: Encryption,
    settings: ServiceSettings,
  });
  wire(options, IssuanceMetadataRoutes, { readIssuerMetadata: ReadIssuerMetadata });
  wire(options, RetrieveDeferred, {
    ...wallet,
    walletAuthenticator: WalletAuthenticator,
    credentialMessages: CredentialMessages,
    settings: ServiceSettings,
  });
  wire(options, ReceiveNotification, {
    ...base,
    tenantConfigurations: TenantConfigurations,
    walletAuthenticator: WalletAuthenticator,
    sessionNotes: SessionNotes,
    webhooks: Webhooks,
    log: Log,
  });
  wire(options, DecideDeferred, {
    store: Store,
    batchMaker: BatchMaker,
    schemaValidator: SchemaValidator,
    sessionNotes: SessionNotes,
    clock: Clock,
  });
  wire(options, DeferredRoutes, { decideDeferred: DecideDeferred });
  wire(options, IssuanceWalletRoutes, {
    retrieveDeferred: RetrieveDeferred,
    receiveNotification: ReceiveNotification,
    fetchOffer: FetchOffer,
    createNonce: CreateNonce,
    issueCredential: IssueCredential,
  });

  const configure = { store: Store, clock: Clock };
  const configureCredentials = { ...configure, schemaValidator: SchemaValidator, webhooks: Webhooks };
  wire(options, ReadIssuanceConfiguration, configure);
  wire(options, WriteIssuanceConfiguration, { ...configure, settings: ServiceSettings, remote: Remote });
  wire(options, ListCredentialConfigurations, {});
  wire(options, ReadCredentialConfiguration, {});
  wire(options, WriteCredentialConfiguration, configureCredentials);
  wire(options, ChangeCredentialConfiguration, configureCredentials);
  wire(options, RemoveCredentialConfiguration, { store: Store });
  wire(options, IssuanceRoutes, {
    readIssuanceConfiguration: ReadIssuanceConfiguration,
    writeIssuanceConfiguration: WriteIssuanceConfiguration,
    listCredentialConfigurations: ListCredentialConfigurations,
    readCredentialConfiguration: ReadCredentialConfiguration,
    writeCredentialConfiguration: WriteCredentialConfiguration,
    changeCredentialConfiguration: ChangeCredentialConfiguration,
    removeCredentialConfiguration: RemoveCredentialConfiguration,
    createOffer: CreateOffer,
  });
});
