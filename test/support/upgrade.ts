import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync } from 'node:zlib';
import { runMigrations } from '../../adapters/persistence/opening/database.ts';
import { databases, rawSql, type TestDatabase } from './databases.ts';
import { type RunningProgram, startProgram, waitForAnswer } from './programs.ts';
import { type Callable, type CallOptions, ROOT, startTestService, type TestService } from './test-service.ts';
import { callerFor } from './worker-service.ts';

const archiveOf = (state: EarlierRelease) => new URL(`../upgrade/${state === 'first' ? 'first-release' : state}.tar.br`, import.meta.url);
const PACKAGES = fileURLToPath(new URL('../../node_modules', import.meta.url));
const PRESENT = fileURLToPath(new URL('../../', import.meta.url));

/** Release 0.1.0, and the state before 0.2.0, which has no number. */
export type EarlierRelease = 'first' | '2026-11-28';
export type Release = EarlierRelease | 'present';

/** Earlier releases and the present one as programs, with the packages of the present one. */
export class Releases {
  readonly folder = mkdtempSync(join(tmpdir(), 'vidimus-releases-'));
  readonly #environment: Readonly<Record<string, string>>;
  readonly #publicUrl: string;

  /** @param publicUrl public address of all releases. */
  constructor(publicUrl: string, environment: Readonly<Record<string, string>>) {
    this.#publicUrl = publicUrl;
    this.#environment = environment;
  }

  environment(port: number): Record<string, string> {
    return {
      PORT: String(port),
      HOST: '127.0.0.1',
      PUBLIC_URL: this.#publicUrl,
      DATA_FOLDER: this.folder,
      LOG_LEVEL: 'warn',
      DRAIN_SECONDS: '0',
      OUTBOUND_ALLOW: '127.0.0.1/32',
      AUTH_CLIENT_ID: ROOT.clientId,
      AUTH_CLIENT_SECRET: ROOT.secret,
      MASTER_SECRET: 'a master secret that two releases have',
      ...this.#environment,
    };
  }

  #unpacked(state: EarlierRelease): string {
    const folder = join(this.folder, state);
    if (existsSync(folder)) return folder;
    mkdirSync(folder);
    execFileSync('tar', ['x', '-C', folder], { input: brotliDecompressSync(readFileSync(archiveOf(state))) });
    symlinkSync(PACKAGES, join(folder, 'node_modules'));
    return folder;
  }

  launch(release: Release, port: number): RunningProgram {
    const root = release === 'present' ? PRESENT : this.#unpacked(release);
    const environment = { PATH: process.env['PATH'], ...this.environment(port) };
    return startProgram(process.execPath, [join(root, 'bootstrap/main.ts')], { environment, cwd: this.folder });
  }

  async start(release: Release, port: number): Promise<RunningProgram> {
    const program = this.launch(release, port);
    await waitForAnswer(program, `http://127.0.0.1:${port}/health`);
    return program;
  }

  /** Sends calls of the public address to one process. */
  callsTo(port: number): Callable {
    const { address, ...rest } = callerFor(`http://127.0.0.1:${port}`);
    const call = (method: string, path: string, options?: CallOptions) =>
      rest.call(method, path.replace(this.#publicUrl, address), options);
    const token = async (clientId: string, secret: string) => {
      const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
      const answer = await call('POST', '/oauth2/token', { form });
      if (answer.status !== 200) throw new Error(`token of ${clientId}: ${answer.status} ${answer.text}`);
      return String(answer.body.access_token);
    };
    return { address: this.#publicUrl, call, token, rootToken: () => token(ROOT.clientId, ROOT.secret) };
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export async function stop({ child, ended }: RunningProgram): Promise<void> {
  child.kill('SIGTERM');
  await ended;
}

/** A separate database for each test, on which services start one after the other. */
export type Upgrade = {
  readonly kind: 'sqlite' | 'postgres';
  readonly url: string;
  /** Starts a service of this release, which migrates the database; the test's end stops it. */
  start(): Promise<TestService>;
  /** Copies the data to tables as they were after `migration`. No service may run. */
  downgrade(migration: string): Promise<void>;
};

/** Defines the tests of `suite` for every kind of database. */
export function describeUpgrade(subject: string, suite: (upgrade: () => Upgrade, kind: Upgrade['kind']) => void): void {
  for (const { name: kind, openEmpty } of databases()) {
    describe(`${subject}, on ${kind}`, () => {
      let database: TestDatabase | undefined;
      let runningService: TestService | undefined;
      let upgrade: Upgrade;

      beforeEach(async function () {
        database = await openEmpty();
        if (database === undefined) return this.skip();
        const { url } = database;
        let folder = newDataFolder();
        const start = async () => {
          const service = await startTestService({ DATABASE_URL: url, DATA_FOLDER: folder });
          runningService = service;
          const close = async () => {
            runningService = undefined;
            await service.close();
          };
          return { ...service, close };
        };
        upgrade = { kind, url, start, downgrade: goBack };
        async function goBack(migration: string): Promise<void> {
          await copyToOlderTables(kind, url, migration);
          // The older release stored no position of the database.
          rmSync(folder, { recursive: true });
          folder = newDataFolder();
        }
      });
      afterEach(async () => {
        await runningService?.close();
        await database?.drop();
      });
      suite(() => upgrade, kind);
    });
  }
}

const newDataFolder = () => mkdtempSync(join(tmpdir(), 'vidimus-upgrade-'));

/** Renames the tables, creates those of the older release, and copies the columns that both have. */
async function copyToOlderTables(kind: Upgrade['kind'], url: string, migration: string): Promise<void> {
  const isSqlite = kind === 'sqlite';
  const formerFile = `${url.slice('sqlite:'.length)}-former`;
  await rawSql(url, (run) => run(isSqlite ? 'pragma wal_checkpoint(truncate)' : 'alter schema public rename to former'));
  if (isSqlite) {
    const file = url.slice('sqlite:'.length);
    renameSync(file, formerFile);
    // An older release has no such record.
    rmSync(`${file}-witness`, { force: true });
  } else await rawSql(url, (run) => run('create schema public'));
  await runMigrations({ url, poolSize: 2 }, migration);
  await rawSql(url, async (run) => {
    if (isSqlite) await run(`attach database '${formerFile}' as former`);
    const columns = isSqlite
      ? `select m.name as name, group_concat(i.name) as columns from sqlite_master m, pragma_table_info(m.name) i
         where m.type = 'table' group by m.name`
      : `select table_name as name, string_agg(column_name, ',') as columns from information_schema.columns
         where table_schema = 'public' group by table_name`;
    for (const { name, columns: columnList } of await run(columns)) {
      if (name === 'schema_migrations' || name === 'sqlite_sequence') continue;
      const schema = isSqlite ? 'main' : 'public';
      await run(`insert into ${schema}.${name} (${columnList}) select ${columnList} from former.${name}`);
    }
    await run(isSqlite ? 'detach database former' : 'drop schema former cascade');
  });
  if (isSqlite) rmSync(formerFile);
}
