import { AsyncLocalStorage } from 'node:async_hooks';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { type SqliteDatabase, sqliteDriver } from '../../adapters/persistence/drivers.ts';
import { openDatabase } from '../../adapters/persistence/opening/database.ts';
import { setUpSqlite } from '../../adapters/persistence/opening/open-driver.ts';
import { type CheckpointOptions, Checkpoints, LOG_PAGES } from '../../adapters/persistence/sqlite/checkpoints.ts';
import { type SqliteSql, sqliteSql } from '../../adapters/persistence/sqlite/sql.ts';
import { namedStatement } from '../../adapters/persistence/statement.ts';

/** Each row fills a page of 4 KiB. */
const ADD_PAGES = namedStatement(
  'add_pages',
  `insert into pages (tenant_id, content) select 'one', randomblob(3500) from
     (with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < $1) select n from numbers)`,
);

type LoggedDatabase = {
  readonly native: SqliteDatabase;
  readonly sql: SqliteSql;
  readonly faults: string[];
  /** Commits this number of pages, and reads the log at once, before the thread can act. */
  add(pages: number): Promise<{ readonly pages: number; readonly pending: number }>;
  size(): { readonly pages: number; readonly pending: number };
  close(): Promise<void>;
};

describe('write-ahead log of a SQLite database', () => {
  let folder: string;
  let file: string;
  let openDatabases: (() => Promise<void>)[];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
    file = join(folder, 'vidimus.sqlite');
    openDatabases = [];
  });
  afterEach(async () => {
    for (const close of openDatabases) await close();
    rmSync(folder, { recursive: true, force: true });
  });

  function wrap(native: SqliteDatabase, checkpoints: Checkpoints | undefined, faults: string[]): LoggedDatabase {
    const sql = sqliteSql(native, checkpoints);
    const statement = native.prepare('pragma wal_checkpoint(noop)');
    const size = () => {
      const [row] = statement.all();
      return { pages: Number(row?.['log']), pending: Number(row?.['log']) - Number(row?.['checkpointed']) };
    };
    let isClosed = false;
    const close = async () => {
      if (isClosed) return;
      isClosed = true;
      await checkpoints?.close();
      native.close();
    };
    openDatabases.push(close);
    return {
      native,
      sql,
      faults,
      size,
      close,
      async add(pages) {
        let sizeAfterCommit = { pages: 0, pending: 0 };
        await sql.transaction(
          (run) => run.change(ADD_PAGES, pages),
          (step) => {
            const result = step();
            sizeAfterCommit = size();
            return result;
          },
        );
        return sizeAfterCommit;
      },
    };
  }

  /** A database with one table, and a checkpoint thread with these options. */
  function open(options: Partial<CheckpointOptions> = {}, path = file): LoggedDatabase {
    const Connection = sqliteDriver();
    const native = new Connection(path);
    setUpSqlite(native);
    native.prepare('create table if not exists pages (tenant_id text, content blob) strict').run();
    native.prepare('create table if not exists leases (name text, expires_at integer) strict').run();
    const faults: string[] = [];
    const report = ({ message }: Error) => void faults.push(message);
    return wrap(native, new Checkpoints(path, native, { report, ...options }), faults);
  }

  const waitUntil = async (isTrue: () => boolean) => {
    while (!isTrue()) await pause(5);
  };
  const program = (text: string) => new URL(`data:text/javascript,${encodeURIComponent(text)}`);

  it('keeps a large commit until the checkpoint thread has written it to the file', async () => {
    const database = open();
    const { pages, pending } = await database.add(1_500);
    expect(pending, 'the commit wrote nothing back').to.equal(pages);
    await waitUntil(() => database.size().pending === 0);
    expect(database.faults).to.deep.equal([]);
    expect((await database.add(1)).pages, 'the log restarts').to.be.lessThan(10);
  });

  it('is checkpointed by the thread after changes that share a transaction, too', async () => {
    const database = open();
    await Promise.all([1, 2, 3].map(() => database.sql.grouped((run) => run.change(ADD_PAGES, 500))));
    await waitUntil(() => database.size().pending === 0);
    expect(database.faults).to.deep.equal([]);
  });

  it('stays below 10,000 pages while 30,000 are written without a pause', async () => {
    const database = open();
    let largest = 0;
    for (let pages = 0; pages < 30_000; pages += 250) largest = Math.max(largest, (await database.add(250)).pages);
    expect(largest).to.be.lessThan(10_000);
    expect(database.faults).to.deep.equal([]);
  });

  it('restarts under constant writes once it has 4,000 pages and a checkpoint has ended', async () => {
    const database = open();
    let isStopped = false;
    const largest: number[] = [];
    const writer = (async () => {
      while (!isStopped) {
        largest.push((await database.add(100)).pages);
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    const isSmaller = () => largest.some((pages, index) => pages < (largest[index - 1] ?? 0));
    await waitUntil(isSmaller);
    isStopped = true;
    await writer;
    expect(Math.max(...largest)).to.be.lessThan(LOG_PAGES.last);
  });

  it('is removed when the service closes, also during a checkpoint', async () => {
    const database = open();
    await database.add(3_000);
    await database.close();
    expect(readdirSync(folder)).to.deep.equal(['vidimus.sqlite']);
  });

  it('is found when a symbolic link names the database', async () => {
    mkdirSync(join(folder, 'elsewhere'));
    const link = join(folder, 'elsewhere', 'link.sqlite');
    symlinkSync(file, link);
    const database = open({}, link);
    await database.add(1_500);
    await waitUntil(() => database.size().pending === 0);
    expect(database.faults).to.deep.equal([]);
  });

  it('is not written to another file that took the name of the database', async () => {
    const database = open();
    await database.add(10);
    const otherFile = join(folder, 'other.sqlite');
    const otherDatabase = new (sqliteDriver())(otherFile);
    otherDatabase.prepare('create table other (one integer) strict').run();
    otherDatabase.close();
    renameSync(file, join(folder, 'moved.sqlite'));
    renameSync(otherFile, file);
    const before = readFileSync(file);
    await database.add(1_500);
    await waitUntil(() => database.faults.length > 0);
    expect(database.faults[0]).to.include('is another file than the service has open');
    expect(readFileSync(file).equals(before), 'the other file is unchanged').to.equal(true);
    expect((await database.add(1_500)).pending, 'written back by the commit').to.equal(0);
  });

  it('is not written to another file whose log got the name of its log', async () => {
    const database = open();
    await database.add(10);
    renameSync(`${file}-wal`, join(folder, 'moved-wal'));
    await database.add(1_500);
    await waitUntil(() => database.faults.length > 0);
    expect(database.faults[0]).to.include('-wal');
  });

  it('is checkpointed by commits after the thread failed, and by the thread again later', async () => {
    const database = open({ program: program('throw new Error("no thread today")') });
    await database.add(1_500);
    await waitUntil(() => database.faults.length > 0);
    expect(database.faults).to.deep.equal(['no thread today']);
    expect((await database.add(1_500)).pending).to.equal(0);
    expect(database.faults, 'the fault is reported once').to.have.length(1);
    await database.close();

    const retryingDatabase = open({ program: program('throw new Error("no thread today")'), faultPauseMs: 0 });
    await retryingDatabase.add(1_500);
    while (retryingDatabase.faults.length < 2) {
      await retryingDatabase.add(1_500);
      await pause(5);
    }
  });

  it('delays writers for a limited time when the thread does not respond', async () => {
    const silentProgram = program(
      `import { parentPort } from 'node:worker_threads';
       parentPort.on('message', (request) => { if (request === 'close') parentPort.close(); });`,
    );
    const database = open({ program: silentProgram, maxPauseMs: 1 });
    let largest = 0;
    for (let pages = 0; pages < 24_000; pages += 1_000) largest = Math.max(largest, (await database.add(1_000)).pages);
    expect(largest, 'the last limit').to.be.within(LOG_PAGES.wait, LOG_PAGES.last + 2_000);
  });

  /** A thread that accepts requests and does nothing. */
  const hangingProgram = program(`import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => {});`);

  it('is checkpointed by commits once the thread exceeded its timeout', async () => {
    const database = open({ program: hangingProgram, maxReplyMs: 1 });
    await database.add(1_500);
    await waitUntil(() => database.faults.length > 0);
    expect(database.faults).to.deep.equal(['the thread for checkpoints did not answer for 1 ms']);
    expect((await database.add(1_500)).pending).to.equal(0);
  });

  it('does not keep a service from stopping when the thread does not respond', async () => {
    const database = open({ program: hangingProgram, maxClosingMs: 1 });
    await database.add(1_500);
    await database.close();
    expect(readdirSync(folder)).to.deep.equal(['vidimus.sqlite']);
  });

  it('keeps the changes that wait for a checkpoint when the service closes', async () => {
    const database = open({ program: hangingProgram, maxClosingMs: 1, maxPauseMs: 1 });
    await database.add(LOG_PAGES.wait + 1_000);
    const waiting = Array.from({ length: 50 }, () => database.add(1));
    await database.close();
    expect(await Promise.all(waiting)).to.have.length(50);
  });

  it('reports a fault of the thread outside of the request whose commit started it', async () => {
    const requests = new AsyncLocalStorage<string>();
    const requestIds: (string | undefined)[] = [];
    const report = () => void requestIds.push(requests.getStore());
    const database = open({ program: program('throw new Error("no thread today")'), report });
    await requests.run('of a tenant', () => database.add(1_500));
    await waitUntil(() => requestIds.length > 0);
    expect(requestIds).to.deep.equal([undefined]);
  });

  it('is checkpointed by a new thread after the first one ended while idle', async () => {
    const database = open({ idleMs: 0 });
    for (let round = 0; round < 3; round++) {
      await database.add(1_500);
      // A commit that finds the thread busy leaves its pages to the thread's next run, which a later commit starts.
      while (database.size().pending >= LOG_PAGES.start) {
        await pause(5);
        await database.add(1);
      }
    }
    expect(database.faults).to.deep.equal([]);
  });

  it('is checkpointed by the commits of a program that requests no thread', async () => {
    const database = await openDatabase({ url: `sqlite:${file}`, poolSize: 2 });
    const [row] = await database.all('pragma wal_autocheckpoint');
    await database.close();
    expect(Object.values(row ?? {})).to.deep.equal([1_000]);
  });

  it('is checkpointed by the thread of a service', async () => {
    const database = await openDatabase({ url: `sqlite:${file}`, poolSize: 2, onCheckpointFault: () => {} });
    const [row] = await database.all('pragma wal_autocheckpoint');
    await database.close();
    expect(Object.values(row ?? {})).to.deep.equal([LOG_PAGES.last]);
    expect(readdirSync(folder)).to.deep.equal(['vidimus.sqlite']);
  });
});
