import type { Container } from 'inversify';
import { X509Authority } from '../adapters/crypto/x509-authority.ts';
import type { ServiceCaller, TenantCaller } from '../application/caller.ts';
import { CreateClient, UpdateClient } from '../application/clients/clients.ts';
import { ReplaceCredentialConfiguration } from '../application/issuance/credential-configurations.ts';
import { ReplaceIssuanceConfiguration } from '../application/issuance/issuance-configurations.ts';
import { CreateKeyChain, UpdateKeyChain } from '../application/keys/key-chains.ts';
import type { PortsOf } from '../application/needs.ts';
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
import { ReplaceRegistrarConfiguration } from '../application/registrar/registrar-configurations.ts';
import { TenantConfiguration } from '../application/tenant-configuration.ts';
import type { MAKING_TENANTS } from '../application/tenants/make-tenant.ts';
import { UpdateTenant } from '../application/tenants/tenants.ts';
import { TrustListPublisher } from '../application/trust-lists/trust-list-publisher.ts';
import { CreateTrustList, ReplaceTrustList } from '../application/trust-lists/trust-lists.ts';
import { ReplacePresentationConfiguration } from '../application/verification/presentation-configurations.ts';
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
  /** What tenants are made with. */
  readonly making: PortsOf<typeof MAKING_TENANTS>;
  readonly updateTenant: UpdateTenant;
  readonly createClient: CreateClient;
  readonly updateClient: UpdateClient;
  readonly createKeyChain: CreateKeyChain;
  readonly updateKeyChain: UpdateKeyChain;
  readonly saveRegistrar: ReplaceRegistrarConfiguration;
  readonly savePresentation: ReplacePresentationConfiguration;
  readonly createTrustList: CreateTrustList;
  readonly replaceTrustList: ReplaceTrustList;
  readonly writeIssuance: ReplaceIssuanceConfiguration;
  readonly writeCredential: ReplaceCredentialConfiguration;

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
    this.making = all;
    this.updateTenant = new UpdateTenant(all);
    this.createClient = new CreateClient(all);
    this.updateClient = new UpdateClient(all);
    this.createKeyChain = new CreateKeyChain(all);
    this.updateKeyChain = new UpdateKeyChain(all);
    this.saveRegistrar = new ReplaceRegistrarConfiguration(all);
    this.savePresentation = new ReplacePresentationConfiguration(all);
    this.createTrustList = new CreateTrustList(all);
    this.replaceTrustList = new ReplaceTrustList(all);
    this.writeIssuance = new ReplaceIssuanceConfiguration(all);
    this.writeCredential = new ReplaceCredentialConfiguration(all);
  }

  get store(): Store {
    return this.ports.store;
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
