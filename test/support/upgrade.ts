import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bringUp } from '../../adapters/persistence/database.ts';
import { databases, rawSql, type TestDatabase } from './databases.ts';
import { startTestService, type TestService } from './test-service.ts';

/** A database of its own for each test, on which services start one after the other. */
export type Upgrade = {
  readonly kind: 'sqlite' | 'postgres';
  readonly url: string;
  /** A service of this release, which brings the database up to date; what still runs at the end is stopped. */
  start(): Promise<TestService>;
  /** Moves what is stored to tables as they were after `migration`. No service runs meanwhile. */
  goBack(migration: string): Promise<void>;
};

/** Defines the tests of `suite` for every kind of database. */
export function describeUpgrade(
  subject: string,
  suite: (upgrade: () => Upgrade, kind: Upgrade['kind']) => void,
): void {
  for (const { name: kind, openEmpty } of databases()) {
    describe(`${subject}, on ${kind}`, () => {
      let database: TestDatabase | undefined;
      let running: TestService | undefined;
      let upgrade: Upgrade;

      beforeEach(async function () {
        database = await openEmpty();
        if (database === undefined) return this.skip();
        const { url } = database;
        let folder = newDataFolder();
        const start = async () => {
          const service = await startTestService({ DATABASE_URL: url, DATA_FOLDER: folder });
          running = service;
          const close = async () => {
            running = undefined;
            await service.close();
          };
          return { ...service, close };
        };
        upgrade = { kind, url, start, goBack };
        async function goBack(migration: string): Promise<void> {
          await goBackTo(kind, url, migration);
          // The older release kept no record of how far the database was.
          rmSync(folder, { recursive: true });
          folder = newDataFolder();
        }
      });
      afterEach(async () => {
        await running?.close();
        await database?.drop();
      });
      suite(() => upgrade, kind);
    });
  }
}

const newDataFolder = () => mkdtempSync(join(tmpdir(), 'vidimus-upgrade-'));

/** Puts the tables aside, makes those of the older release, and copies into them what they have room for. */
async function goBackTo(kind: Upgrade['kind'], url: string, migration: string): Promise<void> {
  const isSqlite = kind === 'sqlite';
  const former = `${url.slice('sqlite:'.length)}-former`;
  await rawSql(url, (run) =>
    run(isSqlite ? 'pragma wal_checkpoint(truncate)' : 'alter schema public rename to former'),
  );
  if (isSqlite) {
    const file = url.slice('sqlite:'.length);
    renameSync(file, former);
    // An older release keeps none.
    rmSync(`${file}-witness`, { force: true });
  } else await rawSql(url, (run) => run('create schema public'));
  await bringUp({ url, poolSize: 2 }, migration);
  await rawSql(url, async (run) => {
    if (isSqlite) await run(`attach database '${former}' as former`);
    const columns = isSqlite
      ? `select m.name as name, group_concat(i.name) as columns from sqlite_master m, pragma_table_info(m.name) i
         where m.type = 'table' group by m.name`
      : `select table_name as name, string_agg(column_name, ',') as columns from information_schema.columns
         where table_schema = 'public' group by table_name`;
    for (const { name, columns: own } of await run(columns)) {
      if (name === 'schema_migrations' || name === 'sqlite_sequence') continue;
      const main = isSqlite ? 'main' : 'public';
      await run(`insert into ${main}.${name} (${own}) select ${own} from former.${name}`);
    }
    await run(isSqlite ? 'detach database former' : 'drop schema former cascade');
  });
  if (isSqlite) rmSync(former);
}
