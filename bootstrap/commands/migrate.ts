import {
  type DatabaseIdentity,
  databaseIdentity,
  dialectOf,
  grantToService,
  openDatabase,
  placeOf,
} from '../../adapters/persistence/opening/database.ts';
import { databaseUrl } from '../../config/setting-values.ts';
import { keptEnvironment } from '../start/first-start.ts';
import { currentRelease } from '../wiring/release.ts';
import { commandLine, endWithUsage } from './command-line.ts';

/**
 * `npx vidimus migrate`: creates the tables, or brings those of an earlier release up to date, and ends. It connects by
 * DATABASE_MIGRATION_URL if that is set, otherwise by DATABASE_URL. Ends with 0 when the schema is up to date, 1 otherwise.
 */
const USAGE = 'npx vidimus migrate [--grant-to <user>]';
const ABOUT =
  '--grant-to <user>  PostgreSQL user of the service, which gets the rights on rows that it needs, and none to create or change tables';

class OtherDatabaseError extends Error {}

const { values, positionals } = commandLine(USAGE, { allowPositionals: true, options: { 'grant-to': { type: 'string' } } }, ABOUT);
if (positionals.length > 0) endWithUsage(USAGE, 'it takes no arguments');
try {
  await migrate(values['grant-to'] as string | undefined);
} catch (error) {
  console.error(`the migration failed: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

async function migrate(user: string | undefined): Promise<void> {
  const environment = keptEnvironment(process.env);
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
    // The store names the setting of the service.
    throw new Error(error.message.replace(/^DATABASE_URL:/, `${name}:`), { cause: error });
  });
  await database.close();
  console.log(`${placeOf(url)} has the tables of release ${currentRelease().version}`);
  if (user === undefined) return;
  await grantToService(url, user);
  console.log(`"${user}" may run the service with MIGRATE=off`);
}

/**
 * Both addresses lead to one database, by whatever host, port or pooler. An address that does not answer is not compared: that of the
 * migration is reported when it is opened, and that of the service may be for another network.
 * @throws Error that names both databases.
 */
async function assertSameDatabase(migrated: string, served: string): Promise<void> {
  if (migrated === served) return;
  const places = `DATABASE_MIGRATION_URL (${placeOf(migrated)}) and DATABASE_URL (${placeOf(served)})`;
  const fix = 'Both have to name the database of the service.';
  if (dialectOf(migrated) !== dialectOf(served)) throw new Error(`${places} name databases of different kinds. ${fix}`);
  const ofMigration = await databaseIdentity(migrated).catch(() => undefined);
  if (ofMigration === undefined) return;
  try {
    const ofService = await databaseIdentity(served);
    const isOther = (member: keyof DatabaseIdentity) =>
      ofMigration[member] !== null && ofService[member] !== null && ofMigration[member] !== ofService[member];
    if (isOther('name') || isOther('server')) {
      const names =
        ofMigration.name === ofService.name
          ? `both are called "${ofService.name}", on different servers`
          : `"${ofMigration.name}" and "${ofService.name}"`;
      throw new OtherDatabaseError(`${places} name different databases: ${names}. ${fix}`);
    }
    if (isOther('schema'))
      throw new OtherDatabaseError(
        `${places} use different schemas: "${ofMigration.schema}" and "${ofService.schema}". ` +
          'Set the same search_path for both users (alter role … in database … set search_path).',
      );
  } catch (error) {
    if (error instanceof OtherDatabaseError) throw error;
    console.error(`warning: ${places} were not compared: ${(error as Error).message}`);
  }
}
