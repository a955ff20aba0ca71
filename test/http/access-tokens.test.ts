import { request } from 'node:http';
import { expect } from 'chai';
import { databases, type TestDatabase } from '../support/databases.ts';
import { createResource, offerBody } from '../support/populated.ts';
import { dpopProof, keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { createTenant, ROOT, startTestService, type TestService } from '../support/test-service.ts';

const SECRET = 'a-secret-that-was-agreed-on';

describe('the token endpoint of the administrative interface', () => {
  let service: TestService;
  let admin: string;

  const basic = (text: string) => ({ Authorization: `Basic ${Buffer.from(text).toString('base64')}` });
  const grant = { grant_type: 'client_credentials' };
  const post = (options: object) => service.call('POST', '/oauth2/token', options);

  before(async () => {
    service = await startTestService();
    const { token } = await createTenant(service, 'acme');
    admin = token;
    const json = { clientId: 'caller', roles: ['issuance:offer'], secret: SECRET };
    expect((await service.call('POST', '/client', { token, json })).status).to.equal(201);
  });
  after(() => service.close());

  it('accepts credentials in the header and in the body, as JSON and as a form', async () => {
    const ways = [
      { json: grant, headers: basic(`caller:${SECRET}`) },
      { json: { ...grant, client_id: 'caller', client_secret: SECRET } },
      { form: grant, headers: basic(`caller:${SECRET}`) },
      { form: { ...grant, client_id: 'caller', client_secret: SECRET } },
    ];
    for (const way of ways) {
      const answer = await post(way);
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.headers.get('cache-control')).to.equal('no-store');
      expect(answer.body).to.have.all.keys('access_token', 'token_type', 'expires_in');
      expect(answer.body).to.include({ token_type: 'Bearer', expires_in: 86_400 });
      const payload = JSON.parse(Buffer.from(answer.body.access_token.split('.')[1], 'base64url').toString());
      expect(payload).to.deep.include({
        iss: 'platform-service',
        aud: 'platform-service',
        sub: 'acme',
        client_id: 'caller',
        roles: ['issuance:offer'],
      });
      expect(payload.exp - payload.iat).to.equal(86_400);
    }
  });

  const refused: [string, object, number, string][] = [
    ['a wrong secret', { json: { ...grant, client_id: 'caller', client_secret: 'x' } }, 401, 'invalid_client'],
    ['an unknown client', { json: { ...grant, client_id: 'x', client_secret: 'x' } }, 401, 'invalid_client'],
    ['no credentials', { json: grant }, 401, 'invalid_client'],
    ['another grant', { json: { grant_type: 'password' } }, 400, 'unsupported_grant_type'],
    ['no grant', { json: { client_id: 'caller', client_secret: SECRET } }, 400, 'invalid_request'],
    [
      'two ways that contradict each other',
      { json: { ...grant, client_id: 'caller', client_secret: 'another' }, headers: basic(`caller:${SECRET}`) },
      400,
      'invalid_request',
    ],
    ['broken JSON', { text: '{', headers: { 'Content-Type': 'application/json' } }, 400, 'invalid_request'],
  ];
  for (const [what, options, status, error] of refused) {
    it(`rejects ${what}`, async () => {
      const answer = await post(options);
      expect([answer.status, answer.body.error], answer.text).to.deep.equal([status, error]);
      expect(answer.headers.get('cache-control')).to.equal('no-store');
      expect(answer.body).to.not.have.property('title');
      if (status === 401) expect(answer.headers.get('www-authenticate')).to.match(/^Basic /);
    });
  }

  it('gives the same answer for a wrong secret and for an unknown client', async () => {
    const answers = await Promise.all(
      ['caller', 'nobody-at-all'].map((client_id) => post({ json: { ...grant, client_id, client_secret: 'wrong' } })),
    );
    expect(new Set(answers.map(({ text }) => text)).size).to.equal(1);
  });

  it('accepts a client and rejects guesses with 150 unknown names at once', async () => {
    const attempt = (client_id: string, client_secret: string) => post({ json: { ...grant, client_id, client_secret } });
    const fresh = await service.call('POST', '/client', {
      token: admin,
      json: { clientId: 'busy', roles: ['issuance:offer'], secret: SECRET },
    });
    expect(fresh.status, fresh.text).to.equal(201);
    const guesses = Array.from({ length: 150 }, (_, i) => attempt(`unknown-${i}`, `guess ${i}`));
    // How many computations pass before the client's is a rule of `test/contract/secrets.test.ts`.
    const answer = await attempt('busy', SECRET);
    expect(answer.status, answer.text).to.equal(200);
    const rejected = await Promise.all(guesses);
    expect(new Set(rejected.map(({ status }) => status))).to.deep.equal(new Set([401]));
  });

  it('does not reveal by the number of concurrent attempts whether a client exists', async () => {
    const outcomes = async (client_id: string) => {
      const answers = await Promise.all(
        Array.from({ length: 6 }, (_, i) => post({ json: { ...grant, client_id, client_secret: `wrong ${i}` } })),
      );
      return answers.map(({ status, text, headers }) => `${status} ${headers.get('retry-after')} ${text}`).sort();
    };
    const known = await outcomes('caller');
    expect(known.filter((outcome) => outcome.startsWith('429 1'))).to.have.length(3);
    for (const name of ['nobody-at-all', ROOT.clientId]) expect(await outcomes(name), name).to.deep.equal(known);
  });
});

const CARD = {
  id: 'card',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
  vct: 'urn:card:1',
  claims: { name: 'Ada' },
};
const DISPLAY = [{ name: 'Acme', locale: 'en' }];

describe('access tokens without key binding', () => {
  let service: TestService;
  let token: string;

  before(async () => {
    service = await startTestService();
    for (const [id, dPopRequired] of [
      ['open', false],
      ['bound', true],
    ] as const) {
      ({ token } = await createTenant(service, id));
      await createResource(service, token, '/issuer/credentials', CARD);
      await createResource(service, token, '/issuer/config', { display: DISPLAY, dPopRequired });
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

  it('appear in the challenge only where bearer tokens are accepted', async () => {
    const bad = { Authorization: 'Bearer nonsense' };
    expect(await challenge('open')).to.match(/^DPoP algs="[^"]+", Bearer$/);
    expect(await challenge('open', bad)).to.match(/^DPoP error="invalid_token".*, Bearer error="invalid_token"$/);
    expect(await challenge('bound')).to.match(/^DPoP algs="[^"]+"$/);
    expect(await challenge('bound', bad)).to.not.include('Bearer');
  });

  it('get a bearer challenge when they are revoked or lack the scope', async () => {
    const wallet = new RawWallet(service, 'open');
    const admin = tokens.get('open') ?? '';
    const json = { ...offerBody('card'), flow: 'authorization_code' };
    const { uri } = await createResource(service, admin, '/issuer/offer', json);
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
    await createResource(service, admin, '/issuer/credentials', { ...CARD, id: 'pass' });
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

  it('are issued one after the other to concurrent requests', async () => {
    const wallet = new RawWallet(service, 'open');
    const { uri } = await createResource(service, tokens.get('open') ?? '', '/issuer/offer', offerBody('card'));
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

describe('second process of the service', () => {
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

  it('applies new rights of a tenant at once', async () => {
    const { token } = await createTenant(first, 'acme');
    await createResource(first, token, '/issuer/credentials', CARD);
    await createResource(first, token, '/issuer/config', { display: DISPLAY });
    const walletAt = (service: TestService) => {
      const call: TestService['call'] = (method, path, options) => service.call(method, path.replace(PUBLIC_URL, ''), options);
      return new RawWallet({ ...service, address: PUBLIC_URL, call }, 'acme');
    };
    const wallet = walletAt(second);
    const codeOf = async () => wallet.code((await createResource(first, token, '/issuer/offer', offerBody('card'))).uri);
    const proof = { DPoP: dpopProof(wallet.dpopKey, `${wallet.issuer}/token`) };
    expect((await wallet.redeem(await codeOf(), {}, proof)).status).to.equal(200);
    expect((await wallet.redeem(await codeOf(), {}, {})).status).to.equal(400);
    await createResource(first, token, '/issuer/config', { display: DISPLAY, dPopRequired: false });
    expect((await wallet.redeem(await codeOf(), {}, {})).status).to.equal(200);
  });
});
