import { expect } from 'chai';
import { Store } from '../../application/ports/store.ts';
import { RemoveEndedTenants } from '../../application/tenants/remove-ended-tenants.ts';
import { obtain } from '../../bootstrap/wire.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { databases, openRaw, type TestDatabase } from '../support/databases.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

const MASTER_SECRET = 'a master secret for what ends 0123456789';
const DAY_MS = 86_400_000;
const inMs = (milliseconds: number) => new Date(Date.now() + milliseconds).toISOString();

for (const kind of databases()) {
  describe(`A tenant that ends by itself, on ${kind.name}`, () => {
    let database: TestDatabase;
    let service: TestService;
    let root: string;

    beforeEach(async function () {
      const opened = await kind.open();
      if (opened === undefined) return this.skip();
      database = opened;
      service = await start();
      root = await service.rootToken();
    });
    afterEach(async () => {
      await service?.close();
      await database?.drop();
    });

    const start = () => startTestService({ DATABASE_URL: database.url, MASTER_SECRET });
    const call = (method: string, path: string, json?: unknown) =>
      service.call(method, path, { token: root, ...(json !== undefined && { json }) });
    const remove = (of = service) =>
      obtain(of.service.container, RemoveEndedTenants).execute(new Date(), 100);

    /** As if the time of the tenant had passed. */
    const endNow = async (id: string) => {
      const raw = await openRaw(database.url);
      await raw.run(`update tenants set ends_at = ${Date.now() - 1} where id = '${id}'`);
      await raw.close();
    };

    it('says when, and can be given more time or less, or all', async () => {
      const endsAt = inMs(DAY_MS);
      const made = await call('POST', '/tenant', { id: 'trial', name: 'Trial', endsAt });
      expect(made.status).to.equal(201);
      expect(made.body).to.include({ endsAt });
      expect((await call('PATCH', '/tenant/trial', { name: 'Still' })).body).to.include({ endsAt });
      const later = inMs(2 * DAY_MS);
      const zone = later.replace('Z', '+00:00');
      expect((await call('PATCH', '/tenant/trial', { endsAt: zone })).body).to.include({ endsAt: later });
      expect((await call('PATCH', '/tenant/trial', { endsAt: null })).body).to.include({ endsAt: null });
      expect((await call('GET', '/tenant/trial')).body).to.include({ endsAt: null });
      expect((await call('POST', '/tenant', { id: 'stays', name: 'Stays' })).body).to.include({
        endsAt: null,
      });
    });

    it('cannot end in the past, in the far future, or at no time', async () => {
      await call('POST', '/tenant', { id: 'trial', name: 'Trial' });
      for (const endsAt of [inMs(-1_000), inMs(3_660 * DAY_MS), 'tomorrow', 1_900_000_000]) {
        const refused = await call('PATCH', '/tenant/trial', { endsAt });
        expect(refused.status, String(endsAt)).to.equal(400);
        expect(JSON.stringify(refused.body)).to.include('endsAt');
        const made = await call('POST', '/tenant', { id: 'other', name: 'Other', endsAt });
        expect(made.status, String(endsAt)).to.equal(400);
      }
      expect((await call('GET', '/tenant/trial')).body).to.include({ endsAt: null });
      expect((await call('GET', '/tenant/other')).status).to.equal(404);
    });

    it('goes once, also when several processes find it, as a deed of the service', async () => {
      await call('POST', '/tenant', { id: 'trial', name: 'Trial', endsAt: inMs(DAY_MS / 2) });
      await call('POST', '/tenant', { id: 'stays', name: 'Stays', endsAt: inMs(DAY_MS) });
      expect((await remove()).removed).to.equal(0);
      await endNow('trial');
      const other = kind.name === 'sqlite' ? service : await start();
      const runs = await Promise.all([remove(), remove(other), remove(), remove(other)]);
      if (other !== service) await other.close();
      expect(runs.reduce((sum, { removed }) => sum + removed, 0)).to.equal(1);
      expect((await call('GET', '/tenant/trial')).status).to.equal(404);
      expect((await call('GET', '/tenant/stays')).status).to.equal(200);
      const { body: entries } = await call('GET', '/audit-log?kind=tenant');
      const removals = entries.filter(({ action }: { action: string }) => action === 'removed');
      expect(removals).to.have.length(1);
      expect(removals[0]).to.deep.include({ target: 'trial', actor: 'system' });
      // What is left of it goes as after a deletion, whichever process goes on.
      await service.close();
      service = await start();
      const { maintenance } = service.service.container.get(Store);
      while ((await maintenance.removeRemains(new Date(Date.now() + 61_000), 100)) > 0);
      root = await service.rootToken();
      expect((await call('POST', '/tenant', { id: 'trial', name: 'Again' })).status).to.equal(201);
      expect((await remove()).removed).to.equal(0);
    });

    it('stays when it was given more time at the last moment', async () => {
      await call('POST', '/tenant', { id: 'trial', name: 'Trial', endsAt: inMs(DAY_MS / 2) });
      expect((await call('PATCH', '/tenant/trial', { endsAt: inMs(DAY_MS) })).status).to.equal(200);
      const store = service.service.container.get(Store);
      const isGone = await store.forService(
        ({ tenants }) => tenants.removeEnded('trial' as TenantId, new Date(Date.now() + DAY_MS / 2)),
        { by: 'system' },
      );
      expect(isGone).to.equal(false);
      expect((await call('GET', '/tenant/trial')).status).to.equal(200);
    });
  });
}
