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

const REMOVED_TENANT = 'doomed-tenant';
const MASTER_SECRET = 'a master secret for removals 0123456789';
/** A time after the end of statements that ran during the removal. */
const afterRunningStatements = () => new Date(Date.now() + 61_000);

for (const kind of httpDatabases()) {
  describe(`A removed tenant on ${kind.name}`, () => {
    let database: TestDatabase;
    let service: TestService;
    let world: PopulatedTenant;
    let root: string;
    /** The database with the tenant, the initial state of each test. */
    let preparedDatabase: TestDatabase | undefined;

    before(async function () {
      preparedDatabase = await kind.open();
      if (preparedDatabase === undefined) return this.skip();
      database = preparedDatabase;
      await start();
      world = await populate(service, REMOVED_TENANT);
      await service.close();
    });
    beforeEach(async function () {
      if (preparedDatabase === undefined) return this.skip();
      database = await kind.copy(preparedDatabase);
      await start();
    });
    after(() => preparedDatabase?.drop());
    afterEach(async () => {
      await service?.close();
      await database?.drop();
    });

    async function start() {
      service = await startTestService({ DATABASE_URL: database.url, MASTER_SECRET });
      root = await service.rootToken();
    }
    const maintenance = () => service.service.container.get(Store).maintenance;
    const remove = () => service.call('DELETE', `/tenant/${REMOVED_TENANT}`, { token: root });

    /** Tables that contain the identifier of the tenant, except the chain of the service, which records the removal. */
    const tablesWithTenant = () =>
      rawSql(database.url, async (run) => {
        const names =
          kind.name === 'sqlite'
            ? `select name from sqlite_master where type = 'table'`
            : 'select table_name as name from information_schema.tables where table_schema = current_schema()';
        const tables: string[] = [];
        for (const { name } of await run(names)) {
          const rows = await run(`select * from "${name}"`);
          const rowsOfTenants = rows.filter((row) => name !== 'audit_entries' || row['tenant_id'] === REMOVED_TENANT);
          if (rowsOfTenants.some((row) => JSON.stringify(row).includes(REMOVED_TENANT))) tables.push(String(name));
        }
        return tables;
      });

    /** Expects that no address of the tenant is served. */
    const expectUnavailable = async () => {
      const { artefacts, ids, token } = world;
      for (const path of [
        `/.well-known/openid-credential-issuer/${REMOVED_TENANT}`,
        `/${REMOVED_TENANT}/status-lists`,
        `/${REMOVED_TENANT}/trust-list/${ids.trustList}`,
        `/${REMOVED_TENANT}/credential-offer/${artefacts.offerId}`,
        `/${REMOVED_TENANT}/request/${artefacts.requestId}`,
      ]) {
        expect((await service.call('GET', path)).status, path).to.equal(404);
      }
      expect((await service.call('POST', `/${REMOVED_TENANT}/nonce`)).status).to.equal(404);
      expect((await service.call('GET', '/session', { token })).status).to.equal(401);
      expect((await service.call('GET', `/tenant/${REMOVED_TENANT}`, { token: root })).status).to.equal(404);
      const steps = stepsOf(service.service.container.get(Store), REMOVED_TENANT as TenantId);
      expect(await steps.statusList(artefacts.listId)).to.equal(undefined);
      expect(await steps.statusListVersions([artefacts.listId])).to.deep.equal([]);
      const tenants = (await service.call('GET', '/tenant', { token: root })).body;
      expect(tenants.map(({ id }: { id: string }) => id)).to.not.include(REMOVED_TENANT);
    };

    it('leaves nothing in any table after its tombstone was deleted', async () => {
      expect(await tablesWithTenant()).to.include.members(['tenants', 'sessions', 'key_chains', 'status_lists', 'audit_entries']);
      expect((await remove()).status).to.equal(200);
      await expectUnavailable();
      expect(await tablesWithTenant()).to.deep.equal(['leases']);
      await maintenance().removeRemainingRows(afterRunningStatements(), 100);
      expect(await tablesWithTenant()).to.deep.equal([]);
      expect(await maintenance().removeRemainingRows(afterRunningStatements(), 100)).to.equal(0);
    });

    it('is unavailable at once and permanently, wherever the process is killed', async () => {
      // The process stops between the removal and the following steps, and after each batch of rows.
      const broken = maintenance();
      broken.removeRemainingRows = async () => {
        throw new Error('the process dies here');
      };
      expect((await remove()).status).to.equal(200);
      expect(await tablesWithTenant())
        .to.include.members(['sessions', 'audit_entries'])
        .and.not.include('key_chains');
      await service.close();
      await start();
      for (let batch = 0; ; batch++) {
        if (batch % 5 === 0) await expectUnavailable();
        const removedRows = await maintenance().removeRemainingRows(new Date(), 3);
        expect(removedRows).to.be.at.most(3);
        if (removedRows === 0) break;
        expect(batch).to.be.lessThan(500);
      }
      expect(await tablesWithTenant()).to.deep.equal(['leases']);
      await maintenance().removeRemainingRows(afterRunningStatements(), 3);
      expect(await tablesWithTenant()).to.deep.equal([]);
    });

    it('stays complete when its removal fails', async () => {
      await rawSql(database.url, (run) => run('alter table leases rename to leases_elsewhere'));
      expect((await remove()).status).to.equal(500);
      await rawSql(database.url, (run) => run('alter table leases_elsewhere rename to leases'));
      expect((await service.call('GET', '/session', { token: world.token })).status).to.equal(200);
      expect((await service.call('GET', `/${REMOVED_TENANT}/status-lists`)).status).to.equal(200);
      expect(await maintenance().removeRemainingRows(afterRunningStatements(), 100)).to.equal(0);
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
      const recreated = await createTenant(service, REMOVED_TENANT);
      for (const path of ['/session', '/issuer/credentials', '/verifier/config', '/status-lists', '/trust-list']) {
        const { status, body } = await service.call('GET', path, { token: recreated.token });
        expect([status, body], path).to.deep.equal([200, []]);
      }
      broken.removeRemainingRows = removeRemainingRows;
      expect(await maintenance().removeRemainingRows(afterRunningStatements(), 100), 'the new tenant keeps its rows').to.equal(0);
      expect((await service.call('GET', '/key-chain', { token: recreated.token })).body).to.have.length(4);
      for await (const report of verify.execute()) expect(report.fault, report.scope).to.equal(undefined);
    });

    it('keeps its name reserved while its data are being deleted', async () => {
      const store = service.service.container.get(Store);
      const used = Array.from({ length: 600 }, (_, n) => ({
        kind: 'c_nonce' as const,
        hash: `hash ${n}`,
        expiresAt: new Date(Date.now() + 3_600_000),
      }));
      await stepsOf(store, REMOVED_TENANT as TenantId).commit({ uses: used });
      const broken = maintenance();
      const removeRemainingRows = broken.removeRemainingRows;
      broken.removeRemainingRows = async () => 0;
      expect((await remove()).status).to.equal(200);
      const create = () => service.call('POST', '/tenant', { token: root, json: { id: REMOVED_TENANT, name: 'Again' } });
      expect([(await create()).status, (await create()).body.code]).to.deep.equal([409, 'conflict']);
      broken.removeRemainingRows = removeRemainingRows;
      await maintenance().removeRemainingRows(new Date(), 500);
      expect((await create()).status).to.equal(201);
    });

    it('responds to DELETE at once regardless of the amount of data, and shows the progress until all rows are removed', async () => {
      const rows = 12_000;
      const numbers =
        kind.name === 'postgres'
          ? `generate_series(1, ${rows}) as numbers(n)`
          : `(with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${rows}) select n from numbers)`;
      await rawSql(database.url, (run) =>
        run(
          `insert into used_values (tenant_id, kind, hash, expires_at) select '${REMOVED_TENANT}', 'jti', 'h' || n, ${Date.now() + 1e6} from ${numbers}`,
        ),
      );
      const countRows = async () =>
        Number(
          (await rawSql(database.url, (run) => run(`select count(*) as n from used_values where tenant_id = '${REMOVED_TENANT}'`)))[0]?.[
            'n'
          ],
        );
      const readProgress = async (token = root) => service.call('GET', '/tenant-removal', { token });
      expect((await readProgress()).body).to.deep.equal([]);
      const rowsBefore = await countRows();
      expect((await readProgress(world.token)).status, 'only for operators').to.equal(403);
      expect((await remove()).status).to.equal(200);
      await expectUnavailable();
      expect(await countRows()).to.be.at.least(rowsBefore - 1_500);
      const waitForRemoval = async () => {
        const [removal, ...otherRemovals] = (await readProgress()).body;
        expect([removal.id, otherRemovals]).to.deep.equal([REMOVED_TENANT, []]);
        expect(Math.abs(Date.now() - Date.parse(removal.since))).to.be.lessThan(60_000);
        return removal.removedRows;
      };
      const first = await waitForRemoval();
      while ((await maintenance().removeRemainingRows(new Date(), 2_000)) > 0);
      expect(await countRows()).to.equal(0);
      expect(await waitForRemoval()).to.be.at.least(first + rowsBefore - 1_500);
      await maintenance().removeRemainingRows(afterRunningStatements(), 2_000);
      expect((await readProgress()).body).to.deep.equal([]);
    });

    it('is not changed by requests that were accepted before', async () => {
      const store = service.service.container.get(Store);
      expect((await remove()).status).to.equal(200);
      const document = { id: 'late', createdAt: new Date(), updatedAt: new Date() } as never;
      const lateWrite = store.forTenant(
        REMOVED_TENANT as TenantId,
        (repositories) => repositories.presentationConfigurations.put(document),
        { by: 'system' },
      );
      let code: unknown;
      await lateWrite.catch((error) => {
        code = error.code;
      });
      expect(code).to.equal('not_found');
      expect(await tablesWithTenant()).to.deep.equal(['leases']);
    });
  });
}
