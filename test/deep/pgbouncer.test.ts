import { expect } from 'chai';
import { databases, type TestDatabase } from '../support/databases.ts';
import { hasPgBouncer, PgBouncer } from '../support/pgbouncer.ts';
import { issueBatch, revocable } from '../support/revocable-cards.ts';
import { startTestService } from '../support/test-service.ts';

const postgres = databases().find(({ name }) => name === 'postgres');

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
      const tenant = await revocable(service, 'acme', 10);
      const { session } = await issueBatch(service, tenant);
      const json = { sessionId: session, status: 1 };
      const revoked = await service.call('POST', '/session/revoke', { token: tenant.token, json });
      expect(revoked.status, revoked.text).to.equal(201);
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
      const started = await startTestService({ DATABASE_URL: pooler.url, DATABASE_TIMEOUT: '3' }).catch(
        (error: Error) => error,
      );
      expect(started).to.be.instanceOf(Error);
      expect((started as Error).message)
        .to.include('DATABASE_URL')
        .and.include('connection pooler in transaction or statement mode')
        .and.include('pool_mode=session');
    });
});
