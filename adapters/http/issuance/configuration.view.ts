import { z } from 'zod';
import { hideClientSecret } from '../../../domain/issuance/chained-as.ts';
import {
  type CredentialConfiguration,
  CredentialConfigurationBody,
} from '../../../domain/issuance/configuration.ts';
import {
  type IssuanceConfiguration,
  IssuanceConfigurationBody,
} from '../../../domain/issuance/issuance-configuration.ts';
import { hideSecret } from '../../../domain/webhooks/keep-secrets.ts';
import { withKeyReferences } from '../shapes/key-reference.ts';

const Times = { createdAt: z.iso.datetime(), updatedAt: z.iso.datetime() };
const TenantReference = z.object({ id: z.string() }).meta({ id: 'TenantReference' });

export const IssuanceConfigurationView = z
  .object({ ...IssuanceConfigurationBody.shape, tenant: TenantReference, ...Times })
  .meta({ id: 'IssuanceConfiguration' });

export function toIssuanceConfigurationView(tenantId: string, configuration: IssuanceConfiguration) {
  const { id: _id, createdAt, updatedAt, chainedAs, ...body } = configuration;
  return {
    ...body,
    ...(chainedAs === undefined ? {} : { chainedAs: hideClientSecret(chainedAs) }),
    tenant: { id: tenantId },
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}

export const CredentialConfigurationView = z
  .object({
    ...CredentialConfigurationBody.shape,
    certId: z.string().nullable(),
    tenant: TenantReference,
    ...Times,
  })
  .meta({ id: 'CredentialConfiguration' });

export function toCredentialConfigurationView(tenantId: string, configuration: CredentialConfiguration) {
  return withKeyReferences({
    id: configuration.id,
    description: configuration.description ?? null,
    config: configuration.config,
    vct: configuration.vct ?? null,
    claims: configuration.claims ?? null,
    claimsWebhook: hideSecret(configuration.claimsWebhook ?? null),
    notificationWebhook: hideSecret(configuration.notificationWebhook ?? null),
    iaeActions: configuration.iaeActions ?? null,
    embeddedDisclosurePolicy: configuration.embeddedDisclosurePolicy ?? null,
    disclosureFrame: configuration.disclosureFrame ?? null,
    keyBinding: configuration.keyBinding,
    ...(configuration.proofTypes === undefined ? {} : { proofTypes: configuration.proofTypes }),
    keyAttestationsRequired: configuration.keyAttestationsRequired ?? null,
    keyChainId: configuration.keyChainId ?? null,
    statusManagement: configuration.statusManagement,
    lifeTime: configuration.lifeTime ?? null,
    schema: configuration.schema ?? null,
    tenant: { id: tenantId },
    createdAt: configuration.createdAt.toISOString(),
    updatedAt: configuration.updatedAt.toISOString(),
  });
}
