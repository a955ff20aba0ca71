import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect } from 'chai';
import { Store } from '../../application/ports/store.ts';
import { httpDatabases, rawSql, type TestDatabase } from '../support/databases.ts';
import { type PopulatedTenant, populate } from '../support/populated.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

const DEFAULTS = { ttlSeconds: 86_400 };
/** How every personal value stands in the database, see `retention.test.ts`. */
const SEALED = /^v1\.[^.]+\./;

/** Who was not found, as a backend tells the operator. */
const NOT_FOUND = 'Wilhelmina Unmistakable';

type Row = Readonly<Record<string, unknown>>;

for (const kind of httpDatabases()) {
  describe(`The remaining data of a session in the tables on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let service: TestService;
    const worlds = new Map<string, PopulatedTenant>();
    let untilThen: string;

    after(async () => {
      await service?.close();
      await database?.drop();
    });

    const tables =
      kind.name === 'sqlite'
        ? `select name from sqlite_master where type = 'table'`
        : `select table_name as name from information_schema.tables where table_schema = 'public'`;
    const allRows = (isWanted: (table: string) => boolean): Promise<Row[]> =>
      rawSql(database?.url ?? '', async (run) => {
        const all: Row[] = [];
        for (const { name } of await run(tables)) {
          if (isWanted(String(name))) all.push(...(await run(`select * from "${name}"`)));
        }
        return all;
      });
    /** Rows of all tables that name the session by either of its ids. */
    const rowsOf = async (sessionId: string): Promise<Row[]> => {
      // What administrators did stays: the audit log says when a session was revoked or removed, and no more.
      const all = await allRows((table) => !table.startsWith('audit_'));
      const session = all.find((row) => row['id'] === sessionId);
      const ids = [sessionId, session?.['public_id']].filter((id) => typeof id === 'string');
      return all.filter((row) => Object.values(row).some((value) => ids.includes(String(value))));
    };
    /** Rows of all tables, and the files of SQLite with what was written over or removed. */
    const everything = async (): Promise<string> => {
      const rows = JSON.stringify(await allRows(() => true));
      if (kind.name !== 'sqlite') return rows;
      const file = (database?.url ?? '').slice('sqlite:'.length);
      const files = readdirSync(dirname(file)).filter((name) => name.startsWith(basename(file)));
      return [rows, ...files.map((name) => readFileSync(join(dirname(file), name), 'latin1'))].join('\n');
    };
    const sealedIn = (rows: readonly Row[]) => rows.flatMap((row) => Object.entries(row).filter(([, value]) => SEALED.test(String(value))));

    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      service = await startTestService({ DATABASE_URL: database.url });
      for (const mode of ['anonymize', 'full']) {
        const world = await populate(service, mode);
        worlds.set(mode, world);
        const json = { ttlSeconds: 60, cleanupMode: mode };
        const put = await service.call('PUT', '/session-config', { token: world.token, json });
        expect(put.status, put.text).to.equal(200);
        const { issuance, verification, deferred } = world.ids;
        const failed = await service.call('POST', `/issuer/deferred/${deferred}/fail`, {
          token: world.token,
          json: { errorMessage: `no record of ${NOT_FOUND}` },
        });
        expect(failed.status, failed.text).to.equal(200);
        expect((await rowsOf(issuance)).filter((row) => row['error_message'])).to.have.length(1);
        for (const id of [issuance, verification]) expect(sealedIn(await rowsOf(id))).to.not.deep.equal([]);
      }
      untilThen = await everything();
      const { maintenance } = service.service.container.get(Store);
      // The last refresh token and its access token are over, too.
      const later = new Date(Date.now() + 31 * 86_400_000);
      await maintenance.expireDeferred(later, 1_000);
      await maintenance.cleanUpSessions(later, 1_000, DEFAULTS);
    });
    for (const [mode, names] of [
      ['anonymize', 'which the session was, and nothing about anybody'],
      ['full', 'nothing'],
    ] as const) {
      it(`after ${mode}: ${names}`, async () => {
        const { ids } = worlds.get(mode) as PopulatedTenant;
        for (const id of [ids.issuance, ids.verification]) {
          const rows = await rowsOf(id);
          expect(sealedIn(rows)).to.deep.equal([]);
          expect(rows.some((row) => row['id'] === id)).to.equal(mode === 'anonymize');
        }
      });
    }

    it('contains no exact time, and of the credentials only the index range and its day', async () => {
      for (const [mode, { ids }] of worlds) {
        for (const id of [ids.issuance, ids.verification]) {
          const rows = await rowsOf(id);
          for (const row of rows)
            for (const [column, value] of Object.entries(row))
              if (Number(value) > 1_000_000_000_000) expect(Number(value) % 86_400_000, `${mode} ${column}`).to.equal(0);
        }
        const [batch] = (await rowsOf(ids.issuance)).filter((row) => row['first_counter'] !== undefined);
        const { session_id, id: name, ...issued } = batch as Row;
        expect([session_id, name !== undefined], mode).to.deep.equal([ids.issuance, true]);
        expect(Object.keys(issued).sort(), mode).to.deep.equal([
          'count',
          'credential_configuration_id',
          'first_counter',
          'issued_at',
          'status_list_id',
          'tenant_id',
        ]);
        const json = { sessionId: ids.issuance, status: 1 };
        const { token } = worlds.get(mode) as PopulatedTenant;
        const revoked = await service.call('POST', '/session/revoke', { token, json });
        expect([revoked.status, revoked.body.changed], revoked.text).to.deep.equal([201, 1]);
      }
    });

    it('contains no reason for a backend that had no credential for a user', async () => {
      for (const left of [untilThen, await everything()]) {
        expect(left.includes((worlds.get('anonymize') as PopulatedTenant).ids.issuance)).to.equal(true);
        expect(left.includes(NOT_FOUND)).to.equal(false);
      }
    });
  });
}
