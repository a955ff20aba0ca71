import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import type { Environment } from '../../config/configuration-files/placeholders.ts';
import { LOCAL_KEYS } from '../../config/kms-config.ts';
import { readSettings, type Settings } from '../../config/settings.ts';
import { SettingsSchema } from '../../config/settings-schema.ts';
import { environmentWithSecrets } from '../start/first-start.ts';
import { withMasterSecrets } from '../start/master-secrets.ts';

/**
 * Opens the database of a service for a command that only reads it while the service may run. Only these settings are used: the address
 * of the database, the master secret, the key providers and the address of the service. The caller closes the store.
 * @param alone keeps services out of a database that only one process may use. @throws Error when the database is missing or not up to
 *   date, or when the secret is missing or wrong.
 */
export async function openStored(
  environment: Environment,
  { withKeys = false, alone = false }: { readonly withKeys?: boolean; readonly alone?: boolean } = {},
): Promise<{ readonly store: OrmStore; readonly cipher: MasterCipher; readonly settings: Settings }> {
  const storedEnvironment = environmentWithSecrets(environment);
  if (!storedEnvironment['MASTER_SECRET'] && !storedEnvironment['JWT_SECRET']) throw missingSecret(environment);
  const settings = await withMasterSecrets(
    readSettings({
      ...withoutUnused(storedEnvironment),
      // A command that needs no keys also works without the secrets of their providers.
      ...(!withKeys && !isAnySecretInVault(storedEnvironment) && { KMS_CONFIG: JSON.stringify(LOCAL_KEYS) }),
      AUTH_CLIENT_ID: 'root',
      AUTH_CLIENT_SECRET: 'no one can log in with it',
    }),
  );
  const url = settings.DATABASE_URL;
  const file = url.startsWith('sqlite:') ? url.slice('sqlite:'.length) : undefined;
  // Opening the file would create it.
  if (file !== undefined && !existsSync(file)) throw new Error(`there is no database ${file}`);
  const cipher = new MasterCipher({ masterSecrets: settings.MASTER_SECRET });
  const database = { url, poolSize: 2, timeoutSeconds: settings.DATABASE_TIMEOUT, migrates: false, alone };
  return { store: await OrmStore.open(database, cipher), cipher, settings };
}

/** @returns true when a key provider holds one of the master secrets. */
function isAnySecretInVault({ MASTER_SECRET, JWT_SECRET }: Environment): boolean {
  const secrets = `${MASTER_SECRET ?? ''},${JWT_SECRET ?? ''}`.split(',');
  return secrets.some((secret) => secret.trim().startsWith('vault:'));
}

/** A variable that is not a setting is kept, because it may be a misspelt setting. */
function withoutUnused(environment: Environment): Environment {
  const isUsed = (name: string) =>
    /^(DATABASE_.*|DATA_FOLDER|MASTER_SECRET|JWT_SECRET|PUBLIC_URL|PORT|KMS_CONFIG)$/.test(name) ||
    !Object.hasOwn(SettingsSchema.shape, name);
  return Object.fromEntries(Object.entries(environment).filter(([name]) => isUsed(name)));
}

function missingSecret(environment: Environment): Error {
  if (environment['NODE_ENV'] === 'production') {
    return new Error('MASTER_SECRET: is missing; in production it must be set in the environment');
  }
  const file = resolve(join(environment['DATA_FOLDER'] || './data', 'secrets.env'));
  const where = existsSync(file) ? `and ${file} has none` : `and there is no ${file}`;
  return new Error(
    `MASTER_SECRET: is missing: it is not set in the environment, ${where}. The first start of the service creates ` +
      'that file; if the service has another DATA_FOLDER, set the same here',
  );
}
