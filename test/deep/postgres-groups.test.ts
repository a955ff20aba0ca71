import { expect } from 'chai';
import { openDatabase } from '../../adapters/persistence/opening/database.ts';
import { type PostgresSql, postgresSql } from '../../adapters/persistence/postgres/sql.ts';
import { namedStatement } from '../../adapters/persistence/statement.ts';
import { StoreUnavailableError } from '../../application/ports/store.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';

const postgres = databases().find(({ name }) => name === 'postgres');

/** Returns the transaction that wrote the row. */
const INSERT = namedStatement(
  'keep',
  'insert into kept (id, by) values ($1, pg_current_xact_id()::text) returning by, pg_backend_pid() as process',
);
const WAIT = namedStatement('wait', 'select pg_sleep($1::float8), pg_current_xact_id()::text as by');
const COUNT = namedStatement('count_kept', 'select count(*)::int as count from kept where id = any($1)');
const LOCK = namedStatement('lock_row', 'update rows set n = n + 1 where id = $1 returning n');
const FAIL = namedStatement('refuse', 'select refuse($1)');

const indices = (count: number) => Array.from({ length: count }, (_, index) => index);
const stamp = () => performance.now();

describe('concurrent changes on PostgreSQL', () => {
  let database: TestDatabase | undefined;
  let sql: PostgresSql;
  let close = () => Promise.resolve();

  before(async function () {
    database = await postgres?.open();
    if (database === undefined) this.skip();
    await rawSql(database.url, async (run) => {
      await run('create table kept (id text primary key, by text not null)');
      await run('create table rows (id text primary key, n int not null)');
      await run("insert into rows values ('one', 0), ('other', 0)");
      await run(`create function refuse(told text) returns void language plpgsql as
        $$ begin raise exception '%', told using errcode = 'VC001'; end $$`);
    });
    const connection = await openDatabase({ url: database.url, poolSize: 8 });
    close = () => connection.close();
    sql = postgresSql(connection.native);
    // Each connection has prepared the statements, as soon after a start.
    await Promise.all(
      indices(8).map(async (index) => {
        await sql.query(WAIT, [0.1]);
        await sql.query(INSERT, [`first ${index}`]);
      }),
    );
    for (const _ of indices(40)) {
      await Promise.all(indices(8).map(() => sql.query(LOCK, ['none'])));
      await Promise.all(indices(8).map(() => sql.query(FAIL, ['']).catch(() => {})));
    }
  });
  after(async () => {
    await close();
    await database?.drop();
  });

  const insertRow = (group: string, id: string) => sql.queryTogether(group, INSERT, [id]);
  const count = async (ids: readonly string[]) => (await sql.query(COUNT, [ids]))[0]?.['count'];

  it('share transactions, and each has its own result', async () => {
    const ids = indices(40).map((index) => `together ${index}`);
    const answers = await Promise.all(ids.map((id) => insertRow('a', id)));
    const transactions = new Set(answers.map(([row]) => row?.['by']));
    expect(transactions.size, 'of forty').to.be.within(1, 6);
    expect(answers.every((rows) => rows.length === 1)).to.equal(true);
    expect(await count(ids)).to.equal(40);
  });

  it('of two groups never share one transaction', async () => {
    const answers = await Promise.all(
      indices(40).map(async (index) => {
        const group = index % 2 === 0 ? 'even' : 'odd';
        return [group, (await insertRow(group, `two groups ${index}`))[0]?.['by']] as const;
      }),
    );
    const transactionsOf = (groupName: string) =>
      new Set(answers.filter(([group]) => group === groupName).map(([, transaction]) => transaction));
    expect([...transactionsOf('even')].filter((transaction) => transactionsOf('odd').has(transaction))).to.deep.equal([]);
  });

  it('are answered once they are visible to all connections', async () => {
    const { url } = database as TestDatabase;
    await rawSql(url, async (run) => {
      for (const attempt of indices(10)) {
        const ids = indices(12).map((index) => `seen ${attempt} ${index}`);
        await Promise.all(
          ids.map(async (id) => {
            await insertRow('a', id);
            const rows = await run(`select 1 from kept where id = '${id}'`);
            expect(rows, id).to.have.length(1);
          }),
        );
      }
    });
  });

  it('succeed when one of them is rejected, which gets its own error', async () => {
    const ids = indices(15).map((index) => `beside a refusal ${index}`);
    const outcomes = await Promise.all([
      ...ids.slice(0, 7).map((id) => insertRow('a', id)),
      sql.queryTogether('a', FAIL, ['grant']).then(
        () => undefined,
        ({ code, message }: { code: string; message: string }) => ({ code, message }),
      ),
      ...ids.slice(7).map((id) => insertRow('a', id)),
    ]);
    expect(outcomes[7]).to.deep.equal({ code: 'VC001', message: 'grant' });
    expect(await count(ids), 'each once').to.equal(15);
  });

  it('use a single-use value once, with any other calls in the group', async () => {
    const racers = indices(48).map((index) => insertRow('a', index % 6 === 0 ? 'the single thing' : `racer ${index}`));
    const outcomes = await Promise.allSettled(racers);
    const singleOutcomes = outcomes.filter((_, index) => index % 6 === 0);
    expect(singleOutcomes.filter(({ status }) => status === 'fulfilled')).to.have.length(1);
    for (const outcome of singleOutcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason).to.have.property('code', '23505');
    }
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).to.have.length(41);
  });

  it('do not wait long for earlier changes that a lock blocks', async () => {
    const { url } = database as TestDatabase;
    await rawSql(url, async (run) => {
      await run('begin');
      await run("update rows set n = n + 1 where id = 'one'");
      const lockingQuery = sql.queryTogether('a', LOCK, ['one']);
      await new Promise((resolve) => setTimeout(resolve, 5));
      const startedAt = stamp();
      await Promise.all(indices(5).map((index) => insertRow('a', `past the lock ${index}`)));
      expect(stamp() - startedAt).to.be.below(1_000);
      await Promise.all(indices(3).map((index) => insertRow('b', `another group ${index}`)));
      await run('commit');
      expect((await lockingQuery)[0]).to.have.property('n');
    });
  });

  it('are retried when two groups block each other', async () => {
    const commitBoth = async (group: string, ids: readonly string[]) => {
      const answers = await Promise.all([
        insertRow(group, `${group} first`),
        ...ids.map((id) => sql.queryTogether(group, LOCK, [id])),
        sql.queryTogether(group, WAIT, [0.02]),
      ]);
      return answers.length;
    };
    for (const attempt of indices(3)) {
      const firstGroup = commitBoth(`there ${attempt}`, ['one', 'other']);
      const secondGroup = commitBoth(`back ${attempt}`, ['other', 'one']);
      expect(await Promise.all([firstGroup, secondGroup])).to.deep.equal([4, 4]);
    }
  });

  it('are answered when each is fast enough, regardless of their total duration', async () => {
    const { url } = database as TestDatabase;
    // A connection that is silent for one second longer than the statement timeout is closed.
    const quickConnection = await openDatabase({ url, poolSize: 2, timeoutSeconds: 2 });
    try {
      const slowSql = postgresSql(quickConnection.native);
      // Both connections have prepared it.
      for (const _ of indices(4)) await Promise.all(indices(2).map(() => slowSql.query(WAIT, [0.05])));
      const answers = await Promise.all(indices(14).map(() => slowSql.queryTogether('slow', WAIT, [0.4])));
      expect(answers.map((rows) => rows.length)).to.deep.equal(indices(14).map(() => 1));
    } finally {
      await quickConnection.close();
    }
  });

  it('that are not prepared report the completed calls when their connection is lost', async () => {
    const end = namedStatement('end_own', 'select pg_terminate_backend(pg_backend_pid()), $1::text as id');
    const insertUnprepared = namedStatement('keep_anew', INSERT.text);
    const outcomes = await sql.together([
      { statement: insertUnprepared, values: ['before the loss'] },
      { statement: end, values: ['x'] },
      { statement: insertUnprepared, values: ['behind the loss'] },
    ]);
    expect(outcomes.map((outcome) => Object.keys(outcome))).to.deep.equal([['rows'], ['error'], ['error']]);
    expect(await count(['before the loss', 'behind the loss'])).to.equal(1);
  });

  it('all fail with an unknown result when their connection is lost', async () => {
    const { url } = database as TestDatabase;
    const waitingQueries = [sql.queryTogether('lost', WAIT, [5]), ...indices(3).map((index) => insertRow('lost', `lost ${index}`))].map(
      (call) =>
        call.then(
          () => 'answered',
          (error: unknown) => error,
        ),
    );
    await new Promise((resolve) => setTimeout(resolve, 100));
    await rawSql(url, (run) =>
      run(`select pg_terminate_backend(pid) from pg_stat_activity
        where query like '%pg_sleep%' and state = 'active' and pid <> pg_backend_pid()`),
    );
    const outcomes = await Promise.all(waitingQueries);
    for (const outcome of outcomes) expect(outcome).to.be.instanceOf(StoreUnavailableError);
    expect(await count(indices(3).map((index) => `lost ${index}`))).to.equal(0);
    expect((await insertRow('lost', 'after the loss'))[0]).to.have.property('by');
  });
});
