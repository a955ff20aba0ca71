import { expect } from 'chai';
import sinon from 'sinon';
import { BatchSize } from '../../../adapters/persistence/maintenance/batch-size.ts';
import { sqliteExpiry } from '../../../adapters/persistence/maintenance/expiry.ts';
import { WriteCheck } from '../../../adapters/persistence/opening/write-check.ts';
import { authorizationFields, readAuthorization } from '../../../adapters/persistence/rows/authorization-codec.ts';
import { decodeDocument, encodeDocument } from '../../../adapters/persistence/rows/document-codec.ts';
import type { SqliteSql } from '../../../adapters/persistence/sqlite/sql.ts';
import type { Statement } from '../../../adapters/persistence/statement.ts';
import type { Cipher } from '../../../application/ports/cipher.ts';
import { StoreUnavailableError, StoreUnwritableError } from '../../../application/ports/store.ts';
import type { Authorization } from '../../../domain/oauth/authorization.ts';
import { startInteraction } from '../../../domain/oauth/interaction.ts';

describe('BatchSize', () => {
  it('decreases while rows are slow and increases while they are fast, within its limits', async () => {
    let time = 0;
    const size = new BatchSize(100, () => time);
    const run = (millisecondsPerRow: number, limit = 10_000) =>
      size.run(limit, async (rows) => {
        size.timed(() => {
          time += rows * millisecondsPerRow;
        });
        time += 1_000;
        return rows;
      });
    expect(await run(1)).to.equal(100);
    expect(await run(1), '8 ms').to.equal(10);
    for (let batch = 0; batch < 30; batch++) await run(0.01);
    expect(await run(0.01)).to.equal(800);
    expect(await run(0.01, 50), 'of the caller').to.equal(50);
    expect(await run(0.01), 'a small batch does not change the size').to.equal(800);
  });

  it('counts a commit of 12 ms for no longer than the 4 ms of the statements before it', async () => {
    let time = 0;
    const size = new BatchSize(100, () => time);
    const run = (statementMs: number, commitMs: number) =>
      size.run(10_000, async (rows) => {
        size.transaction(() => {
          size.timed(() => {
            time += statementMs;
          });
          time += commitMs;
        });
        return rows;
      });
    expect(await run(4, 12)).to.equal(100);
    expect(await run(8, 8), 'the disk was waited for').to.equal(100);
    expect(await run(8, 1), 'twice the time').to.equal(50);
  });

  it('does not grow after a batch that touched fewer rows than it could have', async () => {
    let time = 0;
    const size = new BatchSize(100, () => time);
    const run = (rowsTouched: number, milliseconds: number) =>
      size.run(10_000, async (rows) => {
        size.timed(() => {
          time += milliseconds;
        });
        size.touched(rowsTouched);
        return rows;
      });
    expect(await run(0, 0)).to.equal(100);
    expect(await run(40, 16), 'no row was changed').to.equal(100);
    expect(await run(20, 1), '40 rows took twice as long as they may').to.equal(20);
  });
});

const roundTrip = (document: unknown) => decodeDocument(encodeDocument(document));

describe('stored documents', () => {
  it('are returned with their times', () => {
    const date = new Date('2026-01-02T03:04:05.678Z');
    expect(roundTrip({ at: date, list: [date, { at: date }], text: 'x' })).to.deep.equal({
      at: date,
      list: [date, { at: date }],
      text: 'x',
    });
    expect(roundTrip(date)).to.deep.equal(date);
    expect(() => encodeDocument({ at: new Date(Number.NaN) })).to.throw('at');
  });

  for (const claims of [
    { '\u0001date': 1_700_000_000_000 },
    { '\u0001date': null },
    { '\u0001date': 5, other: new Date(7) },
    { '\u0001\u0001date': 5, '\u0001date': 6, date: 7 },
    { '\u0001': 1, nested: [{ '\u0001x': { '\u0001date': 1 } }] },
    { text: '\u0001date', '\\u0001date': 1 },
  ]) {
    it(`are returned unchanged with claims that resemble internal markers: ${JSON.stringify(claims)}`, () => {
      expect(roundTrip({ claims, at: new Date(1) })).to.deep.equal({ claims, at: new Date(1) });
    });
  }

  it('of interactive authorizations have the property names of earlier releases', () => {
    const cipher = { seal: (text: string) => text, open: (text: string) => Buffer.from(text) } as unknown as Cipher;
    const pending = { kind: 'web', since: new Date(1), until: new Date(2), pageHandle: 'id.secret', hasReturned: true } as const;
    const interaction = { ...startInteraction({ draft: 'ia', provesKey: false, actions: [] }), pending };
    const authorization = { id: 'a', version: 1, expiresAt: new Date(3), interaction } as Authorization;
    const [id, version, document, expiresAt] = authorizationFields(cipher, 'acme', authorization);
    expect(JSON.parse(document as string).interaction)
      .to.include({ wire: 'ia' })
      .and.not.to.have.property('draft');
    expect(JSON.parse(document as string).interaction.pending)
      .to.include({ isReturned: true })
      .and.not.to.have.property('hasReturned');
    const row = { tenant_id: 'acme', id, version, document, expires_at: expiresAt };
    expect(readAuthorization(cipher, row)).to.deep.equal(authorization);
  });

  it('of earlier releases can be read', () => {
    const olderEncoding = '{"at":{"\\u0001date":1000},"ended":{"\\u0001date":null},"claims":{"\\u0001x":1}}';
    expect(decodeDocument(olderEncoding)).to.deep.equal({ at: new Date(1000), ended: new Date(0), claims: { '\u0001x': 1 } });
  });
});

const resultOf = (check: WriteCheck) =>
  check.assertWritable().then(
    () => 'writable',
    (error: Error) => error.message,
  );

describe('check for a writable database', () => {
  let clock: sinon.SinonFakeTimers;
  beforeEach(() => {
    clock = sinon.useFakeTimers({ toFake: ['performance'] });
  });
  afterEach(() => clock.restore());

  it('executes one write per second, for any number of callers', async () => {
    const write = sinon.stub().resolves();
    const check = new WriteCheck(write);
    await Promise.all(Array.from({ length: 50 }, () => check.assertWritable()));
    clock.tick(900);
    await check.assertWritable();
    expect(write.callCount).to.equal(1);
    clock.tick(200);
    await check.assertWritable();
    expect(write.callCount).to.equal(2);
  });

  it('executes no second write while the first one hangs', async () => {
    const { promise, reject } = Promise.withResolvers<void>();
    const write = sinon.stub().returns(promise);
    const check = new WriteCheck(write);
    const first = resultOf(check);
    clock.tick(60_000);
    const second = resultOf(check);
    expect(write.callCount).to.equal(1);
    reject(new StoreUnavailableError('the database takes too long'));
    expect(await Promise.all([first, second])).to.deep.equal(Array(2).fill('the database takes too long'));
  });

  it('is negative for five seconds after a rejected write of another caller, even if a small write succeeds', async () => {
    const check = new WriteCheck(sinon.stub().resolves());
    check.noteFailure(new StoreUnwritableError('the database cannot be written'));
    clock.tick(4_900);
    expect(await resultOf(check)).to.equal('the database cannot be written');
    clock.tick(200);
    expect(await resultOf(check)).to.equal('writable');
  });

  it('ignores writes that failed for another reason', async () => {
    const check = new WriteCheck(sinon.stub().resolves());
    check.noteFailure(new StoreUnavailableError('the database takes too long'));
    check.noteFailure(new Error('unforeseen'));
    expect(await resultOf(check)).to.equal('writable');
  });
});

describe('session expiry on SQLite', () => {
  afterEach(() => sinon.restore());

  it('reports the sessions that expired before a step that failed, and continues from the start of the visit', async () => {
    const time = sinon.useFakeTimers({ toFake: ['performance'] });
    const sessions = Array.from({ length: 300 }, (_, index) => ({
      tenant_id: 'acme',
      id: `s${index}`,
      status: 'active',
      expires_at: 1,
      claimed_at: null,
      place: index,
      is_open: 1,
    }));
    let remaining = sessions;
    let steps = 0;
    const run = {
      all: ({ name }: Statement, ...parameters: readonly unknown[]) => {
        if (name === 'visit_expiring_sessions') return remaining.slice(0, Number(parameters[3]));
        const keys = JSON.parse(String(parameters[1])) as [string, string][];
        // After a slow step, the next step has fewer sessions.
        time.tick(keys.length);
        remaining = remaining.filter(({ id }) => !keys.some(([, dueId]) => dueId === id));
        return keys.map(([tenant_id, id]) => ({ tenant_id, id, version: 2 }));
      },
      change: () => 1,
      time: () => 1,
    };
    const sql = {
      single: async (work: (client: typeof run) => unknown) => work(run),
      transaction: async (work: (client: typeof run) => unknown, measure: (step: () => unknown) => unknown) => {
        if (++steps === 4) throw new Error('database or disk is full');
        return measure(() => work(run));
      },
    };
    const { expireSessions } = sqliteExpiry(sql as unknown as SqliteSql);
    const first = await expireSessions(new Date(10), 100);
    expect(first.expired).to.have.length(100);
    const second = await expireSessions(new Date(10), 100);
    expect(second.expired).to.have.length(200 - remaining.length);
    expect(second.expired.length).to.be.within(1, 99);
    expect(second.next).to.not.equal(undefined);
  });
});
