import { ContainerModule } from 'inversify';
import { IssuanceRoutes } from '../../adapters/http/issuance/configuration.routes.ts';
import { IssuanceMetadataRoutes } from '../../adapters/http/issuance/metadata.routes.ts';
import { IssuanceWalletRoutes } from '../../adapters/http/issuance/wallet.routes.ts';
import { ChallengeRoutes } from '../../adapters/http/oauth/challenge.routes.ts';
import { StatusListRoutes } from '../../adapters/http/status-lists/status-list.routes.ts';
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
import { FetchOffer } from '../../application/issuance/fetch-offer.ts';
import { IssueCredential } from '../../application/issuance/issue-credential.ts';
import { ReadIssuerMetadata } from '../../application/issuance/read-metadata.ts';
import { CreateChallenge } from '../../application/oauth/create-challenge.ts';
import { RedeemGrant } from '../../application/oauth/redeem-grant.ts';
import { Certificates } from '../../application/ports/certificates.ts';
import { Clock } from '../../application/ports/clock.ts';
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
import { AggregateStatusLists } from '../../application/status-lists/aggregate-status-lists.ts';
import { RevokeSession } from '../../application/status-lists/revoke-session.ts';
import { StatusAllocator } from '../../application/status-lists/status-allocator.ts';
import { StatusPublisher } from '../../application/status-lists/status-publisher.ts';
import { StatusChecker } from '../../application/steps/check-status.ts';
import { ClaimsProvider } from '../../application/steps/claims-provider.ts';
import { ClientAuthenticator } from '../../application/steps/client-authenticator.ts';
import { ClientKeys } from '../../application/steps/client-keys.ts';
import { CredentialFactory } from '../../application/steps/credential-factory.ts';
import { TenantViews } from '../../application/steps/tenant-views.ts';
import { TrustLists } from '../../application/steps/trust-lists.ts';
import { WalletProviderTrust } from '../../application/steps/wallet-provider-trust.ts';
import { WalletTokens } from '../../application/steps/wallet-tokens.ts';
import { wire } from '../wire.ts';

/** Issuing credentials, their status lists, and the authorization server that wallets meet. */
export const issuance = new ContainerModule((options) => {
  const base = { store: Store, clock: Clock, random: Random, settings: ServiceSettings };
  const wallet = { store: Store, tenantViews: TenantViews, clock: Clock };
  wire(options, StatusAllocator, base);
  wire(options, StatusPublisher, { ...wallet, kms: Kms, settings: ServiceSettings, eventBus: EventBus });
  options.bind(OwnStatusLists).toService(StatusPublisher);
  wire(options, AggregateStatusLists, { store: Store, tenantViews: TenantViews, settings: ServiceSettings });
  wire(options, RevokeSession, {
    store: Store,
    clock: Clock,
    eventBus: EventBus,
    statusAllocator: StatusAllocator,
  });
  wire(options, StatusListRoutes, {
    statusPublisher: StatusPublisher,
    aggregateStatusLists: AggregateStatusLists,
    revokeSession: RevokeSession,
    clock: Clock,
  });

  wire(options, WalletTokens, { kms: Kms, signatures: Signatures, clock: Clock, settings: ServiceSettings });
  const trust = { signatures: Signatures, certificates: Certificates, clock: Clock };
  wire(options, TrustLists, { ...trust, remote: Remote, log: Log });
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
  wire(options, CreateChallenge, { ...base, tenantViews: TenantViews });
  wire(options, ChallengeRoutes, { createChallenge: CreateChallenge });
  wire(options, CredentialFactory, { kms: Kms, random: Random, clock: Clock, settings: ServiceSettings });
  wire(options, ClaimsProvider, {
    store: Store,
    webhooks: Webhooks,
    schemaValidator: SchemaValidator,
    eventBus: EventBus,
    clock: Clock,
    random: Random,
  });
  wire(options, CreateOffer, { ...base, schemaValidator: SchemaValidator });
  wire(options, FetchOffer, { ...wallet, eventBus: EventBus });
  wire(options, CreateNonce, { ...base, tenantViews: TenantViews });
  wire(options, RedeemGrant, {
    ...base,
    tenantViews: TenantViews,
    walletTokens: WalletTokens,
    signatures: Signatures,
  });
  wire(options, IssueCredential, {
    ...base,
    tenantViews: TenantViews,
    walletTokens: WalletTokens,
    signatures: Signatures,
    claimsProvider: ClaimsProvider,
    credentialFactory: CredentialFactory,
    statusAllocator: StatusAllocator,
    eventBus: EventBus,
  });
  wire(options, ReadIssuerMetadata, { ...wallet, settings: ServiceSettings });
  wire(options, IssuanceMetadataRoutes, { readIssuerMetadata: ReadIssuerMetadata });
  wire(options, IssuanceWalletRoutes, {
    fetchOffer: FetchOffer,
    redeemGrant: RedeemGrant,
    createNonce: CreateNonce,
    issueCredential: IssueCredential,
  });

  const configure = { store: Store, clock: Clock };
  const configureCredentials = { ...configure, schemaValidator: SchemaValidator };
  wire(options, ReadIssuanceConfiguration, configure);
  wire(options, WriteIssuanceConfiguration, configure);
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
