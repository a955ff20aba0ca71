import { expect } from 'chai';
import sinon from 'sinon';
import { type Held, Shop } from '../support/present.ts';

const KEY = 'the-key-of-the-shop';
const auth = (value: string) => ({ type: 'apiKey', config: { headerName: 'X-Shop-Key', value } });

describe('after a presentation, the way back', () => {
  let shop: Shop;
  let held: Held;

  before(async () => {
    shop = await Shop.open();
    held = await shop.issue();
    shop.backend.on('/elsewhere', { json: { redirectUri: 'https://other.example/{sessionId}' } });
    shop.backend.on('/nonsense', { json: { redirectUri: 'javascript:alert(1)' } });
    shop.backend.on('/plain', (response) => response.writeHead(200).end('OK'));
    shop.backend.on('/down', (response) => response.writeHead(503).end());
    const webhook = (path: string) => ({
      url: shop.backend.url + path,
      auth: auth(KEY),
    });
    const redirectUri = 'https://shop.example/done/{sessionId}?lang=en#there';
    await shop.configure({ id: 'back', redirectUri });
    for (const path of ['elsewhere', 'nonsense', 'down', 'plain'])
      await shop.configure({ id: path, redirectUri, webhook: webhook(`/${path}`) });
  });

  after(() => shop.close());
  beforeEach(() => shop.backend.forget());

  it('carries a code with which the browser proves itself', async () => {
    const asked = await shop.ask('back');
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
    const other = await shop.ask('back');
    await shop.present(other, held);
    const foreign = await shop.call('GET', `/session/${other.session}?response_code=${code}`);
    expect(foreign.status, 'N148 of another session').to.equal(403);
    const publicId = asked.url.split('/').at(-1);
    expect((await shop.call('GET', `/session/${publicId}`)).status, 'N149').to.equal(404);
    expect(
      (await shop.call('GET', `/session/${asked.session}`, undefined, shop.acme.token)).status,
      'N150',
    ).to.equal(404);
  });

  const codeOf = (url: string) => new URL(url).searchParams.get('response_code') ?? '';
  const read = async (session: string, code: string) =>
    (await shop.call('GET', `/session/${session}?response_code=${code}`)).status;

  it('can be proved once, also by many at once', async () => {
    const asked = await shop.ask('back');
    const code = codeOf((await shop.present(asked, held)).body.redirect_uri);
    expect(await read(asked.session, `${code}x`), 'spends nothing').to.equal(403);
    const statuses = await Promise.all(Array.from({ length: 8 }, () => read(asked.session, code)));
    expect(statuses.filter((status) => status === 200)).to.have.length(1);
    expect(statuses.filter((status) => status === 403)).to.have.length(7);
    expect(await read(asked.session, code), 'N148 reused').to.equal(403);
    expect((await shop.session(asked.session)).status, 'the backend reads on').to.equal('completed');
  });

  it('is open for five minutes', async () => {
    const asked = await shop.ask('back');
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

  it('cannot be proved for a session that has no code', async () => {
    const asked = await shop.ask();
    expect(await read(asked.session, 'invented'), 'before the answer').to.equal(403);
    await shop.present(asked, held);
    expect(await read(asked.session, 'invented'), 'after it').to.equal(403);
  });

  it('leads to a page of the service without an address, and one link serves both devices', async () => {
    const body = { response_type: 'uri', requestId: 'check' };
    const plain = (await shop.call('POST', '/verifier/offer', body)).body;
    expect(plain.crossDeviceUri).to.equal(plain.uri);
    const asked = await shop.ask();
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

  it('is chosen by the webhook when it wants to, if that is an address', async () => {
    const asked = await shop.ask('elsewhere');
    const { redirect_uri: chosen } = (await shop.present(asked, held)).body;
    expect(chosen).to.match(new RegExp(`^https://other\\.example/${asked.session}\\?response_code=`));
    const second = await shop.ask('nonsense');
    const { redirect_uri: kept } = (await shop.present(second, held)).body;
    expect(kept).to.match(/^https:\/\/shop\.example\/done\//);
  });

  it('is the configured one when the webhook answers with a success that is no JSON', async () => {
    const asked = await shop.ask('plain');
    const answer = await shop.present(asked, held);
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.body.redirect_uri).to.match(/^https:\/\/shop\.example\/done\//);
    const { status, deliveries } = await shop.session(asked.session);
    expect([status, deliveries[0].result]).to.deep.equal(['completed', 'delivered']);
  });

  it('does not exist when the webhook is down: one attempt, failed, and the wallet learns nothing', async () => {
    const asked = await shop.ask('down');
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

  it('never leads past the key of the webhook', async () => {
    const override = { url: `${shop.backend.url}/override`, auth: auth('another-secret-key') };
    const asked = await shop.ask('down', { webhook: override });
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
    shop.backend.forget();
    await shop.present(await shop.ask('down'), held);
    expect(shop.backend.calls[0]?.headers['x-shop-key'], 'the stored key').to.equal(KEY);
    const moved = { webhook: { ...webhook, url: `${shop.backend.url}/thief` } };
    expect((await shop.call('PATCH', '/verifier/config/down', moved)).status).to.equal(400);
  });
});
