import type { MikroORM } from '@mikro-orm/core';
import { MikroORM as PostgresOrm } from '@mikro-orm/postgresql';
import { MikroORM as SqliteOrm } from '@mikro-orm/sqlite';
import { dialectOf } from '../../adapters/persistence/database.ts';
import { surviveOnPostgres } from '../../adapters/persistence/lost-transactions.ts';

type Run = (text: string) => Promise<Record<string, unknown>[]>;

/** Raw statements beside the store, the way somebody with access to the database would run them. */
export async function rawSql<T>(url: string, work: (run: Run) => Promise<T>): Promise<T> {
  const { run, close } = await openRaw(url);
  try {
    return await work(run);
  } finally {
    await close();
  }
}

/** The same for longer. */
export async function openRaw(url: string): Promise<{ readonly run: Run; close(): Promise<void> }> {
  const orm = await connectBare(url);
  const connection = orm.em.getConnection();
  const run = async (text: string) => {
    const method = /^\s*(select|with)/i.test(text) ? 'all' : 'run';
    const rows: unknown = await connection.execute(text, [], method);
    return Array.isArray(rows) ? rows : [];
  };
  return { run, close: () => orm.close() };
}

/** Without what is known of the tables: to learn that takes ten times as long as most of what is done here. */
async function connectBare(url: string): Promise<MikroORM> {
  const common = {
    entities: [],
    discovery: { warnWhenNoEntities: false },
    ensureDatabase: false,
    forceUtcTimezone: true,
  };
  if (dialectOf(url) === 'sqlite') {
    const orm = await SqliteOrm.init({ ...common, dbName: url.slice('sqlite:'.length) });
    return orm as unknown as MikroORM;
  }
  const driverOptions = { connectionTimeoutMillis: 15_000 };
  const orm = await PostgresOrm.init({ ...common, clientUrl: url, pool: { min: 0, max: 2 }, driverOptions });
  surviveOnPostgres(await orm.em.getConnection().getNativeClient());
  return orm as unknown as MikroORM;
}
