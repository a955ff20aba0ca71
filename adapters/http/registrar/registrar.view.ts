import { object, z } from 'zod';
import type { ObtainedAccessCertificate } from '../../../application/registrar/obtain-access-certificate.ts';
import type { ObtainedRegistrationCertificate } from '../../../application/verification/obtain-registration-certificate.ts';
import { writePemCertificates } from '../../../domain/formats/der/pem.ts';
import { type RegistrarConfiguration, RegistrarConfigurationBody } from '../../../domain/registrar/registrar-configuration.ts';
import { withKeyReferences } from '../../../domain/shared/older-names.ts';
import type { Tenant } from '../../../domain/tenants/tenant.ts';
import { KeyChainView, toKeyChainView } from '../keys/key-chain.view.ts';
import { viewOf } from '../output/view-of.ts';
import { TenantReference, toTenantReference } from '../shapes.ts';

const { registrarUrl, oidcUrl, clientId, username, ...certificateProperties } = RegistrarConfigurationBody.shape;

export const RegistrarConfigurationView = object({
  registrarUrl,
  oidcUrl,
  clientId,
  hasClientSecret: z.boolean(),
  username,
  hasPassword: z.boolean(),
  registrationCertificateAnchors: certificateProperties.registrationCertificateAnchors,
  registrationCertificateDefaults: certificateProperties.registrationCertificateDefaults,
  tenantId: z.string(),
  tenant: TenantReference,
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
}).meta({ id: 'RegistrarConfiguration', description: 'The login of the tenant at its registrar, without secrets' });

export function toRegistrarConfigurationView(configuration: RegistrarConfiguration, tenant: Tenant) {
  return viewOf(RegistrarConfigurationView, {
    ...configuration,
    hasClientSecret: typeof configuration.clientSecret === 'string',
    hasPassword: configuration.password !== '',
    tenantId: tenant.id,
    tenant: toTenantReference(tenant),
  });
}

export const AccessCertificateView = object({
  id: z.string().describe('Id of the certificate at the registrar'),
  relyingPartyId: z.string(),
  keyChainId: z.string(),
  certId: z.string().describe('Same value, under its former name'),
  crt: z.array(z.string()).describe('PEM, leaf first'),
  expiresAt: z.iso.datetime(),
  keyChain: KeyChainView,
}).meta({ id: 'AccessCertificate', description: 'Signs requests to wallets from now on' });

export function toAccessCertificateView({ id, relyingPartyId, chain }: ObtainedAccessCertificate) {
  return withKeyReferences({
    id,
    relyingPartyId,
    keyChainId: chain.id,
    crt: chain.active.certificates.map((certificate) => writePemCertificates([certificate])),
    expiresAt: chain.active.notAfter.toISOString(),
    keyChain: toKeyChainView(chain),
  });
}

const RegisteredCredentialView = object({
  format: z.string(),
  meta: z.looseObject({}),
  claims: z.array(object({ path: z.array(z.unknown()), values: z.array(z.unknown()).optional() })).optional(),
});

export const RegistrationCertificateView = object({
  id: z.string().nullable().describe('Id at the registrar; null for a certificate that was provided'),
  jwt: z.string(),
  relyingPartyId: z.string().nullable(),
  subject: z.string().describe('Identifier of the relying party, as in its access certificate'),
  intendedUseId: z.string().nullable(),
  credentials: z.array(RegisteredCredentialView).describe('Attestations and claims that may be requested'),
  issuedAt: z.iso.datetime(),
  expiresAt: z.iso.datetime().nullable(),
}).meta({ id: 'RegistrationCertificate', description: 'A registration certificate (ETSI TS 119 475)' });

export function toRegistrationCertificateView(certificate: ObtainedRegistrationCertificate) {
  const { credentials = [] } = certificate;
  return viewOf(RegistrationCertificateView, {
    ...certificate,
    credentials: credentials.map((credential) => viewOf(RegisteredCredentialView, credential)),
  });
}
