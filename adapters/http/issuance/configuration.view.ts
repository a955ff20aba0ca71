import { object, z } from 'zod';
import { type CredentialConfiguration, CredentialConfigurationBody, effectiveCredential } from '../../../domain/issuance/configuration.ts';
import {
  effectiveIssuance,
  type IssuanceConfiguration,
  IssuanceConfigurationBody,
} from '../../../domain/issuance/issuance-configuration.ts';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import type { Profile } from '../../../domain/shared/finding.ts';
import { withKeyReferences } from '../../../domain/shared/older-names.ts';
import { CertificateView, toCertificateView } from '../keys/certificate.view.ts';
import { KeyChainView, toKeyChainView } from '../keys/key-chain.view.ts';
import { viewOf } from '../output/view-of.ts';
import { type ReferredTenant, TenantReference, toTenantReference } from '../shapes.ts';

const Times = { createdAt: z.iso.datetime(), updatedAt: z.iso.datetime() };

export const IssuanceConfigurationView = object({
  ...IssuanceConfigurationBody.shape,
  // Responses show the effective values.
  walletAttestationRequired: z.boolean(),
  dPopNonce: z.enum(['off', 'optional', 'required']),
  attestationChallenge: z.enum(['required', 'optional']),
  tenant: TenantReference,
  ...Times,
}).meta({ id: 'IssuanceConfiguration' });

export function toIssuanceConfigurationView(tenant: ReferredTenant, configuration: IssuanceConfiguration, profile: Profile | null) {
  const { id: _id, createdAt, updatedAt, ...body } = effectiveIssuance(configuration, profile);
  return { ...body, tenant: toTenantReference(tenant), createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() };
}

export const CredentialConfigurationView = object({
  ...CredentialConfigurationBody.shape,
  certId: z.string().nullable().describe('Same value, under its former name'),
  keyChain: KeyChainView.nullable().describe('Null: the default of the tenant signs'),
  cert: CertificateView.nullable().describe('Same value, under its former name'),
  tenant: TenantReference,
  ...Times,
}).meta({ id: 'CredentialConfiguration' });

/** @param chains all key chains of the tenant. */
export function toCredentialConfigurationView(
  configuration: CredentialConfiguration,
  tenant: ReferredTenant,
  chains: readonly KeyChain[],
  profile: Profile | null,
) {
  const signer = chains.find(({ id }) => id === configuration.keyChainId);
  return withKeyReferences(
    viewOf(CredentialConfigurationView, {
      ...effectiveCredential(configuration, profile),
      keyChain: signer && toKeyChainView(signer),
      cert: signer && toCertificateView(signer, chains),
      tenant: toTenantReference(tenant),
    }),
  );
}
