import { expect } from 'chai';
import { openDatabase } from '../../adapters/persistence/opening/database.ts';
import { postgresSql } from '../../adapters/persistence/postgres/sql.ts';
import { namedStatement, type Parameter } from '../../adapters/persistence/statement.ts';
import { databases, type TestDatabase } from '../support/databases.ts';

const postgres = databases().find(({ name }) => name === 'postgres');

const ECHO = namedStatement(
  'echo',
  `select $1::text as text, $2::int as int, $3::bigint as bigint, $4::boolean as boolean, $5::text[] as texts,
     $6::int[] as ints, $7::jsonb as json, $8::double precision as float`,
);
const CALLS: Readonly<Record<string, readonly Parameter[]>> = {
  nulls: ['', null, null, null, null, null, null, null],
  'plain values': ['a', 1, 2 ** 52, true, ['a', 'b'], [1, -2], '{"a":[1]}', 0.5],
  'quoted characters': [`'"\\{},\n`, -1, -1, false, [`"`, '\\', '{}', ',', '', 'null', 'NULL'], [], '"\\""', -1e-9],
  'multibyte characters': ['ä€𝄞', 0, 0, true, ['𝄞', 'ß'], [0], '"𝄞"', 1e300],
  'a text longer than the preallocated buffer': ['€'.repeat(300_000), 0, 0, true, [], [], '{}', 0],
};

describe('wallet statement on PostgreSQL', () => {
  let database: TestDatabase | undefined;
  before(async function () {
    database = await postgres?.open();
    if (database === undefined) this.skip();
  });
  after(() => database?.drop());

  /** Uses one connection, so that the driver makes the first call and the next calls find the statement prepared. */
  async function withOneConnection<T>(work: (sql: ReturnType<typeof postgresSql>) => Promise<T>): Promise<T> {
    const connection = await openDatabase({ url: database?.url ?? '', poolSize: 2 });
    try {
      return await work(postgresSql(connection.native));
    } finally {
      await connection.close();
    }
  }

  for (const [description, values] of Object.entries(CALLS)) {
    it(`returns the same result when it is prepared and afterwards (${description})`, async () => {
      const [first, second, third] = await withOneConnection(async (sql) => [
        await sql.query(ECHO, values),
        await sql.query(ECHO, values),
        await sql.query(ECHO, values),
      ]);
      expect(second).to.deep.equal(first);
      expect(third).to.deep.equal(first);
      expect(first?.[0]?.['text']).to.equal(values[0]);
      expect(first?.[0]?.['texts']).to.deep.equal(values[4]);
    });
  }

  it('returns many rows, and an empty result', async () => {
    const count = namedStatement('count', 'select n, n * 2 as twice from generate_series(1, $1::int) n');
    await withOneConnection(async (sql) => {
      for (const rows of [3, 1_000, 0, 3]) {
        const answer = await sql.query(count, [rows]);
        expect(answer).to.have.length(rows);
        expect(answer.at(-1)).to.deep.equal(rows === 0 ? undefined : { n: rows, twice: 2 * rows });
      }
    });
  });

  it('reports the error of a failed statement, and the next statement gets another connection', async () => {
    const divide = namedStatement('divide', 'select 1 / $1::int as result, pg_backend_pid() as process');
    await withOneConnection(async (sql) => {
      const [before] = await sql.query(divide, [1]);
      for (const divisor of [1, 0, 1]) {
        const outcome = await sql.query(divide, [divisor]).then(
          ([row]) => row,
          (error: unknown) => (error as { code?: string }).code,
        );
        if (divisor === 0) expect(outcome).to.equal('22012');
        else expect(outcome).to.have.property('result', 1);
      }
      const [row] = await sql.query(divide, [1]);
      expect(row?.['process']).to.be.a('number').and.not.equal(before?.['process']);
    });
  });

  it('assigns multi-byte texts of any length to the correct parameters', async () => {
    const pair = namedStatement('pair', 'select $1::text as one, $2::text as other');
    await withOneConnection(async (sql) => {
      await sql.query(pair, ['', '']);
      for (let length = 0; length < 600; length += 37) {
        const [one, other] = ['ü'.repeat(length), 'x'.repeat(600 - length)];
        expect(await sql.query(pair, [one, other])).to.deep.equal([{ one, other }]);
      }
    });
  });
});
