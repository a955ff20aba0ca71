import { ContainerModule } from 'inversify';
import { RegistrarRoutes } from '../../adapters/http/registrar/registrar.routes.ts';
import { Certificates } from '../../application/ports/certificates.ts';
import { Clock } from '../../application/ports/clock.ts';
import { Registrar } from '../../application/ports/registrar.ts';
import { Remote } from '../../application/ports/remote.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { Signatures } from '../../application/ports/signatures.ts';
import { Store } from '../../application/ports/store.ts';
import { ObtainAccessCertificate } from '../../application/registrar/obtain-access-certificate.ts';
import { ObtainRegistrationCertificate } from '../../application/registrar/obtain-registration-certificate.ts';
import { GetRegistrarConfiguration } from '../../application/registrar/read-registrar-configuration.ts';
import { RegistrationCertificateChecker } from '../../application/registrar/registration-certificate-checker.ts';
import { RegistrationCertificates } from '../../application/registrar/registration-certificates.ts';
import {
  DeleteRegistrarConfiguration,
  SaveRegistrarConfiguration,
  UpdateRegistrarConfiguration,
} from '../../application/registrar/write-registrar-configuration.ts';
import { StatusChecker } from '../../application/status-lists/check-status.ts';
import { wire } from '../wire.ts';

/** The registrar of each tenant, and what it says that the tenant may ask wallets for. */
export const registrar = new ContainerModule((options) => {
  const write = { store: Store, clock: Clock, registrar: Registrar, remote: Remote };
  const checked = { registrar: Registrar, registrationCertificateChecker: RegistrationCertificateChecker };
  wire(options, RegistrationCertificateChecker, {
    signatures: Signatures,
    certificates: Certificates,
    statusChecker: StatusChecker,
  });
  wire(options, RegistrationCertificates, { ...checked, store: Store });

  wire(options, GetRegistrarConfiguration, {});
  wire(options, SaveRegistrarConfiguration, write);
  wire(options, UpdateRegistrarConfiguration, write);
  wire(options, DeleteRegistrarConfiguration, { store: Store });
  wire(options, ObtainAccessCertificate, { ...write, settings: ServiceSettings });
  wire(options, ObtainRegistrationCertificate, { ...checked, clock: Clock });
  wire(options, RegistrarRoutes, {
    getRegistrarConfiguration: GetRegistrarConfiguration,
    saveRegistrarConfiguration: SaveRegistrarConfiguration,
    updateRegistrarConfiguration: UpdateRegistrarConfiguration,
    deleteRegistrarConfiguration: DeleteRegistrarConfiguration,
    obtainAccessCertificate: ObtainAccessCertificate,
    obtainRegistrationCertificate: ObtainRegistrationCertificate,
  });
});
