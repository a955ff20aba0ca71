import { type CredentialPreview, credentialPreview } from '../../domain/issuance/credential-preview.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** A credential that was removed meanwhile is named by its id. */
export async function previewCredentials(tenant: TenantConfiguration, ids: readonly string[]): Promise<readonly CredentialPreview[]> {
  const configurations = await tenant.credentialConfigurations();
  return ids.map((id) => {
    const configuration = configurations.find((entry) => entry.id === id);
    return configuration === undefined ? { id, displays: [], claims: [] } : credentialPreview(configuration);
  });
}
