import { dialectOf, grantToService, openDatabase, placeOf } from '../../adapters/persistence/database.ts';
import { databaseUrl } from '../../config/setting-values.ts';
import { keptEnvironment } from '../first-start.ts';
import { currentRelease } from '../release.ts';
import { commandLine, endWithUsage } from './command-line.ts';

/**
 * `npx vidimus migrate`: creates the tables, or brings those of an earlier release up to date, and ends. It connects by
 * DATABASE_MIGRATION_URL if that is set, otherwise by DATABASE_URL. Ends with 0 when the schema is up to date, 1 otherwise.
 */
const USAGE = 'npx vidimus migrate [--grant-to <user>]';
const ABOUT =
  '--grant-to <user>  PostgreSQL user of the service, which gets the rights on rows that it needs, and none to create or change tables';

const { values, positionals } = commandLine(
  USAGE,
  { allowPositionals: true, options: { 'grant-to': { type: 'string' } } },
  ABOUT,
);
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
  const read = databaseUrl.safeParse(environment[name]?.trim() || `sqlite:${folder}/vidimus.sqlite`);
  if (!read.success)
    throw new Error(`${name}: ${read.error.issues.map(({ message }) => message).join('; ')}`);
  const url = read.data;
  if (user !== undefined && dialectOf(url) !== 'postgres')
    throw new Error('--grant-to is for PostgreSQL; a SQLite file has no users');
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
