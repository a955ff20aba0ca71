import { expect } from 'chai';
import { CompactEncrypt, exportJWK, generateKeyPair, importJWK } from 'jose';
import { type Asked, bind, encrypt, type Held, Shop } from '../support/present.ts';
import type { Answer } from '../support/test-service.ts';

type Attempt = {
  readonly at: string;
  readonly code: string;
  readonly reason: string;
  readonly requestId: string;
};

describe('a response to a presentation request that cannot be read', () => {
  let shop: Shop;
  let held: Held;

  before(async () => {
    shop = await Shop.open();
    await shop.configure({ id: 'plain', responseMode: 'direct_post' });
    await shop.configure({ id: 'page', expectedOrigins: ['https://shop.example'] });
    await shop.configure({
      id: 'plain-page',
      expectedOrigins: ['https://shop.example'],
      responseMode: 'direct_post',
    });
    held = await shop.issue();
  });
  after(() => shop.close());

  const attemptsOf = async (session: string): Promise<readonly Attempt[]> =>
    (await shop.session(session))['attempts'] ?? [];
  const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const send = (asked: Asked, text: string, headers: Record<string, string> = FORM) =>
    shop.service.call('POST', asked.payload['response_uri'], { text, headers });
  const sealed = async (asked: Asked, change: { kid?: string | null; enc?: string; other?: boolean }) => {
    const [jwk] = asked.payload['client_metadata'].jwks.keys;
    const key = change.other
      ? await exportJWK((await generateKeyPair('ECDH-ES', { crv: 'P-256' })).publicKey)
      : jwk;
    const { kid = jwk.kid, enc = 'A256GCM' } = change;
    const plaintext = { vp_token: { card: [bind(asked, held)] }, state: asked.payload['state'] };
    const response = await new CompactEncrypt(Buffer.from(JSON.stringify(plaintext)))
      .setProtectedHeader({ alg: 'ECDH-ES', enc, ...(kid !== null && { kid }) })
      .encrypt(await importJWK(key, 'ECDH-ES'));
    return shop.post(asked, { response });
  };

  const cases: readonly [string, string, (asked: Asked) => Promise<Answer>, RegExp][] = [
    ['check', 'has no kid in the JWE', (asked) => sealed(asked, { kid: null }), /no kid/],
    ['check', 'has the kid of another key', (asked) => sealed(asked, { kid: 'x' }), /kid .* not that/],
    ['check', 'has an enc that was not offered', (asked) => sealed(asked, { enc: 'A128CBC-HS256' }), /enc/],
    ['check', 'is encrypted to another key', (asked) => sealed(asked, { other: true }), /another key/],
    ['check', 'is no JWE', (asked) => shop.post(asked, { response: 'x.y.z' }), /five parts/],
    [
      'check',
      'has no state inside',
      async (asked) => shop.post(asked, { response: await encrypt(asked, { vp_token: {} }) }),
      /state/,
    ],
    [
      'check',
      'is larger than the limit',
      (asked) => send(asked, `response=${'A'.repeat(2_700_000)}`),
      /2621440/,
    ],
    ['plain', 'has another state', (asked) => shop.post(asked, { vp_token: '{}', state: 'x' }), /state/],
    ['plain', 'is empty', (asked) => send(asked, ''), /vp_token, response or error/],
    ['plain', 'has a parameter twice', (asked) => send(asked, 'state=a&state=b'), /more than once/],
    [
      'plain',
      'is JSON',
      (asked) => send(asked, '{}', { 'Content-Type': 'application/json' }),
      /send the body as/,
    ],
  ];
  for (const [configuration, what, act, reason] of cases) {
    it(`is recorded in the attempts of its session when it ${what}`, async () => {
      const asked = await shop.ask(configuration);
      const { status, headers } = await act(asked);
      expect(status).to.be.within(400, 499);
      const [attempt, ...more] = await attemptsOf(asked.session);
      expect(more).to.deep.equal([]);
      expect(attempt?.reason)
        .to.match(reason)
        .and.not.match(/Ada|eyJ/);
      expect(attempt?.requestId).to.equal(headers.get('x-request-id'));
      expect((await shop.session(asked.session))['status']).to.equal('fetched');
      expect((await shop.present(asked, held)).status, 'the wallet can still respond').to.equal(200);
      const ended = await shop.session(asked.session);
      expect(ended['status']).to.equal('completed');
      expect(ended['attempts'], 'kept with the result').to.deep.equal([attempt]);
    });
  }

  const ofPages: readonly [string, object | string, RegExp][] = [
    ['page', { response: 'a.b.c.d.e' }, /header of the JWE/],
    ['page', {}, /vp_token, response or error/],
    ['page', '{"secret-name": 1, "secret-name": 2}', /not a JSON object of the expected form/],
    ['plain-page', '[', /not a JSON object of the expected form/],
  ];
  for (const [configuration, body, reason] of ofPages) {
    it(`is recorded when a page hands over ${JSON.stringify(body)} (${configuration})`, async () => {
      const made = await shop.call('POST', '/verifier/offer', {
        response_type: 'dc-api',
        requestId: configuration,
      });
      const headers = { 'Content-Type': 'application/json' };
      const sent = typeof body === 'string' ? { text: body, headers } : { json: body };
      expect((await shop.service.call('POST', made.body.uri, sent)).status).to.equal(400);
      const [attempt] = await attemptsOf(made.body.session);
      expect(attempt?.reason).to.match(reason).and.not.include('secret-name');
    });
  }

  it('is recorded 20 times at most, and no longer changes the session then', async () => {
    const asked = await shop.ask('plain');
    const versions: unknown[] = [];
    for (let count = 0; count < 23; count++) {
      await shop.post(asked, { vp_token: '{}', state: 'x' });
      versions.push((await shop.session(asked.session))['updatedAt']);
    }
    expect(await attemptsOf(asked.session)).to.have.length(20);
    expect(new Set(versions.slice(19)).size, 'nothing is written any more').to.equal(1);
  });

  it('is not recorded for a request that was answered, nor for an unknown one', async () => {
    const asked = await shop.ask('plain');
    await shop.present(asked, held);
    expect((await shop.post(asked, { vp_token: '{}', state: 'x' })).status).to.equal(400);
    expect(await shop.session(asked.session)).to.not.have.property('attempts');
    const unknown = await shop.service.call('POST', '/shop/response/unknown', { form: { state: 'x' } });
    expect(unknown.status).to.equal(404);
  });
});
