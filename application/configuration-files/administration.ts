import { ROLES } from '../../domain/clients/role.ts';
import { IMPORTER } from '../../domain/clients/service-names.ts';
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
import { NOT_ASKED, OfflineIssuerRegistration, OfflineListSigners, OfflineRegistrationCertificates } from './offline.ts';

/** What administration needs that reaches no network. */
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

const OF_TENANTS = ROLES.filter((role) => role !== 'tenants:manage');

/** The administration of one store by the import: what its use cases are given, and who calls them. */
export class Administration {
  /** For every use case of administration; none of them reaches the network. */
  readonly ports: AdministrationPorts & {
    readonly registrar: Registrar;
    readonly registrationCertificates: OfflineRegistrationCertificates;
    readonly issuerRegistration: OfflineIssuerRegistration;
    readonly trustListPublisher: TrustListPublisher;
    readonly listSigners: OfflineListSigners;
  };
  /** Whether nothing of what is made is kept. */
  readonly isDryRun: boolean;
  /** Who imports tenants themselves. */
  readonly caller: ServiceCaller = { tenantId: null, clientId: IMPORTER, roles: ['tenants:manage'] };

  constructor(ports: AdministrationPorts, isDryRun = false) {
    this.isDryRun = isDryRun;
    const registrationCertificates = new OfflineRegistrationCertificates(ports);
    this.ports = {
      ...ports,
      registrar: NOT_ASKED,
      registrationCertificates,
      issuerRegistration: new OfflineIssuerRegistration({ registrationCertificates }),
      trustListPublisher: new TrustListPublisher(ports),
      listSigners: new OfflineListSigners(ports),
    };
  }

  /** Who imports what belongs to a tenant; sees it as it is now. @throws Failure `not_found`. */
  async callerOf(tenantId: TenantId): Promise<TenantCaller> {
    const head = await this.ports.store.read(tenantId).state();
    if (head === undefined) throw new Failure('not_found', 'the tenant is gone');
    return {
      tenantId,
      clientId: IMPORTER,
      roles: OF_TENANTS,
      allowedPresentationConfigs: null,
      allowedIssuanceConfigs: null,
      configured: new TenantConfiguration(this.ports, head),
    };
  }
}
