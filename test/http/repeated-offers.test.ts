import { expect } from 'chai';
import sinon from 'sinon';
import { Store } from '../../application/ports/store.ts';
import { addClient, offerBody, type Populated, populate } from '../support/populated.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

describe('An offer that is asked for again under its Idempotency-Key', () => {
  let service: TestService;
  let world: Populated;

  before(async () => {
    service = await startTestService({ JWT_EXPIRES_IN: '72h' });
    world = await populate(service, 'acme');
  });
  after(() => service.close());
  afterEach(() => sinon.restore());

  const ask = (key: string, json: object, token = world.token, path = '/issuer/offer') =>
    service.call('POST', path, { token, json, headers: { 'Idempotency-Key': key } });
  const body = () => offerBody(world.ids.credential);

  it('is the same offer, also when its members stand in another order and the key in quotes', async () => {
    const first = await ask('one', body());
    expect(first.status, first.text).to.equal(201);
    const turned = Object.fromEntries(Object.entries(body()).reverse());
    for (const again of [await ask('one', body()), await ask('"one"', turned)])
      expect([again.status, again.text]).to.deep.equal([201, first.text]);
    expect((await ask('other', body())).body.session).not.to.equal(first.body.session);
    expect(
      (await service.call('POST', '/issuer/offer', { token: world.token, json: body() })).body.session,
    ).not.to.equal(first.body.session);
  });

  it('is refused with another body, and the first answer stays', async () => {
    const first = await ask('two', body());
    const other = await ask('two', { ...body(), expiresIn: 100 });
    expect([other.status, other.body.code], other.text).to.deep.equal([409, 'conflict']);
    expect((await ask('two', body())).text).to.equal(first.text);
  });

  it('is another one for another client, another tenant and at the other address', async () => {
    const first = await ask('three', body());
    const token = await addClient(world, 'second', { roles: ['issuance:offer'] });
    const second = await ask('three', body(), token);
    expect([first.status, second.status]).to.deep.equal([201, 201]);
    expect(second.body.session).not.to.equal(first.body.session);
    const request = { response_type: 'uri', requestId: world.ids.presentation };
    const asked = await ask('three', request, world.token, '/verifier/offer');
    expect(asked.status, asked.text).to.equal(201);
    expect((await ask('three', request, world.token, '/verifier/offer')).text).to.equal(asked.text);
    const elsewhere = await populate(service, 'elsewhere');
    const foreign = await ask('three', offerBody(elsewhere.ids.credential), elsewhere.token);
    expect(foreign.status, foreign.text).to.equal(201);
  });

  it('is the same whatever became of its session, for 24 hours', async () => {
    const first = await ask('four', body());
    await service.call('DELETE', `/session/${first.body.session}`, { token: world.token });
    expect((await ask('four', body())).text).to.equal(first.text);
    const clock = sinon.useFakeTimers({ now: Date.now(), toFake: ['Date'] });
    clock.tick(86_399_000);
    expect((await ask('four', body())).text).to.equal(first.text);
    clock.tick(2_000);
    expect((await ask('four', body())).body.session).not.to.equal(first.body.session);
  });

  it('is told nobody whose rights ended, from then on', async () => {
    const other = { ...offerBody(world.ids.credential), credentialConfigurationIds: ['other'] };
    const call = (method: string, path: string, json?: object) =>
      service.call(method, path, { token: world.token, ...(json && { json }) });
    const { body: made } = await call('GET', `/issuer/credentials/${world.ids.credential}`);
    const { tenant: _tenant, createdAt: _created, updatedAt: _updated, ...configuration } = made;
    const { status, text } = await call('POST', '/issuer/credentials', { ...configuration, id: 'other' });
    expect(status, text).to.equal(201);
    const ends: Readonly<Record<string, () => Promise<{ readonly status: number }>>> = {
      role: () => call('PATCH', '/client/role', { roles: ['presentation:request'] }),
      restricted: () =>
        call('PATCH', '/client/restricted', {
          roles: ['issuance:offer'],
          allowedIssuanceConfigs: [world.ids.credential],
        }),
      removed: () => call('DELETE', '/client/removed'),
    };
    for (const [id, end] of Object.entries(ends)) {
      const token = await addClient(world, id, { roles: ['issuance:offer'] });
      expect((await ask('rights', other, token)).status, id).to.equal(201);
      expect((await end()).status, id).to.equal(200);
      expect((await ask('rights', other, token)).status, id).to.be.oneOf([401, 403]);
    }
    const secret = 'another-secret-of-the-one-that-was-removed';
    await call('POST', '/client', { clientId: 'removed', secret, roles: ['issuance:offer'] });
    const anew = await service.token('removed', secret);
    const asked = await ask('rights', { ...other, expiresIn: 100 }, anew);
    expect(asked.status, asked.text).to.equal(201);
  });

  it('is not kept for a request that was refused', async () => {
    const refused = await ask('five', { ...body(), credentialConfigurationIds: ['nothing'] });
    expect(refused.status).to.equal(400);
    expect((await ask('five', body())).status).to.equal(201);
  });

  it('is forgotten when its time is over', async () => {
    const { maintenance } = service.service.container.get(Store);
    await ask('six', body());
    while ((await maintenance.forgetExpired(new Date(Date.now() + 86_500_000), 1000)) > 0);
    expect((await ask('six', { ...body(), expiresIn: 50 })).status).to.equal(201);
  });

  for (const [what, key] of [
    ['an empty key', ''],
    ['an endless one', 'x'.repeat(256)],
    ['one with an open quote', '"open'],
    ['one with spaces outside of quotes', 'a b'],
  ] as const) {
    it(`refuses ${what}`, async () => {
      const { status, text } = await ask(key, body());
      expect(status, text).to.equal(400);
    });
  }
});
