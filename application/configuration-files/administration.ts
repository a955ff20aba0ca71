import { ROLES } from '../../domain/clients/role.ts';
import { IMPORT_ACTOR } from '../../domain/clients/service-names.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { ServiceCaller, TenantCaller } from '../caller.ts';
import type { PortsOf } from '../needs.ts';
import { CertificateAuthority } from '../ports/certificate-authority.ts';
import { Certificates } from '../ports/certificates.ts';
import { Cipher } from '../ports/cipher.ts';
import { Clock } from '../ports/clock.ts';
import { EventBus } from '../ports/event-bus.ts';
import { Kms } from '../ports/kms.ts';
import { Log } from '../ports/log.ts';
import { Random } from '../ports/random.ts';
import type { Registrar } from '../ports/registrar.ts';
import { Remote } from '../ports/remote.ts';
import { SchemaValidator } from '../ports/schema-validator.ts';
import { Secrets } from '../ports/secrets.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Signatures } from '../ports/signatures.ts';
import { Store } from '../ports/store.ts';
import { TrustListReader } from '../ports/trust-list-reader.ts';
import { Webhooks } from '../ports/webhooks.ts';
import { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { TrustListPublisher } from '../trust-lists/trust-list-publisher.ts';
import { OFFLINE_REGISTRAR, OfflineIssuerRegistration, OfflineListSigners, OfflineRegistrationCertificates } from './offline.ts';

/** Ports of the administration without network access. */
export const ADMINISTRATION = {
  store: Store,
  kms: Kms,
  cipher: Cipher,
  secrets: Secrets,
  clock: Clock,
  random: Random,
  settings: ServiceSettings,
  eventBus: EventBus,
  log: Log,
  schemaValidator: SchemaValidator,
  signatures: Signatures,
  certificates: Certificates,
  certificateAuthority: CertificateAuthority,
  trustListReader: TrustListReader,
  webhooks: Webhooks,
  remote: Remote,
};
export type AdministrationPorts = PortsOf<typeof ADMINISTRATION>;

const TENANT_ROLES = ROLES.filter((role) => role !== 'tenants:manage');

/** The administration of one store by the import: the ports of its use cases, and their callers. */
export class Administration {
  /** The ports of every administrative use case; none of them uses the network. */
  readonly ports: AdministrationPorts & {
    readonly registrar: Registrar;
    readonly registrationCertificates: OfflineRegistrationCertificates;
    readonly issuerRegistration: OfflineIssuerRegistration;
    readonly trustListPublisher: TrustListPublisher;
    readonly listSigners: OfflineListSigners;
  };
  /** True if nothing is kept, since the store is a copy. */
  readonly isDryRun: boolean;
  readonly caller: ServiceCaller = { tenantId: null, clientId: IMPORT_ACTOR, roles: ['tenants:manage'] };

  constructor(ports: AdministrationPorts, isDryRun = false) {
    this.isDryRun = isDryRun;
    const registrationCertificates = new OfflineRegistrationCertificates(ports);
    this.ports = {
      ...ports,
      registrar: OFFLINE_REGISTRAR,
      registrationCertificates,
      issuerRegistration: new OfflineIssuerRegistration({ registrationCertificates }),
      trustListPublisher: new TrustListPublisher(ports),
      listSigners: new OfflineListSigners(ports),
    };
  }

  /** The caller that imports a tenant's documents, with the current state of the tenant. @throws Failure `not_found`. */
  async callerOf(tenantId: TenantId): Promise<TenantCaller> {
    const head = await this.ports.store.read(tenantId).state();
    if (head === undefined) throw new Failure('not_found', 'the tenant was removed');
    return {
      tenantId,
      clientId: IMPORT_ACTOR,
      roles: TENANT_ROLES,
      allowedPresentationConfigs: null,
      allowedIssuanceConfigs: null,
      tenant: new TenantConfiguration(this.ports, head),
    };
  }
}
