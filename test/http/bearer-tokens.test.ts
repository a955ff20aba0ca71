import { request } from 'node:http';
import { expect } from 'chai';
import { databases, type TestDatabase } from '../support/databases.ts';
import { created, offerBody } from '../support/populated.ts';
import { dpopProof, keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const CARD = {
  id: 'card',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
  vct: 'urn:card:1',
  claims: { name: 'Ada' },
};
const DISPLAY = [{ name: 'Acme', locale: 'en' }];

describe('access tokens that are bound to no key', () => {
  let service: TestService;
  let token: string;

  before(async () => {
    service = await startTestService();
    for (const [id, dPopRequired] of [
      ['open', false],
      ['bound', true],
    ] as const) {
      ({ token } = await createTenant(service, id));
      await created(service, token, '/issuer/credentials', CARD);
      await created(service, token, '/issuer/config', { display: DISPLAY, dPopRequired });
      tokens.set(id, token);
    }
  });
  const tokens = new Map<string, string>();
  after(() => service.close());

  const challenge = async (tenant: string, headers: Record<string, string> = {}) => {
    const answer = await service.call('POST', `/${tenant}/credential`, { json: {}, headers });
    expect(answer.status, answer.text).to.equal(401);
    return answer.headers.get('www-authenticate') ?? '';
  };

  it('are named as a way in only where they are taken', async () => {
    const bad = { Authorization: 'Bearer nonsense' };
    expect(await challenge('open')).to.match(/^DPoP algs="[^"]+", Bearer$/);
    expect(await challenge('open', bad)).to.match(
      /^DPoP error="invalid_token".*, Bearer error="invalid_token"$/,
    );
    expect(await challenge('bound')).to.match(/^DPoP algs="[^"]+"$/);
    expect(await challenge('bound', bad)).to.not.include('Bearer');
  });

  it('are challenged as such when they were revoked, or do not cover what is asked for', async () => {
    const wallet = new RawWallet(service, 'open');
    const admin = tokens.get('open') ?? '';
    const json = { ...offerBody('card'), flow: 'authorization_code' };
    const { uri } = await created(service, admin, '/issuer/offer', json);
    const code = await wallet.authorize(await wallet.push(uri, 'card', {}));
    const { body } = await wallet.redeemCode(code, {}, {});
    expect(body.token_type).to.equal('Bearer');
    const bearer = { Authorization: `Bearer ${body.access_token}` };
    const send = async (credential_configuration_id: string) => {
      const proofs = { jwt: [keyProof(newKey(), wallet.issuer, await wallet.nonce())] };
      const request = { credential_configuration_id, proofs };
      const answer = await service.call('POST', '/open/credential', { json: request, headers: bearer });
      return [answer.status, answer.headers.get('www-authenticate')];
    };
    await created(service, admin, '/issuer/credentials', { ...CARD, id: 'pass' });
    const [uncovered, told] = await send('pass');
    expect([uncovered, told]).to.deep.equal([403, told]);
    expect(told).to.match(/, Bearer error="insufficient_scope"$/);
    // The code comes again from the right client, which ends what it brought.
    expect((await wallet.redeemCode(code, {}, {})).status).to.equal(400);
    const [status, challenged] = await send('card');
    expect(status).to.equal(401);
    expect(challenged).to.match(/^DPoP error="invalid_token".*, Bearer error="invalid_token"$/);
    const event = { notification_id: 'x', event: 'credential_accepted' };
    const notified = await service.call('POST', '/open/notification', { json: event, headers: bearer });
    expect(notified.status).to.equal(401);
    expect(notified.headers.get('www-authenticate')).to.include('Bearer error="invalid_token"');
  });

  it('come one at a time', async () => {
    const wallet = new RawWallet(service, 'open');
    const { uri } = await created(service, tokens.get('open') ?? '', '/issuer/offer', offerBody('card'));
    const { body } = await wallet.redeem(await wallet.code(uri), {}, {});
    expect(body.token_type).to.equal('Bearer');
    const proofs = { jwt: [keyProof(newKey(), wallet.issuer, await wallet.nonce())] };
    const send = (authorization: string[]) =>
      new Promise<number | undefined>((resolve, reject) => {
        const headers = { 'Content-Type': 'application/json', Authorization: authorization };
        const sent = request(`${wallet.issuer}/credential`, { method: 'POST', headers }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        });
        sent.on('error', reject);
        sent.end(JSON.stringify({ credential_configuration_id: 'card', proofs }));
      });
    const bearer = `Bearer ${body.access_token}`;
    expect(await send([bearer, bearer])).to.equal(400);
    expect(await send([bearer])).to.equal(200);
  });
});

describe('a second process of the service', () => {
  const PUBLIC_URL = 'https://issuer.example';
  let database: TestDatabase | undefined;
  let first: TestService;
  let second: TestService;

  // An SQLite file is for one service.
  before(async function () {
    database = await databases()
      .find(({ name }) => name === 'postgres')
      ?.open();
    if (database === undefined) return this.skip();
    const shared = { PUBLIC_URL, DATABASE_URL: database.url };
    first = await startTestService(shared);
    second = await startTestService(shared);
  });
  after(async () => {
    await second?.close();
    await first?.close();
    await database?.drop();
  });

  it('takes at once what the tenant has begun to allow', async () => {
    const { token } = await createTenant(first, 'acme');
    await created(first, token, '/issuer/credentials', CARD);
    await created(first, token, '/issuer/config', { display: DISPLAY });
    const walletAt = (service: TestService) => {
      const call: TestService['call'] = (method, path, options) =>
        service.call(method, path.replace(PUBLIC_URL, ''), options);
      return new RawWallet({ ...service, address: PUBLIC_URL, call }, 'acme');
    };
    const wallet = walletAt(second);
    const codeOf = async () =>
      wallet.code((await created(first, token, '/issuer/offer', offerBody('card'))).uri);
    const proof = { DPoP: dpopProof(wallet.dpopKey, `${wallet.issuer}/token`) };
    expect((await wallet.redeem(await codeOf(), {}, proof)).status).to.equal(200);
    expect((await wallet.redeem(await codeOf(), {}, {})).status).to.equal(400);
    await created(first, token, '/issuer/config', { display: DISPLAY, dPopRequired: false });
    expect((await wallet.redeem(await codeOf(), {}, {})).status).to.equal(200);
  });
});
