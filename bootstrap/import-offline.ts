import type { Certificates } from '../application/ports/certificates.ts';
import { Registrar, RegistrarError } from '../application/ports/registrar.ts';
import type { Signatures } from '../application/ports/signatures.ts';
import type { Store } from '../application/ports/store.ts';
import { RegistrationCertificateChecker } from '../application/registrar/registration-certificate-checker.ts';
import { RegistrationCertificates } from '../application/registrar/registration-certificates.ts';
import type { TenantConfiguration } from '../application/tenant-configuration.ts';
import type { PresentationConfigurationBody } from '../domain/verification/configuration.ts';

/** A start does not depend on others: a login is tried when it is used. */
export class NotAskedRegistrar extends Registrar {
  override async logIn(): Promise<void> {}

  override relyingParties(): Promise<never> {
    return notAsked();
  }

  override issueAccessCertificate(): Promise<never> {
    return notAsked();
  }

  override issueRegistrationCertificate(): Promise<never> {
    return notAsked();
  }

  override findRegistrationCertificate(): Promise<never> {
    return notAsked();
  }
}

function notAsked(): Promise<never> {
  return Promise.reject(new RegistrarError('unavailable', 'no registrar is asked during the import'));
}

type Ports = { readonly store: Store; readonly signatures: Signatures; readonly certificates: Certificates };

/**
 * Registration certificates that stand in a document are judged, their status excepted. What a registrar has to issue
 * is obtained by the first request that needs it; that request judges the status, too.
 */
export function registrationCertificatesOffline(
  ports: Ports,
  registrar: Registrar,
): RegistrationCertificates {
  const statusChecker = { check: async () => {} };
  const registrationCertificateChecker = new RegistrationCertificateChecker({ ...ports, statusChecker });
  return new OfflineRegistrationCertificates({ ...ports, registrar, registrationCertificateChecker });
}

class OfflineRegistrationCertificates extends RegistrationCertificates {
  override async check(
    configured: TenantConfiguration,
    configuration: PresentationConfigurationBody,
    now: Date,
  ): Promise<void> {
    if (configuration.registrationCert?.jwt !== undefined) await super.check(configured, configuration, now);
  }
}
