import type { Container } from 'inversify';
import { X509Authority } from '../adapters/crypto/x509-authority.ts';
import type { ServiceCaller, TenantCaller } from '../application/caller.ts';
import { CreateClient } from '../application/clients/create-client.ts';
import { UpdateClient } from '../application/clients/update-client.ts';
import { WriteCredentialConfiguration } from '../application/issuance/configure-credentials.ts';
import { WriteIssuanceConfiguration } from '../application/issuance/configure-issuance.ts';
import { CreateKeyChain } from '../application/keys/create-key-chain.ts';
import { ImportKeyChain } from '../application/keys/import-key-chain.ts';
import { UpdateKeyChain } from '../application/keys/update-key-chain.ts';
import { Certificates } from '../application/ports/certificates.ts';
import { Cipher } from '../application/ports/cipher.ts';
import { Clock } from '../application/ports/clock.ts';
import { EventBus } from '../application/ports/event-bus.ts';
import { Kms } from '../application/ports/kms.ts';
import { Random } from '../application/ports/random.ts';
import { Remote } from '../application/ports/remote.ts';
import { SchemaValidator } from '../application/ports/schema-validator.ts';
import { Secrets } from '../application/ports/secrets.ts';
import { ServiceSettings } from '../application/ports/settings.ts';
import { Signatures } from '../application/ports/signatures.ts';
import { Store } from '../application/ports/store.ts';
import { Webhooks } from '../application/ports/webhooks.ts';
import { SaveRegistrarConfiguration } from '../application/registrar/write-registrar-configuration.ts';
import { TenantConfiguration } from '../application/tenant-configuration.ts';
import { CreateTenant } from '../application/tenants/create-tenant.ts';
import { UpdateTenant } from '../application/tenants/update-tenant.ts';
import { TrustListPublisher } from '../application/trust-lists/trust-list-publisher.ts';
import { CreateTrustList, ReplaceTrustList } from '../application/trust-lists/write-trust-lists.ts';
import { SavePresentationConfiguration } from '../application/verification/write-presentation-configurations.ts';
import { ROLES } from '../domain/clients/role.ts';
import { IMPORTER } from '../domain/clients/service-names.ts';
import { Failure } from '../domain/shared/failure.ts';
import type { TenantId } from '../domain/shared/ids.ts';
import { NotAskedRegistrar, registrationCertificatesOffline } from './import-offline.ts';

export type ImportPorts = {
  readonly store: Store;
  readonly kms: Kms;
  readonly cipher: Cipher;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: ServiceSettings;
  readonly eventBus: EventBus;
  readonly schemaValidator: SchemaValidator;
  readonly signatures: Signatures;
  readonly certificates: Certificates;
  readonly webhooks: Webhooks;
  readonly remote: Remote;
};

export function importPorts(container: Container): ImportPorts {
  return {
    store: container.get(Store),
    kms: container.get(Kms),
    cipher: container.get(Cipher),
    secrets: container.get(Secrets),
    clock: container.get(Clock),
    random: container.get(Random),
    settings: container.get(ServiceSettings),
    eventBus: container.get(EventBus),
    schemaValidator: container.get(SchemaValidator),
    signatures: container.get(Signatures),
    certificates: container.get(Certificates),
    webhooks: container.get(Webhooks),
    remote: container.get(Remote),
  };
}

const OF_TENANTS = ROLES.filter((role) => role !== 'tenants:manage');

/** The use cases of the administrative interface over one store, none of which reaches the network. */
export class ImportTools {
  readonly ports: ImportPorts;
  readonly isRehearsal: boolean;
  readonly createTenant: CreateTenant;
  readonly updateTenant: UpdateTenant;
  readonly createClient: CreateClient;
  readonly updateClient: UpdateClient;
  readonly createKeyChain: CreateKeyChain;
  readonly importKeyChain: ImportKeyChain;
  readonly updateKeyChain: UpdateKeyChain;
  readonly saveRegistrar: SaveRegistrarConfiguration;
  readonly savePresentation: SavePresentationConfiguration;
  readonly createTrustList: CreateTrustList;
  readonly replaceTrustList: ReplaceTrustList;
  readonly writeIssuance: WriteIssuanceConfiguration;
  readonly writeCredential: WriteCredentialConfiguration;

  /** @param isRehearsal whether nothing of what is made is kept. */
  constructor(ports: ImportPorts, isRehearsal = false) {
    this.isRehearsal = isRehearsal;
    const { kms, random } = ports;
    const registrar = new NotAskedRegistrar();
    const all = {
      ...ports,
      certificateAuthority: new X509Authority({ kms, random }),
      registrar,
      registrationCertificates: registrationCertificatesOffline(ports, registrar),
      trustListPublisher: new TrustListPublisher(ports),
    };
    this.ports = ports;
    this.createTenant = new CreateTenant(all);
    this.updateTenant = new UpdateTenant(all);
    this.createClient = new CreateClient(all);
    this.updateClient = new UpdateClient(all);
    this.createKeyChain = new CreateKeyChain(all);
    this.importKeyChain = new ImportKeyChain(all);
    this.updateKeyChain = new UpdateKeyChain(all);
    this.saveRegistrar = new SaveRegistrarConfiguration(all);
    this.savePresentation = new SavePresentationConfiguration(all);
    this.createTrustList = new CreateTrustList(all);
    this.replaceTrustList = new ReplaceTrustList(all);
    this.writeIssuance = new WriteIssuanceConfiguration(all);
    this.writeCredential = new WriteCredentialConfiguration(all);
  }

  get store(): Store {
    return this.ports.store;
  }

  /** The same over another store. */
  over(store: Store): ImportTools {
    return new ImportTools({ ...this.ports, store }, this.isRehearsal);
  }

  /** Who imports what belongs to no tenant, and tenants themselves. */
  get caller(): ServiceCaller {
    return { tenantId: null, clientId: IMPORTER, roles: ['tenants:manage'] };
  }

  /** Who imports what belongs to a tenant; sees it as it is now. @throws Failure `not_found`. */
  async callerOf(tenantId: TenantId): Promise<TenantCaller> {
    const head = await this.store.read(tenantId).state();
    if (head === undefined) throw new Failure('not_found', 'the tenant is gone');
    return {
      tenantId,
      clientId: IMPORTER,
      roles: OF_TENANTS,
      allowedPresentationConfigs: null,
      allowedIssuanceConfigs: null,
      configured: new TenantConfiguration(this.store, head),
    };
  }
}
