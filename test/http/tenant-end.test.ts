import { expect } from 'chai';
import { Store } from '../../application/ports/store.ts';
import { RemoveEndedTenants } from '../../application/tenants/remove-ended-tenants.ts';
import { obtain } from '../../bootstrap/wire.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import { created, offerBody } from '../support/populated.ts';
import { openStream } from '../support/sse.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const MASTER_SECRET = 'a master secret for what ends 0123456789';
const DAY_MS = 86_400_000;
const inMs = (milliseconds: number) => new Date(Date.now() + milliseconds).toISOString();
const passes = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

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

    it('serves nobody from then on, before it is removed', async () => {
      const { token, clientId } = await createTenant(service, 'trial');
      const rotated = await service.call('POST', `/client/${clientId}/rotate-secret?graceSeconds=300`, {
        token,
      });
      const { secret } = rotated.body;
      const metadata = () => service.call('GET', '/.well-known/openid-credential-issuer/trial');
      await call('PATCH', '/tenant/trial', { endsAt: inMs(1_500) });
      // Everything about it is remembered.
      expect((await metadata()).status).to.equal(200);
      expect((await service.call('GET', '/issuer/credentials', { token })).status).to.equal(200);
      expect((await service.call('POST', '/trial/nonce')).status).to.equal(200);
      await passes(1_600);
      expect((await metadata()).status).to.equal(404);
      expect((await service.call('POST', '/trial/nonce')).status).to.equal(404);
      expect((await service.call('GET', '/issuer/credentials', { token })).status).to.equal(403);
      const json = { grant_type: 'client_credentials', client_id: 'trial-admin', client_secret: secret };
      expect((await service.call('POST', '/oauth2/token', { json })).status).to.equal(401);
    });

    it('looks to everybody as one that never was, and ends the streams of its sessions', async () => {
      const { token } = await createTenant(service, 'trial');
      const post = (path: string, json: object) => created(service, token, path, json);
      const card = {
        id: 'card',
        vct: 'urn:card:1',
        config: { format: 'dc+sd-jwt' },
        claims: { name: 'Ada' },
      };
      await post('/issuer/credentials', card);
      const { uri, session, pageUrl } = await post('/issuer/offer', offerBody('card'));
      const offer = new URL(uri).searchParams.get('credential_offer_uri') ?? '';
      const ends = inMs(2_000);
      await call('PATCH', '/tenant/trial', { endsAt: ends });
      expect((await service.call('GET', pageUrl)).text).to.include('Tenant trial');
      const headers = { Authorization: `Bearer ${token}` };
      const stream = await openStream(`${service.address}/session/${session}/events`, headers);
      expect((await stream.next())?.data.status).to.equal('active');
      // Nothing more comes, and it ends by itself: a heartbeat would come later than this waits.
      expect(await stream.next()).to.equal(undefined);
      expect(Date.now()).to.be.within(Date.parse(ends), Date.parse(ends) + 2_000);
      for (const address of [pageUrl, offer, `${service.address}/trial/authorize?client_id=x`]) {
        for (const accept of ['text/html', 'application/json']) {
          const look = async (at: string) => {
            const { status, text } = await service.call('GET', at, { headers: { Accept: accept } });
            // The reference of the request is another one each time.
            return [
              status,
              text.replaceAll(/[0-9a-z]+-[0-9a-z]+(?=<|")/g, '…').replaceAll('nobody', 'trial'),
            ];
          };
          expect(await look(address), address).to.deep.equal(
            await look(address.replace('/trial/', '/nobody/')),
          );
        }
      }
    });

    it('does not come back, whatever is written to it before it is removed', async () => {
      await call('POST', '/tenant', { id: 'trial', name: 'Trial', endsAt: inMs(400) });
      await passes(500);
      for (const change of [{ endsAt: null }, { endsAt: inMs(DAY_MS) }, { name: 'Again' }])
        expect((await call('PATCH', '/tenant/trial', change)).status).to.be.oneOf([404, 409]);
      const metadata = await service.call('GET', '/.well-known/openid-credential-issuer/trial');
      expect(metadata.status).to.equal(404);
      await remove();
      expect((await call('GET', '/tenant/trial')).status).to.equal(404);
    });

    it('goes once, also when several processes find it, as a deed of the service', async () => {
      await call('POST', '/tenant', { id: 'trial', name: 'Trial', endsAt: inMs(3_000) });
      await call('POST', '/tenant', { id: 'stays', name: 'Stays', endsAt: inMs(DAY_MS) });
      expect((await remove()).removed).to.equal(0);
      await passes(3_100);
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
      await call('POST', '/tenant', { id: 'trial', name: 'Trial', endsAt: inMs(5_000) });
      expect((await call('PATCH', '/tenant/trial', { endsAt: inMs(DAY_MS) })).status).to.equal(200);
      const store = service.service.container.get(Store);
      const isGone = await store.forService(
        ({ tenants }) => tenants.removeEnded('trial' as TenantId, new Date(Date.now() + 10_000)),
        { by: 'system' },
      );
      expect(isGone).to.equal(false);
      expect((await call('GET', '/tenant/trial')).status).to.equal(200);
    });
  });
}
