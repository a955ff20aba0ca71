import { authorizationServerRoutes } from '../../adapters/http/oauth/authorization-server.routes.ts';
import { chainedAsRoutes } from '../../adapters/http/oauth/chained-as.routes.ts';
import { challengeRoutes } from '../../adapters/http/oauth/challenge.routes.ts';
import { interactiveRoutes } from '../../adapters/http/oauth/interactive.routes.ts';
import { AcceptInteractionPage } from '../../application/oauth/accept-interaction-page.ts';
import { AcceptInteractionPresentation } from '../../application/oauth/accept-interaction-presentation.ts';
import { AnswerTokenRequest } from '../../application/oauth/answer-token-request.ts';
import { AuthorizationCodes } from '../../application/oauth/authorization-codes.ts';
import { BeginInteraction } from '../../application/oauth/begin-interaction.ts';
import { ClientAuthenticator } from '../../application/oauth/client-authenticator.ts';
import { ClientKeys } from '../../application/oauth/client-keys.ts';
import { ConfirmWallet } from '../../application/oauth/confirm-wallet.ts';
import { ContinueInteraction } from '../../application/oauth/continue-interaction.ts';
import { CreateChallenge } from '../../application/oauth/create-challenge.ts';
import { DecideAuthorization } from '../../application/oauth/decide-authorization.ts';
import { DpopProofs } from '../../application/oauth/dpop-proofs.ts';
import { ExternalSessions } from '../../application/oauth/external-sessions.ts';
import { ExternalTokens } from '../../application/oauth/external-tokens.ts';
import { FinishUpstreamLogin } from '../../application/oauth/finish-upstream-login.ts';
import { InteractionBackends } from '../../application/oauth/interaction-backends.ts';
import { InteractionPresentation } from '../../application/oauth/interaction-presentation.ts';
import { InteractionRuns } from '../../application/oauth/interaction-runs.ts';
import { InteractionSteps } from '../../application/oauth/interaction-steps.ts';
import { InteractiveAuthorization } from '../../application/oauth/interactive-authorization.ts';
import { OAuthCallers } from '../../application/oauth/oauth-callers.ts';
import { PushAuthorization } from '../../application/oauth/push-authorization.ts';
import { RedeemCode } from '../../application/oauth/redeem-code.ts';
import { RedeemGrant } from '../../application/oauth/redeem-grant.ts';
import { RefreshAccess } from '../../application/oauth/refresh-access.ts';
import { ReturnToInteraction } from '../../application/oauth/return-to-interaction.ts';
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
import { Kms } from '../../application/ports/kms.ts';
import { Log } from '../../application/ports/log.ts';
import { Random } from '../../application/ports/random.ts';
import { Remote } from '../../application/ports/remote.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { Signatures } from '../../application/ports/signatures.ts';
import { Store } from '../../application/ports/store.ts';
import { Webhooks } from '../../application/ports/webhooks.ts';
import { RegistrationCertificates } from '../../application/registrar/registration-certificates.ts';
import { SessionNotes } from '../../application/sessions/session-notes.ts';
import { StatusChecker } from '../../application/status-lists/check-status.ts';
import { TenantConfigurations } from '../../application/tenant-configuration.ts';
import { TrustLists } from '../../application/trust-lists/remote-trust-lists.ts';
import { PresentationVerifier } from '../../application/verification/presentation-verifier.ts';
import { ResultDelivery } from '../../application/verification/result-delivery.ts';
import { type Feature, given } from './feature.ts';

const base = { store: Store, clock: Clock, random: Random, settings: ServiceSettings };
const wallet = { store: Store, tenantConfigurations: TenantConfigurations, clock: Clock };

/** The authorization server that wallets meet. */
export const oauth: Feature = {
  classes: [
    given(WalletTokens, { kms: Kms, signatures: Signatures, clock: Clock, settings: ServiceSettings }),
    given(WalletProviderTrust, {
      trustLists: TrustLists,
      certificates: Certificates,
      statusChecker: StatusChecker,
    }),
    given(ClientKeys, { remote: Remote, clock: Clock }),
    given(ClientAuthenticator, {
      walletProviderTrust: WalletProviderTrust,
      clientKeys: ClientKeys,
      signatures: Signatures,
      random: Random,
      settings: ServiceSettings,
    }),
    given(CreateChallenge, { ...base, tenantConfigurations: TenantConfigurations }),
    given(UserIdentities, { store: Store }),
    given(DpopProofs, { signatures: Signatures, random: Random, settings: ServiceSettings }),
    given(OAuthCallers, {
      clientAuthenticator: ClientAuthenticator,
      dpopProofs: DpopProofs,
      settings: ServiceSettings,
    }),
    given(TokenIssuer, {
      walletTokens: WalletTokens,
      dpopProofs: DpopProofs,
      random: Random,
      settings: ServiceSettings,
    }),
    given(RedeemGrant, {
      ...wallet,
      oauthCallers: OAuthCallers,
      tokenIssuer: TokenIssuer,
      settings: ServiceSettings,
    }),
    given(RedeemCode, { ...wallet, oauthCallers: OAuthCallers, tokenIssuer: TokenIssuer }),
    given(RefreshAccess, {
      ...wallet,
      oauthCallers: OAuthCallers,
      tokenIssuer: TokenIssuer,
      settings: ServiceSettings,
    }),
    given(AnswerTokenRequest, {
      redeemGrant: RedeemGrant,
      redeemCode: RedeemCode,
      refreshAccess: RefreshAccess,
      store: Store,
      tenantConfigurations: TenantConfigurations,
    }),
    given(AuthorizationCodes, { store: Store, random: Random, settings: ServiceSettings }),
    given(PushAuthorization, {
      ...base,
      tenantConfigurations: TenantConfigurations,
      oauthCallers: OAuthCallers,
    }),
    given(ShowAuthorization, { ...base, tenantConfigurations: TenantConfigurations }),
    given(DecideAuthorization, {
      ...base,
      tenantConfigurations: TenantConfigurations,
      authorizationCodes: AuthorizationCodes,
    }),
    given(StartUpstreamLogin, {
      ...base,
      tenantConfigurations: TenantConfigurations,
      authorizationServers: AuthorizationServers,
      log: Log,
    }),
    given(FinishUpstreamLogin, {
      ...base,
      tenantConfigurations: TenantConfigurations,
      authorizationServers: AuthorizationServers,
      log: Log,
      authorizationCodes: AuthorizationCodes,
    }),
    given(ConfirmWallet, { ...wallet, authorizationCodes: AuthorizationCodes, settings: ServiceSettings }),
    given(ExternalTokens, {
      authorizationServers: AuthorizationServers,
      log: Log,
      settings: ServiceSettings,
    }),
    given(ExternalSessions, {
      store: Store,
      sessionNotes: SessionNotes,
      random: Random,
      settings: ServiceSettings,
    }),
    given(WalletAuthenticator, {
      walletTokens: WalletTokens,
      externalTokens: ExternalTokens,
      externalSessions: ExternalSessions,
      dpopProofs: DpopProofs,
      settings: ServiceSettings,
    }),
    given(InteractionPresentation, {
      encryption: Encryption,
      kms: Kms,
      random: Random,
      presentationVerifier: PresentationVerifier,
      registrationCertificates: RegistrationCertificates,
    }),
    given(InteractionSteps, {
      store: Store,
      random: Random,
      settings: ServiceSettings,
      authorizationCodes: AuthorizationCodes,
      interactionPresentation: InteractionPresentation,
    }),
    given(InteractionBackends, {
      store: Store,
      random: Random,
      settings: ServiceSettings,
      webhooks: Webhooks,
      resultDelivery: ResultDelivery,
      sessionNotes: SessionNotes,
      log: Log,
    }),
    given(InteractionRuns, {
      interactionSteps: InteractionSteps,
      interactionBackends: InteractionBackends,
      log: Log,
    }),
    given(AcceptInteractionPage, {
      interactionSteps: InteractionSteps,
      interactionRuns: InteractionRuns,
      interactionBackends: InteractionBackends,
    }),
    given(AcceptInteractionPresentation, {
      interactionSteps: InteractionSteps,
      interactionRuns: InteractionRuns,
      interactionBackends: InteractionBackends,
      interactionPresentation: InteractionPresentation,
      settings: ServiceSettings,
    }),
    given(BeginInteraction, {
      ...base,
      tenantConfigurations: TenantConfigurations,
      oauthCallers: OAuthCallers,
      interactionSteps: InteractionSteps,
    }),
    given(ContinueInteraction, {
      ...wallet,
      oauthCallers: OAuthCallers,
      interactionRuns: InteractionRuns,
      acceptInteractionPresentation: AcceptInteractionPresentation,
      acceptInteractionPage: AcceptInteractionPage,
    }),
    given(InteractiveAuthorization, {
      beginInteraction: BeginInteraction,
      continueInteraction: ContinueInteraction,
    }),
    given(ReturnToInteraction, { ...base, tenantConfigurations: TenantConfigurations }),
  ],
  open: [authorizationServerRoutes, interactiveRoutes, challengeRoutes, chainedAsRoutes],
};
