import { resource } from '../shared/resource.ts';
import { type RegistrarConfiguration, RegistrarConfigurationBody } from './registrar-configuration.ts';
import type { StoredRegistrationCertificate } from './registration-certificate.ts';

export const registrarConfigurationResource = resource<RegistrarConfiguration>()({
  kind: 'registrar-configuration',
  repository: 'registrarConfiguration',
  revision: 'registrar',
  isDocument: true,
  auditedValues: [],
  editablePart: (configuration: RegistrarConfiguration) => configuration,
  secrets: { clientSecret: { variable: 'CLIENT_SECRET' }, password: { variable: 'PASSWORD' } },
  file: {
    path: 'registrar',
    body: RegistrarConfigurationBody,
    refersTo: ['tenant'],
    write: (configuration: RegistrarConfiguration) => configuration,
  },
});

/** Certificates obtained from a registrar; they are not edited. */
export const registrationCertificateResource = resource<StoredRegistrationCertificate>()({
  kind: 'registration-certificate',
  repository: 'registrationCertificates',
  revision: 'registrationCertificates',
  isDocument: true,
  auditedValues: [],
});
