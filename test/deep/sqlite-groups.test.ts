import { execFile } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { openDatabase } from '../../adapters/persistence/opening/database.ts';
import type { Database } from '../../adapters/persistence/opening/open-driver.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import { type SqliteRun, type SqliteSql, sqliteSql } from '../../adapters/persistence/sqlite/sql.ts';
import { namedStatement } from '../../adapters/persistence/statement.ts';
import { StoreUnavailableError } from '../../application/ports/store.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { addTenant } from '../contract/store/builders.ts';
import { databases, openRaw, rawSql, type TestDatabase } from '../support/databases.ts';
import type { GroupAssignment } from '../support/group-child.ts';
import { countTransactions } from '../support/write-ahead-log.ts';

const PUT = namedStatement('put_note', 'insert into notes (id, text) values ($1, $2)');
const COUNT = namedStatement('count_notes', 'select count(*) as all_of_them from notes');
const DANGLING_INSERT = namedStatement('dangle', 'insert into replies (note) values ($1)');

/** Simultaneous changes share transactions, but not their results. */
describe('changes that share a transaction on sqlite', () => {
  let database: TestDatabase;
  let connection: Database;
  let sql: SqliteSql;
  const [kind] = databases();
  beforeEach(async () => {
    database = (await kind?.open()) as TestDatabase;
    await rawSql(database.url, async (run) => {
      await run('create table notes (id text primary key, text text)');
      await run('create table replies (note text references notes (id) deferrable initially deferred)');
    });
    connection = await openDatabase({ url: database.url, poolSize: 2 });
    sql = sqliteSql(connection.native);
  });
  afterEach(async () => {
    await connection.close();
    await database.drop();
  });

  const put = (id: string, text = '') => sql.grouped((run) => run.change(PUT, id, text));
  const callMany = <T>(count: number, work: (index: number) => Promise<T>) =>
    Promise.allSettled(Array.from({ length: count }, (_, index) => work(index)));
  const readStored = () => rawSql(database.url, async (run) => (await run('select id from notes order by id')).map(({ id }) => String(id)));
  const transactions = () => countTransactions(readFileSync(`${database.url.slice('sqlite:'.length)}-wal`));
  const outcomeStatuses = (settled: readonly PromiseSettledResult<unknown>[]) => settled.map(({ status }) => status);

  it('are one transaction, whose number shows in the write-ahead log', async () => {
    const transactionsBefore = transactions();
    await callMany(50, async (index) => {
      // Each caller does some work before, but none waits for I/O.
      for (let step = 0; step < index; step++) await undefined;
      await put(`together ${index}`);
    });
    expect(transactions() - transactionsBefore).to.equal(1);
    for (let index = 0; index < 5; index++) await put(`alone ${index}`);
    expect(transactions() - transactionsBefore).to.equal(6);
  });

  it('continue in the next turn when they are too many or too long for one transaction', async () => {
    const transactionsBefore = transactions();
    await callMany(200, (index) => put(String(index)));
    expect(transactions() - transactionsBefore).to.equal(4);
    await callMany(4, (index) => put(`long ${index}`, 'x'.repeat(600_000)));
    expect(transactions() - transactionsBefore).to.equal(6);
  });

  it('are answered once all of them are committed, and not before', async () => {
    const otherConnection = await openRaw(database.url);
    const seenCounts: number[] = [];
    let answeredCount = 0;
    try {
      await callMany(20, async (index) => {
        await put(String(index));
        answeredCount++;
        const [row] = await otherConnection.run('select count(*) as n from notes');
        seenCounts.push(Number(row?.['n']));
      });
      expect(answeredCount).to.equal(20);
      expect(seenCounts).to.deep.equal(Array.from({ length: 20 }, () => 20));
    } finally {
      await otherConnection.close();
    }
  });

  it('keep nothing of a rejected change, and all of the others', async () => {
    const settled = await callMany(30, (index) =>
      sql.grouped((run) => {
        run.change(PUT, `first ${index}`, '');
        run.change(PUT, `second ${index}`, '');
        if (index % 3 === 0) throw new Error('refused');
        // A single-use value, which the first caller gets.
        run.change(PUT, index % 3 === 1 ? 'once' : `third ${index}`, '');
      }),
    );
    const winners = settled.flatMap(({ status }, index) => (status === 'fulfilled' ? [index] : []));
    expect(winners).to.deep.equal([1, ...winners.filter((index) => index % 3 === 2)]);
    expect(winners).to.have.length(11);
    const expectedRows = winners.flatMap((index) => [`first ${index}`, `second ${index}`, index === 1 ? 'once' : `third ${index}`]);
    expect(await readStored()).to.deep.equal(expectedRows.toSorted());
  });

  it('see the effects of earlier changes in the same group', async () => {
    const counts = await Promise.all(
      Array.from({ length: 5 }, (_, index) =>
        sql.grouped((run) => {
          run.change(PUT, String(index), '');
          return Number(run.all(COUNT)[0]?.['all_of_them']);
        }),
      ),
    );
    expect(counts).to.deep.equal([1, 2, 3, 4, 5]);
  });

  it('all fail when the commit fails, and nothing of them is stored', async () => {
    const danglingRead = (run: SqliteRun) => run.change(DANGLING_INSERT, 'no such note');
    const settled = await callMany(10, (index) => (index === 4 ? sql.grouped(danglingRead) : put(String(index))));
    expect(outcomeStatuses(settled)).to.deep.equal(Array.from({ length: 10 }, () => 'rejected'));
    expect(await readStored()).to.deep.equal([]);
    await put('after');
    expect(await readStored()).to.deep.equal(['after']);
  });

  it('all fail while another program writes, and the next ones succeed', async () => {
    const otherConnection = await openRaw(database.url);
    try {
      const native = connection.native as { pragma(text: string): void };
      native.pragma('busy_timeout = 50');
      await otherConnection.run('begin immediate');
      const settled = await callMany(10, (index) => put(String(index)));
      for (const result of settled) expect(result.status === 'rejected' && result.reason).to.be.instanceOf(StoreUnavailableError);
      await otherConnection.run('rollback');
      await put('after');
      expect(await readStored()).to.deep.equal(['after']);
    } finally {
      await otherConnection.close();
    }
  });

  it('wait for a long transaction, and alternate with further ones', async () => {
    const order: string[] = [];
    const slowTransaction = (name: string) =>
      sql.exclusively(async () => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        order.push(name);
      });
    const recordOrder = (name: string) => put(name).then(() => order.push(name));
    const firstTransaction = slowTransaction('one');
    const group = [recordOrder('a'), recordOrder('b')];
    await new Promise((resolve) => setImmediate(resolve));
    await Promise.all([firstTransaction, ...group, slowTransaction('two')]);
    expect(order).to.deep.equal(['one', 'a', 'b', 'two']);
  });

  it('are rejected inside of a transaction, which would wait for itself', async () => {
    const group = put('outside');
    const nestedCall = sql.exclusively(() => put('inside'));
    expect(await nestedCall.catch((error: Error) => error.message)).to.include('Inside a transaction');
    await group;
    expect(await readStored()).to.deep.equal(['outside']);
  });

  it('reject a read inside of a transaction every time, and delay no other call', async () => {
    const group = put('waits');
    const rejections = await sql.exclusively(() => callMany(150, () => sql.single((run) => run.all(COUNT))));
    expect(outcomeStatuses(rejections)).to.deep.equal(Array.from({ length: 150 }, () => 'rejected'));
    await group;
  });

  it('get their turn during endless reads', async () => {
    let isWritten = false;
    const writeAttempt = put('beside').then(() => {
      isWritten = true;
    });
    let reads = 0;
    while (!isWritten && reads < 100_000) {
      await sql.single((run) => run.all(COUNT));
      reads++;
    }
    expect(isWritten).to.equal(true);
    await writeAttempt;
  });

  it('are rejected when more than ten thousand wait', async () => {
    const settled = await callMany(10_010, (index) => put(String(index)));
    expect(outcomeStatuses(settled).filter((status) => status === 'rejected')).to.have.length(10);
    expect(await readStored()).to.have.length(10_000);
  });
});

const MASTER_SECRET = 'a master secret of decent length';
const CHILD = fileURLToPath(new URL('../support/group-child.ts', import.meta.url));

/** Confirmed changes stay and failed changes do not, however the process ends. */
describe('changes that share a transaction on sqlite, by a process that', () => {
  let database: TestDatabase;
  let tenantId: TenantId;
  const [kind] = databases();
  beforeEach(async () => {
    database = (await kind?.open()) as TestDatabase;
    const cipher = new MasterCipher({ masterSecrets: [MASTER_SECRET] });
    const store = await OrmStore.open({ url: database.url, poolSize: 2 }, cipher);
    tenantId = await addTenant(store);
    await store.close();
  });
  afterEach(() => database.drop());

  /** @param shellPrelude what the shell does first. */
  async function runChild(assignment: Pick<GroupAssignment, 'rounds' | 'killsItself'>, shellPrelude = ':') {
    const fullAssignment: GroupAssignment = { url: database.url, masterSecret: MASTER_SECRET, tenantId, ...assignment };
    const script = `${shellPrelude}; exec "$@"`;
    const output = await new Promise<string>((resolve) => {
      const shellArgs = ['-c', script, 'sh', process.execPath, CHILD, JSON.stringify(fullAssignment)];
      execFile('/bin/sh', shellArgs, { maxBuffer: 2 ** 24 }, (_error, stdout) => resolve(stdout));
    });
    const lines = output.split('\n').filter((line) => line !== '');
    const ids = (outcome: string) => lines.flatMap((line) => (line.startsWith(`${outcome} `) ? [line.slice(outcome.length + 1)] : []));
    return { lines, done: ids('done'), unavailable: ids('StoreUnavailableError') };
  }
  const readStored = () => rawSql(database.url, async (run) => (await run('select id from sessions')).map(({ id }) => String(id)));

  it('is killed right after an answer, are stored', async () => {
    const { done, lines } = await runChild({ rounds: 5, killsItself: true });
    expect(lines).to.have.lengthOf.above(160);
    expect(await readStored()).to.include.members(done);
  });

  it('cannot write any more, are stored if they were done, and absent if they failed', async () => {
    const size = statSync(database.url.slice('sqlite:'.length)).size;
    // In blocks of 512 bytes: the log hits the limit in the middle of a commit.
    const room = `ulimit -f ${Math.ceil(size / 512) + 500}; trap '' XFSZ`;
    const { done, unavailable, lines } = await runChild({ rounds: 200, killsItself: false }, room);
    expect(lines).to.have.length(8_000);
    expect(done).to.have.lengthOf.above(0);
    expect(unavailable).to.have.lengthOf.above(0);
    expect(done.length + unavailable.length).to.equal(8_000);
    expect((await readStored()).toSorted()).to.deep.equal(done.toSorted());
  });
});
