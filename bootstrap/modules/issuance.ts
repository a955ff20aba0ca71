import { issuanceRoutes } from '../../adapters/http/issuance/configuration.routes.ts';
import { deferredRoutes } from '../../adapters/http/issuance/deferred.routes.ts';
import { issuanceWalletRoutes } from '../../adapters/http/issuance/wallet.routes.ts';
import { BatchMaker } from '../../application/issuance/batch-maker.ts';
import { ClaimsProvider } from '../../application/issuance/claims-provider.ts';
import { CreateNonce } from '../../application/issuance/create-nonce.ts';
import { CreateOffer } from '../../application/issuance/create-offer.ts';
import {
  DeleteCredentialConfiguration,
  GetCredentialConfiguration,
  ListCredentialConfigurations,
  ReplaceCredentialConfiguration,
  UpdateCredentialConfiguration,
} from '../../application/issuance/credential-configurations.ts';
import { CredentialFactory } from '../../application/issuance/credential-factory.ts';
import { CredentialMessages } from '../../application/issuance/credential-messages.ts';
import { DecideDeferred } from '../../application/issuance/decide-deferred.ts';
import { FetchOffer } from '../../application/issuance/fetch-offer.ts';
import { HolderKeys } from '../../application/issuance/holder-keys.ts';
import {
  GetIssuanceConfiguration,
  ReplaceIssuanceConfiguration,
} from '../../application/issuance/issuance-configurations.ts';
import { IssueCredential } from '../../application/issuance/issue-credential.ts';
import { KeyAttestations } from '../../application/issuance/key-attestations.ts';
import { ReceiveNotification } from '../../application/issuance/receive-notification.ts';
import { RetrieveDeferred } from '../../application/issuance/retrieve-deferred.ts';
import { UserIdentities } from '../../application/oauth/user-identities.ts';
import { WalletAuthenticator } from '../../application/oauth/wallet-authenticator.ts';
import { Clock } from '../../application/ports/clock.ts';
import { Log } from '../../application/ports/log.ts';
import { Random } from '../../application/ports/random.ts';
import { SchemaValidator } from '../../application/ports/schema-validator.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { Store } from '../../application/ports/store.ts';
import { Webhooks } from '../../application/ports/webhooks.ts';
import { SessionNotes } from '../../application/sessions/session-notes.ts';
import { StatusAllocator } from '../../application/status-lists/status-allocator.ts';
import { TenantConfigurations } from '../../application/tenant-configuration.ts';
import { type Feature, given } from './feature.ts';

const base = { store: Store, clock: Clock, random: Random, settings: ServiceSettings };
const wallet = { store: Store, tenantConfigurations: TenantConfigurations, clock: Clock };

/** Issuing credentials, and how that is configured. */
export const issuance: Feature = {
  classes: [
    ...[GetIssuanceConfiguration, ReplaceIssuanceConfiguration, ListCredentialConfigurations],
    ...[GetCredentialConfiguration, ReplaceCredentialConfiguration, UpdateCredentialConfiguration],
    ...[DeleteCredentialConfiguration, CredentialFactory, CreateNonce, CredentialMessages],
    ...[KeyAttestations, HolderKeys],
    given(ClaimsProvider, {
      sessionNotes: SessionNotes,
      userIdentities: UserIdentities,
      webhooks: Webhooks,
      schemaValidator: SchemaValidator,
      clock: Clock,
      random: Random,
    }),
    given(CreateOffer, {
      ...base,
      tenantConfigurations: TenantConfigurations,
      schemaValidator: SchemaValidator,
      webhooks: Webhooks,
    }),
    given(FetchOffer, wallet),
    given(BatchMaker, {
      credentialFactory: CredentialFactory,
      statusAllocator: StatusAllocator,
      clock: Clock,
      random: Random,
    }),
    given(IssueCredential, {
      ...base,
      tenantConfigurations: TenantConfigurations,
      walletAuthenticator: WalletAuthenticator,
      credentialMessages: CredentialMessages,
      holderKeys: HolderKeys,
      claimsProvider: ClaimsProvider,
      batchMaker: BatchMaker,
    }),
    given(RetrieveDeferred, {
      ...wallet,
      walletAuthenticator: WalletAuthenticator,
      credentialMessages: CredentialMessages,
      settings: ServiceSettings,
    }),
    given(ReceiveNotification, {
      ...base,
      tenantConfigurations: TenantConfigurations,
      walletAuthenticator: WalletAuthenticator,
      sessionNotes: SessionNotes,
      webhooks: Webhooks,
      log: Log,
    }),
    given(DecideDeferred, {
      store: Store,
      batchMaker: BatchMaker,
      schemaValidator: SchemaValidator,
      sessionNotes: SessionNotes,
      clock: Clock,
    }),
  ],
  open: [issuanceWalletRoutes],
  administered: [issuanceRoutes, deferredRoutes],
};
