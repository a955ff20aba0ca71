import { expect } from 'chai';
import sinon from 'sinon';
import { Store } from '../../application/ports/store.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { stepsOf } from '../contract/store/steps.ts';
import { addClient, offerBody, type Populated, populate } from '../support/populated.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

const DEFAULTS = { ttlSeconds: 86_400 };

describe('Sessions that their tenant keeps no longer', () => {
  let service: TestService;
  let world: Populated;
  let lateOffer: string;
  let lateCode: string;

  before(async () => {
    service = await startTestService();
    world = await populate(service, 'acme');
    // Nobody comes back for a credential of this tenant any more.
    const steps = stepsOf(service.service.container.get(Store), 'acme' as TenantId);
    expect(await steps.failDeferred(world.ids.deferred, 'no such person', new Date(), 'system')).to.equal(
      true,
    );
  });
  after(() => service.close());

  const call = (method: string, path: string, json?: object) =>
    service.call(method, path, { token: world.token, ...(json === undefined ? {} : { json }) });
  const cleanUp = (afterSeconds: number) =>
    service.service.container
      .get(Store)
      .maintenance.cleanUpSessions(new Date(Date.now() + afterSeconds * 1000), 100, DEFAULTS);
  const revoke = (status: number) =>
    call('POST', '/session/revoke', { sessionId: world.ids.issuance, status });

  it('lose what was asked and what came of it, and can be looked at all the same', async () => {
    const config = { ttlSeconds: 60, cleanupMode: 'anonymize' };
    expect((await call('PUT', '/session-config', config)).status).to.equal(200);
    const { session: late, uri } = (await call('POST', '/issuer/offer', offerBody(world.ids.credential)))
      .body;
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

  it('answer wallets like sessions that are over', async () => {
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

  it('leave credentials that can be revoked, as long as the session is kept and after it', async () => {
    expect((await revoke(1)).status).to.equal(201);
    expect((await call('PUT', '/session-config', { cleanupMode: 'full' })).status).to.equal(200);
    expect((await cleanUp(301)).removed).to.be.greaterThan(2);
    expect((await call('GET', `/session/${world.ids.issuance}`)).status).to.equal(404);
    expect((await revoke(0)).status, 'revoked is final').to.equal(409);
    expect((await revoke(1)).status).to.equal(201);
    const left = (await call('GET', '/session')).body.map(({ id }: { id: string }) => id);
    expect(left).to.not.include(world.ids.issuance).and.not.include(world.ids.verification);
  });

  it('that are removed end with what they may renew, when somebody deletes them', async () => {
    const { token, ids, wallet } = await populate(service, 'ending');
    const own = (method: string, path: string, json?: object) =>
      service.call(method, path, { token, ...(json && { json }) });
    const stranger = await addClient({ service, token }, 'stranger', {
      roles: ['issuance:manage'],
      allowedIssuanceConfigs: ['another'],
    });
    expect((await own('PUT', '/session-config', { ttlSeconds: 60, cleanupMode: 'full' })).status).to.equal(
      200,
    );
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

  it('lose what a delivery that failed has to tell', async () => {
    const { token, ids, wallet } = await populate(service, 'telling');
    const own = (method: string, path: string, json?: object) =>
      service.call(method, path, { token, ...(json && { json }) });
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

  it('stay whole while a wallet may come back for a deferred credential', async () => {
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
