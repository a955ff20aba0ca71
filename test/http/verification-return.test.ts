import { expect } from 'chai';
import sinon from 'sinon';
import { redirectTranscript } from '../../domain/formats/mdoc/session-transcript.ts';
import { deviceResponse } from '../support/device.ts';
import {
  bindToRequest,
  decode,
  encryptResponse,
  type FetchedRequest,
  type HeldCredential,
  QUERY,
  responseForm,
  Shop,
} from '../support/present.ts';

const KEY = 'the-key-of-the-shop';
const auth = (value: string) => ({ type: 'apiKey', config: { headerName: 'X-Shop-Key', value } });

describe('The return to the verifier after a presentation', () => {
  let shop: Shop;
  let held: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    held = await shop.issue();
    shop.backend.on('/elsewhere', { json: { redirectUri: 'https://other.example/{sessionId}' } });
    shop.backend.on('/nonsense', { json: { redirectUri: 'javascript:alert(1)' } });
    shop.backend.on('/plain', (response) => response.writeHead(200).end('OK'));
    shop.backend.on('/down', (response) => response.writeHead(503).end());
    const webhook = (path: string) => ({ url: shop.backend.url + path, auth: auth(KEY) });
    const redirectUri = 'https://shop.example/done/{sessionId}?lang=en#there';
    await shop.configure({ id: 'back', redirectUri });
    for (const path of ['elsewhere', 'nonsense', 'down', 'plain'])
      await shop.configure({ id: path, redirectUri, webhook: webhook(`/${path}`) });
  });

  after(() => shop.close());
  beforeEach(() => shop.backend.clearCalls());

  it('contains a code that authenticates the browser', async () => {
    const asked = await shop.requestPresentation('back');
    const answer = await shop.present(asked, held);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
    expect(Object.keys(answer.body)).to.deep.equal(['redirect_uri']);
    const url = new URL(answer.body.redirect_uri);
    expect(url.pathname).to.equal(`/done/${asked.session}`);
    expect([url.hash, url.searchParams.get('lang')]).to.deep.equal(['#there', 'en']);
    const code = url.searchParams.get('response_code') ?? '';
    const with_ = (given: string) => shop.call('GET', `/session/${asked.session}?response_code=${given}`);
    expect((await with_(code)).status).to.equal(200);
    const wrong = await with_(`${code}x`);
    expect([wrong.status, wrong.body.code]).to.deep.equal([403, 'forbidden']);
    expect(wrong.text, 'no value is released').to.not.include('Ada');
    const seen = await shop.session(asked.session);
    expect(seen.redirectUri).to.equal(`https://shop.example/done/${asked.session}?lang=en#there`);
    expect(JSON.stringify(seen)).to.not.include(code);
    const other = await shop.requestPresentation('back');
    await shop.present(other, held);
    const foreign = await shop.call('GET', `/session/${other.session}?response_code=${code}`);
    // N148
    expect(foreign.status, 'of another session').to.equal(403);
    const publicId = asked.url.split('/').at(-1);
    expect((await shop.call('GET', `/session/${publicId}`)).status, 'N149').to.equal(404);
    expect((await shop.call('GET', `/session/${asked.session}`, undefined, shop.acme.token)).status, 'N150').to.equal(404);
  });

  const codeOf = (url: string) => new URL(url).searchParams.get('response_code') ?? '';
  const read = async (session: string, code: string) => (await shop.call('GET', `/session/${session}?response_code=${code}`)).status;

  it('can be confirmed once, also with concurrent requests', async () => {
    const asked = await shop.requestPresentation('back');
    const code = codeOf((await shop.present(asked, held)).body.redirect_uri);
    expect(await read(asked.session, `${code}x`), 'spends nothing').to.equal(403);
    const statuses = await Promise.all(Array.from({ length: 8 }, () => read(asked.session, code)));
    expect(statuses.filter((status) => status === 200)).to.have.length(1);
    expect(statuses.filter((status) => status === 403)).to.have.length(7);
    // N148
    expect(await read(asked.session, code), 'reused').to.equal(403);
    expect((await shop.session(asked.session)).status, 'the backend reads on').to.equal('completed');
  });

  it('is possible for five minutes', async () => {
    const asked = await shop.requestPresentation('back');
    const code = codeOf((await shop.present(asked, held)).body.redirect_uri);
    const now = Date.now();
    const clock = sinon.useFakeTimers({ now: now + 301_000, toFake: ['Date'] });
    try {
      expect(await read(asked.session, code)).to.equal(403);
      clock.setSystemTime(now + 290_000);
      expect(await read(asked.session, code)).to.equal(200);
    } finally {
      clock.restore();
    }
  });

  it('cannot be confirmed for a session without a code', async () => {
    const asked = await shop.requestPresentation();
    expect(await read(asked.session, 'invented'), 'before the answer').to.equal(403);
    await shop.present(asked, held);
    expect(await read(asked.session, 'invented'), 'after it').to.equal(403);
  });

  it('redirects to a page of the service without an address, and one link serves both devices', async () => {
    const body = { response_type: 'uri', requestId: 'check' };
    const plain = (await shop.call('POST', '/verifier/offer', body)).body;
    expect(plain.crossDeviceUri).to.equal(plain.uri);
    const asked = await shop.requestPresentation();
    const { redirect_uri: page } = (await shop.present(asked, held)).body;
    expect(page).to.match(/^http.+\/shop\/presented\?response_code=[\w-]{20,}$/);
    const { status, text, headers } = await shop.service.call('GET', page);
    expect([status, headers.get('content-type')]).to.deep.equal([200, 'text/html; charset=utf-8']);
    expect(text)
      .to.include('Go back to where you came from')
      .and.not.match(/Ada|Lovelace|response_code|script/);
    expect(headers.get('cache-control')).to.equal('no-store');
    expect(headers.get('referrer-policy')).to.equal('no-referrer');
    // The code belongs to nobody who waits for it, and opens nothing.
    const code = new URL(page).searchParams.get('response_code') ?? '';
    expect(await read(asked.session, code)).to.equal(403);
    expect((await shop.call('GET', `/session/${asked.session}`)).body.status).to.equal('completed');
  });

  it('uses the address that the webhook returns', async () => {
    const asked = await shop.requestPresentation('elsewhere');
    const { redirect_uri: chosen } = (await shop.present(asked, held)).body;
    expect(chosen).to.match(new RegExp(`^https://other\\.example/${asked.session}\\?response_code=`));
    const second = await shop.requestPresentation('nonsense');
    const { redirect_uri: kept } = (await shop.present(second, held)).body;
    expect(kept).to.match(/^https:\/\/shop\.example\/done\//);
  });

  it('uses the configured address when the webhook answers with a success without JSON', async () => {
    const asked = await shop.requestPresentation('plain');
    const answer = await shop.present(asked, held);
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.body.redirect_uri).to.match(/^https:\/\/shop\.example\/done\//);
    const { status, deliveries } = await shop.session(asked.session);
    expect([status, deliveries[0].result]).to.deep.equal(['completed', 'delivered']);
  });

  it('does not exist when the webhook is unavailable: one attempt, failed, and the wallet gets no details', async () => {
    const asked = await shop.requestPresentation('down');
    const answer = await shop.present(asked, held);
    expect([answer.status, answer.body.error]).to.deep.equal([400, 'invalid_request']);
    expect(answer.body).to.not.have.property('redirect_uri');
    expect(shop.backend.calls).to.have.length(1);
    const seen = await shop.session(asked.session);
    expect([seen.status, seen.failure.code]).to.deep.equal(['failed', 'webhook_failed']);
    expect(seen.failure.message).to.include('503');
    expect(seen.deliveries).to.have.length(1);
    expect(seen.deliveries[0]).to.include({ webhook: 'presentation', result: 'failed' });
    expect(shop.backend.calls[0]?.headers['idempotency-key']).to.equal(seen.deliveries[0].id);
    expect(shop.backend.calls[0]?.headers['x-shop-key']).to.equal(KEY);
    expect((await shop.present(asked, held)).status).to.equal(400);
    expect(shop.backend.calls, 'never again').to.have.length(1);
  });

  it('never contains the API key of the webhook', async () => {
    const override = { url: `${shop.backend.url}/override`, auth: auth('another-secret-key') };
    const asked = await shop.requestPresentation('down', { webhook: override });
    expect((await shop.present(asked, held)).status).to.equal(200);
    expect(shop.backend.calls.map(({ path }) => path)).to.deep.equal(['/override']);
    expect(shop.backend.calls[0]?.headers['x-shop-key']).to.equal('another-secret-key');
    const answers = [
      await shop.call('GET', '/verifier/config'),
      await shop.call('GET', '/verifier/config/down'),
      await shop.call('PATCH', '/verifier/config/down', { description: 'x' }),
      await shop.call('GET', `/session/${asked.session}`),
      await shop.call('GET', '/session'),
    ];
    for (const { text } of answers) expect(text).to.not.include(KEY).and.not.include('another-secret-key');
    const { webhook } = answers[1]?.body ?? {};
    expect(webhook.auth.config.value).to.equal('***');
    expect((await shop.call('PATCH', '/verifier/config/down', { webhook })).status).to.equal(200);
    shop.backend.clearCalls();
    await shop.present(await shop.requestPresentation('down'), held);
    expect(shop.backend.calls[0]?.headers['x-shop-key'], 'the stored key').to.equal(KEY);
    const moved = { webhook: { ...webhook, url: `${shop.backend.url}/thief` } };
    expect((await shop.call('PATCH', '/verifier/config/down', moved)).status).to.equal(400);
  });
});

const REDIRECT = 'https://shop.example/back?s={sessionId}';
const DOC_TYPE = 'org.iso.18013.5.1.mDL';
const NAMESPACE = 'org.iso.18013.5.1';

type Link = 'uri' | 'crossDeviceUri';

describe('presentation request with a redirect, on two devices', () => {
  let shop: Shop;
  let held: HeldCredential;
  let licence: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    held = await shop.issue();
    const config = {
      format: 'mso_mdoc',
      docType: DOC_TYPE,
      display: [{ name: 'Licence', locale: 'en' }],
      claimsByNamespace: { [NAMESPACE]: { family_name: 'Lovelace' } },
    };
    await shop.call('POST', '/issuer/credentials', { id: 'mdl', config }, shop.acme.token);
    licence = await shop.issue('mdl');
    const claims = [{ path: [NAMESPACE, 'family_name'] }];
    const mdoc = { id: 'card', format: 'mso_mdoc', meta: { doctype_value: DOC_TYPE }, claims };
    shop.backend.on('/chooses', { json: { redirectUri: 'https://other.example/{sessionId}' } });
    shop.backend.on('/down', (response) => response.writeHead(503).end());
    const webhook = (path: string) => ({ url: shop.backend.url + path });
    await shop.configure({ id: 'encrypted', redirectUri: REDIRECT });
    await shop.configure({ id: 'plain', redirectUri: REDIRECT, responseMode: 'direct_post' });
    await shop.configure({ id: 'unsigned', redirectUri: REDIRECT, clientIdPrefix: 'redirect_uri' });
    await shop.configure({ id: 'posted', redirectUri: REDIRECT, requestUriMethod: 'post' });
    await shop.configure({ id: 'mdoc', redirectUri: REDIRECT, dcql_query: { credentials: [mdoc] } });
    await shop.configure({ id: 'chosen', webhook: webhook('/chooses') });
    await shop.configure({ id: 'required', redirectUri: REDIRECT, requireResponseCode: true });
  });
  after(() => shop.close());

  async function offer(requestId: string, more: object = {}) {
    const made = await shop.call('POST', '/verifier/offer', { response_type: 'uri', requestId, ...more });
    expect(made.status, made.text).to.equal(201);
    return made.body as { uri: string; crossDeviceUri: string; session: string };
  }

  /** Reads the request as a wallet does that was started by one of the two links. */
  async function read(made: Awaited<ReturnType<typeof offer>>, link: Link): Promise<FetchedRequest> {
    const { searchParams } = new URL(made[link]);
    const url = searchParams.get('request_uri');
    const common = { session: made.session, uri: made[link], url: url ?? '' };
    if (url === null) {
      const members = Object.fromEntries(searchParams) as Record<string, string>;
      const json = (name: string) => JSON.parse(members[name] ?? '{}');
      const payload = { ...members, dcql_query: json('dcql_query'), client_metadata: json('client_metadata') };
      return { ...common, text: '', header: {}, payload };
    }
    const isPost = searchParams.get('request_uri_method') === 'post';
    const form = { wallet_nonce: 'a-nonce-of-the-wallet' };
    const fetched = await shop.service.call(isPost ? 'POST' : 'GET', url, isPost ? { form } : {});
    expect(fetched.status, fetched.text).to.equal(200);
    const request = { ...common, text: fetched.text, ...decode(fetched.text) };
    if (isPost) expect(request.payload['wallet_nonce']).to.equal(form.wallet_nonce);
    return request;
  }

  function presentationFor(asked: FetchedRequest, requestId: string): string {
    if (requestId !== 'mdoc') return bindToRequest(asked, held);
    const { client_id: clientId, nonce, response_uri: responseUri, client_metadata } = asked.payload;
    const encryptionKey = client_metadata.jwks.keys[0];
    const transcript = redirectTranscript({ clientId, nonce, responseUri, encryptionKey });
    return deviceResponse({ ...licence, docType: DOC_TYPE }, transcript);
  }
  const answer = async (asked: FetchedRequest, requestId: string) =>
    shop.postResponse(asked, await responseForm(asked, { card: [presentationFor(asked, requestId)] }));

  for (const requestId of ['encrypted', 'plain', 'unsigned', 'posted', 'mdoc', 'chosen']) {
    it(`redirects only the wallet of \`uri\` (${requestId})`, async () => {
      const goal = requestId === 'chosen' ? 'https://other.example/' : 'https://shop.example/back?s=';
      const same = await offer(requestId);
      expect(same.crossDeviceUri).to.not.equal(same.uri);
      const onSameDevice = await answer(await read(same, 'uri'), requestId);
      expect(onSameDevice.body.redirect_uri, onSameDevice.text).to.match(/response_code=/);
      expect(onSameDevice.body.redirect_uri.startsWith(goal)).to.equal(true);

      const other = await offer(requestId);
      const onOtherDevice = await answer(await read(other, 'crossDeviceUri'), requestId);
      expect(onOtherDevice.body, onOtherDevice.text).to.deep.equal({ redirect_uri: `${shop.service.address}/shop/presented` });
      const session = await shop.session(other.session);
      expect(session['status']).to.equal('completed');
      expect(JSON.stringify(session['credentials'])).to.match(/Ada|Lovelace/);
      const events = await shop.service.call('GET', `/session/${other.session}/events?token=${shop.token}`);
      expect(events.text).to.include('"status":"completed"');
      const read403 = await shop.call('GET', `/session/${other.session}?response_code=anything`);
      expect(read403.status, 'no code was made').to.equal(403);
    });
  }

  describe('answered by an encrypted response with the state of the other link outside', () => {
    const responses = {
      presentation: (asked: FetchedRequest) => ({ vp_token: { card: [bindToRequest(asked, held)] } }),
      error: () => ({ error: 'access_denied' }),
    };
    const links: readonly [Link, Link][] = [
      ['uri', 'crossDeviceUri'],
      ['crossDeviceUri', 'uri'],
    ];
    for (const [kind, parameters] of Object.entries(responses)) {
      for (const [inner, outer] of links) {
        it(`rejects the ${kind} to \`${inner}\` with the state of \`${outer}\`, and accepts it with its own state`, async () => {
          const made = await offer('encrypted');
          const [asked, other] = [await read(made, inner), await read(made, outer)];
          const { state } = asked.payload;
          const response = await encryptResponse(asked, { ...parameters(asked), state });
          const rejected = await shop.postResponse(asked, { response, state: other.payload['state'] });
          expect(rejected.status, rejected.text).to.equal(400);
          expect(rejected.body.error_description).to.equal('state does not belong to this request');
          expect((await shop.session(made.session))['status']).to.equal('fetched');
          const accepted = await shop.postResponse(asked, { response, state });
          expect(accepted.status, accepted.text).to.equal(200);
          const status = kind === 'error' ? 'failed' : 'completed';
          expect((await shop.session(made.session))['status']).to.equal(status);
        });
      }
    }
  });

  it('allows exactly one of the two links to be used', async () => {
    const made = await offer('encrypted');
    const [first, second] = [await read(made, 'uri'), await read(made, 'crossDeviceUri')];
    expect(first.payload['state']).to.not.equal(second.payload['state']);
    expect((await answer(second, 'encrypted')).status).to.equal(200);
    expect((await answer(first, 'encrypted')).status).to.equal(400);
  });

  it('redirects a wallet on another device to no application when its user declines', async () => {
    const asked = await read(await offer('plain'), 'crossDeviceUri');
    const refused = await shop.postResponse(asked, { error: 'access_denied', state: asked.payload['state'] });
    expect(refused.body).to.deep.equal({ redirect_uri: `${shop.service.address}/shop/presented` });
  });

  it('applies to a redirectUri of the request, and returns one link if no redirect can follow', async () => {
    await shop.configure({ id: 'none', dcql_query: QUERY });
    const none = await offer('none');
    expect(none.crossDeviceUri).to.equal(none.uri);
    const own = await offer('none', { redirectUri: REDIRECT });
    expect(own.crossDeviceUri).to.match(/%2Fcross-device$/);
    const requestUrl = new URL(none.uri).searchParams.get('request_uri') ?? '';
    expect((await shop.service.call('GET', `${requestUrl}/cross-device`)).status).to.equal(404);
  });

  it('serves the request for another device only with its own link', async () => {
    const [made, foreign] = [await offer('encrypted'), await offer('encrypted')];
    const urlOf = (link: string) => new URL(link).searchParams.get('request_uri') ?? '';
    const [requestUrl, other] = [urlOf(made.uri), urlOf(foreign.crossDeviceUri)];
    const key = /\.([\w-]{22})\/cross-device$/.exec(other)?.[1];
    expect(key, other).to.be.a('string');
    for (const url of [
      `${requestUrl}/cross-device`,
      `${requestUrl}./cross-device`,
      `${requestUrl}.${key}/cross-device`,
      `${requestUrl}.${key}`,
    ]) {
      expect((await shop.service.call('GET', url)).status, url).to.equal(404);
      expect((await shop.service.call('POST', url, { form: { wallet_nonce: 'n' } })).status, url).to.equal(404);
    }
    expect((await shop.session(made.session))['status'], 'not fetched').to.equal('active');
  });

  it('returns no link for another device with requireResponseCode: true', async () => {
    expect(await offer('required')).to.have.all.keys('uri', 'session');
    await shop.configure({ id: 'bare', requireResponseCode: true });
    expect(await offer('bare', { redirectUri: REDIRECT })).to.have.all.keys('uri', 'session');
  });

  it('finds the session by the link for another device', async () => {
    const made = await offer('encrypted');
    const found = await shop.call('GET', `/session?q=${encodeURIComponent(made.crossDeviceUri)}`);
    expect(found.body.map(({ id }: { id: string }) => id)).to.deep.equal([made.session]);
  });
});
