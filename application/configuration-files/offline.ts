import type { PresentationConfigurationBody } from '../../domain/verification/configuration.ts';
import type { Certificates } from '../ports/certificates.ts';
import { type Registrar, RegistrarError } from '../ports/registrar.ts';
import type { Signatures } from '../ports/signatures.ts';
import type { Store } from '../ports/store.ts';
import { RegistrationCertificateChecker } from '../registrar/registration-certificate-checker.ts';
import { RegistrationCertificates } from '../registrar/registration-certificates.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';

const notAsked = () =>
  Promise.reject(new RegistrarError('unavailable', 'no registrar is asked during the import'));

/** A start does not depend on others: a login is tried when it is used. */
export const NOT_ASKED: Registrar = {
  logIn: async () => {},
  relyingParties: notAsked,
  issueAccessCertificate: notAsked,
  issueRegistrationCertificate: notAsked,
  findRegistrationCertificate: notAsked,
};

type Ports = { readonly store: Store; readonly signatures: Signatures; readonly certificates: Certificates };

/**
 * Registration certificates that stand in a document are judged, their status excepted. What a registrar has to issue
 * is obtained by the first request that needs it; that request judges the status, too.
 */
export class OfflineRegistrationCertificates extends RegistrationCertificates {
  constructor(ports: Ports) {
    const statusChecker = { check: async () => {} };
    const registrationCertificateChecker = new RegistrationCertificateChecker({ ...ports, statusChecker });
    super({ ...ports, registrar: NOT_ASKED, registrationCertificateChecker });
  }

  override async check(
    configured: TenantConfiguration,
    configuration: PresentationConfigurationBody,
    now: Date,
  ): Promise<void> {
    if (configuration.registrationCert?.jwt !== undefined) await super.check(configured, configuration, now);
  }
}
