import { expect } from 'chai';
import { openDatabase } from '../../adapters/persistence/opening/database.ts';
import { type PostgresSql, postgresSql } from '../../adapters/persistence/postgres/sql.ts';
import { namedStatement } from '../../adapters/persistence/statement.ts';
import { StoreUnavailableError } from '../../application/ports/store.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';

const postgres = databases().find(({ name }) => name === 'postgres');

/** Tells by which transaction the row was written. */
const KEEP = namedStatement(
  'keep',
  'insert into kept (id, by) values ($1, pg_current_xact_id()::text) returning by, pg_backend_pid() as process',
);
const WAIT = namedStatement('wait', 'select pg_sleep($1::float8), pg_current_xact_id()::text as by');
const COUNT = namedStatement('count_kept', 'select count(*)::int as count from kept where id = any($1)');
const LOCK = namedStatement('lock_row', 'update rows set n = n + 1 where id = $1 returning n');
const REFUSE = namedStatement('refuse', 'select refuse($1)');

const times = (count: number) => Array.from({ length: count }, (_, index) => index);
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
    const opened = await openDatabase({ url: database.url, poolSize: 8 });
    close = () => opened.close();
    sql = postgresSql(opened.native);
    // Each connection has prepared the statements, as it has soon after a start.
    await Promise.all(
      times(8).map(async (place) => {
        await sql.query(WAIT, [0.1]);
        await sql.query(KEEP, [`first ${place}`]);
      }),
    );
    for (const _ of times(40)) {
      await Promise.all(times(8).map(() => sql.query(LOCK, ['none'])));
      await Promise.all(times(8).map(() => sql.query(REFUSE, ['']).catch(() => {})));
    }
  });
  after(async () => {
    await close();
    await database?.drop();
  });

  const keep = (group: string, id: string) => sql.queryTogether(group, KEEP, [id]);
  const count = async (ids: readonly string[]) => (await sql.query(COUNT, [ids]))[0]?.['count'];

  it('share transactions, and each has its own result', async () => {
    const ids = times(40).map((place) => `together ${place}`);
    const answers = await Promise.all(ids.map((id) => keep('a', id)));
    const transactions = new Set(answers.map(([row]) => row?.['by']));
    expect(transactions.size, 'of forty').to.be.within(1, 6);
    expect(answers.every((rows) => rows.length === 1)).to.equal(true);
    expect(await count(ids)).to.equal(40);
  });

  it('of two groups never share one transaction', async () => {
    const answers = await Promise.all(
      times(40).map(async (place) => {
        const group = place % 2 === 0 ? 'even' : 'odd';
        return [group, (await keep(group, `two groups ${place}`))[0]?.['by']] as const;
      }),
    );
    const of = (wanted: string) => new Set(answers.filter(([group]) => group === wanted).map(([, transaction]) => transaction));
    expect([...of('even')].filter((transaction) => of('odd').has(transaction))).to.deep.equal([]);
  });

  it('are answered once they are visible to all connections', async () => {
    const { url } = database as TestDatabase;
    await rawSql(url, async (run) => {
      for (const round of times(10)) {
        const ids = times(12).map((place) => `seen ${round} ${place}`);
        await Promise.all(
          ids.map(async (id) => {
            await keep('a', id);
            const rows = await run(`select 1 from kept where id = '${id}'`);
            expect(rows, id).to.have.length(1);
          }),
        );
      }
    });
  });

  it('succeed when one of them is rejected, which gets its own error', async () => {
    const ids = times(15).map((place) => `beside a refusal ${place}`);
    const outcomes = await Promise.all([
      ...ids.slice(0, 7).map((id) => keep('a', id)),
      sql.queryTogether('a', REFUSE, ['grant']).then(
        () => undefined,
        ({ code, message }: { code: string; message: string }) => ({ code, message }),
      ),
      ...ids.slice(7).map((id) => keep('a', id)),
    ]);
    expect(outcomes[7]).to.deep.equal({ code: 'VC001', message: 'grant' });
    expect(await count(ids), 'each once').to.equal(15);
  });

  it('use a single-use value once, with any other calls in the group', async () => {
    const racers = times(48).map((place) => keep('a', place % 6 === 0 ? 'the single thing' : `racer ${place}`));
    const outcomes = await Promise.allSettled(racers);
    const ofSingle = outcomes.filter((_, place) => place % 6 === 0);
    expect(ofSingle.filter(({ status }) => status === 'fulfilled')).to.have.length(1);
    for (const outcome of ofSingle) {
      if (outcome.status === 'rejected') expect(outcome.reason).to.have.property('code', '23505');
    }
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).to.have.length(41);
  });

  it('do not wait long for earlier changes that a lock blocks', async () => {
    const { url } = database as TestDatabase;
    await rawSql(url, async (run) => {
      await run('begin');
      await run("update rows set n = n + 1 where id = 'one'");
      const held = sql.queryTogether('a', LOCK, ['one']);
      await new Promise((resolve) => setTimeout(resolve, 5));
      const began = stamp();
      await Promise.all(times(5).map((place) => keep('a', `past the lock ${place}`)));
      expect(stamp() - began).to.be.below(1_000);
      await Promise.all(times(3).map((place) => keep('b', `another group ${place}`)));
      await run('commit');
      expect((await held)[0]).to.have.property('n');
    });
  });

  it('are retried when two groups block each other', async () => {
    const both = async (group: string, ids: readonly string[]) => {
      const answers = await Promise.all([
        keep(group, `${group} first`),
        ...ids.map((id) => sql.queryTogether(group, LOCK, [id])),
        sql.queryTogether(group, WAIT, [0.02]),
      ]);
      return answers.length;
    };
    for (const round of times(3)) {
      const there = both(`there ${round}`, ['one', 'other']);
      const back = both(`back ${round}`, ['other', 'one']);
      expect(await Promise.all([there, back])).to.deep.equal([4, 4]);
    }
  });

  it('are answered when each is fast enough, regardless of their total duration', async () => {
    const { url } = database as TestDatabase;
    // A connection that says nothing for a second longer than a statement may take is ended.
    const quick = await openDatabase({ url, poolSize: 2, timeoutSeconds: 2 });
    try {
      const slow = postgresSql(quick.native);
      // Both connections have prepared it.
      for (const _ of times(4)) await Promise.all(times(2).map(() => slow.query(WAIT, [0.05])));
      const answers = await Promise.all(times(14).map(() => slow.queryTogether('slow', WAIT, [0.4])));
      expect(answers.map((rows) => rows.length)).to.deep.equal(times(14).map(() => 1));
    } finally {
      await quick.close();
    }
  });

  it('that are not prepared report the completed calls when their connection is lost', async () => {
    const end = namedStatement('end_own', 'select pg_terminate_backend(pg_backend_pid()), $1::text as id');
    const keepAnew = namedStatement('keep_anew', KEEP.text);
    const outcomes = await sql.together([
      { statement: keepAnew, values: ['before the loss'] },
      { statement: end, values: ['x'] },
      { statement: keepAnew, values: ['behind the loss'] },
    ]);
    expect(outcomes.map((outcome) => Object.keys(outcome))).to.deep.equal([['rows'], ['error'], ['error']]);
    expect(await count(['before the loss', 'behind the loss'])).to.equal(1);
  });

  it('all fail with an unknown result when their connection is lost', async () => {
    const { url } = database as TestDatabase;
    const waiting = [sql.queryTogether('lost', WAIT, [5]), ...times(3).map((place) => keep('lost', `lost ${place}`))].map((call) =>
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
    const outcomes = await Promise.all(waiting);
    for (const outcome of outcomes) expect(outcome).to.be.instanceOf(StoreUnavailableError);
    expect(await count(times(3).map((place) => `lost ${place}`))).to.equal(0);
    expect((await keep('lost', 'after the loss'))[0]).to.have.property('by');
  });
});
