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
const DANGLE = namedStatement('dangle', 'insert into replies (note) values ($1)');

/** How callers whose changes come at the same time share transactions, and what they do not share. */
describe('changes that share a transaction on sqlite', () => {
  let database: TestDatabase;
  let opened: Database;
  let sql: SqliteSql;
  const [kind] = databases();
  beforeEach(async () => {
    database = (await kind?.open()) as TestDatabase;
    await rawSql(database.url, async (run) => {
      await run('create table notes (id text primary key, text text)');
      await run('create table replies (note text references notes (id) deferrable initially deferred)');
    });
    opened = await openDatabase({ url: database.url, poolSize: 2 });
    sql = sqliteSql(opened.native);
  });
  afterEach(async () => {
    await opened.close();
    await database.drop();
  });

  const put = (id: string, text = '') => sql.grouped((run) => run.change(PUT, id, text));
  const many = <T>(count: number, work: (index: number) => Promise<T>) =>
    Promise.allSettled(Array.from({ length: count }, (_, index) => work(index)));
  const stored = () => rawSql(database.url, async (run) => (await run('select id from notes order by id')).map(({ id }) => String(id)));
  const transactions = () => countTransactions(readFileSync(`${database.url.slice('sqlite:'.length)}-wal`));
  const outcomesOf = (settled: readonly PromiseSettledResult<unknown>[]) => settled.map(({ status }) => status);

  it('are one transaction, whose number shows in the write-ahead log', async () => {
    const before = transactions();
    await many(50, async (index) => {
      // Each has something to do before, but none waits for the world outside.
      for (let step = 0; step < index; step++) await undefined;
      await put(`together ${index}`);
    });
    expect(transactions() - before).to.equal(1);
    for (let index = 0; index < 5; index++) await put(`alone ${index}`);
    expect(transactions() - before).to.equal(6);
  });

  it('continue in the next turn when they are too many or too long for one transaction', async () => {
    const before = transactions();
    await many(200, (index) => put(String(index)));
    expect(transactions() - before).to.equal(4);
    await many(4, (index) => put(`long ${index}`, 'x'.repeat(600_000)));
    expect(transactions() - before).to.equal(6);
  });

  it('are answered once all of them are committed, and not before', async () => {
    const beside = await openRaw(database.url);
    const seen: number[] = [];
    let answered = 0;
    try {
      await many(20, async (index) => {
        await put(String(index));
        answered++;
        const [row] = await beside.run('select count(*) as n from notes');
        seen.push(Number(row?.['n']));
      });
      expect(answered).to.equal(20);
      expect(seen).to.deep.equal(Array.from({ length: 20 }, () => 20));
    } finally {
      await beside.close();
    }
  });

  it('keep nothing of a rejected change, and all of the others', async () => {
    const settled = await many(30, (index) =>
      sql.grouped((run) => {
        run.change(PUT, `first ${index}`, '');
        run.change(PUT, `second ${index}`, '');
        if (index % 3 === 0) throw new Error('refused');
        // A value that counts once: the first to come has it.
        run.change(PUT, index % 3 === 1 ? 'once' : `third ${index}`, '');
      }),
    );
    const won = settled.flatMap(({ status }, index) => (status === 'fulfilled' ? [index] : []));
    expect(won).to.deep.equal([1, ...won.filter((index) => index % 3 === 2)]);
    expect(won).to.have.length(11);
    const expected = won.flatMap((index) => [`first ${index}`, `second ${index}`, index === 1 ? 'once' : `third ${index}`]);
    expect(await stored()).to.deep.equal(expected.toSorted());
  });

  it('see the effects of earlier changes in the same group', async () => {
    const counted = await Promise.all(
      Array.from({ length: 5 }, (_, index) =>
        sql.grouped((run) => {
          run.change(PUT, String(index), '');
          return Number(run.all(COUNT)[0]?.['all_of_them']);
        }),
      ),
    );
    expect(counted).to.deep.equal([1, 2, 3, 4, 5]);
  });

  it('all fail when the commit fails, and nothing of them is stored', async () => {
    const dangling = (run: SqliteRun) => run.change(DANGLE, 'no such note');
    const settled = await many(10, (index) => (index === 4 ? sql.grouped(dangling) : put(String(index))));
    expect(outcomesOf(settled)).to.deep.equal(Array.from({ length: 10 }, () => 'rejected'));
    expect(await stored()).to.deep.equal([]);
    await put('after');
    expect(await stored()).to.deep.equal(['after']);
  });

  it('all fail while another program writes, and the next ones succeed', async () => {
    const beside = await openRaw(database.url);
    try {
      const native = opened.native as { pragma(text: string): void };
      native.pragma('busy_timeout = 50');
      await beside.run('begin immediate');
      const settled = await many(10, (index) => put(String(index)));
      for (const result of settled) expect(result.status === 'rejected' && result.reason).to.be.instanceOf(StoreUnavailableError);
      await beside.run('rollback');
      await put('after');
      expect(await stored()).to.deep.equal(['after']);
    } finally {
      await beside.close();
    }
  });

  it('wait for a long transaction, and alternate with further ones', async () => {
    const order: string[] = [];
    const slowly = (name: string) =>
      sql.exclusively(async () => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        order.push(name);
      });
    const noted = (name: string) => put(name).then(() => order.push(name));
    const first = slowly('one');
    const group = [noted('a'), noted('b')];
    await new Promise((resolve) => setImmediate(resolve));
    await Promise.all([first, ...group, slowly('two')]);
    expect(order).to.deep.equal(['one', 'a', 'b', 'two']);
  });

  it('are rejected inside of a transaction, which would wait for itself', async () => {
    const group = put('outside');
    const nested = sql.exclusively(() => put('inside'));
    expect(await nested.catch((error: Error) => error.message)).to.include('Inside a transaction');
    await group;
    expect(await stored()).to.deep.equal(['outside']);
  });

  it('reject a read inside of a transaction every time, and delay no other call', async () => {
    const group = put('waits');
    const refused = await sql.exclusively(() => many(150, () => sql.single((run) => run.all(COUNT))));
    expect(outcomesOf(refused)).to.deep.equal(Array.from({ length: 150 }, () => 'rejected'));
    await group;
  });

  it('get their turn during endless reads', async () => {
    let isWritten = false;
    const writing = put('beside').then(() => {
      isWritten = true;
    });
    let reads = 0;
    while (!isWritten && reads < 100_000) {
      await sql.single((run) => run.all(COUNT));
      reads++;
    }
    expect(isWritten).to.equal(true);
    await writing;
  });

  it('are rejected when more than ten thousand wait', async () => {
    const settled = await many(10_010, (index) => put(String(index)));
    expect(outcomesOf(settled).filter((status) => status === 'rejected')).to.have.length(10);
    expect(await stored()).to.have.length(10_000);
  });
});

const MASTER_SECRET = 'a master secret of decent length';
const CHILD = fileURLToPath(new URL('../support/group-child.ts', import.meta.url));

/** What a process was told stays, and what it was told has failed does not, however it ends. */
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

  /** @param before what the shell does first. */
  async function said(assignment: Pick<GroupAssignment, 'rounds' | 'killsItself'>, before = ':') {
    const asked: GroupAssignment = { url: database.url, masterSecret: MASTER_SECRET, tenantId, ...assignment };
    const script = `${before}; exec "$@"`;
    const output = await new Promise<string>((resolve) => {
      const words = ['-c', script, 'sh', process.execPath, CHILD, JSON.stringify(asked)];
      execFile('/bin/sh', words, { maxBuffer: 2 ** 24 }, (_error, stdout) => resolve(stdout));
    });
    const lines = output.split('\n').filter((line) => line !== '');
    const ids = (word: string) => lines.flatMap((line) => (line.startsWith(`${word} `) ? [line.slice(word.length + 1)] : []));
    return { lines, done: ids('done'), unavailable: ids('StoreUnavailableError') };
  }
  const stored = () => rawSql(database.url, async (run) => (await run('select id from sessions')).map(({ id }) => String(id)));

  it('is killed right after an answer, are stored', async () => {
    const { done, lines } = await said({ rounds: 5, killsItself: true });
    expect(lines).to.have.lengthOf.above(160);
    expect(await stored()).to.include.members(done);
  });

  it('cannot write any more, are stored if they were done, and absent if they failed', async () => {
    const size = statSync(database.url.slice('sqlite:'.length)).size;
    // In blocks of 512 bytes: the log finds no room beyond, in the middle of a commit.
    const room = `ulimit -f ${Math.ceil(size / 512) + 500}; trap '' XFSZ`;
    const { done, unavailable, lines } = await said({ rounds: 200, killsItself: false }, room);
    expect(lines).to.have.length(8_000);
    expect(done).to.have.lengthOf.above(0);
    expect(unavailable).to.have.lengthOf.above(0);
    expect(done.length + unavailable.length).to.equal(8_000);
    expect((await stored()).toSorted()).to.deep.equal(done.toSorted());
  });
});
