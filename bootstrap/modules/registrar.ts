import { registrarRoutes } from '../../adapters/http/registrar/registrar.routes.ts';
import { ObtainAccessCertificate } from '../../application/registrar/obtain-access-certificate.ts';
import { ObtainRegistrationCertificate } from '../../application/registrar/obtain-registration-certificate.ts';
import {
  DeleteRegistrarConfiguration,
  GetRegistrarConfiguration,
  ReplaceRegistrarConfiguration,
  UpdateRegistrarConfiguration,
} from '../../application/registrar/registrar-configurations.ts';
import { RegistrationCertificateChecker } from '../../application/registrar/registration-certificate-checker.ts';
import { RegistrationCertificates } from '../../application/registrar/registration-certificates.ts';
import type { Feature } from './feature.ts';

/** The registrar of each tenant, and what it says that the tenant may ask wallets for. */
export const registrar: Feature = {
  classes: [
    ...[GetRegistrarConfiguration, ReplaceRegistrarConfiguration],
    ...[UpdateRegistrarConfiguration, DeleteRegistrarConfiguration],
    ...[ObtainAccessCertificate, ObtainRegistrationCertificate],
    ...[RegistrationCertificateChecker, RegistrationCertificates],
  ],
  administered: [registrarRoutes],
};
