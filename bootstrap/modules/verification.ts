import { ContainerModule } from 'inversify';
import { CacheRoutes } from '../../adapters/http/caches/cache.routes.ts';
import { PresentationConfigurationRoutes } from '../../adapters/http/verification/configuration.routes.ts';
import { DcApiRoutes } from '../../adapters/http/verification/dc-api.routes.ts';
import { PresentationOfferRoutes } from '../../adapters/http/verification/offer.routes.ts';
import { PresentationWalletRoutes } from '../../adapters/http/verification/wallet.routes.ts';
import { ClearCaches, ReadCacheStats } from '../../application/caches/list-caches.ts';
import { Certificates } from '../../application/ports/certificates.ts';
import { Clock } from '../../application/ports/clock.ts';
import { Encryption } from '../../application/ports/encryption.ts';
import { EventBus } from '../../application/ports/event-bus.ts';
import { Kms } from '../../application/ports/kms.ts';
import { Log } from '../../application/ports/log.ts';
import { OwnStatusLists } from '../../application/ports/own-status-lists.ts';
import { Random } from '../../application/ports/random.ts';
import { Remote } from '../../application/ports/remote.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { Signatures } from '../../application/ports/signatures.ts';
import { Store } from '../../application/ports/store.ts';
import { Webhooks } from '../../application/ports/webhooks.ts';
import { RegistrationCertificates } from '../../application/registrar/registration-certificates.ts';
import { StatusChecker } from '../../application/status-lists/check-status.ts';
import { RemoteStatusLists } from '../../application/status-lists/remote-status-lists.ts';
import { TenantConfigurations } from '../../application/tenant-configuration.ts';
import { TrustLists } from '../../application/trust-lists/remote-trust-lists.ts';
import { CreatePresentationRequest } from '../../application/verification/create-presentation-request.ts';
import { IssuerTrusts } from '../../application/verification/issuer-trust.ts';
import { OpenRequests } from '../../application/verification/open-requests.ts';
import { PresentationVerifier } from '../../application/verification/presentation-verifier.ts';
import {
  GetPresentationConfiguration,
  ListPresentationConfigurations,
} from '../../application/verification/read-presentation-configurations.ts';
import { ReceiveDcApiResponse } from '../../application/verification/receive-dc-api-response.ts';
import { ReceiveResponse } from '../../application/verification/receive-response.ts';
import { ResponseIntake } from '../../application/verification/response-intake.ts';
import { ResultDelivery } from '../../application/verification/result-delivery.ts';
import { ServeDcApiRequest } from '../../application/verification/serve-dc-api-request.ts';
import { ServeRequestObject } from '../../application/verification/serve-request-object.ts';
import { SessionOutcomes } from '../../application/verification/session-outcomes.ts';
import {
  RemovePresentationConfiguration,
  SavePresentationConfiguration,
  UpdatePresentationConfiguration,
} from '../../application/verification/write-presentation-configurations.ts';
import { wire } from '../wire.ts';

/** Asking wallets for presentations and judging what they answer. */
export const verification = new ContainerModule((options) => {
  const wallet = { store: Store, tenantConfigurations: TenantConfigurations, clock: Clock };
  wire(options, RemoteStatusLists, {
    remote: Remote,
    signatures: Signatures,
    clock: Clock,
    eventBus: EventBus,
    log: Log,
  });
  wire(options, ReadCacheStats, { trustLists: TrustLists, remoteStatusLists: RemoteStatusLists });
  wire(options, ClearCaches, { store: Store, eventBus: EventBus });
  wire(options, CacheRoutes, { readCacheStats: ReadCacheStats, clearCaches: ClearCaches });
  wire(options, StatusChecker, {
    ...wallet,
    remoteStatusLists: RemoteStatusLists,
    ownStatusLists: OwnStatusLists,
    certificates: Certificates,
    settings: ServiceSettings,
  });
  wire(options, PresentationVerifier, {
    signatures: Signatures,
    certificates: Certificates,
    statusChecker: StatusChecker,
    issuerTrusts: IssuerTrusts,
  });
  wire(options, IssuerTrusts, { trustLists: TrustLists });
  wire(options, ResultDelivery, { webhooks: Webhooks, clock: Clock, random: Random, log: Log });
  wire(options, SessionOutcomes, wallet);

  wire(options, OpenRequests, wallet);
  wire(options, ServeRequestObject, { openRequests: OpenRequests, kms: Kms, encryption: Encryption });
  wire(options, ServeDcApiRequest, { openRequests: OpenRequests });
  wire(options, ResponseIntake, {
    ...wallet,
    random: Random,
    encryption: Encryption,
    presentationVerifier: PresentationVerifier,
    resultDelivery: ResultDelivery,
    sessionOutcomes: SessionOutcomes,
    log: Log,
  });
  wire(options, ReceiveResponse, { responseIntake: ResponseIntake });
  wire(options, ReceiveDcApiResponse, { responseIntake: ResponseIntake });
  wire(options, PresentationWalletRoutes, {
    serveRequestObject: ServeRequestObject,
    receiveResponse: ReceiveResponse,
  });
  wire(options, DcApiRoutes, {
    serveDcApiRequest: ServeDcApiRequest,
    receiveDcApiResponse: ReceiveDcApiResponse,
  });

  wire(options, CreatePresentationRequest, {
    store: Store,
    tenantConfigurations: TenantConfigurations,
    clock: Clock,
    random: Random,
    kms: Kms,
    encryption: Encryption,
    settings: ServiceSettings,
    registrationCertificates: RegistrationCertificates,
    webhooks: Webhooks,
  });
  wire(options, PresentationOfferRoutes, { createPresentationRequest: CreatePresentationRequest });

  wire(options, ListPresentationConfigurations, {});
  wire(options, GetPresentationConfiguration, {});
  const write = {
    store: Store,
    clock: Clock,
    settings: ServiceSettings,
    registrationCertificates: RegistrationCertificates,
    remote: Remote,
  };
  wire(options, SavePresentationConfiguration, write);
  wire(options, UpdatePresentationConfiguration, write);
  wire(options, RemovePresentationConfiguration, { store: Store });
  wire(options, PresentationConfigurationRoutes, {
    listPresentationConfigurations: ListPresentationConfigurations,
    getPresentationConfiguration: GetPresentationConfiguration,
    savePresentationConfiguration: SavePresentationConfiguration,
    updatePresentationConfiguration: UpdatePresentationConfiguration,
    removePresentationConfiguration: RemovePresentationConfiguration,
  });
});
