import { ContainerModule } from 'inversify';
import { ClientRoutes } from '../../adapters/http/clients/client.routes.ts';
import { CertificateRoutes } from '../../adapters/http/keys/certificate.routes.ts';
import { KeyRoutes } from '../../adapters/http/keys/key.routes.ts';
import { KeyChainRoutes } from '../../adapters/http/keys/key-chain.routes.ts';
import { TokenRoutes } from '../../adapters/http/oauth2/token.routes.ts';
import { SettingsRoutes } from '../../adapters/http/tenants/settings.routes.ts';
import { TenantRoutes } from '../../adapters/http/tenants/tenant.routes.ts';
import { CreateClient } from '../../application/clients/create-client.ts';
import { DeleteClient } from '../../application/clients/delete-client.ts';
import { GetClient } from '../../application/clients/get-client.ts';
import { IssueAccessToken } from '../../application/clients/issue-access-token.ts';
import { ListClients } from '../../application/clients/list-clients.ts';
import { PickUpSecret } from '../../application/clients/pick-up-secret.ts';
import { RotateSecret } from '../../application/clients/rotate-secret.ts';
import { UpdateClient } from '../../application/clients/update-client.ts';
import { CreateCertificate } from '../../application/keys/create-certificate.ts';
import { CreateKeyChain } from '../../application/keys/create-key-chain.ts';
import { DeleteKey } from '../../application/keys/delete-key.ts';
import { DeleteKeyChain } from '../../application/keys/delete-key-chain.ts';
import { FindCertificates } from '../../application/keys/find-certificates.ts';
import { GetKeyChain } from '../../application/keys/get-key-chain.ts';
import { ImportKeyChain } from '../../application/keys/import-key-chain.ts';
import { ListKeyChains } from '../../application/keys/list-key-chains.ts';
import { ListKeyProviders } from '../../application/keys/list-key-providers.ts';
import { RenewKeyChains } from '../../application/keys/renew-key-chains.ts';
import { RequestCertificate } from '../../application/keys/request-certificate.ts';
import { RotateKeyChain } from '../../application/keys/rotate-key-chain.ts';
import { UpdateKeyChain } from '../../application/keys/update-key-chain.ts';
import { CertificateAuthority } from '../../application/ports/certificate-authority.ts';
import { Cipher } from '../../application/ports/cipher.ts';
import { Clock } from '../../application/ports/clock.ts';
import { EventBus } from '../../application/ports/event-bus.ts';
import { Kms } from '../../application/ports/kms.ts';
import { Log } from '../../application/ports/log.ts';
import { Random } from '../../application/ports/random.ts';
import { Secrets } from '../../application/ports/secrets.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { Store } from '../../application/ports/store.ts';
import { ChangeOwnSettings } from '../../application/tenants/change-own-settings.ts';
import { CreateTenant } from '../../application/tenants/create-tenant.ts';
import { DeleteTenant } from '../../application/tenants/delete-tenant.ts';
import { EditTags } from '../../application/tenants/edit-tags.ts';
import { GetOwnSettings } from '../../application/tenants/get-own-settings.ts';
import { GetTenant } from '../../application/tenants/get-tenant.ts';
import { ListTenants } from '../../application/tenants/list-tenants.ts';
import { UpdateTenant } from '../../application/tenants/update-tenant.ts';
import { wire } from '../wire.ts';

/** Tenants, their clients and their keys. */
export const administration = new ContainerModule((options) => {
  const store = { store: Store };
  const change = { store: Store, clock: Clock };
  const secret = { ...change, random: Random, secrets: Secrets };
  const client = { ...secret, cipher: Cipher, settings: ServiceSettings };

  wire(options, EditTags, { cipher: Cipher });
  wire(options, TokenRoutes, { issueAccessToken: IssueAccessToken });

  wire(options, CreateTenant, { ...client, kms: Kms, certificateAuthority: CertificateAuthority });
  wire(options, UpdateTenant, { ...client, eventBus: EventBus });
  wire(options, ListTenants, store);
  wire(options, GetTenant, store);
  wire(options, DeleteTenant, { store: Store, eventBus: EventBus, log: Log });
  wire(options, TenantRoutes, {
    listTenants: ListTenants,
    getTenant: GetTenant,
    createTenant: CreateTenant,
    updateTenant: UpdateTenant,
    deleteTenant: DeleteTenant,
  });
  wire(options, GetOwnSettings, {});
  wire(options, ChangeOwnSettings, change);
  wire(options, SettingsRoutes, {
    getOwnSettings: GetOwnSettings,
    changeOwnSettings: ChangeOwnSettings,
    settings: ServiceSettings,
  });

  wire(options, CreateClient, client);
  wire(options, UpdateClient, change);
  wire(options, ListClients, store);
  wire(options, GetClient, store);
  wire(options, DeleteClient, store);
  wire(options, PickUpSecret, { ...change, cipher: Cipher });
  wire(options, RotateSecret, secret);
  wire(options, ClientRoutes, {
    listClients: ListClients,
    getClient: GetClient,
    createClient: CreateClient,
    updateClient: UpdateClient,
    deleteClient: DeleteClient,
    pickUpSecret: PickUpSecret,
    rotateSecret: RotateSecret,
  });

  const certify = {
    ...change,
    certificateAuthority: CertificateAuthority,
    random: Random,
    settings: ServiceSettings,
  };
  const renew = {
    ...change,
    certificateAuthority: CertificateAuthority,
    kms: Kms,
    settings: ServiceSettings,
  };
  wire(options, CreateKeyChain, { ...certify, kms: Kms });
  wire(options, ImportKeyChain, { ...certify, kms: Kms });
  wire(options, UpdateKeyChain, {
    ...change,
    certificateAuthority: CertificateAuthority,
    settings: ServiceSettings,
  });
  wire(options, RotateKeyChain, renew);
  wire(options, RenewKeyChains, { ...renew, log: Log });
  wire(options, RequestCertificate, {
    ...store,
    certificateAuthority: CertificateAuthority,
    settings: ServiceSettings,
  });
  wire(options, DeleteKey, change);
  wire(options, ListKeyChains, store);
  wire(options, GetKeyChain, store);
  wire(options, DeleteKeyChain, change);
  wire(options, FindCertificates, store);
  wire(options, ListKeyProviders, { kms: Kms });
  wire(options, CreateCertificate, certify);
  wire(options, KeyChainRoutes, {
    listKeyChains: ListKeyChains,
    getKeyChain: GetKeyChain,
    createKeyChain: CreateKeyChain,
    updateKeyChain: UpdateKeyChain,
    deleteKeyChain: DeleteKeyChain,
    listKeyProviders: ListKeyProviders,
    importKeyChain: ImportKeyChain,
    rotateKeyChain: RotateKeyChain,
    requestCertificate: RequestCertificate,
  });
  wire(options, CertificateRoutes, {
    findCertificates: FindCertificates,
    createCertificate: CreateCertificate,
    updateKeyChain: UpdateKeyChain,
    deleteKeyChain: DeleteKeyChain,
    requestCertificate: RequestCertificate,
  });
  wire(options, KeyRoutes, {
    findCertificates: FindCertificates,
    createKeyChain: CreateKeyChain,
    importKeyChain: ImportKeyChain,
    deleteKey: DeleteKey,
  });
});
