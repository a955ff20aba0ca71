import { type CheckedFolder, CheckFolder } from '../../application/configuration-files/check.ts';
import type { Environment } from '../../config/configuration-files/placeholders.ts';
import { readFolder } from '../../config/configuration-files/read-folder.ts';
import { type KmsConfig, readKmsConfig } from '../../config/kms-config.ts';
import { readSettings, SettingsError } from '../../config/settings.ts';
import type { FolderContents } from '../../domain/configuration-files/folder.ts';
import type { Profile } from '../../domain/shared/finding.ts';
import { Closers } from '../wiring/closers.ts';
import { openPlatform } from '../wiring/platform.ts';
import { resolve } from '../wiring/wire.ts';

/**
 * Checks a folder without the database of a service and without network, like a service without these tenants.
 * @param assumedProfile the profile for the advice on tenants without a profile; null for none.
 */
export async function checkFolderOffline(
  folder: string,
  environment: Environment,
  assumedProfile: Profile | null = null,
): Promise<CheckedFolder & { readonly contents: FolderContents }> {
  const { PUBLIC_URL, AUTH_CLIENT_ID, OUTBOUND_ALLOW, KMS_CONFIG, DATA_FOLDER = './data' } = environment;
  const quotas = Object.entries(environment).filter(([name]) => name.startsWith('QUOTA_'));
  const closers = new Closers();
  try {
    const settings = readSettings({
      ...Object.fromEntries(quotas),
      DATABASE_URL: 'sqlite::memory:',
      MASTER_SECRET: 'no secret here since nothing is sealed with it',
      AUTH_CLIENT_ID: AUTH_CLIENT_ID || 'root',
      AUTH_CLIENT_SECRET: 'no one can log in with it',
      LOG_LEVEL: 'silent',
      PUBLIC_URL,
      OUTBOUND_ALLOW,
    });
    const kms = readKmsConfig(KMS_CONFIG || undefined, DATA_FOLDER, environment);
    if (kms.faults.length > 0) throw new SettingsError(kms.faults);
    const container = await openPlatform({ ...settings, KMS: withLocalProviders(kms.config) }, closers);
    const contents = readFolder(folder, { ...environment, PUBLIC_URL: settings.PUBLIC_URL }, kms.secrets);
    const checkFolder = new CheckFolder(resolve(container, CheckFolder.needs));
    return { ...(await checkFolder.execute(contents, assumedProfile)), contents };
  } finally {
    await closers.closeAll();
  }
}

/** @returns the configured key providers by name. None of them is called, because a check needs no network. */
function withLocalProviders({ providers, ...config }: KmsConfig): KmsConfig {
  const local = Object.entries(providers).map(([name, { onlyFor }]) => [
    name,
    { type: 'local' as const, ...(onlyFor !== undefined && { onlyFor }) },
  ]);
  return { ...config, providers: Object.fromEntries(local) };
}
