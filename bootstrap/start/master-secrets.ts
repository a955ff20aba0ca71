import { wrappedSecret } from '../../config/setting-values.ts';
import { type Settings, SettingsError } from '../../config/settings.ts';

/**
 * Replaces references to key providers by the master secrets themselves. The providers are called once, at the start, so that no secret
 * has to be in the environment.
 * @throws SettingsError that describes the remedy for a secret that is not available: no data can be opened without it.
 */
export async function withMasterSecrets(settings: Settings): Promise<Settings> {
  if (!settings.MASTER_SECRET.some((secret) => secret.startsWith('vault:'))) return settings;
  const secrets: string[] = [];
  for (const reference of settings.MASTER_SECRET) {
    const wrappedReference = wrappedSecret(reference);
    secrets.push(wrappedReference === undefined ? reference : await unwrapped(settings, reference));
  }
  return { ...settings, MASTER_SECRET: secrets };
}

async function unwrapped({ KMS }: Settings, reference: string): Promise<string> {
  const { provider = '', key = '', version = 1 } = wrappedSecret(reference) ?? {};
  const settings = KMS.providers[provider];
  if (settings?.type !== 'vault') throw new SettingsError([`MASTER_SECRET: "${reference}" is not a Vault reference`]);
  const { masterSecretFrom } = await import('../../adapters/kms/vault/master-secret.ts');
  try {
    return await masterSecretFrom(settings, key, version);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new SettingsError([`MASTER_SECRET: "${reference}": ${reason.replace(/^MASTER_SECRET: /, '')}`]);
  }
}
