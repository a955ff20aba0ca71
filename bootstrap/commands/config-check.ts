import 'reflect-metadata';
import { CheckFolder } from '../../application/configuration-files/check.ts';
import { describeFault } from '../../application/configuration-files/import-folder.ts';
import { readFolder } from '../../config/import/read-folder.ts';
import { type KmsConfig, readKmsConfig } from '../../config/kms-config.ts';
import { readSettings, SettingsError } from '../../config/settings.ts';
import { shortName } from '../../domain/configuration-files/folder.ts';
import { Closers } from '../closers.ts';
import { openPlatform } from '../platform.ts';
import { resolve } from '../wire.ts';
import { commandLine, endWithUsage } from './command-line.ts';

/**
 * `npm run config:check -- <folder>`: judges a folder without a database and without network, as a service would that
 * has none of these tenants. Key providers are read from KMS_CONFIG or `kms.json` in DATA_FOLDER. Prints what would be imported, or every fault, and ends with 0 or 1.
 */
const USAGE = 'npm run config:check -- <folder>';

const { positionals } = commandLine(USAGE, { allowPositionals: true });
const [folder = endWithUsage(USAGE, 'a folder is missing'), ...others] = positionals;
if (others.length > 0) endWithUsage(USAGE, 'only one folder is checked');
const { PUBLIC_URL, AUTH_CLIENT_ID, OUTBOUND_ALLOW, KMS_CONFIG, DATA_FOLDER = './data' } = process.env;
const quotas = Object.entries(process.env).filter(([name]) => name.startsWith('QUOTA_'));
const closers = new Closers();
try {
  const settings = readSettings({
    ...Object.fromEntries(quotas),
    DATABASE_URL: 'sqlite::memory:',
    MASTER_SECRET: 'no secret here since nothing is sealed with it',
    AUTH_CLIENT_ID: AUTH_CLIENT_ID || 'root',
    AUTH_CLIENT_SECRET: 'nobody logs in with it',
    LOG_LEVEL: 'silent',
    PUBLIC_URL,
    OUTBOUND_ALLOW,
  });
  const kms = readKmsConfig(KMS_CONFIG || undefined, DATA_FOLDER, process.env);
  if (kms.faults.length > 0) throw new SettingsError(kms.faults);
  const container = await openPlatform({ ...settings, KMS: withLocalProviders(kms.config) }, closers);
  const contents = readFolder(folder, { PUBLIC_URL: settings.PUBLIC_URL, ...process.env }, kms.secrets);
  const checkFolder = new CheckFolder(resolve(container, CheckFolder.needs));
  const { documents, faults, warnings, advice } = await checkFolder.execute(contents);
  const all = [...documents.values()].flat();
  for (const warning of warnings) console.error(`warning: ${describeFault(warning)}`);
  if (faults.length === 0) {
    // What may be written so, and what others will make of it.
    for (const each of advice) console.error(`note: ${describeFault(each)}`);
    for (const { file, kind, id } of all) {
      console.log(`${file}: ${shortName(kind)} ${contents.asWritten(id)}`.trimEnd());
    }
    console.log(`${folder}: ${all.length} files of ${documents.size} tenants are right`);
  } else {
    const ofFiles = faults.filter(({ file }) => file !== '');
    for (const fault of ofFiles) console.error(describeFault(fault));
    for (const { file, message } of faults) if (file === '') console.error(`${folder}: ${message}`);
    const count = ofFiles.length === 1 ? '1 fault' : `${ofFiles.length} faults`;
    if (ofFiles.length > 0) console.error(`${folder}: ${count}; nothing of it would be imported`);
    process.exitCode = 1;
  }
} catch (error) {
  console.error(`the check failed: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  await closers.closeAll();
}

/** The configured key providers by name, none of which is called: a check needs no network. */
function withLocalProviders({ providers, ...config }: KmsConfig): KmsConfig {
  const local = Object.entries(providers).map(([name, { onlyFor }]) => [
    name,
    { type: 'local' as const, ...(onlyFor !== undefined && { onlyFor }) },
  ]);
  return { ...config, providers: Object.fromEntries(local) };
}
