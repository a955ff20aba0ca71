import { type ShownCredential, shownCredential } from '../../domain/issuance/shown-credential.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** One that was removed meanwhile is named by its id. */
export async function shownCredentials(configured: TenantConfiguration, ids: readonly string[]): Promise<readonly ShownCredential[]> {
  const configurations = await configured.credentialConfigurations();
  return ids.map((id) => {
    const found = configurations.find((entry) => entry.id === id);
    return found === undefined ? { id, displays: [], claims: [] } : shownCredential(found);
  });
}
