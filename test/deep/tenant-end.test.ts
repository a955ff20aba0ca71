import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { RemoveEndedTenants } from '../../application/tenants/remove-ended-tenants.ts';
import { obtain } from '../../bootstrap/wiring/wire.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import { createResource, offerBody } from '../support/populated.ts';
import { openStream } from '../support/sse.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const DAY_MS = 86_400_000;
/** Long enough for the steps before the end. */
const ENDS_IN_MS = 5_000;
const HEARTBEAT_MS = 15_000;
const msFromNow = (milliseconds: number) => new Date(Date.now() + milliseconds).toISOString();
const waitUntil = (time: string) => pause(Date.parse(time) - Date.now() + 100);

for (const kind of databases()) {
  describe(`tenant that expires while the service runs, on ${kind.name}`, () => {
    let database: TestDatabase;
    let service: TestService;
    let root: string;

    beforeEach(async function () {
      const connection = await kind.open();
      if (connection === undefined) return this.skip();
      database = connection;
      service = await startTestService({ DATABASE_URL: database.url });
      root = await service.rootToken();
    });
    afterEach(async () => {
      await service?.close();
      await database?.drop();
    });

    const call = (method: string, path: string, json?: unknown) =>
      service.call(method, path, { token: root, ...(json !== undefined && { json }) });
    const removeTenants = () => obtain(service.service.container, RemoveEndedTenants).execute(new Date(), 100);

    it('serves no requests after its end, before it is removed', async () => {
      const { token, clientId } = await createTenant(service, 'trial');
      const rotation = await service.call('POST', `/client/${clientId}/rotate-secret?graceSeconds=300`, { token });
      const { secret } = rotation.body;
      const metadata = () => service.call('GET', '/.well-known/openid-credential-issuer/trial');
      const endsAt = msFromNow(ENDS_IN_MS);
      await call('PATCH', '/tenant/trial', { endsAt });
      // All data of the tenant is cached.
      expect((await metadata()).status).to.equal(200);
      expect((await service.call('GET', '/issuer/credentials', { token })).status).to.equal(200);
      expect((await service.call('POST', '/trial/nonce')).status).to.equal(200);
      await waitUntil(endsAt);
      expect((await metadata()).status).to.equal(404);
      expect((await service.call('POST', '/trial/nonce')).status).to.equal(404);
      expect((await service.call('GET', '/issuer/credentials', { token })).status).to.equal(403);
      const json = { grant_type: 'client_credentials', client_id: 'trial-admin', client_secret: secret };
      expect((await service.call('POST', '/oauth2/token', { json })).status).to.equal(401);
    });

    it('is indistinguishable from an unknown tenant, and ends the streams of its sessions', async () => {
      const { token } = await createTenant(service, 'trial');
      const post = (path: string, json: object) => createResource(service, token, path, json);
      const credentialBody = { id: 'card', vct: 'urn:card:1', config: { format: 'dc+sd-jwt' }, claims: { name: 'Ada' } };
      await post('/issuer/credentials', credentialBody);
      const { uri, session, pageUrl } = await post('/issuer/offer', offerBody('card'));
      const offer = new URL(uri).searchParams.get('credential_offer_uri') ?? '';
      const endsAt = msFromNow(ENDS_IN_MS);
      await call('PATCH', '/tenant/trial', { endsAt: endsAt });
      expect((await service.call('GET', pageUrl)).text).to.include('Tenant trial');
      const headers = { Authorization: `Bearer ${token}` };
      const stream = await openStream(`${service.address}/session/${session}/events`, headers);
      expect((await stream.next())?.data.status).to.equal('active');
      // The stream ends without further messages: the next heartbeat would come after this timeout.
      expect(await stream.next()).to.equal(undefined);
      expect(Date.now()).to.be.within(Date.parse(endsAt), Date.parse(endsAt) + HEARTBEAT_MS);
      for (const address of [pageUrl, offer, `${service.address}/trial/authorize?client_id=x`]) {
        for (const acceptHeaders of ['text/html', 'application/json']) {
          const comparableResponse = async (url: string) => {
            const { status, text } = await service.call('GET', url, { headers: { Accept: acceptHeaders } });
            // The request id differs each time.
            return [status, text.replaceAll(/[0-9a-z]+-[0-9a-z]+(?=<|")/g, '…').replaceAll('nobody', 'trial')];
          };
          expect(await comparableResponse(address), address).to.deep.equal(
            await comparableResponse(address.replace('/trial/', '/nobody/')),
          );
        }
      }
    });

    it('is not restored by a write before its removal', async () => {
      const endsAt = msFromNow(ENDS_IN_MS);
      await call('POST', '/tenant', { id: 'trial', name: 'Trial', endsAt });
      await waitUntil(endsAt);
      for (const change of [{ endsAt: null }, { endsAt: msFromNow(DAY_MS) }, { name: 'Again' }])
        expect((await call('PATCH', '/tenant/trial', change)).status).to.be.oneOf([404, 409]);
      const metadata = await service.call('GET', '/.well-known/openid-credential-issuer/trial');
      expect(metadata.status).to.equal(404);
      await removeTenants();
      expect((await call('GET', '/tenant/trial')).status).to.equal(404);
    });
  });
}
