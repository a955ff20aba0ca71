import { expect } from 'chai';
import { openDatabase } from '../../adapters/persistence/opening/database.ts';
import { postgresSql } from '../../adapters/persistence/postgres/sql.ts';
import { namedStatement } from '../../adapters/persistence/statement.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';

const postgres = databases().find(({ name }) => name === 'postgres');
const CONNECTIONS = 5;
const FIND = namedStatement('find_note', 'select n.* from notes n where n.id = $1');
const COUNT = namedStatement('count_notes', 'select count(*)::int as count from notes');
const INSERT = namedStatement('insert_note', 'insert into notes (id) values ($1) returning *');

/** A newer release adds columns while this process is running, so that PostgreSQL rejects the plans that the process has prepared. */
describe('prepared statements while a migration adds a column, on PostgreSQL', () => {
  let database: TestDatabase | undefined;
  let sql: ReturnType<typeof postgresSql>;
  let close: () => Promise<void>;
  let addedColumns = 0;

  before(async function () {
    database = await postgres?.open();
    if (database === undefined) return this.skip();
    const opened = await openDatabase({ url: database.url, poolSize: CONNECTIONS });
    sql = postgresSql(opened.native);
    close = () => opened.close();
    await rawSql(database.url, (run) => run('create table notes (id int primary key)'));
    await sql.query(INSERT, [1]);
  });
  after(async () => {
    await close?.();
    await database?.drop();
  });
  beforeEach(async () => {
    // Concurrent transactions, so that each connection of the pool prepares the statements.
    await Promise.all(
      Array.from({ length: CONNECTIONS }, (_, index) =>
        sql.transaction(async (connection) => {
          await connection.query(FIND, [1]);
          await connection.query(COUNT, []);
          await connection.query(INSERT, [1000 * (addedColumns + 1) + index]);
          await connection.query(namedStatement('wait', 'select pg_sleep(0.05)'), []);
        }),
      ),
    );
    await rawSql(database?.url ?? '', (run) => run(`alter table notes add column added_${++addedColumns} int default 7`));
  });

  const addedColumn = () => `added_${addedColumns}`;

  it('are repeated with the new column', async () => {
    const results = await Promise.all(Array.from({ length: 4 * CONNECTIONS }, () => sql.query(FIND, [1])));
    for (const [row] of results) expect(row).to.include({ id: 1, [addedColumn()]: 7 });
  });

  it('are repeated within a transaction, which applies its changes once', async () => {
    const id = 1000 * addedColumns + 500;
    await Promise.all(
      Array.from({ length: CONNECTIONS }, (_, index) =>
        sql.transaction(async (connection) => {
          await connection.query(INSERT, [id + index]);
          const [row] = await connection.query(FIND, [id + index]);
          expect(row).to.have.property(addedColumn(), 7);
        }),
      ),
    );
    expect(await sql.query(FIND, [id + CONNECTIONS - 1])).to.have.length(1);
  });

  it('are repeated within the section of a lock', async () => {
    const rows = await sql.exclusively('notes', async (connection) => {
      await connection.query(COUNT, []);
      return connection.query(FIND, [1]);
    });
    expect(rows[0]).to.have.property(addedColumn(), 7);
  });

  it('are repeated if several callers share a message', async () => {
    const id = 1000 * addedColumns + 700;
    const results = await Promise.all(Array.from({ length: 20 }, (_, index) => sql.queryTogether('tenant', INSERT, [id + index])));
    expect(results.map(([row]) => row?.['id'])).to.deep.equal(Array.from({ length: 20 }, (_, index) => id + index));
    for (const [row] of results) expect(row).to.have.property(addedColumn(), 7);
  });

  it('are repeated if their first call on the connection failed, so that only the driver knows them', async () => {
    const read = namedStatement('read_note_or_fail', 'select n.*, 1 / $2::int as quotient from notes n where n.id = $1');
    await sql.exclusively('notes', async (connection) => {
      const error = await connection.query(read, [1, 0]).catch((thrown: unknown) => thrown);
      expect(error).to.have.property('code', '22012');
      await rawSql(database?.url ?? '', (run) => run(`alter table notes add column added_${++addedColumns} int default 7`));
      const [row] = await connection.query(read, [1, 1]);
      expect(row).to.have.property(addedColumn(), 7);
    });
  });

  it('still report other errors', async () => {
    const error = await sql.query(INSERT, [1]).catch((thrown: unknown) => thrown);
    expect(error).to.have.property('code', '23505');
  });
});
