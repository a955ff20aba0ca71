import { z } from 'zod';
import {
  type CredentialConfiguration,
  CredentialConfigurationBody,
} from '../../../domain/issuance/configuration.ts';
import {
  effectiveIssuance,
  type IssuanceConfiguration,
  IssuanceConfigurationBody,
} from '../../../domain/issuance/issuance-configuration.ts';
import type { Profile } from '../../../domain/shared/finding.ts';
import { withKeyReferences } from '../../../domain/shared/older-names.ts';
import { viewOf } from '../view-of.ts';

const Times = { createdAt: z.iso.datetime(), updatedAt: z.iso.datetime() };
const TenantReference = z.object({ id: z.string() }).meta({ id: 'TenantReference' });

export const IssuanceConfigurationView = z
  .object({
    ...IssuanceConfigurationBody.shape,
    // Shown as they hold.
    walletAttestationRequired: z.boolean(),
    dPopNonce: z.enum(['off', 'optional', 'required']),
    tenant: TenantReference,
    ...Times,
  })
  .meta({ id: 'IssuanceConfiguration' });

export function toIssuanceConfigurationView(
  tenantId: string,
  configuration: IssuanceConfiguration,
  profile: Profile | null,
) {
  const { id: _id, createdAt, updatedAt, ...body } = effectiveIssuance(configuration, profile);
  return {
    ...body,
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
  return withKeyReferences(
    viewOf(CredentialConfigurationView, { ...configuration, tenant: { id: tenantId } }),
  );
}
