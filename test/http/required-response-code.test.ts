import { expect } from 'chai';
import sinon from 'sinon';
import { Store } from '../../application/ports/store.ts';
import { EndOverdueResponses } from '../../application/verification/end-overdue-responses.ts';
import { obtain } from '../../bootstrap/wiring/wire.ts';
import { bindToRequest, encryptResponse, type FetchedRequest, type HeldCredential, Shop } from '../support/present.ts';

const REDIRECT = 'https://shop.example/done/{sessionId}';

describe('presentation whose result waits for the response code', () => {
  let shop: Shop;
  let held: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    held = await shop.issue();
    const webhook = (path: string) => ({ url: shop.backend.url + path });
    const required = { requireResponseCode: true, redirectUri: REDIRECT };
    await shop.configure({ id: 'plain', ...required });
    await shop.configure({ id: 'long', ...required, lifeTime: 3600 });
    await shop.configure({ id: 'hook', ...required, webhook: webhook('/presented') });
    shop.backend.on('/down', (response) => response.writeHead(503).end());
    await shop.configure({ id: 'down', ...required, webhook: webhook('/down') });
    await shop.configure({ id: 'nowhere', requireResponseCode: true });
  });

  after(() => shop.close());
  beforeEach(() => shop.backend.clearCalls());

  async function answered(configuration: string): Promise<{ asked: FetchedRequest; code: string }> {
    const asked = await shop.requestPresentation(configuration);
    const answer = await shop.present(asked, held);
    expect(answer.status, answer.text).to.equal(200);
    const code = new URL(answer.body.redirect_uri).searchParams.get('response_code') ?? '';
    return { asked, code };
  }
  const bring = (session: string, code: string) => shop.call('GET', `/session/${session}?response_code=${encodeURIComponent(code)}`);
  const later = async (seconds: number, act: () => Promise<void>) => {
    const clock = sinon.useFakeTimers({ now: Date.now() + seconds * 1000, toFake: ['Date'] });
    try {
      await act();
    } finally {
      clock.restore();
    }
  };

  it('returns nothing and is not completed until the browser sends the code', async () => {
    for (const configuration of ['plain', 'long']) {
      const { asked, code } = await answered(configuration);
      const waiting = await shop.call('GET', `/session/${asked.session}`);
      expect(waiting.body.status).to.equal('fetched');
      expect(waiting.body).to.not.have.any.keys('credentials', 'report', 'failure');
      const [listed] = (await shop.call('GET', '/session?limit=1')).body;
      expect(listed.id).to.equal(asked.session);
      expect(waiting.text + JSON.stringify(listed)).to.not.include('Ada');
      expect((await bring(asked.session, `${code}x`)).status).to.equal(403);
      expect((await shop.session(asked.session)).status).to.equal('fetched');
      const seen = await bring(asked.session, code);
      expect([seen.status, seen.body.status]).to.deep.equal([200, 'completed']);
      expect(seen.body.credentials[0].values).to.deep.include({ name: 'Ada' });
      expect((await bring(asked.session, code)).status, 'once').to.equal(403);
      expect((await shop.session(asked.session)).credentials[0].values).to.deep.include({ name: 'Ada' });
    }
  });

  it('calls the webhook when the code was redeemed, and then completes', async () => {
    const { asked, code } = await answered('hook');
    expect(shop.backend.calls, 'before').to.have.length(0);
    const seen = await bring(asked.session, code);
    expect([seen.status, seen.body.status]).to.deep.equal([200, 'completed']);
    expect(shop.backend.calls).to.have.length(1);
    expect(JSON.stringify(shop.backend.calls[0]?.body)).to.include('Ada');
    expect(seen.body.deliveries[0]).to.include({ webhook: 'presentation', result: 'delivered' });
    expect(shop.backend.calls[0]?.headers['idempotency-key']).to.equal(seen.body.deliveries[0].id);
  });

  it('fails when the webhook fails, and accepts no second code', async () => {
    const { asked, code } = await answered('down');
    const seen = await bring(asked.session, code);
    expect([seen.status, seen.body.status, seen.body.failure.code]).to.deep.equal([200, 'failed', 'webhook_failed']);
    expect((await bring(asked.session, code)).status).to.equal(403);
    expect(shop.backend.calls).to.have.length(1);
  });

  it('reports a rejected answer to the backend at once, without values', async () => {
    const asked = await shop.requestPresentation('hook');
    const text = bindToRequest(asked, held, undefined, { aud: 'somebody else' });
    const { state } = asked.payload;
    const response = await encryptResponse(asked, { vp_token: { card: [text] }, state });
    expect((await shop.postResponse(asked, { response })).status).to.equal(400);
    expect(shop.backend.calls).to.have.length(1);
    expect(JSON.stringify(shop.backend.calls[0]?.body)).to.include('aud_mismatch').and.not.include('Ada');
    expect((await shop.session(asked.session)).failure.code).to.equal('presentation_refused');
  });

  it('accepts one answer', async () => {
    const { asked } = await answered('plain');
    expect((await shop.present(asked, held)).status).to.equal(400);
    expect((await shop.service.call('GET', asked.url)).status).to.equal(410);
  });

  it('fails after five minutes without the code, even if its request is valid for longer', async () => {
    for (const configuration of ['plain', 'long']) {
      const { asked, code } = await answered(configuration);
      await later(299, async () => {
        expect((await shop.session(asked.session)).status).to.equal('fetched');
      });
      await later(302, async () => {
        const seen = await shop.session(asked.session);
        expect([seen.status, seen.failure.code]).to.deep.equal(['failed', 'response_code_missing']);
        expect((await bring(asked.session, code)).status).to.equal(403);
        expect(shop.backend.calls).to.have.length(0);
      });
    }
  });

  it('requires an address for the code, in the configuration or the request', async () => {
    const json = { response_type: 'uri', requestId: 'nowhere' };
    const refused = await shop.call('POST', '/verifier/offer', json);
    expect(refused.status, refused.text).to.equal(400);
    expect(refused.body.errors[0].path).to.equal('redirectUri');
    const given = await shop.call('POST', '/verifier/offer', { ...json, redirectUri: REDIRECT });
    expect(given.status, given.text).to.equal(201);
  });

  it('does not wait through the Digital Credentials API, which has no redirect', async () => {
    const expectedOrigins = ['https://shop.example'];
    await shop.configure({ id: 'page', requireResponseCode: true, expectedOrigins, dcApiRequest: 'unsigned', responseMode: 'direct_post' });
    const made = await shop.call('POST', '/verifier/offer', { response_type: 'dc-api', requestId: 'page' });
    expect(made.status, made.text).to.equal(201);
    const { nonce } = made.body.dcApi.requests[0].data;
    const aud = 'origin:https://shop.example';
    const data = { vp_token: { card: [bindToRequest({ payload: { nonce } }, held, undefined, { aud })] } };
    const answer = await shop.service.call('POST', made.body.uri, { json: data });
    expect(answer.status, answer.text).to.be.below(300);
    expect((await shop.session(made.body.session)).status).to.equal('completed');
  });

  /** What the stream tells from now on until it ends. */
  const told = async (session: string) => {
    const stream = await fetch(`${shop.service.address}/session/${session}/events?token=${shop.token}`);
    return async () => [...(await stream.text()).matchAll(/"status":"(\w+)"/g)].map(([, status]) => status);
  };

  it('sends its completion in the event stream', async () => {
    const { asked, code } = await answered('hook');
    const statuses = await told(asked.session);
    await bring(asked.session, code);
    expect(await statuses()).to.deep.equal(['fetched', 'completed']);
  });

  it('sends its failure in the event stream: of the webhook or without the code', async () => {
    const down = await answered('down');
    const byWebhook = await told(down.asked.session);
    await bring(down.asked.session, down.code);
    expect(await byWebhook()).to.deep.equal(['fetched', 'failed']);

    const { asked } = await answered('plain');
    const byTime = await told(asked.session);
    await later(302, async () => {
      const { container } = shop.service.service;
      const { overdue } = await container.get(Store).maintenance.expireSessions(new Date(), 100);
      await obtain(container, EndOverdueResponses).execute(overdue);
      expect((await shop.session(asked.session)).failure.code).to.equal('response_code_missing');
    });
    expect(await byTime()).to.deep.equal(['fetched', 'failed']);
    const late = await told(asked.session);
    expect(await late(), 'to who begins to listen later').to.deep.equal(['failed']);
  });
});
