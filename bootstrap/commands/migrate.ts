import {
  type DatabaseIdentity,
  databaseIdentity,
  dialectOf,
  grantToService,
  openDatabase,
  urlWithoutCredentials,
} from '../../adapters/persistence/opening/database.ts';
import { databaseUrl } from '../../config/setting-values.ts';
import { environmentWithSecrets } from '../start/first-start.ts';
import { currentRelease } from '../wiring/release.ts';
import { commandLine, endWithUsage } from './command-line.ts';

/**
 * `npx vidimus migrate`: creates the tables, or updates those of an earlier release, and ends. It connects with DATABASE_MIGRATION_URL if
 * that is set, and otherwise with DATABASE_URL. It ends with 0 when the schema is up to date, and with 1 otherwise.
 */
const USAGE = 'npx vidimus migrate [--grant-to <user>]';
const ABOUT =
  '--grant-to <user>  PostgreSQL user of the service, which gets the required rights on rows, and none to create or change tables';

class OtherDatabaseError extends Error {}

const { values, positionals } = commandLine(USAGE, { allowPositionals: true, options: { 'grant-to': { type: 'string' } } }, ABOUT);
if (positionals.length > 0) endWithUsage(USAGE, 'it accepts no arguments');
try {
  await migrate(values['grant-to'] as string | undefined);
} catch (error) {
  console.error(`the migration failed: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

async function migrate(user: string | undefined): Promise<void> {
  const environment = environmentWithSecrets(process.env);
  const name = environment['DATABASE_MIGRATION_URL']?.trim() ? 'DATABASE_MIGRATION_URL' : 'DATABASE_URL';
  const folder = environment['DATA_FOLDER']?.trim() || './data';
  const addressAt = (setting: string) => {
    const read = databaseUrl.safeParse(environment[setting]?.trim() || `sqlite:${folder}/vidimus.sqlite`);
    if (read.success) return read.data;
    throw new Error(`${setting}: ${read.error.issues.map(({ message }) => message).join('; ')}`);
  };
  const url = addressAt(name);
  if (name === 'DATABASE_MIGRATION_URL' && environment['DATABASE_URL']?.trim()) await assertSameDatabase(url, addressAt('DATABASE_URL'));
  if (user !== undefined && dialectOf(url) !== 'postgres') throw new Error('--grant-to is for PostgreSQL; a SQLite file has no users');
  const database = await openDatabase({ url, poolSize: 2 }).catch((error: Error) => {
    // The message of the store names the setting of the service.
    throw new Error(error.message.replace(/^DATABASE_URL:/, `${name}:`), { cause: error });
  });
  await database.close();
  console.log(`${urlWithoutCredentials(url)} has the tables of release ${currentRelease().version}`);
  if (user === undefined) return;
  await grantToService(url, user);
  console.log(`"${user}" may run the service with MIGRATE=off`);
}

/**
 * Checks that both addresses lead to one database, through any host, port or pooler. An address that does not answer is not compared: a
 * failure of the migration address is reported when it is opened, and the address of the service may belong to another network.
 * @throws Error that names both databases.
 */
async function assertSameDatabase(migrated: string, served: string): Promise<void> {
  if (migrated === served) return;
  const bothSettings = `DATABASE_MIGRATION_URL (${urlWithoutCredentials(migrated)}) and DATABASE_URL (${urlWithoutCredentials(served)})`;
  const fix = 'Both must be the database of the service.';
  if (dialectOf(migrated) !== dialectOf(served)) throw new Error(`${bothSettings} name databases of different kinds. ${fix}`);
  const migrationDatabase = await databaseIdentity(migrated).catch(() => undefined);
  if (migrationDatabase === undefined) return;
  try {
    const servedDatabase = await databaseIdentity(served);
    const isOther = (member: keyof DatabaseIdentity) =>
      migrationDatabase[member] !== null && servedDatabase[member] !== null && migrationDatabase[member] !== servedDatabase[member];
    if (isOther('name') || isOther('server')) {
      const names =
        migrationDatabase.name === servedDatabase.name
          ? `both are called "${servedDatabase.name}", on different servers`
          : `"${migrationDatabase.name}" and "${servedDatabase.name}"`;
      throw new OtherDatabaseError(`${bothSettings} name different databases: ${names}. ${fix}`);
    }
    if (isOther('schema'))
      throw new OtherDatabaseError(
        `${bothSettings} use different schemas: "${migrationDatabase.schema}" and "${servedDatabase.schema}". ` +
          'Set the same search_path for both users (alter role … in database … set search_path).',
      );
  } catch (error) {
    if (error instanceof OtherDatabaseError) throw error;
    console.error(`warning: ${bothSettings} were not compared: ${(error as Error).message}`);
  }
}
