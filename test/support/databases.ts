import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, dialectOf } from '../../adapters/persistence/orm/database.ts';
import { startPostgres } from './postgres-server.ts';

export type TestDatabase = {
  /** As `OrmStore.open` takes it. */
  readonly url: string;
  /** Removes the database with all that is in it. Close whatever uses it first. */
  drop(): Promise<void>;
};

export type DatabaseKind = {
  readonly name: 'sqlite' | 'postgres';
  /** A fresh, empty database. Undefined when no server can be had here; with `CI=true` that throws instead. */
  open(): Promise<TestDatabase | undefined>;
};

/** The kinds of database that every suite of the persistence runs on. */
export function databases(): DatabaseKind[] {
  return [
    { name: 'sqlite', open: openSqlite },
    { name: 'postgres', open: openPostgres },
  ];
}

/** Raw statements beside the store, the way somebody with access to the database would run them. */
export async function rawSql<T>(
  url: string,
  work: (run: (text: string) => Promise<Record<string, unknown>[]>) => Promise<T>,
): Promise<T> {
  const orm = await connect({ url, poolSize: 2 }, 'serve');
  try {
    const connection = orm.em.getConnection();
    return await work(async (text) => {
      const method = /^\s*(select|with)/i.test(text) ? 'all' : 'run';
      const rows: unknown = await connection.execute(text, [], method);
      return Array.isArray(rows) ? rows : [];
    });
  } finally {
    await orm.close();
  }
}

async function openSqlite(): Promise<TestDatabase> {
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
  return {
    url: `sqlite:${join(folder, 'test.db')}`,
    drop: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

let server: Promise<string | undefined> | undefined;

async function openPostgres(): Promise<TestDatabase | undefined> {
  server ??= findServer();
  const administration = await server;
  if (administration === undefined) return undefined;
  const name = `vidimus_test_${randomBytes(6).toString('hex')}`;
  await rawSql(administration, (run) => run(`create database ${name}`));
  const url = new URL(administration);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: async () => {
      await rawSql(administration, (run) => run(`drop database if exists ${name} with (force)`));
    },
  };
}

const LOCAL_SERVER = 'postgres://postgres@127.0.0.1:5432/postgres';

/** The server that is named, else one that runs here, else one of our own for as long as this process lives. */
async function findServer(): Promise<string | undefined> {
  const named = process.env['TEST_DATABASE_URL'];
  if (named !== undefined && named !== '') {
    if (dialectOf(named) !== 'postgres') throw new Error('TEST_DATABASE_URL must name a PostgreSQL server.');
    await rawSql(named, (run) => run('select 1'));
    return named;
  }
  try {
    await rawSql(LOCAL_SERVER, (run) => run('select 1'));
    return LOCAL_SERVER;
  } catch {
    return ownServer();
  }
}

async function ownServer(): Promise<string | undefined> {
  try {
    return await startPostgres();
  } catch (error) {
    if (process.env['CI'] === 'true') throw new Error('CI needs a PostgreSQL server.', { cause: error });
    const reason = error instanceof Error ? error.message.split('\n')[0] : String(error);
    console.log(`    PostgreSQL is skipped, set TEST_DATABASE_URL to run it (${reason})`);
    return undefined;
  }
}
