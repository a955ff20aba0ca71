import { object, z } from 'zod';
import { MDL_PROFILES } from '../../../domain/formats/mdoc/driving-licence.ts';
import { Purposes, RegistrationCertificateRequest } from '../../../domain/registrar/registration-certificate-request.ts';
import { withKeyReferences } from '../../../domain/shared/older-names.ts';
import type { Tenant } from '../../../domain/tenants/tenant.ts';
import { CERTIFICATE_REVOCATION } from '../../../domain/verification/certificate-revocation.ts';
import { type PresentationConfiguration, TransactionData } from '../../../domain/verification/configuration.ts';
import { DC_API_PROTOCOLS } from '../../../domain/verification/dc-api-settings.ts';
import { SCA_SCHEMAS } from '../../../domain/verification/sca/payload.ts';
import { OWN_AUTHORITIES, TrustAnchorConfig } from '../../../domain/verification/trust-anchor.ts';
import { WebhookConfig } from '../../../domain/webhooks/webhook.ts';
import { viewOf } from '../output/view-of.ts';
import { TenantReference, toTenantReference } from '../shapes.ts';

const KeyReference = z.string().nullable();
const TrustAnchorView = z
  .union([
    ...TrustAnchorConfig.options.filter((option) => !('keyChainId' in option.shape)),
    object({ keyChainId: z.string(), certId: z.string().describe('Same value, under its former name') }),
  ])
  .meta({ id: 'TrustAnchorView' });

export const PresentationConfigurationView = object({
  id: z.string(),
  tenant: TenantReference,
  description: z.string().nullable(),
  dcql_query: z.looseObject({ credentials: z.array(z.unknown()) }),
  lifeTime: z.number().int().describe('Seconds for which a request can be answered'),
  responseMode: z.enum(['direct_post.jwt', 'direct_post']),
  clientIdPrefix: z.enum(['x509_hash', 'x509_san_dns', 'redirect_uri']),
  requestUriMethod: z.enum(['get', 'post']),
  invocationUri: z.string(),
  clientName: z.string().nullable(),
  logoUri: z.string().nullable(),
  expectedOrigins: z.array(z.string()).nullable(),
  dcApiRequest: z.enum(['signed', 'unsigned', 'multisigned']),
  furtherAccessKeyChainIds: z.array(z.string()).nullable(),
  dcApiProtocols: z.array(z.enum(DC_API_PROTOCOLS)),
  transaction_data: z.array(TransactionData).nullable(),
  transactionDataElements: z.record(z.string(), object({ namespace: z.string(), element: z.string() })).nullable(),
  transactionDataSchemas: z.record(z.string(), z.enum(SCA_SCHEMAS)).nullable(),
  registrationCert: RegistrationCertificateRequest.nullable(),
  purpose: Purposes.nullable(),
  webhook: WebhookConfig.nullable().describe('The key is shown as ***'),
  attached: z.array(z.looseObject({ format: z.string() })).nullable(),
  redirectUri: z.string().nullable(),
  accessKeyChainId: KeyReference.describe('Null: the default of the tenant'),
  accessCertId: KeyReference.describe('Same value, under its former name'),
  trustAnchors: z.array(TrustAnchorView).describe('Trusted issuers'),
  mdlProfile: z.enum(MDL_PROFILES).nullable().describe('Null: iso-18013-5'),
  typeMetadata: z.enum(['off', 'enforced']).nullable().describe('Null: off'),
  certificateRevocation: z.enum(CERTIFICATE_REVOCATION).nullable().describe('Null: off'),
  requireResponseCode: z
    .boolean()
    .nullable()
    .describe(
      'Stored value. Null: true for responses on the same device under a profile, false without one. With true there is no crossDeviceUri',
    ),
  values: z.enum(['disclosed', 'requested']).nullable().describe('Null: disclosed'),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
}).meta({ id: 'PresentationConfiguration' });

export function toConfigurationView(configuration: PresentationConfiguration, tenant: Tenant) {
  // A configuration of an earlier release may lack these: it trusts the tenant's own authorities and uses the only protocol of that time.
  const { trustAnchors = [OWN_AUTHORITIES], dcApiProtocols = ['openid4vp'] }: Partial<PresentationConfiguration> = configuration;
  return withKeyReferences(
    viewOf(PresentationConfigurationView, {
      ...configuration,
      tenant: toTenantReference(tenant),
      dcApiProtocols,
      requireResponseCode: configuration.requireResponseCode ?? null,
      trustAnchors: trustAnchors.map(withKeyReferences),
    }),
  );
}
