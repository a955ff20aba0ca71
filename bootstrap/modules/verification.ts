import { presentationConfigurationRoutes } from '../../adapters/http/verification/configuration.routes.ts';
import { dcApiRoutes } from '../../adapters/http/verification/dc-api.routes.ts';
import { presentationOfferRoutes } from '../../adapters/http/verification/offer.routes.ts';
import { presentationWalletRoutes } from '../../adapters/http/verification/wallet.routes.ts';
import { Clock } from '../../application/ports/clock.ts';
import { Encryption } from '../../application/ports/encryption.ts';
import { Kms } from '../../application/ports/kms.ts';
import { Log } from '../../application/ports/log.ts';
import { Random } from '../../application/ports/random.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { Store } from '../../application/ports/store.ts';
import { Webhooks } from '../../application/ports/webhooks.ts';
import { RegistrationCertificates } from '../../application/registrar/registration-certificates.ts';
import { TenantConfigurations } from '../../application/tenant-configuration.ts';
import { CreatePresentationRequest } from '../../application/verification/create-presentation-request.ts';
import { IssuerTrusts } from '../../application/verification/issuer-trust.ts';
import { OpenRequests } from '../../application/verification/open-requests.ts';
import {
  DeletePresentationConfiguration,
  GetPresentationConfiguration,
  ListPresentationConfigurations,
  ReplacePresentationConfiguration,
  UpdatePresentationConfiguration,
} from '../../application/verification/presentation-configurations.ts';
import { PresentationVerifier } from '../../application/verification/presentation-verifier.ts';
import { ReceiveDcApiResponse } from '../../application/verification/receive-dc-api-response.ts';
import { ReceiveResponse } from '../../application/verification/receive-response.ts';
import { ResponseIntake } from '../../application/verification/response-intake.ts';
import { ResultDelivery } from '../../application/verification/result-delivery.ts';
import { ServeDcApiRequest } from '../../application/verification/serve-dc-api-request.ts';
import { ServeRequestObject } from '../../application/verification/serve-request-object.ts';
import { SessionOutcomes } from '../../application/verification/session-outcomes.ts';
import { type Feature, given } from './feature.ts';

const base = { store: Store, clock: Clock, random: Random, settings: ServiceSettings };
const wallet = { store: Store, tenantConfigurations: TenantConfigurations, clock: Clock };

/** Asking wallets for presentations and judging what they answer. */
export const verification: Feature = {
  classes: [
    ...[ListPresentationConfigurations, GetPresentationConfiguration],
    ...[ReplacePresentationConfiguration, UpdatePresentationConfiguration],
    ...[DeletePresentationConfiguration, PresentationVerifier, IssuerTrusts],
    given(ResultDelivery, { webhooks: Webhooks, clock: Clock, random: Random, log: Log }),
    given(SessionOutcomes, wallet),
    given(OpenRequests, wallet),
    given(ServeRequestObject, { openRequests: OpenRequests, kms: Kms, encryption: Encryption }),
    given(ServeDcApiRequest, { openRequests: OpenRequests }),
    given(ResponseIntake, {
      ...wallet,
      random: Random,
      encryption: Encryption,
      presentationVerifier: PresentationVerifier,
      resultDelivery: ResultDelivery,
      sessionOutcomes: SessionOutcomes,
      log: Log,
    }),
    given(ReceiveResponse, { responseIntake: ResponseIntake }),
    given(ReceiveDcApiResponse, { responseIntake: ResponseIntake }),
    given(CreatePresentationRequest, {
      ...base,
      tenantConfigurations: TenantConfigurations,
      kms: Kms,
      encryption: Encryption,
      registrationCertificates: RegistrationCertificates,
      webhooks: Webhooks,
    }),
  ],
  open: [presentationWalletRoutes, dcApiRoutes],
  administered: [presentationOfferRoutes, presentationConfigurationRoutes],
};
