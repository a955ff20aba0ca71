import { expect } from 'chai';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { issueBatch, revocable } from '../support/revocable-cards.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

/** As a server answers whose disk has no room for another entry. */
const FILL = [
  `create function refuse_entry() returns trigger language plpgsql as
     'begin raise exception ''could not extend file'' using errcode = ''53100''; end'`,
  'create trigger full_disk before insert on audit_entries for each row execute function refuse_entry()',
];
const EMPTY = ['drop trigger full_disk on audit_entries', 'drop function refuse_entry()'];

describe('a revocation for whose audit entry the disk of PostgreSQL has no room', () => {
  let database: TestDatabase | undefined;
  let service: TestService;
  let tenant: { readonly id: string; readonly token: string };

  before(async function () {
    database = await databases()
      .find(({ name }) => name === 'postgres')
      ?.open();
    if (database === undefined) return this.skip();
    service = await startTestService({ DATABASE_URL: database.url });
    tenant = await revocable(service, 'acme', 1);
  });
  after(async () => {
    await service?.close();
    await database?.drop();
  });

  const run = (statements: readonly string[]) =>
    rawSql(database?.url ?? '', async (sql) => {
      for (const statement of statements) await sql(statement);
    });
  const revoke = async (sessionId: string) => {
    const json = { sessionId, status: 1 };
    return (await service.call('POST', '/session/revoke', { token: tenant.token, json })).status;
  };

  it('may be tried again, alone and among others, and is done when there is room', async () => {
    const sessions: string[] = [];
    while (sessions.length < 6) sessions.push((await issueBatch(service, tenant, 1)).session);
    await run(FILL);
    try {
      expect(await revoke(sessions[0] ?? '')).to.equal(503);
      expect(new Set(await Promise.all(sessions.map(revoke)))).to.deep.equal(new Set([503]));
    } finally {
      await run(EMPTY);
    }
    expect(new Set(await Promise.all(sessions.map(revoke)))).to.deep.equal(new Set([201]));
    const { body } = await service.call('GET', '/audit-log?kind=session', { token: tenant.token });
    expect(body.map(({ target }: { target: string }) => target).toSorted()).to.deep.equal(
      sessions.toSorted(),
    );
  });
});
