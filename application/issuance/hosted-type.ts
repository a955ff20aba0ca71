import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { typeAddress, vctOf } from '../../domain/issuance/metadata.ts';
import { integrityOf, typeMetadata } from '../../domain/issuance/type-metadata.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';
import { frameOf } from './collect-claims.ts';

/** The document at a `vct` of this service: the very bytes that are served, and their hash. */
export type HostedType = { readonly text: string; readonly integrity: string };

/** @returns undefined for a type that is described elsewhere or nowhere. */
export function hostedType(
  configured: TenantConfiguration,
  configuration: CredentialConfiguration,
): HostedType | undefined {
  const { issuer } = configured;
  const { id, config } = configuration;
  if (config.format === 'mso_mdoc' || vctOf(configuration, issuer) !== typeAddress(configuration, issuer)) {
    return undefined;
  }
  return configured.derive(`hosted-type/${id}`, () => {
    const text = JSON.stringify(typeMetadata(configuration, issuer, frameOf(configured, configuration)));
    return { text, integrity: integrityOf(text) };
  });
}
