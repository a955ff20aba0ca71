import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { urlWithoutCredentials } from '../../adapters/persistence/opening/database.ts';
import { createServiceUser, databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { hasPgBouncer, PgBouncer } from '../support/pgbouncer.ts';
import { startPostgres } from '../support/postgres-server.ts';
import { runProcess } from '../support/programs.ts';
import { createRevocableIssuer, issueBatch } from '../support/revocable-cards.ts';
import { startTestService } from '../support/test-service.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const postgres = databases().find(({ name }) => name === 'postgres');

const NEWEST_SUPPORTED = 18;

type Report = {
  readonly stats: { readonly passes: number; readonly failures: number; readonly pending: number };
  readonly failures: readonly { readonly fullTitle: string }[];
};

let newestServer: Promise<string> | undefined;

/** Starts the server of the npm package. @returns its address. */
async function startNewest(): Promise<string> {
  const url = await startPostgres();
  const [row] = await rawSql(url, (run) => run("select current_setting('server_version_num') as number"));
  const version = Number((row as { readonly number: string }).number);
  expect(Math.floor(version / 10_000)).to.equal(NEWEST_SUPPORTED);
  return url;
}

/** Runs contract suites in a separate process, on the newest supported server and without SQLite. */
async function runSuites(names: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<Report> {
  newestServer ??= startNewest();
  const { TEST_PREPARED_DATABASES: _, ...env } = process.env;
  const mocha = `${ROOT}node_modules/mocha/bin/mocha.js`;
  const options = ['--no-config', '--require', 'test/support/setup.ts', '--timeout', '180000', '--exit'];
  const suites = ['--reporter', 'json', '--grep', 'sqlite', '--invert', ...names.map((name) => `test/contract/${name}.test.ts`)];
  const { stdout } = await promisify(execFile)(process.execPath, [mocha, ...options, ...suites], {
    cwd: ROOT,
    env: { ...env, TEST_DATABASE_URL: await newestServer, ...environment },
    maxBuffer: 64 * 1024 * 1024,
  }).catch((error: { stdout?: string }) => ({ stdout: error.stdout ?? '' }));
  return JSON.parse(stdout.slice(stdout.indexOf('{\n'))) as Report;
}

describe('PostgreSQL user without the right to create tables', () => {
  let database: TestDatabase | undefined;

  beforeEach(async function () {
    database = await postgres?.openEmpty();
    if (database === undefined) this.skip();
  });
  afterEach(() => database?.drop());

  const migrate = (environment: Record<string, string>, ...args: string[]) =>
    runProcess('commands/migrate', args, { DATA_FOLDER: mkdtempSync(join(tmpdir(), 'vidimus-migrate-')), ...environment });
  const startError = (environment: Record<string, string>) =>
    startTestService(environment).then(
      async (service) => {
        await service.close();
        return 'it started';
      },
      (error: Error) => error.message,
    );

  it('runs the service after the migration command granted it the rights on rows', async () => {
    const owner = database?.url ?? '';
    const url = await createServiceUser(database as TestDatabase);
    const user = new URL(url).username;
    const migration = await migrate({ DATABASE_MIGRATION_URL: owner, DATABASE_URL: url }, '--grant-to', user);
    expect(migration.code, migration.stderr).to.equal(0);
    expect(migration.stdout).to.include('has the tables of release').and.include(`"${user}" may run the service`);
    const service = await startTestService({ DATABASE_URL: url, MIGRATE: 'off' });
    try {
      const tenant = await createRevocableIssuer(service, 'acme', 10);
      const { session } = await issueBatch(service, tenant);
      const json = { sessionId: session, status: 1 };
      expect((await service.call('POST', '/session/revoke', { token: tenant.token, json })).status).to.equal(201);
    } finally {
      await service.close();
    }
    const runDenied = (text: string) => rawSql(url, (run) => run(text)).catch((error: Error) => error.message);
    expect(await runDenied('create table intruder (id int)')).to.match(/permission denied/);
    expect(await runDenied('alter table sessions add column intruder int')).to.match(/must be owner/);
    expect(await runDenied('delete from schema_migrations')).to.match(/permission denied/);
    const repeatedMigration = await migrate({ DATABASE_MIGRATION_URL: owner }, '--grant-to', user);
    expect(repeatedMigration.code, repeatedMigration.stderr).to.equal(0);
  });

  it('cannot start the service on an empty database, and the error names the command', async () => {
    const url = await createServiceUser(database as TestDatabase);
    expect(await startError({ DATABASE_URL: url, MIGRATE: 'off' })).to.include('npx vidimus migrate');
    expect(await startError({ DATABASE_URL: url }))
      .to.include('DATABASE_URL')
      .and.include('grant create on schema public');
  });

  it('is not created by the migration command', async () => {
    const migration = await migrate({ DATABASE_URL: database?.url ?? '' }, '--grant-to', 'no_such_user');
    expect(migration.code).to.equal(1);
    expect(migration.stderr).to.include('no_such_user').and.include('does not exist');
  });

  it('gets an error that names DATABASE_MIGRATION_URL when the migration command cannot reach that address', async () => {
    const unreachableUrl = 'postgres://owner:secret-of-the-owner@localhost:1/vidimus';
    const { code, stderr } = await migrate({ DATABASE_MIGRATION_URL: unreachableUrl, DATABASE_URL: database?.url ?? '' });
    expect(code).to.equal(1);
    expect(stderr).to.match(/DATABASE_MIGRATION_URL: postgres:\/\/localhost:1\/vidimus does not answer/);
    expect(stderr)
      .to.not.include('secret-of-the-owner')
      .and.not.match(/[^_]DATABASE_URL/);
  });

  it('gets no tables when DATABASE_URL and DATABASE_MIGRATION_URL name different databases', async () => {
    const otherDatabase = await postgres?.openEmpty();
    if (otherDatabase === undefined || database === undefined) throw new Error('there is no PostgreSQL');
    try {
      for (const serviceUrl of [otherDatabase.url, 'sqlite:./data/vidimus.sqlite']) {
        const migration = await migrate({ DATABASE_MIGRATION_URL: database.url, DATABASE_URL: serviceUrl });
        expect(migration.code).to.equal(1);
        expect(migration.stderr)
          .to.include(`DATABASE_MIGRATION_URL (${urlWithoutCredentials(database.url)})`)
          .and.include(`DATABASE_URL (${urlWithoutCredentials(serviceUrl)})`)
          .and.match(/name (different databases|databases of different kinds)/);
      }
      const tables = await rawSql(database.url, (run) => run(`select tablename from pg_tables where schemaname = 'public'`));
      expect(tables).to.deep.equal([]);
    } finally {
      await otherDatabase.drop();
    }
  });

  it('gets tables in the schema that the service uses, or none', async () => {
    const owner = database?.url ?? '';
    const url = await createServiceUser(database as TestDatabase);
    const user = new URL(url).username;
    await rawSql(owner, async (run) => {
      await run('create schema elsewhere');
      await run(`grant usage on schema elsewhere to "${user}"`);
      // Only in this database, since other tests use the same user.
      await run(`alter role "${user}" in database "${new URL(owner).pathname.slice(1)}" set search_path = elsewhere`);
    });
    const migration = await migrate({ DATABASE_MIGRATION_URL: owner, DATABASE_URL: url });
    expect([migration.code, migration.stderr]).to.satisfy(
      ([code, text]: [number, string]) => code === 1 && text.includes('use different schemas'),
    );
  });

  it('is migrated by another host name of the same server, and when DATABASE_URL does not answer', async () => {
    const owner = new URL(database?.url ?? '');
    const alias = new URL(owner);
    alias.hostname = owner.hostname === 'localhost' ? '127.0.0.1' : 'localhost';
    const aliasMigration = await migrate({ DATABASE_MIGRATION_URL: owner.href, DATABASE_URL: alias.href });
    expect(aliasMigration.code, aliasMigration.stderr).to.equal(0);
    expect(aliasMigration.stderr).to.not.include('warning');
    const serviceUrl = 'postgres://app:secret-of-the-service@localhost:1/vidimus';
    const unreachableMigration = await migrate({ DATABASE_MIGRATION_URL: owner.href, DATABASE_URL: serviceUrl });
    expect(unreachableMigration.code, unreachableMigration.stderr).to.equal(0);
    expect(unreachableMigration.stderr).to.include('were not compared').and.not.include('secret-of-the-service');
  });

  for (const [description, isSingleDatabase] of [
    ['a new database', false],
    ['a database whose tables exist', true],
  ] as const) {
    it(`is set up by the statements of docs/reference/poolers.md for ${description}`, async () => {
      const page = readFileSync(join(ROOT, 'docs/reference/poolers.md'), 'utf8');
      const blocks = [...page.matchAll(/```sql\n([\s\S]*?)```/g)].map(([, text = '']) => text);
      const databaseName = `p${randomBytes(6).toString('hex')}`;
      const text = (blocks[isSingleDatabase ? 1 : 0] ?? '').replaceAll('vidimus', databaseName);
      const [adminStatements = [], databaseStatements = []] = text
        .split(/\\connect .*\n/)
        .map((section) => section.split(/;\s*/).filter((statement) => statement.trim() !== ''));
      const admin = new URL(database?.url ?? '');
      const urlFor = (user?: string, password = '') => {
        const url = new URL(admin);
        url.pathname = `/${databaseName}`;
        return Object.assign(url, user !== undefined && { username: user, password }).href;
      };
      const run = async (url: string, statements: readonly string[]) => {
        for (const statement of statements) await rawSql(url, (query) => query(statement));
      };
      const app = isSingleDatabase ? databaseName : `${databaseName}_app`;
      const serviceUrl = urlFor(app, 'change-me-app');
      try {
        if (isSingleDatabase) {
          await run(admin.href, [`create role ${databaseName} login password 'change-me-app'`]);
          await run(admin.href, [`create database ${databaseName} owner ${databaseName}`]);
          const migration = await migrate({ DATABASE_URL: serviceUrl });
          expect(migration.code, migration.stderr).to.equal(0);
        }
        await run(admin.href, adminStatements);
        await run(urlFor(), databaseStatements);
        const owner = urlFor(`${databaseName}_owner`, 'change-me-owner');
        const migration = await migrate({ DATABASE_MIGRATION_URL: owner, DATABASE_URL: serviceUrl }, '--grant-to', app);
        expect([migration.code, migration.stderr]).to.deep.equal([0, '']);
        const service = await startTestService({ DATABASE_URL: serviceUrl, MIGRATE: 'off' });
        await service.close();
        const rejection = await run(serviceUrl, ['create table x (id int)']).catch((error: Error) => error.message);
        expect(rejection).to.match(/permission denied/);
      } finally {
        await run(admin.href, [`drop database if exists ${databaseName}`]);
        for (const role of [`${databaseName}_owner`, `${databaseName}_app`, databaseName])
          await run(admin.href, [`drop role if exists ${role}`]);
      }
    });
  }

  it(`passes the contract of the store on PostgreSQL ${NEWEST_SUPPORTED}`, async function () {
    this.timeout(600_000);
    const { stats, failures } = await runSuites(['store'], { TEST_LEAST_PRIVILEGE: 'true' });
    expect(failures.map(({ fullTitle }) => fullTitle)).to.deep.equal([]);
    expect(stats.passes).to.be.greaterThan(100);
    expect(stats.pending).to.equal(0);
  });
});

describe('PostgreSQL behind PgBouncer', () => {
  let database: TestDatabase | undefined;
  let pooler: PgBouncer | undefined;

  before(function () {
    if (hasPgBouncer()) return;
    const line = 'PostgreSQL behind PgBouncer is skipped: install the package pgbouncer';
    if (process.env['CI'] === 'true') throw new Error(line);
    console.log(`    ${line}`);
    this.skip();
  });
  beforeEach(async function () {
    database = await postgres?.open();
    if (database === undefined) this.skip();
  });
  afterEach(async () => {
    await pooler?.stop();
    pooler = undefined;
    await database?.drop();
  });

  it('serves issuance and revocation in session mode with default settings', async () => {
    pooler = await PgBouncer.start(database?.url ?? '', 'session');
    const service = await startTestService({ DATABASE_URL: pooler.url });
    try {
      const tenant = await createRevocableIssuer(service, 'acme', 10);
      const { session } = await issueBatch(service, tenant);
      const json = { sessionId: session, status: 1 };
      const revocation = await service.call('POST', '/session/revoke', { token: tenant.token, json });
      expect(revocation.status, revocation.text).to.equal(201);
      const { status, body } = await service.call('GET', '/health/ready');
      expect([status, body.status]).to.deep.equal([200, 'ok']);
    } finally {
      await service.close();
    }
  });

  for (const [mode, settings] of [
    ['transaction', []],
    ['transaction', ['default_pool_size = 1']],
    ['transaction', ['server_round_robin = 1']],
    ['statement', []],
  ] as const)
    it(`is rejected at the start in ${mode} mode${settings.map((line) => ` with ${line}`).join('')}`, async () => {
      pooler = await PgBouncer.start(database?.url ?? '', mode, settings);
      const startError = await startTestService({ DATABASE_URL: pooler.url, DATABASE_TIMEOUT: '3' }).catch((error: Error) => error);
      expect(startError).to.be.instanceOf(Error);
      expect((startError as Error).message)
        .to.include('DATABASE_URL')
        .and.include('connection pooler in transaction or statement mode')
        .and.include('pool_mode=session');
    });
});

describe(`contract suites of the database on PostgreSQL ${NEWEST_SUPPORTED}`, () => {
  it('pass on the server of the npm package, which is the newest supported version', async function () {
    if (process.env['TEST_DATABASE_URL'] === undefined && process.env['CI'] !== 'true') {
      console.log('      skipped: without TEST_DATABASE_URL, npm test runs these suites on this server');
      return this.skip();
    }
    this.timeout(600_000);
    const { stats, failures } = await runSuites(['migrations', 'postgres-calls', 'counting', 'terms']);
    expect(failures.map(({ fullTitle }) => fullTitle)).to.deep.equal([]);
    expect(stats.passes).to.be.greaterThan(20);
    expect(stats.pending).to.equal(0);
  });
});
