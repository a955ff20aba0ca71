import { expect } from 'chai';
import sinon from 'sinon';
import { Store } from '../../application/ports/store.ts';
import { EndOverdueResponses } from '../../application/verification/end-overdue-responses.ts';
import { obtain } from '../../bootstrap/wiring/wire.ts';
import { bindToRequest, encryptResponse, type FetchedRequest, type HeldCredential, Shop } from '../support/present.ts';

const REDIRECT = 'https://shop.example/done/{sessionId}';

describe('presentation whose result waits for the response code', () => {
  let shop: Shop;
  let heldCredential: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    heldCredential = await shop.issue();
    const webhook = (path: string) => ({ url: shop.backend.url + path });
    const withRequiredCode = { requireResponseCode: true, redirectUri: REDIRECT };
    await shop.configure({ id: 'plain', ...withRequiredCode });
    await shop.configure({ id: 'long', ...withRequiredCode, lifeTime: 3600 });
    await shop.configure({ id: 'hook', ...withRequiredCode, webhook: webhook('/presented') });
    shop.backend.on('/down', (response) => response.writeHead(503).end());
    await shop.configure({ id: 'down', ...withRequiredCode, webhook: webhook('/down') });
    await shop.configure({ id: 'nowhere', requireResponseCode: true });
  });

  after(() => shop.close());
  beforeEach(() => shop.backend.clearCalls());

  async function createAnswered(configuration: string): Promise<{ asked: FetchedRequest; code: string }> {
    const request = await shop.requestPresentation(configuration);
    const answer = await shop.present(request, heldCredential);
    expect(answer.status, answer.text).to.equal(200);
    const code = new URL(answer.body.redirect_uri).searchParams.get('response_code') ?? '';
    return { asked: request, code };
  }
  const readWithCode = (session: string, code: string) => shop.call('GET', `/session/${session}?response_code=${encodeURIComponent(code)}`);
  const later = async (seconds: number, run: () => Promise<void>) => {
    const clock = sinon.useFakeTimers({ now: Date.now() + seconds * 1000, toFake: ['Date'] });
    try {
      await run();
    } finally {
      clock.restore();
    }
  };

  it('returns nothing and is not completed until the browser sends the code', async () => {
    for (const configuration of ['plain', 'long']) {
      const { asked, code } = await createAnswered(configuration);
      const waiting = await shop.call('GET', `/session/${asked.session}`);
      expect(waiting.body.status).to.equal('fetched');
      expect(waiting.body).to.not.have.any.keys('credentials', 'report', 'failure');
      const [listedSession] = (await shop.call('GET', '/session?limit=1')).body;
      expect(listedSession.id).to.equal(asked.session);
      expect(waiting.text + JSON.stringify(listedSession)).to.not.include('Ada');
      expect((await readWithCode(asked.session, `${code}x`)).status).to.equal(403);
      expect((await shop.session(asked.session)).status).to.equal('fetched');
      const sessionResponse = await readWithCode(asked.session, code);
      expect([sessionResponse.status, sessionResponse.body.status]).to.deep.equal([200, 'completed']);
      expect(sessionResponse.body.credentials[0].values).to.deep.include({ name: 'Ada' });
      expect((await readWithCode(asked.session, code)).status, 'a second time').to.equal(403);
      expect((await shop.session(asked.session)).credentials[0].values).to.deep.include({ name: 'Ada' });
    }
  });

  it('calls the webhook when the code was redeemed, and then completes', async () => {
    const { asked, code } = await createAnswered('hook');
    expect(shop.backend.calls, 'before the code is used').to.have.length(0);
    const sessionResponse = await readWithCode(asked.session, code);
    expect([sessionResponse.status, sessionResponse.body.status]).to.deep.equal([200, 'completed']);
    expect(shop.backend.calls).to.have.length(1);
    expect(JSON.stringify(shop.backend.calls[0]?.body)).to.include('Ada');
    expect(sessionResponse.body.deliveries[0]).to.include({ webhook: 'presentation', result: 'delivered' });
    expect(shop.backend.calls[0]?.headers['idempotency-key']).to.equal(sessionResponse.body.deliveries[0].id);
  });

  it('fails when the webhook fails, and accepts no second code', async () => {
    const { asked, code } = await createAnswered('down');
    const sessionResponse = await readWithCode(asked.session, code);
    expect([sessionResponse.status, sessionResponse.body.status, sessionResponse.body.failure.code]).to.deep.equal([
      200,
      'failed',
      'webhook_failed',
    ]);
    expect((await readWithCode(asked.session, code)).status).to.equal(403);
    expect(shop.backend.calls).to.have.length(1);
  });

  it('reports a rejected answer to the backend at once, without values', async () => {
    const request = await shop.requestPresentation('hook');
    const text = bindToRequest(request, heldCredential, undefined, { aud: 'other' });
    const { state } = request.payload;
    const response = await encryptResponse(request, { vp_token: { card: [text] }, state });
    expect((await shop.postResponse(request, { response })).status).to.equal(400);
    expect(shop.backend.calls).to.have.length(1);
    expect(JSON.stringify(shop.backend.calls[0]?.body)).to.include('aud_mismatch').and.not.include('Ada');
    expect((await shop.session(request.session)).failure.code).to.equal('presentation_refused');
  });

  it('accepts one answer', async () => {
    const { asked } = await createAnswered('plain');
    expect((await shop.present(asked, heldCredential)).status).to.equal(400);
    expect((await shop.service.call('GET', asked.url)).status).to.equal(410);
  });

  it('fails after five minutes without the code, even if its request is valid for longer', async () => {
    for (const configuration of ['plain', 'long']) {
      const { asked, code } = await createAnswered(configuration);
      await later(299, async () => {
        expect((await shop.session(asked.session)).status).to.equal('fetched');
      });
      await later(302, async () => {
        const sessionBody = await shop.session(asked.session);
        expect([sessionBody.status, sessionBody.failure.code]).to.deep.equal(['failed', 'response_code_missing']);
        expect((await readWithCode(asked.session, code)).status).to.equal(403);
        expect(shop.backend.calls).to.have.length(0);
      });
    }
  });

  it('requires an address for the code, in the configuration or the request', async () => {
    const json = { response_type: 'uri', requestId: 'nowhere' };
    const rejection = await shop.call('POST', '/verifier/offer', json);
    expect(rejection.status, rejection.text).to.equal(400);
    expect(rejection.body.errors[0].path).to.equal('redirectUri');
    const requestWithRedirect = await shop.call('POST', '/verifier/offer', { ...json, redirectUri: REDIRECT });
    expect(requestWithRedirect.status, requestWithRedirect.text).to.equal(201);
  });

  it('does not wait through the Digital Credentials API, which has no redirect', async () => {
    const expectedOrigins = ['https://shop.example'];
    await shop.configure({ id: 'page', requireResponseCode: true, expectedOrigins, dcApiRequest: 'unsigned', responseMode: 'direct_post' });
    const creation = await shop.call('POST', '/verifier/offer', { response_type: 'dc-api', requestId: 'page' });
    expect(creation.status, creation.text).to.equal(201);
    const { nonce } = creation.body.dcApi.requests[0].data;
    const aud = 'origin:https://shop.example';
    const data = { vp_token: { card: [bindToRequest({ payload: { nonce } }, heldCredential, undefined, { aud })] } };
    const answer = await shop.service.call('POST', creation.body.uri, { json: data });
    expect(answer.status, answer.text).to.be.below(300);
    expect((await shop.session(creation.body.session)).status).to.equal('completed');
  });

  /** Statuses of the stream from now on until its end. */
  const collectStatuses = async (session: string) => {
    const stream = await fetch(`${shop.service.address}/session/${session}/events?token=${shop.token}`);
    return async () => [...(await stream.text()).matchAll(/"status":"(\w+)"/g)].map(([, status]) => status);
  };

  it('sends its completion in the event stream', async () => {
    const { asked, code } = await createAnswered('hook');
    const statuses = await collectStatuses(asked.session);
    await readWithCode(asked.session, code);
    expect(await statuses()).to.deep.equal(['fetched', 'completed']);
  });

  it('sends its failure in the event stream: of the webhook or without the code', async () => {
    const answeredDown = await createAnswered('down');
    const byWebhook = await collectStatuses(answeredDown.asked.session);
    await readWithCode(answeredDown.asked.session, answeredDown.code);
    expect(await byWebhook()).to.deep.equal(['fetched', 'failed']);

    const { asked } = await createAnswered('plain');
    const byTime = await collectStatuses(asked.session);
    await later(302, async () => {
      const { container } = shop.service.service;
      const { overdue } = await container.get(Store).maintenance.expireSessions(new Date(), 100);
      await obtain(container, EndOverdueResponses).execute(overdue);
      expect((await shop.session(asked.session)).failure.code).to.equal('response_code_missing');
    });
    expect(await byTime()).to.deep.equal(['fetched', 'failed']);
    const lateStatuses = await collectStatuses(asked.session);
    expect(await lateStatuses(), 'to a client that connects later').to.deep.equal(['failed']);
  });
});
