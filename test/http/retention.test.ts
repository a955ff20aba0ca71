import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect } from 'chai';
import sinon from 'sinon';
import { Store } from '../../application/ports/store.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { deferredFailure, stepsOf } from '../contract/store/steps.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { addClient, offerBody, type PopulatedTenant, populate } from '../support/populated.ts';
import { Shop } from '../support/present.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

const DEFAULTS = { ttlSeconds: 86_400 };

describe('sessions past the retention of their tenant', () => {
  let service: TestService;
  let world: PopulatedTenant;
  let lateOffer: string;
  let lateCode: string;

  before(async () => {
    service = await startTestService();
    world = await populate(service, 'acme');
    // Nobody comes back for a credential of this tenant any more.
    const steps = stepsOf(service.service.container.get(Store), 'acme' as TenantId);
    expect(await steps.commit(deferredFailure(world.ids.deferred, 'no such person', 'system'), new Date())).to.include({ done: true });
  });
  after(() => service.close());

  const call = (method: string, path: string, json?: object) =>
    service.call(method, path, { token: world.token, ...(json === undefined ? {} : { json }) });
  const cleanUp = (afterSeconds: number) =>
    service.service.container.get(Store).maintenance.cleanUpSessions(new Date(Date.now() + afterSeconds * 1000), 100, DEFAULTS);
  const revoke = (status: number) => call('POST', '/session/revoke', { sessionId: world.ids.issuance, status });

  it('lose the request and its result, and can still be read', async () => {
    const config = { ttlSeconds: 60, cleanupMode: 'anonymize' };
    expect((await call('PUT', '/session-config', config)).status).to.equal(200);
    const { session: late, uri } = (await call('POST', '/issuer/offer', offerBody(world.ids.credential))).body;
    lateOffer = new URL(uri).searchParams.get('credential_offer_uri') ?? '';
    lateCode = await world.wallet.code(uri);
    expect((await cleanUp(301)).anonymized).to.be.greaterThan(2);
    expect(await cleanUp(301)).to.deep.equal({ removed: 0, anonymized: 0 });

    const { issuance, verification } = world.ids;
    for (const id of [issuance, verification, late]) {
      const { status, text, body } = await call('GET', `/session/${id}`);
      expect([status, body.id, body.tenantId], text).to.deep.equal([200, id, 'acme']);
      for (const name of ['offer', 'credentialPayload', 'requestObject', 'credentials', 'failure', 'report'])
        expect(body).to.not.have.property(name);
      expect((await call('GET', `/session/${id}?response_code=x`)).status).to.equal(403);
    }
    expect((await call('GET', '/session')).body).to.have.length.greaterThan(2);
    const events = await call('GET', `/session/${issuance}/events?token=${world.token}`);
    expect([events.status, events.text.includes('"completed"')], events.text).to.deep.equal([200, true]);
  });

  it('answer wallets like ended sessions', async () => {
    const { requestId, accessToken } = world.artefacts;
    const clock = sinon.useFakeTimers({ now: Date.now() + 302_000, toFake: ['Date'] });
    try {
      const token = await world.wallet.redeem(lateCode);
      expect([token.status, token.body.error], token.text).to.deep.equal([400, 'invalid_grant']);
      // What the wallet has it may renew, from what the configuration says.
      const renewed = await world.wallet.request(accessToken, world.ids.credential);
      expect(renewed.status, renewed.text).to.equal(200);
      const answers = [
        await call('GET', lateOffer),
        await call('GET', `/acme/request/${requestId}`),
        await service.call('POST', `/acme/response/${requestId}`, { form: { state: 'x' } }),
      ];
      for (const { status, text } of answers) expect(status, text).to.be.within(400, 410);
    } finally {
      clock.restore();
    }
  });

  it('keep credentials that can be revoked, during the retention of the session and after it', async () => {
    expect((await revoke(1)).status).to.equal(201);
    expect((await call('PUT', '/session-config', { cleanupMode: 'full' })).status).to.equal(200);
    expect((await cleanUp(301)).removed).to.be.greaterThan(2);
    expect((await call('GET', `/session/${world.ids.issuance}`)).status).to.equal(404);
    expect((await revoke(0)).status, 'revoked is final').to.equal(409);
    expect((await revoke(1)).status).to.equal(201);
    const left = (await call('GET', '/session')).body.map(({ id }: { id: string }) => id);
    expect(left).to.not.include(world.ids.issuance).and.not.include(world.ids.verification);
  });

  it('that are removed end with their refresh tokens when they are deleted', async () => {
    const { token, ids, wallet } = await populate(service, 'ending');
    const own = (method: string, path: string, json?: object) => service.call(method, path, { token, ...(json && { json }) });
    const stranger = await addClient({ service, token }, 'stranger', { roles: ['issuance:manage'], allowedIssuanceConfigs: ['another'] });
    expect((await own('PUT', '/session-config', { ttlSeconds: 60, cleanupMode: 'full' })).status).to.equal(200);
    const { uri, session } = (await own('POST', '/issuer/offer', offerBody(ids.credential))).body;
    const tokens = (await wallet.redeem(await wallet.code(uri))).body;
    expect((await wallet.request(tokens.access_token, ids.credential)).status).to.equal(200);
    await cleanUp(301);
    const path = `/session/${session}`;
    expect((await own('GET', path)).status).to.equal(404);
    expect((await wallet.refresh(tokens.refresh_token)).status, 'renewal').to.equal(200);

    expect((await service.call('DELETE', path, { token: stranger })).status).to.equal(404);
    expect((await wallet.refresh(tokens.refresh_token)).status, 'renewal').to.equal(200);
    expect((await own('DELETE', path)).status).to.equal(200);
    const refused = await wallet.refresh(tokens.refresh_token);
    expect([refused.status, refused.body.error], refused.text).to.deep.equal([400, 'invalid_grant']);
    expect((await own('DELETE', path)).status).to.equal(404);
  });

  it('lose the data of a failed delivery', async () => {
    const { token, ids, wallet } = await populate(service, 'telling');
    const own = (method: string, path: string, json?: object) => service.call(method, path, { token, ...(json && { json }) });
    const notifyWebhook = { url: 'http://127.0.0.1:9/nobody-listens' };
    const offered = await own('POST', '/issuer/offer', { ...offerBody(ids.credential), notifyWebhook });
    const accessToken = await wallet.accessToken(offered.body.uri);
    const { body } = await wallet.request(accessToken, ids.credential);
    const noted = await service.call('POST', '/telling/notification', {
      headers: wallet.authorization(accessToken, { path: 'notification' }),
      json: { notification_id: body.notification_id, event: 'credential_accepted', event_description: 'Ada' },
    });
    expect(noted.status, noted.text).to.be.within(200, 599);
    const path = `/session/${offered.body.session}`;
    const [delivery] = (await own('GET', path)).body.deliveries;
    expect(delivery).to.include({ webhook: 'notification', result: 'failed' });
    const kept = async () => {
      const read = await service.service.container
        .get(Store)
        .read('telling' as TenantId)
        .session(offered.body.session);
      return read?.session?.outcome;
    };
    expect(JSON.stringify(await kept())).to.include('told');
    await own('PUT', '/session-config', { ttlSeconds: 60, cleanupMode: 'anonymize' });
    await cleanUp(301);
    expect(await kept()).to.equal(null);
    expect((await own('GET', path)).body).to.not.have.property('deliveries');
    expect((await own('POST', `${path}/deliveries/${delivery.id}/retry`)).status).to.be.oneOf([404, 410]);
  });

  it('are kept while a wallet may return for a deferred credential', async () => {
    const { ids, token } = await populate(service, 'waiting');
    const json = { ttlSeconds: 60 };
    expect((await service.call('PUT', '/session-config', { token, json })).status).to.equal(200);
    await cleanUp(301);
    const session = await service.call('GET', `/session/${ids.issuance}`, { token });
    expect(session.body).to.include({ status: 'completed' }).and.have.property('offer');
    const waiting = await service.call('GET', `/issuer/deferred/${ids.deferred}`, { token });
    expect(waiting.body).to.include({ status: 'pending' });
    expect((await service.call('GET', `/session/${ids.verification}`, { token })).status).to.equal(404);
  });
});

describe('session data in the database', () => {
  let database: TestDatabase | undefined;
  after(() => database?.drop());

  it('contains no readable personal data: claims, keys and codes are sealed', async () => {
    database = await databases()[0]?.open();
    if (database === undefined) throw new Error('SQLite is always there');
    const { url } = database;
    const shop = await Shop.open({}, () => startTestService({ DATABASE_URL: url }));
    const key = 'key-of-the-webhook-in-the-clear';
    const auth = { type: 'apiKey', config: { headerName: 'X-Key', value: key } };
    const webhook = { url: `${shop.backend.url}/told`, auth };
    const credentialClaims = { card: { type: 'inline', claims: { name: 'Wilhelmina Unmistakable', age: 36 } } };
    await shop.configure({ id: 'told', webhook });
    const held = await shop.issue('card', { credentialClaims });
    const json = {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: ['card'],
      tx_code: 'tx-code-in-the-clear',
      credentialClaims,
    };
    const { uri } = (await shop.call('POST', '/issuer/offer', json, shop.acme.token)).body;
    const code = await new RawWallet(shop.service, 'acme').code(uri);
    const asked = await shop.requestPresentation('told');
    expect((await shop.present(asked, held)).status).to.equal(200);
    expect(shop.backend.callsTo('/told')[0]?.body.credentials[0].values.name).to.equal('Wilhelmina Unmistakable');
    const secret = 'secret-of-a-client-in-the-clear';
    const roles = ['issuance:offer'];
    await shop.call('POST', '/client', { clientId: 'new', roles, secret }, shop.acme.token);

    shop.backend.on('/later', (reply) => reply.end(JSON.stringify({ deferred: true, interval: 1 })));
    const later = { card: { type: 'webhook', webhook: { url: `${shop.backend.url}/later` } } };
    const deferred = await shop.call('POST', '/issuer/offer', { ...json, tx_code: undefined, credentialClaims: later }, shop.acme.token);
    const wallet = new RawWallet(shop.service, 'acme');
    const promised = await wallet.request(await wallet.accessToken(deferred.body.uri), 'card');
    expect(promised.status, promised.text).to.equal(202);
    const fail = `/issuer/deferred/${promised.body.transaction_id}/fail`;
    const failure = { errorMessage: 'no record of Wilhelmina Unmistakable' };
    expect((await shop.call('POST', fail, failure, shop.acme.token)).status).to.equal(200);

    const secrets = ['Unmistakable', key, 'tx-code-in-the-clear', code, secret, asked.payload['nonce']];
    const rows = await rawSql(url, async (run) => {
      const tables = await run(`select name from sqlite_master where type = 'table'`);
      return Promise.all(tables.map(({ name }) => run(`select * from "${name}"`)));
    });
    expect(rows.flat()).to.have.length.greaterThan(20);
    const file = url.slice('sqlite:'.length);
    const files = readdirSync(dirname(file)).filter((name) => name.startsWith(basename(file)));
    const bytes = Buffer.concat(files.map((name) => readFileSync(join(dirname(file), name))));
    expect(bytes.includes(asked.session), 'this is the right file').to.equal(true);
    for (const value of secrets) {
      expect(value).to.have.length.greaterThan(10);
      expect(JSON.stringify(rows), `rows with ${value}`).to.not.include(value);
      expect(bytes.includes(value), `bytes with ${value}`).to.equal(false);
    }
    await shop.close();
  });
});
