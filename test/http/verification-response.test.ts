import { expect } from 'chai';
import { CompactEncrypt, exportJWK, generateKeyPair, importJWK } from 'jose';
import { MAX_UNDECRYPTED_ATTEMPTS } from '../../application/verification/response-intake.ts';
import { withoutIssuers } from '../support/failures.ts';
import { bindToRequest, encryptResponse, type FetchedRequest, type HeldCredential, responseForm, Shop } from '../support/present.ts';
import type { Answer } from '../support/test-service.ts';

describe('A response to a presentation request', () => {
  let shop: Shop;
  let held: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    await shop.configure({ id: 'plain', responseMode: 'direct_post' });
    held = await shop.issue();
  });
  after(() => shop.close());

  const tokenFor = (asked: FetchedRequest) => ({ card: [bindToRequest(asked, held)] });
  const statusOf = async (asked: FetchedRequest) => (await shop.session(asked.session))['status'];
  const expectRefused = (answer: Answer, status = 400) => {
    expect([answer.status, answer.body?.error], answer.text).to.deep.equal([status, 'invalid_request']);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
    expect(answer.headers.get('content-type')).to.equal('application/json');
  };

  describe('leaves the session unchanged', () => {
    type Case = [string, string, (asked: FetchedRequest) => Promise<Answer>, number?];
    const state = (asked: FetchedRequest) => asked.payload['state'] as string;
    const vp = (asked: FetchedRequest) => JSON.stringify(tokenFor(asked));
    const cases: Case[] = [
      [
        // N31
        'as JSON',
        'plain',
        (asked) => shop.service.call('POST', asked.payload['response_uri'], { json: { vp_token: tokenFor(asked), state: state(asked) } }),
        415,
      ],
      // N32
      ['over the size limit', 'plain', (asked) => shop.postResponse(asked, { vp_token: 'x'.repeat(2_700_000), state: state(asked) }), 413],
      // N33
      ['without content', 'plain', (asked) => shop.postResponse(asked, { state: state(asked) })],
      // N38
      ['without state', 'plain', (asked) => shop.postResponse(asked, { vp_token: vp(asked) })],
      [
        // N38
        'without state in the ciphertext',
        'check',
        async (asked) => shop.postResponse(asked, { response: await encryptResponse(asked, { vp_token: tokenFor(asked) }) }),
      ],
      [
        // N59
        'with a wrong state in the ciphertext',
        'check',
        async (asked) => shop.postResponse(asked, { response: await encryptResponse(asked, { vp_token: tokenFor(asked), state: 'x' }) }),
      ],
      // N46
      ['as an error with a wrong state', 'check', (asked) => shop.postResponse(asked, { error: 'access_denied', state: 'wrong' })],
      [
        'with a parameter twice',
        'plain',
        (asked) =>
          shop.service.call('POST', asked.payload['response_uri'], {
            text: `state=${state(asked)}&state=${state(asked)}&error=access_denied`,
            headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
          }),
      ],
    ];
    for (const [what, configuration, attempt, status] of cases) {
      it(`when it is sent ${what}`, async () => {
        const asked = await shop.requestPresentation(configuration);
        expectRefused(await attempt(asked), status);
        expect(await statusOf(asked)).to.equal('fetched');
        expect((await shop.present(asked, held)).status, 'and can still be answered').to.equal(200);
      });
    }

    // N39
    it('when it is sent with the state of another session, which stays unchanged, too', async () => {
      const [one, other] = [await shop.requestPresentation('plain'), await shop.requestPresentation('plain')];
      const vpToken = JSON.stringify(tokenFor(one));
      expectRefused(await shop.postResponse(one, { vp_token: vpToken, state: other.payload['state'] }));
      expect([await statusOf(one), await statusOf(other)]).to.deep.equal(['fetched', 'fetched']);
    });

    // N40
    it('when it is sent to the address of another session', async () => {
      const [one, other] = [await shop.requestPresentation('plain'), await shop.requestPresentation('plain')];
      expectRefused(await shop.postResponse(other, await responseForm(one, tokenFor(one))));
      expect([await statusOf(one), await statusOf(other)]).to.deep.equal(['fetched', 'fetched']);
    });
  });

  describe('ends the session', () => {
    type Case = [string, string, (asked: FetchedRequest) => Promise<Record<string, string>> | Record<string, string>];
    const plain = (asked: FetchedRequest) => ({ vp_token: JSON.stringify(tokenFor(asked)), state: asked.payload['state'] as string });
    const sealed = (asked: FetchedRequest) => encryptResponse(asked, { vp_token: tokenFor(asked), state: asked.payload['state'] });
    const cases: Case[] = [
      // N34
      ['in the clear though it was to be encrypted', 'check', plain],
      [
        // N35
        'encrypted though it was not asked for',
        'plain',
        async (asked) => ({ response: await sealed(await shop.requestPresentation()), state: asked.payload['state'] }),
      ],
      // N36
      ['with presentations and an error', 'plain', (asked) => ({ ...plain(asked), error: 'x' })],
      // N37
      ['encrypted and in the clear', 'check', async (asked) => ({ ...plain(asked), response: await sealed(asked) })],
      // N51
      ['encrypted for another session', 'check', async () => ({ response: await sealed(await shop.requestPresentation()) })],
      [
        // N55
        'with a byte changed',
        'check',
        async (asked) => ({ response: (await sealed(asked)).replace(/.$/, (c) => (c === 'A' ? 'Q' : 'A')) }),
      ],
    ];
    for (const [what, configuration, form] of cases) {
      it(`when it is sent ${what}`, async () => {
        const asked = await shop.requestPresentation(configuration);
        const sent = await form(asked);
        // What does not decrypt leaves the request open for a few tries.
        for (let tries = 0; tries < MAX_UNDECRYPTED_ATTEMPTS; tries++) expectRefused(await shop.postResponse(asked, sent));
        const seen = await shop.session(asked.session);
        expect(seen['status']).to.equal('failed');
        expect(seen['failure'].code).to.be.a('string');
        expect(seen['report'], 'the operator sees why').to.have.length.greaterThan(0);
        expectRefused(await shop.present(asked, held));
      });
    }

    for (const configuration of ['plain', 'check']) {
      // N45, N48
      it(`when it is an error of the wallet, unencrypted, with ${configuration}`, async () => {
        const asked = await shop.requestPresentation(configuration);
        const { state } = asked.payload;
        const answer = await shop.postResponse(asked, { error: 'access_denied', error_description: 'no', state });
        expect([answer.status, Object.keys(answer.body)]).to.deep.equal([200, ['redirect_uri']]);
        expect(answer.body.redirect_uri).to.match(/\/shop\/presented\?response_code=/);
        const seen = await shop.session(asked.session);
        expect([seen['status'], seen['failure']]).to.deep.equal(['failed', { code: 'access_denied', message: 'no' }]);
      });
    }

    // N47
    it('when it is an error with a long text with markup, of which only the beginning is stored', async () => {
      const asked = await shop.requestPresentation();
      const error_description = `<script>alert(1)</script>\u0007${'long '.repeat(20_000)}`;
      const { state } = asked.payload;
      const answer = await shop.postResponse(asked, { error: '<b>odd</b>', error_description, state });
      expect(answer.status).to.equal(200);
      const { failure } = await shop.session(asked.session);
      expect(failure.code).to.equal('wallet_error');
      expect(failure.message).to.have.length.lessThan(400);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: that they are gone is the point
      expect(failure.message).to.not.match(/[<>\u0000-\u001f]/);
    });
  });

  describe('is accepted', () => {
    // N41, N42
    it('once, regardless of repetitions and concurrency', async () => {
      const asked = await shop.requestPresentation();
      const form = await responseForm(asked, tokenFor(asked));
      const answers = await Promise.all([1, 2, 3, 4, 5].map(() => shop.postResponse(asked, form)));
      expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
      for (const answer of answers.filter(({ status }) => status !== 200)) expectRefused(answer);
      const seen = await shop.session(asked.session);
      expect(withoutIssuers(seen['credentials'])).to.deep.equal([{ id: 'card', values: { name: 'Ada' } }]);
      expectRefused(await shop.postResponse(asked, { error: 'access_denied', state: asked.payload['state'] }));
      expect((await shop.session(asked.session))['status'], 'the first result stays').to.equal('completed');
    });

    // N49
    it('with additional unknown fields', async () => {
      const asked = await shop.requestPresentation();
      const form = { ...(await responseForm(asked, tokenFor(asked))), presentation_submission: '{}', extra: 'x' };
      expect((await shop.postResponse(asked, form)).status).to.equal(200);
    });

    it('with too many claims, of which only the requested ones are kept', async () => {
      const asked = await shop.requestPresentation();
      expect((await shop.present(asked, held)).status).to.equal(200);
      const text = JSON.stringify(await shop.session(asked.session));
      expect(text).to.include('Ada').and.not.include('age');
    });
  });

  it('with POST only, and other methods get 405', async () => {
    const asked = await shop.requestPresentation();
    const answer = await shop.service.call('GET', asked.payload['response_uri']);
    expect([answer.status, answer.headers.get('allow')]).to.deep.equal([405, 'POST']);
  });
});

type Attempt = { readonly at: string; readonly code: string; readonly reason: string; readonly requestId: string };

describe('An unreadable response to a presentation request', () => {
  let shop: Shop;
  let held: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    await shop.configure({ id: 'plain', responseMode: 'direct_post' });
    await shop.configure({ id: 'page', expectedOrigins: ['https://shop.example'] });
    await shop.configure({ id: 'plain-page', expectedOrigins: ['https://shop.example'], responseMode: 'direct_post' });
    held = await shop.issue();
  });
  after(() => shop.close());

  const attemptsOf = async (session: string): Promise<readonly Attempt[]> => (await shop.session(session))['attempts'] ?? [];
  const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const send = (asked: FetchedRequest, text: string, headers: Record<string, string> = FORM) =>
    shop.service.call('POST', asked.payload['response_uri'], { text, headers });
  const sealed = async (asked: FetchedRequest, change: { kid?: string | null; enc?: string; other?: boolean }) => {
    const [jwk] = asked.payload['client_metadata'].jwks.keys;
    const key = change.other ? await exportJWK((await generateKeyPair('ECDH-ES', { crv: 'P-256' })).publicKey) : jwk;
    const { kid = jwk.kid, enc = 'A256GCM' } = change;
    const plaintext = { vp_token: { card: [bindToRequest(asked, held)] }, state: asked.payload['state'] };
    const response = await new CompactEncrypt(Buffer.from(JSON.stringify(plaintext)))
      .setProtectedHeader({ alg: 'ECDH-ES', enc, ...(kid !== null && { kid }) })
      .encrypt(await importJWK(key, 'ECDH-ES'));
    return shop.postResponse(asked, { response });
  };

  const cases: readonly [string, string, (asked: FetchedRequest) => Promise<Answer>, RegExp][] = [
    ['check', 'has no kid in the JWE', (asked) => sealed(asked, { kid: null }), /no kid/],
    ['check', 'has the kid of another key', (asked) => sealed(asked, { kid: 'x' }), /kid .* does not match/],
    ['check', 'has an enc that was not offered', (asked) => sealed(asked, { enc: 'A128CBC-HS256' }), /enc/],
    ['check', 'is encrypted to another key', (asked) => sealed(asked, { other: true }), /another key/],
    ['check', 'is not a JWE', (asked) => shop.postResponse(asked, { response: 'x.y.z' }), /five parts/],
    [
      'check',
      'has no state inside',
      async (asked) => shop.postResponse(asked, { response: await encryptResponse(asked, { vp_token: {} }) }),
      /state/,
    ],
    ['check', 'is larger than the limit', (asked) => send(asked, `response=${'A'.repeat(2_700_000)}`), /2621440/],
    ['plain', 'has another state', (asked) => shop.postResponse(asked, { vp_token: '{}', state: 'x' }), /state/],
    ['plain', 'is empty', (asked) => send(asked, ''), /vp_token, response or error/],
    ['plain', 'has a parameter twice', (asked) => send(asked, 'state=a&state=b'), /more than once/],
    ['plain', 'is JSON', (asked) => send(asked, '{}', { 'Content-Type': 'application/json' }), /send the body as/],
  ];
  for (const [configuration, what, act, reason] of cases) {
    it(`is recorded in the attempts of its session when it ${what}`, async () => {
      const asked = await shop.requestPresentation(configuration);
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
    ['page', '{"secret-name": 1, "secret-name": 2}', /not a JSON object of the expected structure/],
    ['plain-page', '[', /not a JSON object of the expected structure/],
  ];
  for (const [configuration, body, reason] of ofPages) {
    it(`is recorded when a page passes ${JSON.stringify(body)} (${configuration})`, async () => {
      const made = await shop.call('POST', '/verifier/offer', { response_type: 'dc-api', requestId: configuration });
      const headers = { 'Content-Type': 'application/json' };
      const sent = typeof body === 'string' ? { text: body, headers } : { json: body };
      expect((await shop.service.call('POST', made.body.uri, sent)).status).to.equal(400);
      const [attempt] = await attemptsOf(made.body.session);
      expect(attempt?.reason).to.match(reason).and.not.include('secret-name');
    });
  }

  it('is recorded at most 20 times, and later ones do not change the session', async () => {
    const asked = await shop.requestPresentation('plain');
    const versions: unknown[] = [];
    for (let count = 0; count < 23; count++) {
      await shop.postResponse(asked, { vp_token: '{}', state: 'x' });
      versions.push((await shop.session(asked.session))['updatedAt']);
    }
    expect(await attemptsOf(asked.session)).to.have.length(20);
    expect(new Set(versions.slice(19)).size, 'nothing is written any more').to.equal(1);
  });

  it('is not recorded for an answered request, nor for an unknown one', async () => {
    const asked = await shop.requestPresentation('plain');
    await shop.present(asked, held);
    expect((await shop.postResponse(asked, { vp_token: '{}', state: 'x' })).status).to.equal(400);
    expect(await shop.session(asked.session)).to.not.have.property('attempts');
    const unknown = await shop.service.call('POST', '/shop/response/unknown', { form: { state: 'x' } });
    expect(unknown.status).to.equal(404);
  });
});
