import { wrappedSecret } from '../../config/setting-values.ts';
import { type Settings, SettingsError } from '../../config/settings.ts';

/**
 * The settings with the master secrets themselves, where key providers have them: they are asked once, at the start, so that
 * no secret stands in the environment.
 * @throws SettingsError that says what to do for a secret that cannot be had: nothing can be opened without it.
 */
export async function withMasterSecrets(settings: Settings): Promise<Settings> {
  if (!settings.MASTER_SECRET.some((secret) => secret.startsWith('vault:'))) return settings;
  const secrets: string[] = [];
  for (const named of settings.MASTER_SECRET) {
    const wrapped = wrappedSecret(named);
    secrets.push(wrapped === undefined ? named : await unwrapped(settings, named));
  }
  return { ...settings, MASTER_SECRET: secrets };
}

async function unwrapped({ KMS }: Settings, named: string): Promise<string> {
  const { provider = '', key = '', version = 1 } = wrappedSecret(named) ?? {};
  const settings = KMS.providers[provider];
  if (settings?.type !== 'vault') throw new SettingsError([`MASTER_SECRET: "${named}" is not in a Vault`]);
  const { masterSecretFrom } = await import('../../adapters/kms/vault/master-secret.ts');
  try {
    return await masterSecretFrom(settings, key, version);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new SettingsError([`MASTER_SECRET: "${named}": ${reason.replace(/^MASTER_SECRET: /, '')}`]);
  }
}
