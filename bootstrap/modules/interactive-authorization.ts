import { ContainerModule } from 'inversify';
import { InteractiveRoutes } from '../../adapters/http/oauth/interactive.routes.ts';
import { AcceptInteractionPage } from '../../application/oauth/accept-interaction-page.ts';
import { AcceptInteractionPresentation } from '../../application/oauth/accept-interaction-presentation.ts';
import { AuthorizationCodes } from '../../application/oauth/authorization-codes.ts';
import { BeginInteraction } from '../../application/oauth/begin-interaction.ts';
import { ContinueInteraction } from '../../application/oauth/continue-interaction.ts';
import { InteractionBackends } from '../../application/oauth/interaction-backends.ts';
import { InteractionPresentation } from '../../application/oauth/interaction-presentation.ts';
import { InteractionRuns } from '../../application/oauth/interaction-runs.ts';
import { InteractionSteps } from '../../application/oauth/interaction-steps.ts';
import { InteractiveAuthorization } from '../../application/oauth/interactive-authorization.ts';
import { OAuthCallers } from '../../application/oauth/oauth-callers.ts';
import { ReturnToInteraction } from '../../application/oauth/return-to-interaction.ts';
import { Clock } from '../../application/ports/clock.ts';
import { Encryption } from '../../application/ports/encryption.ts';
import { Kms } from '../../application/ports/kms.ts';
import { Log } from '../../application/ports/log.ts';
import { Random } from '../../application/ports/random.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { Store } from '../../application/ports/store.ts';
import { Webhooks } from '../../application/ports/webhooks.ts';
import { RegistrationCertificates } from '../../application/registrar/registration-certificates.ts';
import { SessionNotes } from '../../application/sessions/session-notes.ts';
import { TenantConfigurations } from '../../application/tenant-configuration.ts';
import { PresentationVerifier } from '../../application/verification/presentation-verifier.ts';
import { ResultDelivery } from '../../application/verification/result-delivery.ts';
import { wire } from '../wire.ts';

/** What users do before a credential is issued: presenting others, visiting pages of the customer. */
export const interactiveAuthorization = new ContainerModule((options) => {
  const made = { store: Store, random: Random, settings: ServiceSettings };
  const found = { store: Store, tenantConfigurations: TenantConfigurations, clock: Clock };
  wire(options, InteractionPresentation, {
    encryption: Encryption,
    kms: Kms,
    random: Random,
    presentationVerifier: PresentationVerifier,
    registrationCertificates: RegistrationCertificates,
  });
  wire(options, InteractionSteps, {
    ...made,
    authorizationCodes: AuthorizationCodes,
    interactionPresentation: InteractionPresentation,
  });
  wire(options, InteractionBackends, {
    ...made,
    webhooks: Webhooks,
    resultDelivery: ResultDelivery,
    sessionNotes: SessionNotes,
    log: Log,
  });
  wire(options, InteractionRuns, {
    interactionSteps: InteractionSteps,
    interactionBackends: InteractionBackends,
    log: Log,
  });
  const answered = {
    interactionSteps: InteractionSteps,
    interactionRuns: InteractionRuns,
    interactionBackends: InteractionBackends,
  };
  wire(options, AcceptInteractionPage, answered);
  wire(options, AcceptInteractionPresentation, {
    ...answered,
    interactionPresentation: InteractionPresentation,
    settings: ServiceSettings,
  });
  wire(options, BeginInteraction, {
    ...made,
    tenantConfigurations: TenantConfigurations,
    oauthCallers: OAuthCallers,
    interactionSteps: InteractionSteps,
    clock: Clock,
  });
  wire(options, ContinueInteraction, {
    ...found,
    oauthCallers: OAuthCallers,
    interactionRuns: InteractionRuns,
    acceptInteractionPresentation: AcceptInteractionPresentation,
    acceptInteractionPage: AcceptInteractionPage,
  });
  wire(options, InteractiveAuthorization, {
    beginInteraction: BeginInteraction,
    continueInteraction: ContinueInteraction,
  });
  wire(options, ReturnToInteraction, { ...found, random: Random, settings: ServiceSettings });
  wire(options, InteractiveRoutes, {
    interactiveAuthorization: InteractiveAuthorization,
    returnToInteraction: ReturnToInteraction,
    settings: ServiceSettings,
  });
});
