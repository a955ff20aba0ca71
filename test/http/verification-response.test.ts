import { expect } from 'chai';
import { CompactEncrypt, exportJWK, generateKeyPair, importJWK } from 'jose';
import { MAX_UNDECRYPTED_ATTEMPTS } from '../../application/verification/response-intake.ts';
import { withoutIssuers } from '../support/failures.ts';
import { bindToRequest, encryptResponse, type FetchedRequest, type HeldCredential, responseForm, Shop } from '../support/present.ts';
import type { Answer } from '../support/test-service.ts';

describe('A response to a presentation request', () => {
  let shop: Shop;
  let heldCredential: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    await shop.configure({ id: 'plain', responseMode: 'direct_post' });
    heldCredential = await shop.issue();
  });
  after(() => shop.close());

  const tokenFor = (request: FetchedRequest) => ({ card: [bindToRequest(request, heldCredential)] });
  const statusOf = async (request: FetchedRequest) => (await shop.session(request.session))['status'];
  const expectRejected = (answer: Answer, status = 400) => {
    expect([answer.status, answer.body?.error], answer.text).to.deep.equal([status, 'invalid_request']);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
    expect(answer.headers.get('content-type')).to.equal('application/json');
  };

  describe('leaves the session unchanged', () => {
    type Case = [string, string, (request: FetchedRequest) => Promise<Answer>, number?];
    const state = (request: FetchedRequest) => request.payload['state'] as string;
    const vp = (request: FetchedRequest) => JSON.stringify(tokenFor(request));
    const cases: Case[] = [
      [
        // N31
        'as JSON',
        'plain',
        (request) =>
          shop.service.call('POST', request.payload['response_uri'], { json: { vp_token: tokenFor(request), state: state(request) } }),
        415,
      ],
      // N32
      [
        'over the size limit',
        'plain',
        (request) => shop.postResponse(request, { vp_token: 'x'.repeat(2_700_000), state: state(request) }),
        413,
      ],
      // N33
      ['without content', 'plain', (request) => shop.postResponse(request, { state: state(request) })],
      // N38
      ['without state', 'plain', (request) => shop.postResponse(request, { vp_token: vp(request) })],
      [
        // N38
        'without state in the ciphertext',
        'check',
        async (request) => shop.postResponse(request, { response: await encryptResponse(request, { vp_token: tokenFor(request) }) }),
      ],
      [
        // N59
        'with a wrong state in the ciphertext',
        'check',
        async (request) =>
          shop.postResponse(request, { response: await encryptResponse(request, { vp_token: tokenFor(request), state: 'x' }) }),
      ],
      // N46
      ['as an error with a wrong state', 'check', (request) => shop.postResponse(request, { error: 'access_denied', state: 'wrong' })],
      [
        'with a repeated parameter',
        'plain',
        (request) =>
          shop.service.call('POST', request.payload['response_uri'], {
            text: `state=${state(request)}&state=${state(request)}&error=access_denied`,
            headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
          }),
      ],
    ];
    for (const [description, configuration, attempt, status] of cases) {
      it(`when it is sent ${description}`, async () => {
        const request = await shop.requestPresentation(configuration);
        expectRejected(await attempt(request), status);
        expect(await statusOf(request)).to.equal('fetched');
        expect((await shop.present(request, heldCredential)).status, 'a valid response is still accepted').to.equal(200);
      });
    }

    // N39
    it('when it is sent with the state of another session, which stays unchanged, too', async () => {
      const [ownRequest, otherRequest] = [await shop.requestPresentation('plain'), await shop.requestPresentation('plain')];
      const vpToken = JSON.stringify(tokenFor(ownRequest));
      expectRejected(await shop.postResponse(ownRequest, { vp_token: vpToken, state: otherRequest.payload['state'] }));
      expect([await statusOf(ownRequest), await statusOf(otherRequest)]).to.deep.equal(['fetched', 'fetched']);
    });

    // N40
    it('when it is sent to the address of another session', async () => {
      const [ownRequest, otherRequest] = [await shop.requestPresentation('plain'), await shop.requestPresentation('plain')];
      expectRejected(await shop.postResponse(otherRequest, await responseForm(ownRequest, tokenFor(ownRequest))));
      expect([await statusOf(ownRequest), await statusOf(otherRequest)]).to.deep.equal(['fetched', 'fetched']);
    });
  });

  describe('fails the session', () => {
    type Case = [string, string, (request: FetchedRequest) => Promise<Record<string, string>> | Record<string, string>];
    const unencrypted = (request: FetchedRequest) => ({
      vp_token: JSON.stringify(tokenFor(request)),
      state: request.payload['state'] as string,
    });
    const encrypted = (request: FetchedRequest) =>
      encryptResponse(request, { vp_token: tokenFor(request), state: request.payload['state'] });
    const cases: Case[] = [
      // N34
      ['unencrypted in spite of the required encryption', 'check', unencrypted],
      [
        // N35
        'encrypted in spite of a request for an unencrypted response',
        'plain',
        async (request) => ({ response: await encrypted(await shop.requestPresentation()), state: request.payload['state'] }),
      ],
      // N36
      ['with presentations and an error', 'plain', (request) => ({ ...unencrypted(request), error: 'x' })],
      // N37
      ['encrypted and unencrypted', 'check', async (request) => ({ ...unencrypted(request), response: await encrypted(request) })],
      // N51
      ['encrypted for another session', 'check', async () => ({ response: await encrypted(await shop.requestPresentation()) })],
      [
        // N55
        'with a changed byte',
        'check',
        async (request) => ({ response: (await encrypted(request)).replace(/.$/, (c) => (c === 'A' ? 'Q' : 'A')) }),
      ],
    ];
    for (const [description, configuration, form] of cases) {
      it(`when it is sent ${description}`, async () => {
        const request = await shop.requestPresentation(configuration);
        const parameters = await form(request);
        // Responses that cannot be decrypted leave the request open for a few attempts.
        for (let attempts = 0; attempts < MAX_UNDECRYPTED_ATTEMPTS; attempts++)
          expectRejected(await shop.postResponse(request, parameters));
        const session = await shop.session(request.session);
        expect(session['status']).to.equal('failed');
        expect(session['failure'].code).to.be.a('string');
        expect(session['report'], 'the report contains the reason').to.have.length.greaterThan(0);
        expectRejected(await shop.present(request, heldCredential));
      });
    }

    for (const configuration of ['plain', 'check']) {
      // N45, N48
      it(`when it is an error of the wallet, unencrypted, with ${configuration}`, async () => {
        const request = await shop.requestPresentation(configuration);
        const { state } = request.payload;
        const answer = await shop.postResponse(request, { error: 'access_denied', error_description: 'no', state });
        expect([answer.status, Object.keys(answer.body)]).to.deep.equal([200, ['redirect_uri']]);
        expect(answer.body.redirect_uri).to.match(/\/shop\/presented\?response_code=/);
        const session = await shop.session(request.session);
        expect([session['status'], session['failure']]).to.deep.equal(['failed', { code: 'access_denied', message: 'no' }]);
      });
    }

    // N47
    it('when it is an error with a long text with markup, of which only the beginning is stored', async () => {
      const request = await shop.requestPresentation();
      const error_description = `<script>alert(1)</script>\u0007${'long '.repeat(20_000)}`;
      const { state } = request.payload;
      const answer = await shop.postResponse(request, { error: '<b>odd</b>', error_description, state });
      expect(answer.status).to.equal(200);
      const { failure } = await shop.session(request.session);
      expect(failure.code).to.equal('wallet_error');
      expect(failure.message).to.have.length.lessThan(400);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: that they are gone is the point
      expect(failure.message).to.not.match(/[<>\u0000-\u001f]/);
    });
  });

  describe('is accepted', () => {
    // N41, N42
    it('once, regardless of repetitions and concurrency', async () => {
      const request = await shop.requestPresentation();
      const form = await responseForm(request, tokenFor(request));
      const responses = await Promise.all([1, 2, 3, 4, 5].map(() => shop.postResponse(request, form)));
      expect(responses.filter(({ status }) => status === 200)).to.have.length(1);
      for (const answer of responses.filter(({ status }) => status !== 200)) expectRejected(answer);
      const session = await shop.session(request.session);
      expect(withoutIssuers(session['credentials'])).to.deep.equal([{ id: 'card', values: { name: 'Ada' } }]);
      expectRejected(await shop.postResponse(request, { error: 'access_denied', state: request.payload['state'] }));
      expect((await shop.session(request.session))['status'], 'the first result is kept').to.equal('completed');
    });

    // N49
    it('with additional unknown fields', async () => {
      const request = await shop.requestPresentation();
      const form = { ...(await responseForm(request, tokenFor(request))), presentation_submission: '{}', extra: 'x' };
      expect((await shop.postResponse(request, form)).status).to.equal(200);
    });

    it('with too many claims, of which only the requested ones are kept', async () => {
      const request = await shop.requestPresentation();
      expect((await shop.present(request, heldCredential)).status).to.equal(200);
      const text = JSON.stringify(await shop.session(request.session));
      expect(text).to.include('Ada').and.not.include('age');
    });
  });

  it('with POST only, and other methods get 405', async () => {
    const request = await shop.requestPresentation();
    const answer = await shop.service.call('GET', request.payload['response_uri']);
    expect([answer.status, answer.headers.get('allow')]).to.deep.equal([405, 'POST']);
  });
});

type Attempt = { readonly at: string; readonly code: string; readonly reason: string; readonly requestId: string };

describe('An unreadable response to a presentation request', () => {
  let shop: Shop;
  let heldCredential: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    await shop.configure({ id: 'plain', responseMode: 'direct_post' });
    await shop.configure({ id: 'page', expectedOrigins: ['https://shop.example'] });
    await shop.configure({ id: 'plain-page', expectedOrigins: ['https://shop.example'], responseMode: 'direct_post' });
    heldCredential = await shop.issue();
  });
  after(() => shop.close());

  const attemptsOf = async (session: string): Promise<readonly Attempt[]> => (await shop.session(session))['attempts'] ?? [];
  const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const send = (request: FetchedRequest, text: string, headers: Record<string, string> = FORM) =>
    shop.service.call('POST', request.payload['response_uri'], { text, headers });
  const sendEncrypted = async (request: FetchedRequest, change: { kid?: string | null; enc?: string; other?: boolean }) => {
    const [jwk] = request.payload['client_metadata'].jwks.keys;
    const key = change.other ? await exportJWK((await generateKeyPair('ECDH-ES', { crv: 'P-256' })).publicKey) : jwk;
    const { kid = jwk.kid, enc = 'A256GCM' } = change;
    const plaintext = { vp_token: { card: [bindToRequest(request, heldCredential)] }, state: request.payload['state'] };
    const response = await new CompactEncrypt(Buffer.from(JSON.stringify(plaintext)))
      .setProtectedHeader({ alg: 'ECDH-ES', enc, ...(kid !== null && { kid }) })
      .encrypt(await importJWK(key, 'ECDH-ES'));
    return shop.postResponse(request, { response });
  };

  const cases: readonly [string, string, (request: FetchedRequest) => Promise<Answer>, RegExp][] = [
    ['check', 'has no kid in the JWE', (request) => sendEncrypted(request, { kid: null }), /no kid/],
    ['check', 'has the kid of another key', (request) => sendEncrypted(request, { kid: 'x' }), /kid .* does not match/],
    ['check', 'has an enc that was not offered', (request) => sendEncrypted(request, { enc: 'A128CBC-HS256' }), /enc/],
    ['check', 'is encrypted to another key', (request) => sendEncrypted(request, { other: true }), /another key/],
    ['check', 'is not a JWE', (request) => shop.postResponse(request, { response: 'x.y.z' }), /five parts/],
    [
      'check',
      'has no state inside',
      async (request) => shop.postResponse(request, { response: await encryptResponse(request, { vp_token: {} }) }),
      /state/,
    ],
    ['check', 'is larger than the limit', (request) => send(request, `response=${'A'.repeat(2_700_000)}`), /2621440/],
    ['plain', 'has another state', (request) => shop.postResponse(request, { vp_token: '{}', state: 'x' }), /state/],
    ['plain', 'is empty', (request) => send(request, ''), /vp_token, response or error/],
    ['plain', 'has a repeated parameter', (request) => send(request, 'state=a&state=b'), /more than once/],
    ['plain', 'is JSON', (request) => send(request, '{}', { 'Content-Type': 'application/json' }), /send the body as/],
  ];
  for (const [configuration, description, run, reason] of cases) {
    it(`is recorded in the attempts of its session when it ${description}`, async () => {
      const request = await shop.requestPresentation(configuration);
      const { status, headers } = await run(request);
      expect(status).to.be.within(400, 499);
      const [attempt, ...otherAttempts] = await attemptsOf(request.session);
      expect(otherAttempts).to.deep.equal([]);
      expect(attempt?.reason)
        .to.match(reason)
        .and.not.match(/Ada|eyJ/);
      expect(attempt?.requestId).to.equal(headers.get('x-request-id'));
      expect((await shop.session(request.session))['status']).to.equal('fetched');
      expect((await shop.present(request, heldCredential)).status, 'the wallet can still respond').to.equal(200);
      const session = await shop.session(request.session);
      expect(session['status']).to.equal('completed');
      expect(session['attempts'], 'the attempt is kept with the result').to.deep.equal([attempt]);
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
      const creation = await shop.call('POST', '/verifier/offer', { response_type: 'dc-api', requestId: configuration });
      const headers = { 'Content-Type': 'application/json' };
      const options = typeof body === 'string' ? { text: body, headers } : { json: body };
      expect((await shop.service.call('POST', creation.body.uri, options)).status).to.equal(400);
      const [attempt] = await attemptsOf(creation.body.session);
      expect(attempt?.reason).to.match(reason).and.not.include('secret-name');
    });
  }

  it('is recorded at most 20 times, and later ones do not change the session', async () => {
    const request = await shop.requestPresentation('plain');
    const versions: unknown[] = [];
    for (let count = 0; count < 23; count++) {
      await shop.postResponse(request, { vp_token: '{}', state: 'x' });
      versions.push((await shop.session(request.session))['updatedAt']);
    }
    expect(await attemptsOf(request.session)).to.have.length(20);
    expect(new Set(versions.slice(19)).size, 'no further attempt is recorded').to.equal(1);
  });

  it('is not recorded for an answered request, nor for an unknown one', async () => {
    const request = await shop.requestPresentation('plain');
    await shop.present(request, heldCredential);
    expect((await shop.postResponse(request, { vp_token: '{}', state: 'x' })).status).to.equal(400);
    expect(await shop.session(request.session)).to.not.have.property('attempts');
    const rejection = await shop.service.call('POST', '/shop/response/unknown', { form: { state: 'x' } });
    expect(rejection.status).to.equal(404);
  });
});
