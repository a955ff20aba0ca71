import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import type { Environment } from '../../config/configuration-files/placeholders.ts';
import { LOCAL_KEYS } from '../../config/kms-config.ts';
import { readSettings, type Settings } from '../../config/settings.ts';
import { SettingsSchema } from '../../config/settings-schema.ts';
import { keptEnvironment } from '../start/first-start.ts';
import { withMasterSecrets } from '../start/master-secrets.ts';

/**
 * Opens the database of a service for a command that only reads it, beside the service. Of the settings only those count
 * that say where the database is, what opens it, where keys live and what the service is called. The caller closes the store.
 * @param alone keeps services from a database that is for a single one. @throws Error when there is none, or it is not up to date, or the secret is missing or another one.
 */
export async function openStored(
  environment: Environment,
  { withKeys = false, alone = false }: { readonly withKeys?: boolean; readonly alone?: boolean } = {},
): Promise<{ readonly store: OrmStore; readonly cipher: MasterCipher; readonly settings: Settings }> {
  const kept = keptEnvironment(environment);
  if (!kept['MASTER_SECRET'] && !kept['JWT_SECRET']) throw missingSecret(environment);
  const settings = await withMasterSecrets(
    readSettings({
      ...withoutUnused(kept),
      // A command that needs no keys need not be given the secrets of their providers.
      ...(!withKeys && !isAnyInVault(kept) && { KMS_CONFIG: JSON.stringify(LOCAL_KEYS) }),
      AUTH_CLIENT_ID: 'root',
      AUTH_CLIENT_SECRET: 'nobody logs in with it',
    }),
  );
  const url = settings.DATABASE_URL;
  const file = url.startsWith('sqlite:') ? url.slice('sqlite:'.length) : undefined;
  // Opening it would make it.
  if (file !== undefined && !existsSync(file)) throw new Error(`there is no database ${file}`);
  const cipher = new MasterCipher({ masterSecrets: settings.MASTER_SECRET });
  const database = { url, poolSize: 2, timeoutSeconds: settings.DATABASE_TIMEOUT, migrates: false, alone };
  return { store: await OrmStore.open(database, cipher), cipher, settings };
}

/** Whether a key provider has one of the master secrets. */
function isAnyInVault({ MASTER_SECRET, JWT_SECRET }: Environment): boolean {
  const secrets = `${MASTER_SECRET ?? ''},${JWT_SECRET ?? ''}`.split(',');
  return secrets.some((secret) => secret.trim().startsWith('vault:'));
}

/** What is no setting stays: it may be meant as one. */
function withoutUnused(environment: Environment): Environment {
  const isUsed = (name: string) =>
    /^(DATABASE_.*|DATA_FOLDER|MASTER_SECRET|JWT_SECRET|PUBLIC_URL|PORT|KMS_CONFIG)$/.test(name) ||
    !Object.hasOwn(SettingsSchema.shape, name);
  return Object.fromEntries(Object.entries(environment).filter(([name]) => isUsed(name)));
}

function missingSecret(environment: Environment): Error {
  if (environment['NODE_ENV'] === 'production') {
    return new Error('MASTER_SECRET: is missing; in production it has to stand in the environment');
  }
  const file = resolve(join(environment['DATA_FOLDER'] || './data', 'secrets.env'));
  const where = existsSync(file) ? `and ${file} has none` : `and there is no ${file}`;
  return new Error(
    `MASTER_SECRET: is missing: it does not stand in the environment, ${where}. The first start of the service makes ` +
      'that file; if the service has another DATA_FOLDER, give the same here',
  );
}
