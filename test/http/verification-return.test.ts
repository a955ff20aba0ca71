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
  let heldCredential: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    heldCredential = await shop.issue();
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
    const request = await shop.requestPresentation('back');
    const answer = await shop.present(request, heldCredential);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
    expect(Object.keys(answer.body)).to.deep.equal(['redirect_uri']);
    const url = new URL(answer.body.redirect_uri);
    expect(url.pathname).to.equal(`/done/${request.session}`);
    expect([url.hash, url.searchParams.get('lang')]).to.deep.equal(['#there', 'en']);
    const code = url.searchParams.get('response_code') ?? '';
    const readWithCode = (responseCode: string) => shop.call('GET', `/session/${request.session}?response_code=${responseCode}`);
    expect((await readWithCode(code)).status).to.equal(200);
    const rejection = await readWithCode(`${code}x`);
    expect([rejection.status, rejection.body.code]).to.deep.equal([403, 'forbidden']);
    expect(rejection.text, 'no value is released').to.not.include('Ada');
    const session = await shop.session(request.session);
    expect(session.redirectUri).to.equal(`https://shop.example/done/${request.session}?lang=en#there`);
    expect(JSON.stringify(session)).to.not.include(code);
    const otherRequest = await shop.requestPresentation('back');
    await shop.present(otherRequest, heldCredential);
    const foreignRejection = await shop.call('GET', `/session/${otherRequest.session}?response_code=${code}`);
    // N148
    expect(foreignRejection.status, 'the code of another session').to.equal(403);
    const publicId = request.url.split('/').at(-1);
    expect((await shop.call('GET', `/session/${publicId}`)).status, 'the identifier in the request address').to.equal(404);
    expect((await shop.call('GET', `/session/${request.session}`, undefined, shop.acme.token)).status, 'another tenant').to.equal(404);
  });

  const codeOf = (url: string) => new URL(url).searchParams.get('response_code') ?? '';
  const readStatus = async (session: string, code: string) => (await shop.call('GET', `/session/${session}?response_code=${code}`)).status;

  it('can be confirmed once, also with concurrent requests', async () => {
    const request = await shop.requestPresentation('back');
    const code = codeOf((await shop.present(request, heldCredential)).body.redirect_uri);
    expect(await readStatus(request.session, `${code}x`), 'a wrong code consumes nothing').to.equal(403);
    const statuses = await Promise.all(Array.from({ length: 8 }, () => readStatus(request.session, code)));
    expect(statuses.filter((status) => status === 200)).to.have.length(1);
    expect(statuses.filter((status) => status === 403)).to.have.length(7);
    // N148
    expect(await readStatus(request.session, code), 'a used code').to.equal(403);
    expect((await shop.session(request.session)).status, 'the backend can still read the session').to.equal('completed');
  });

  it('is possible for five minutes', async () => {
    const request = await shop.requestPresentation('back');
    const code = codeOf((await shop.present(request, heldCredential)).body.redirect_uri);
    const now = Date.now();
    const clock = sinon.useFakeTimers({ now: now + 301_000, toFake: ['Date'] });
    try {
      expect(await readStatus(request.session, code)).to.equal(403);
      clock.setSystemTime(now + 290_000);
      expect(await readStatus(request.session, code)).to.equal(200);
    } finally {
      clock.restore();
    }
  });

  it('cannot be confirmed for a session without a code', async () => {
    const request = await shop.requestPresentation();
    expect(await readStatus(request.session, 'invented'), 'before the response').to.equal(403);
    await shop.present(request, heldCredential);
    expect(await readStatus(request.session, 'invented'), 'after the response').to.equal(403);
  });

  it('redirects to a page of the service without an address, and one link serves both devices', async () => {
    const body = { response_type: 'uri', requestId: 'check' };
    const creation = (await shop.call('POST', '/verifier/offer', body)).body;
    expect(creation.crossDeviceUri).to.equal(creation.uri);
    const request = await shop.requestPresentation();
    const { redirect_uri: page } = (await shop.present(request, heldCredential)).body;
    expect(page).to.match(/^http.+\/shop\/presented\?response_code=[\w-]{20,}$/);
    const { status, text, headers } = await shop.service.call('GET', page);
    expect([status, headers.get('content-type')]).to.deep.equal([200, 'text/html; charset=utf-8']);
    expect(text)
      .to.include('Go back to where you came from')
      .and.not.match(/Ada|Lovelace|response_code|script/);
    expect(headers.get('cache-control')).to.equal('no-store');
    expect(headers.get('referrer-policy')).to.equal('no-referrer');
    // No session waits for this code, so it is not accepted.
    const code = new URL(page).searchParams.get('response_code') ?? '';
    expect(await readStatus(request.session, code)).to.equal(403);
    expect((await shop.call('GET', `/session/${request.session}`)).body.status).to.equal('completed');
  });

  it('uses the address that the webhook returns', async () => {
    const request = await shop.requestPresentation('elsewhere');
    const { redirect_uri: chosenUri } = (await shop.present(request, heldCredential)).body;
    expect(chosenUri).to.match(new RegExp(`^https://other\\.example/${request.session}\\?response_code=`));
    const second = await shop.requestPresentation('nonsense');
    const { redirect_uri: configuredUri } = (await shop.present(second, heldCredential)).body;
    expect(configuredUri).to.match(/^https:\/\/shop\.example\/done\//);
  });

  it('uses the configured address when the webhook responds with a success without JSON', async () => {
    const request = await shop.requestPresentation('plain');
    const answer = await shop.present(request, heldCredential);
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.body.redirect_uri).to.match(/^https:\/\/shop\.example\/done\//);
    const { status, deliveries } = await shop.session(request.session);
    expect([status, deliveries[0].result]).to.deep.equal(['completed', 'delivered']);
  });

  it('does not exist when the webhook is unavailable: one attempt, failed, and the wallet gets no details', async () => {
    const request = await shop.requestPresentation('down');
    const answer = await shop.present(request, heldCredential);
    expect([answer.status, answer.body.error]).to.deep.equal([400, 'invalid_request']);
    expect(answer.body).to.not.have.property('redirect_uri');
    expect(shop.backend.calls).to.have.length(1);
    const session = await shop.session(request.session);
    expect([session.status, session.failure.code]).to.deep.equal(['failed', 'webhook_failed']);
    expect(session.failure.message).to.include('503');
    expect(session.deliveries).to.have.length(1);
    expect(session.deliveries[0]).to.include({ webhook: 'presentation', result: 'failed' });
    expect(shop.backend.calls[0]?.headers['idempotency-key']).to.equal(session.deliveries[0].id);
    expect(shop.backend.calls[0]?.headers['x-shop-key']).to.equal(KEY);
    expect((await shop.present(request, heldCredential)).status).to.equal(400);
    expect(shop.backend.calls, 'the webhook is not called again').to.have.length(1);
  });

  it('never contains the API key of the webhook', async () => {
    const override = { url: `${shop.backend.url}/override`, auth: auth('another-secret-key') };
    const request = await shop.requestPresentation('down', { webhook: override });
    expect((await shop.present(request, heldCredential)).status).to.equal(200);
    expect(shop.backend.calls.map(({ path }) => path)).to.deep.equal(['/override']);
    expect(shop.backend.calls[0]?.headers['x-shop-key']).to.equal('another-secret-key');
    const responses = [
      await shop.call('GET', '/verifier/config'),
      await shop.call('GET', '/verifier/config/down'),
      await shop.call('PATCH', '/verifier/config/down', { description: 'x' }),
      await shop.call('GET', `/session/${request.session}`),
      await shop.call('GET', '/session'),
    ];
    for (const { text } of responses) expect(text).to.not.include(KEY).and.not.include('another-secret-key');
    const { webhook } = responses[1]?.body ?? {};
    expect(webhook.auth.config.value).to.equal('***');
    expect((await shop.call('PATCH', '/verifier/config/down', { webhook })).status).to.equal(200);
    shop.backend.clearCalls();
    await shop.present(await shop.requestPresentation('down'), heldCredential);
    expect(shop.backend.calls[0]?.headers['x-shop-key'], 'the stored key').to.equal(KEY);
    const movedWebhook = { webhook: { ...webhook, url: `${shop.backend.url}/thief` } };
    expect((await shop.call('PATCH', '/verifier/config/down', movedWebhook)).status).to.equal(400);
  });
});

const REDIRECT = 'https://shop.example/back?s={sessionId}';
const DOC_TYPE = 'org.iso.18013.5.1.mDL';
const NAMESPACE = 'org.iso.18013.5.1';

type Link = 'uri' | 'crossDeviceUri';

describe('presentation request with a redirect, on two devices', () => {
  let shop: Shop;
  let heldCredential: HeldCredential;
  let licence: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    heldCredential = await shop.issue();
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

  async function offer(requestId: string, overrides: object = {}) {
    const creation = await shop.call('POST', '/verifier/offer', { response_type: 'uri', requestId, ...overrides });
    expect(creation.status, creation.text).to.equal(201);
    return creation.body as { uri: string; crossDeviceUri: string; session: string };
  }

  /** Reads the request as a wallet does that was started with this link. */
  async function readRequest(links: Awaited<ReturnType<typeof offer>>, link: Link): Promise<FetchedRequest> {
    const { searchParams } = new URL(links[link]);
    const url = searchParams.get('request_uri');
    const commonProperties = { session: links.session, uri: links[link], url: url ?? '' };
    if (url === null) {
      const parameters = Object.fromEntries(searchParams) as Record<string, string>;
      const json = (name: string) => JSON.parse(parameters[name] ?? '{}');
      const payload = { ...parameters, dcql_query: json('dcql_query'), client_metadata: json('client_metadata') };
      return { ...commonProperties, text: '', header: {}, payload };
    }
    const isPost = searchParams.get('request_uri_method') === 'post';
    const form = { wallet_nonce: 'a-nonce-of-the-wallet' };
    const requestResponse = await shop.service.call(isPost ? 'POST' : 'GET', url, isPost ? { form } : {});
    expect(requestResponse.status, requestResponse.text).to.equal(200);
    const request = { ...commonProperties, text: requestResponse.text, ...decode(requestResponse.text) };
    if (isPost) expect(request.payload['wallet_nonce']).to.equal(form.wallet_nonce);
    return request;
  }

  function presentationFor(request: FetchedRequest, requestId: string): string {
    if (requestId !== 'mdoc') return bindToRequest(request, heldCredential);
    const { client_id: clientId, nonce, response_uri: responseUri, client_metadata } = request.payload;
    const encryptionKey = client_metadata.jwks.keys[0];
    const transcript = redirectTranscript({ clientId, nonce, responseUri, encryptionKey });
    return deviceResponse({ ...licence, docType: DOC_TYPE }, transcript);
  }
  const answer = async (request: FetchedRequest, requestId: string) =>
    shop.postResponse(request, await responseForm(request, { card: [presentationFor(request, requestId)] }));

  for (const requestId of ['encrypted', 'plain', 'unsigned', 'posted', 'mdoc', 'chosen']) {
    it(`redirects only the wallet of \`uri\` (${requestId})`, async () => {
      const redirectPrefix = requestId === 'chosen' ? 'https://other.example/' : 'https://shop.example/back?s=';
      const sameDeviceOffer = await offer(requestId);
      expect(sameDeviceOffer.crossDeviceUri).to.not.equal(sameDeviceOffer.uri);
      const sameDeviceResponse = await answer(await readRequest(sameDeviceOffer, 'uri'), requestId);
      expect(sameDeviceResponse.body.redirect_uri, sameDeviceResponse.text).to.match(/response_code=/);
      expect(sameDeviceResponse.body.redirect_uri.startsWith(redirectPrefix)).to.equal(true);

      const otherDeviceOffer = await offer(requestId);
      const otherDeviceResponse = await answer(await readRequest(otherDeviceOffer, 'crossDeviceUri'), requestId);
      expect(otherDeviceResponse.body, otherDeviceResponse.text).to.deep.equal({ redirect_uri: `${shop.service.address}/shop/presented` });
      const session = await shop.session(otherDeviceOffer.session);
      expect(session['status']).to.equal('completed');
      expect(JSON.stringify(session['credentials'])).to.match(/Ada|Lovelace/);
      const events = await shop.service.call('GET', `/session/${otherDeviceOffer.session}/events?token=${shop.token}`);
      expect(events.text).to.include('"status":"completed"');
      const rejection = await shop.call('GET', `/session/${otherDeviceOffer.session}?response_code=anything`);
      expect(rejection.status, 'no code was created').to.equal(403);
    });
  }

  describe('answered by an encrypted response with the state of the other link outside', () => {
    const responses = {
      presentation: (request: FetchedRequest) => ({ vp_token: { card: [bindToRequest(request, heldCredential)] } }),
      error: () => ({ error: 'access_denied' }),
    };
    const links: readonly [Link, Link][] = [
      ['uri', 'crossDeviceUri'],
      ['crossDeviceUri', 'uri'],
    ];
    for (const [kind, parameters] of Object.entries(responses)) {
      for (const [inner, outer] of links) {
        it(`rejects the ${kind} to \`${inner}\` with the state of \`${outer}\`, and accepts it with its own state`, async () => {
          const requestLinks = await offer('encrypted');
          const [request, otherRequest] = [await readRequest(requestLinks, inner), await readRequest(requestLinks, outer)];
          const { state } = request.payload;
          const response = await encryptResponse(request, { ...parameters(request), state });
          const rejection = await shop.postResponse(request, { response, state: otherRequest.payload['state'] });
          expect(rejection.status, rejection.text).to.equal(400);
          expect(rejection.body.error_description).to.equal('state does not belong to this request');
          expect((await shop.session(requestLinks.session))['status']).to.equal('fetched');
          const acceptance = await shop.postResponse(request, { response, state });
          expect(acceptance.status, acceptance.text).to.equal(200);
          const status = kind === 'error' ? 'failed' : 'completed';
          expect((await shop.session(requestLinks.session))['status']).to.equal(status);
        });
      }
    }
  });

  it('allows exactly one of the two links to be used', async () => {
    const requestLinks = await offer('encrypted');
    const [first, second] = [await readRequest(requestLinks, 'uri'), await readRequest(requestLinks, 'crossDeviceUri')];
    expect(first.payload['state']).to.not.equal(second.payload['state']);
    expect((await answer(second, 'encrypted')).status).to.equal(200);
    expect((await answer(first, 'encrypted')).status).to.equal(400);
  });

  it('redirects a wallet on another device to no application when its user declines', async () => {
    const request = await readRequest(await offer('plain'), 'crossDeviceUri');
    const rejection = await shop.postResponse(request, { error: 'access_denied', state: request.payload['state'] });
    expect(rejection.body).to.deep.equal({ redirect_uri: `${shop.service.address}/shop/presented` });
  });

  it('applies to a redirectUri of the request, and returns one link if no redirect can follow', async () => {
    await shop.configure({ id: 'none', dcql_query: QUERY });
    const withoutRedirect = await offer('none');
    expect(withoutRedirect.crossDeviceUri).to.equal(withoutRedirect.uri);
    const withOwnRedirect = await offer('none', { redirectUri: REDIRECT });
    expect(withOwnRedirect.crossDeviceUri).to.match(/%2Fcross-device$/);
    const requestUrl = new URL(withoutRedirect.uri).searchParams.get('request_uri') ?? '';
    expect((await shop.service.call('GET', `${requestUrl}/cross-device`)).status).to.equal(404);
  });

  it('serves the request for another device only with the link for that device', async () => {
    const [requestLinks, otherOffer] = [await offer('encrypted'), await offer('encrypted')];
    const urlOf = (link: string) => new URL(link).searchParams.get('request_uri') ?? '';
    const [requestUrl, otherUrl] = [urlOf(requestLinks.uri), urlOf(otherOffer.crossDeviceUri)];
    const key = /\.([\w-]{22})\/cross-device$/.exec(otherUrl)?.[1];
    expect(key, otherUrl).to.be.a('string');
    for (const url of [
      `${requestUrl}/cross-device`,
      `${requestUrl}./cross-device`,
      `${requestUrl}.${key}/cross-device`,
      `${requestUrl}.${key}`,
    ]) {
      expect((await shop.service.call('GET', url)).status, url).to.equal(404);
      expect((await shop.service.call('POST', url, { form: { wallet_nonce: 'n' } })).status, url).to.equal(404);
    }
    expect((await shop.session(requestLinks.session))['status'], 'the request is not fetched').to.equal('active');
  });

  it('returns no link for another device with requireResponseCode: true', async () => {
    expect(await offer('required')).to.have.all.keys('uri', 'session');
    await shop.configure({ id: 'bare', requireResponseCode: true });
    expect(await offer('bare', { redirectUri: REDIRECT })).to.have.all.keys('uri', 'session');
  });

  it('finds the session by the link for another device', async () => {
    const requestLinks = await offer('encrypted');
    const searchResult = await shop.call('GET', `/session?q=${encodeURIComponent(requestLinks.crossDeviceUri)}`);
    expect(searchResult.body.map(({ id }: { id: string }) => id)).to.deep.equal([requestLinks.session]);
  });
});
