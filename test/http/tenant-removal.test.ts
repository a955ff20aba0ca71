import { expect } from 'chai';
import { AUDIT_LOG } from '../../adapters/persistence/audit-keys.ts';
import { VerifyAuditLog } from '../../application/audit/verify-audit-log.ts';
import { Cipher } from '../../application/ports/cipher.ts';
import { Store } from '../../application/ports/store.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { stepsOf } from '../contract/store/steps.ts';
import { httpDatabases, rawSql, type TestDatabase } from '../support/databases.ts';
import { type PopulatedTenant, populate } from '../support/populated.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const DOOMED = 'doomed-tenant';
const MASTER_SECRET = 'a master secret for removals 0123456789';
/** When statements that were under way as the tenant went are over. */
const LATER = () => new Date(Date.now() + 61_000);

for (const kind of httpDatabases()) {
  describe(`A removed tenant on ${kind.name}`, () => {
    let database: TestDatabase;
    let service: TestService;
    let world: PopulatedTenant;
    let root: string;
    /** Has the tenant as it is before each test. */
    let prepared: TestDatabase | undefined;

    before(async function () {
      prepared = await kind.open();
      if (prepared === undefined) return this.skip();
      database = prepared;
      await start();
      world = await populate(service, DOOMED);
      await service.close();
    });
    beforeEach(async function () {
      if (prepared === undefined) return this.skip();
      database = await kind.copy(prepared);
      await start();
    });
    after(() => prepared?.drop());
    afterEach(async () => {
      await service?.close();
      await database?.drop();
    });

    async function start() {
      service = await startTestService({ DATABASE_URL: database.url, MASTER_SECRET });
      root = await service.rootToken();
    }
    const maintenance = () => service.service.container.get(Store).maintenance;
    const remove = () => service.call('DELETE', `/tenant/${DOOMED}`, { token: root });

    /** Tables that name the tenant, but for the chain of the service, which tells what became of it. */
    const traces = () =>
      rawSql(database.url, async (run) => {
        const names =
          kind.name === 'sqlite'
            ? `select name from sqlite_master where type = 'table'`
            : 'select table_name as name from information_schema.tables where table_schema = current_schema()';
        const found: string[] = [];
        for (const { name } of await run(names)) {
          const rows = await run(`select * from "${name}"`);
          const own = rows.filter((row) => name !== 'audit_entries' || row['tenant_id'] === DOOMED);
          if (own.some((row) => JSON.stringify(row).includes(DOOMED))) found.push(String(name));
        }
        return found;
      });

    /** What served the tenant. */
    const expectGone = async () => {
      const { artefacts, ids, token } = world;
      for (const path of [
        `/.well-known/openid-credential-issuer/${DOOMED}`,
        `/${DOOMED}/status-lists`,
        `/${DOOMED}/trust-list/${ids.trustList}`,
        `/${DOOMED}/credential-offer/${artefacts.offerId}`,
        `/${DOOMED}/request/${artefacts.requestId}`,
      ]) {
        expect((await service.call('GET', path)).status, path).to.equal(404);
      }
      expect((await service.call('POST', `/${DOOMED}/nonce`)).status).to.equal(404);
      expect((await service.call('GET', '/session', { token })).status).to.equal(401);
      expect((await service.call('GET', `/tenant/${DOOMED}`, { token: root })).status).to.equal(404);
      const steps = stepsOf(service.service.container.get(Store), DOOMED as TenantId);
      expect(await steps.statusList(artefacts.listId)).to.equal(undefined);
      expect(await steps.statusListVersions([artefacts.listId])).to.deep.equal([]);
      const tenants = (await service.call('GET', '/tenant', { token: root })).body;
      expect(tenants.map(({ id }: { id: string }) => id)).to.not.include(DOOMED);
    };

    it('leaves nothing in any table after its tombstone was deleted', async () => {
      expect(await traces()).to.include.members(['tenants', 'sessions', 'key_chains', 'status_lists', 'audit_entries']);
      expect((await remove()).status).to.equal(200);
      await expectGone();
      expect(await traces()).to.deep.equal(['leases']);
      await maintenance().removeRemainingRows(LATER(), 100);
      expect(await traces()).to.deep.equal([]);
      expect(await maintenance().removeRemainingRows(LATER(), 100)).to.equal(0);
    });

    it('is unavailable at once and permanently, wherever the process is killed', async () => {
      // The process dies between the removal and what comes after it, and after each portion.
      const broken = maintenance();
      broken.removeRemainingRows = async () => {
        throw new Error('the process dies here');
      };
      expect((await remove()).status).to.equal(200);
      expect(await traces())
        .to.include.members(['sessions', 'audit_entries'])
        .and.not.include('key_chains');
      await service.close();
      await start();
      for (let portion = 0; ; portion++) {
        if (portion % 5 === 0) await expectGone();
        const gone = await maintenance().removeRemainingRows(new Date(), 3);
        expect(gone).to.be.at.most(3);
        if (gone === 0) break;
        expect(portion).to.be.lessThan(500);
      }
      expect(await traces()).to.deep.equal(['leases']);
      await maintenance().removeRemainingRows(LATER(), 3);
      expect(await traces()).to.deep.equal([]);
    });

    it('stays complete when its removal fails', async () => {
      await rawSql(database.url, (run) => run('alter table leases rename to leases_elsewhere'));
      expect((await remove()).status).to.equal(500);
      await rawSql(database.url, (run) => run('alter table leases_elsewhere rename to leases'));
      expect((await service.call('GET', '/session', { token: world.token })).status).to.equal(200);
      expect((await service.call('GET', `/${DOOMED}/status-lists`)).status).to.equal(200);
      expect(await maintenance().removeRemainingRows(LATER(), 100)).to.equal(0);
      expect((await remove()).status).to.equal(200);
    });

    it('leaves the audit log complete, and inaccessible to a new tenant of its name', async () => {
      const broken = maintenance();
      const removeRemainingRows = broken.removeRemainingRows;
      broken.removeRemainingRows = async () => 0;
      expect((await remove()).status).to.equal(200);
      const { container } = service.service;
      const verify = new VerifyAuditLog({ store: container.get(Store), macs: container.get(Cipher).macs(AUDIT_LOG) });
      for await (const report of verify.execute()) expect(report.fault, report.scope).to.equal(undefined);
      const again = await createTenant(service, DOOMED);
      for (const path of ['/session', '/issuer/credentials', '/verifier/config', '/status-lists', '/trust-list']) {
        const { status, body } = await service.call('GET', path, { token: again.token });
        expect([status, body], path).to.deep.equal([200, []]);
      }
      broken.removeRemainingRows = removeRemainingRows;
      expect(await maintenance().removeRemainingRows(LATER(), 100), 'the new one loses nothing').to.equal(0);
      expect((await service.call('GET', '/key-chain', { token: again.token })).body).to.have.length(4);
      for await (const report of verify.execute()) expect(report.fault, report.scope).to.equal(undefined);
    });

    it('keeps its name reserved while its data are being deleted', async () => {
      const store = service.service.container.get(Store);
      const used = Array.from({ length: 600 }, (_, n) => ({
        kind: 'c_nonce' as const,
        hash: `hash ${n}`,
        expiresAt: new Date(Date.now() + 3_600_000),
      }));
      await stepsOf(store, DOOMED as TenantId).commit({ uses: used });
      const broken = maintenance();
      const removeRemainingRows = broken.removeRemainingRows;
      broken.removeRemainingRows = async () => 0;
      expect((await remove()).status).to.equal(200);
      const create = () => service.call('POST', '/tenant', { token: root, json: { id: DOOMED, name: 'Again' } });
      expect([(await create()).status, (await create()).body.code]).to.deep.equal([409, 'conflict']);
      broken.removeRemainingRows = removeRemainingRows;
      await maintenance().removeRemainingRows(new Date(), 500);
      expect((await create()).status).to.equal(201);
    });

    it('answers DELETE at once regardless of the amount of data, and shows the progress until nothing is left', async () => {
      const rows = 12_000;
      const numbers =
        kind.name === 'postgres'
          ? `generate_series(1, ${rows}) as numbers(n)`
          : `(with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${rows}) select n from numbers)`;
      await rawSql(database.url, (run) =>
        run(
          `insert into used_values (tenant_id, kind, hash, expires_at) select '${DOOMED}', 'jti', 'h' || n, ${Date.now() + 1e6} from ${numbers}`,
        ),
      );
      const left = async () =>
        Number((await rawSql(database.url, (run) => run(`select count(*) as n from used_values where tenant_id = '${DOOMED}'`)))[0]?.['n']);
      const shown = async (token = root) => service.call('GET', '/tenant-removal', { token });
      expect((await shown()).body).to.deep.equal([]);
      const stored = await left();
      expect((await shown(world.token)).status, 'for operators').to.equal(403);
      expect((await remove()).status).to.equal(200);
      await expectGone();
      expect(await left()).to.be.at.least(stored - 1_500);
      const rowsGone = async () => {
        const [removal, ...more] = (await shown()).body;
        expect([removal.id, more]).to.deep.equal([DOOMED, []]);
        expect(Math.abs(Date.now() - Date.parse(removal.since))).to.be.lessThan(60_000);
        return removal.removedRows;
      };
      const first = await rowsGone();
      while ((await maintenance().removeRemainingRows(new Date(), 2_000)) > 0);
      expect(await left()).to.equal(0);
      expect(await rowsGone()).to.be.at.least(first + stored - 1_500);
      await maintenance().removeRemainingRows(LATER(), 2_000);
      expect((await shown()).body).to.deep.equal([]);
    });

    it('is not changed by requests that were accepted before', async () => {
      const store = service.service.container.get(Store);
      expect((await remove()).status).to.equal(200);
      const document = { id: 'late', createdAt: new Date(), updatedAt: new Date() } as never;
      const late = store.forTenant(DOOMED as TenantId, (own) => own.presentationConfigurations.put(document), { by: 'system' });
      let code: unknown;
      await late.catch((error) => {
        code = error.code;
      });
      expect(code).to.equal('not_found');
      expect(await traces()).to.deep.equal(['leases']);
    });
  });
}
