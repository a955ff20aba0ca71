import { randomBytes } from 'node:crypto';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { grantToService, openDatabase } from '../../adapters/persistence/opening/database.ts';
import { createOnNodes, distributeTables, dropOnNodes, findClusterNodes, findServer, openRaw, rawSql } from './postgres-server.ts';

/** The databases that one process of a test run prepares for all. */
export type PreparedDatabases = {
  /** An SQLite file with the tables of this release. */
  readonly sqlite: string;
  /** Null without a PostgreSQL server. */
  readonly postgres: {
    /** Address of a database that tests do not change. */
    readonly server: string;
    /** Name of a database with the tables of this release. */
    readonly template: string;
  } | null;
};

const ENVIRONMENT_VARIABLE = 'TEST_PREPARED_DATABASES';

/** Undefined when single files are run. */
export function readPreparedDatabases(): PreparedDatabases | undefined {
  const text = process.env[ENVIRONMENT_VARIABLE];
  return text === undefined ? undefined : (JSON.parse(text) as PreparedDatabases);
}

/** Passes the databases to this process and its children. */
export function setPreparedDatabases(databases: PreparedDatabases): void {
  process.env[ENVIRONMENT_VARIABLE] = JSON.stringify(databases);
}

export { openRaw, rawSql };

export type TestDatabase = {
  /** As `OrmStore.open` takes it. */
  readonly url: string;
  /** Drops the database. Close its connections first. */
  drop(): Promise<void>;
};

export type DatabaseKind = {
  readonly name: 'sqlite' | 'postgres';
  /**
   * A fresh database with the tables of this release and no rows. Undefined without a server; with `CI=true` that throws
   * instead.
   */
  open(): Promise<TestDatabase | undefined>;
  /** A fresh database without tables, for migrations. */
  openEmpty(): Promise<TestDatabase | undefined>;
  /**
   * A copy of another database, to which no connection may be open. The service does not treat the copy as a restored
   * backup.
   */
  copy(database: TestDatabase): Promise<TestDatabase>;
  /** An exact copy, including the history that identifies a restored backup. */
  backUp(database: TestDatabase): Promise<TestDatabase>;
};

/**
 * The kinds of database that suites over HTTP run on: SQLite in `npm test`, PostgreSQL in `npm run test:postgres`, both
 * when a file runs alone.
 */
export function httpDatabases(): DatabaseKind[] {
  const name = process.env['TEST_SERVED_DATABASE'];
  return databases().filter((kind) => name === undefined || kind.name === name);
}

/** The kinds of database that every suite of the persistence runs on. */
export function databases(): DatabaseKind[] {
  return [
    { name: 'sqlite', open: openSqlite, openEmpty: openEmptySqlite, copy: createCopy(copySqlite), backUp: copySqlite },
    { name: 'postgres', open: openPostgres, openEmpty: openEmptyPostgres, copy: createCopy(copyPostgres), backUp: copyPostgres },
  ];
}

function createCopy(copy: DatabaseKind['backUp']): DatabaseKind['copy'] {
  return async (database) => {
    const databaseCopy = await copy(database);
    await rawSql(databaseCopy.url, (run) => run('delete from service_terms'));
    return databaseCopy;
  };
}

async function openSqlite(): Promise<TestDatabase> {
  const database = await openEmptySqlite();
  await createSqliteFile(database.url.slice('sqlite:'.length));
  return database;
}

async function openEmptySqlite(): Promise<TestDatabase> {
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
  return { url: `sqlite:${join(folder, 'test.db')}`, drop: async () => rmSync(folder, { recursive: true, force: true }) };
}

async function copySqlite({ url }: TestDatabase): Promise<TestDatabase> {
  const copy = await openEmptySqlite();
  copyFileSync(url.slice('sqlite:'.length), copy.url.slice('sqlite:'.length));
  return copy;
}

let template: Promise<string> | undefined;

/** Creates a file with the tables of this release. */
export async function createSqliteFile(file: string): Promise<void> {
  template ??= sqliteTemplate();
  copyFileSync(await template, file);
}

async function sqliteTemplate(): Promise<string> {
  const preparedDatabases = readPreparedDatabases();
  if (preparedDatabases !== undefined) return preparedDatabases.sqlite;
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'template.sqlite');
  await migrate(`sqlite:${file}`);
  return file;
}

async function openPostgres(): Promise<TestDatabase | undefined> {
  const nodes = await findTestCluster();
  if (nodes !== undefined) return openOnCluster(nodes);
  const source = readPreparedDatabases()?.postgres?.template;
  const database = await createPostgres(source);
  if (database !== undefined && source === undefined) await migrate(database.url);
  return process.env['TEST_LEAST_PRIVILEGE'] === 'true' && database !== undefined ? forServiceUser(database) : database;
}

const SERVICE_USER = 'vidimus_service_test';

/** Creates a user without rights. @returns the address of the database for that user. */
export async function createServiceUser(database: TestDatabase): Promise<string> {
  await rawSql(database.url, (run) =>
    run(`do $$ begin create role ${SERVICE_USER} login password '${SERVICE_USER}';
      exception when duplicate_object or unique_violation then null; end $$`),
  );
  const url = new URL(database.url);
  url.username = SERVICE_USER;
  url.password = SERVICE_USER;
  return url.href;
}

/** Wraps the database for a user who may not create tables. `TEST_LEAST_PRIVILEGE=true` runs suites with it. */
async function forServiceUser(database: TestDatabase): Promise<TestDatabase> {
  const url = await createServiceUser(database);
  await grantToService(database.url, SERVICE_USER);
  return { ...database, url };
}

let cluster: ReturnType<typeof findClusterNodes> | undefined;

/** The cluster whose coordinator `TEST_DATABASE_URL` names; all PostgreSQL tests then use it. */
async function findTestCluster() {
  const server = await findTestServer();
  if (server === undefined) return undefined;
  cluster ??= findClusterNodes(server);
  return cluster;
}

async function openOnCluster(nodes: readonly [URL, ...URL[]]): Promise<TestDatabase> {
  const name = `vidimus_test_${randomBytes(6).toString('hex')}`;
  const url = await createOnNodes(nodes, name);
  await migrate(url);
  await distributeTables(url);
  return { url, drop: () => dropOnNodes(nodes, name) };
}

function openEmptyPostgres(): Promise<TestDatabase | undefined> {
  return createPostgres(undefined);
}

async function copyPostgres({ url }: TestDatabase): Promise<TestDatabase> {
  const copy = await createPostgres(new URL(url).pathname.slice(1));
  if (copy === undefined) throw new Error('the server of the original is not available');
  return copy;
}

/** @param source database that is copied; no connection to it may be open. */
async function createPostgres(source: string | undefined): Promise<TestDatabase | undefined> {
  const server = await findTestServer();
  if (server === undefined) return undefined;
  administration ??= openRaw(server);
  const { run } = await administration;
  const name = `vidimus_test_${randomBytes(6).toString('hex')}`;
  const copy = source === undefined ? '' : ` template ${source}`;
  // The other copy strategy writes everything twice.
  await run(`create database ${name}${copy} strategy file_copy`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: async () => {
      await run(`drop database if exists ${name} with (force)`);
    },
  };
}

/** Creates and drops databases while this process runs. */
let administration: ReturnType<typeof openRaw> | undefined;
let server: Promise<string | undefined> | undefined;

/** The server of the whole run, or one for this process when single files are run. */
async function findTestServer(): Promise<string | undefined> {
  const preparedDatabases = readPreparedDatabases();
  if (preparedDatabases !== undefined) return preparedDatabases.postgres?.server;
  server ??= findServer();
  return server;
}

export async function migrate(url: string): Promise<void> {
  await (await openDatabase({ url, poolSize: 2 })).close();
}
