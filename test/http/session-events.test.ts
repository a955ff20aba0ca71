import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { deriveKey } from '../../adapters/crypto/cipher.ts';
import { type FetchedRequest, type HeldCredential, Shop } from '../support/present.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { type EventStream, openStream } from '../support/sse.ts';
import { startTestService } from '../support/test-service.ts';

const MASTER_SECRET = 'a master secret for the tests 0123456789';

/** An access token in the format of the service, with claims of the test. */
function signToken(claims: object): string {
  const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const signed = `${encoded({ alg: 'HS256', typ: 'JWT' })}.${encoded(claims)}`;
  const key = deriveKey(MASTER_SECRET, 'vidimus/access-token');
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`;
}

describe('session event stream', () => {
  let shop: Shop;
  const streams: EventStream[] = [];

  before(async () => {
    shop = await Shop.open({}, () => startTestService({ MASTER_SECRET }));
  });
  after(() => shop.close());
  afterEach(() => {
    for (const stream of streams.splice(0)) stream.leave();
  });

  const address = (id: string, token?: string) =>
    `${shop.service.address}/session/${id}/events${token === undefined ? '' : `?token=${token}`}`;
  const openSessionStream = async (id: string, token: string, lastEventId?: string): Promise<EventStream> => {
    const headers: Record<string, string> = lastEventId === undefined ? {} : { 'Last-Event-ID': lastEventId };
    const stream = await openStream(address(id, token), headers);
    streams.push(stream);
    return stream;
  };
  /** Statuses of all events up to the end of the stream. */
  const readToEnd = async (stream: EventStream) => {
    const messages = [];
    for (let message = await stream.next(); message !== undefined; message = await stream.next()) messages.push(message);
    return messages;
  };
  const offer = async (): Promise<{ uri: string; session: string }> => {
    const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };
    return (await shop.call('POST', '/issuer/offer', json, shop.acme.token)).body;
  };

  it('is an uncacheable stream of events with the published data', async () => {
    const { session } = await offer();
    const stream = await openSessionStream(session, shop.acme.token);
    expect(stream.headers.get('content-type')).to.equal('text/event-stream');
    expect(stream.headers.get('cache-control')).to.equal('no-store');
    const message = await stream.next();
    expect(message?.data).to.have.all.keys('id', 'status', 'updatedAt');
    const { updatedAt } = (await shop.call('GET', `/session/${session}`, undefined, shop.acme.token)).body;
    expect(message?.data).to.deep.equal({ id: session, status: 'active', updatedAt });
    expect(message?.id).to.equal('1');
  });

  it('sends every change of an issuance at once and closes afterwards', async () => {
    const { uri, session } = await offer();
    const stream = await openSessionStream(session, shop.acme.token);
    expect((await stream.next())?.data.status).to.equal('active');
    const wallet = new RawWallet(shop.service, 'acme');
    const accessToken = await wallet.accessToken(uri);
    expect((await stream.next())?.data.status).to.equal('fetched');
    expect((await wallet.request(accessToken, 'card')).status).to.equal(200);
    const messages = await readToEnd(stream);
    expect(messages.map(({ data }) => data.status)).to.deep.equal(['completed']);
  });

  it('sends every change of a verification to all clients and closes afterwards', async () => {
    const credential = await shop.issue();
    const creation = await shop.call('POST', '/verifier/offer', { response_type: 'uri', requestId: 'check' });
    const { session } = creation.body;
    const listeners = await Promise.all([1, 2, 3].map(() => openSessionStream(session, shop.token)));
    for (const stream of listeners) expect((await stream.next())?.data.status).to.equal('active');
    const url = new URL(creation.body.uri).searchParams.get('request_uri') ?? '';
    const text = (await shop.service.call('GET', url)).text;
    for (const stream of listeners) expect((await stream.next())?.data.status).to.equal('fetched');
    const payload = JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString());
    await shop.present({ session, uri: creation.body.uri, url, text, header: {}, payload }, credential);
    for (const stream of listeners) expect((await readToEnd(stream)).map(({ data }) => data.status)).to.deep.equal(['completed']);
  });

  it('sends failures, and sends a finished session once and closes', async () => {
    const request = await shop.requestPresentation();
    const stream = await openSessionStream(request.session, shop.token);
    expect((await stream.next())?.data.status).to.equal('fetched');
    await shop.postResponse(request, { error: 'access_denied', state: request.payload['state'] });
    expect((await readToEnd(stream)).map(({ data }) => data.status)).to.deep.equal(['failed']);
    const lateStatuses = await readToEnd(await openSessionStream(request.session, shop.token));
    expect(lateStatuses.map(({ data }) => data.status)).to.deep.equal(['failed']);
    const expiringOffer = await offer();
    const clock = sinon.useFakeTimers({ now: Date.now() + 86_401_000, toFake: ['Date'] });
    try {
      const tokenResponse = await shop.service.call('POST', '/oauth2/token', {
        json: { grant_type: 'client_credentials', client_id: 'acme-admin', client_secret: await rotateSecret('acme-admin') },
      });
      const statusesOfExpired = await readToEnd(await openSessionStream(expiringOffer.session, tokenResponse.body.access_token));
      expect(statusesOfExpired.map(({ data }) => data.status)).to.deep.equal(['expired']);
    } finally {
      clock.restore();
    }
  });

  const rotateSecret = async (clientId: string): Promise<string> => {
    const root = await shop.service.call('POST', '/oauth2/token', {
      json: { grant_type: 'client_credentials', client_id: 'root', client_secret: 'root-secret-for-the-tests' },
    });
    // The token of the tests stays valid.
    const path = `/client/${clientId}/rotate-secret?graceSeconds=300`;
    return (await shop.service.call('POST', path, { token: root.body.access_token })).body.secret;
  };

  it('closes with the client secret that its token was issued for', async () => {
    const secret = 'a-secret-of-the-listener';
    const json = { clientId: 'listener', roles: ['issuance:offer'], secret };
    expect((await shop.call('POST', '/client', json, shop.acme.token)).status).to.equal(201);
    const token = await shop.service.token('listener', secret);
    const { session, uri } = await offer();
    const stream = await openSessionStream(session, token);
    await stream.next();
    const path = '/client/listener/rotate-secret';
    expect((await shop.call('POST', path, undefined, shop.acme.token)).status).to.equal(201);
    // An event occurs that has no recipient.
    await fetch(new URL(uri).searchParams.get('credential_offer_uri') ?? '');
    expect((await shop.call('GET', `/session/${session}`, undefined, shop.acme.token)).body.status).to.equal('fetched');
    expect(await stream.next()).to.equal(undefined);
    const secondStream = await fetch(`${shop.service.address}/session/${session}/events?token=${token}`);
    expect(secondStream.status).to.equal(401);
  });

  it('closes when the session is deleted', async () => {
    const { session } = await offer();
    const stream = await openSessionStream(session, shop.acme.token);
    await stream.next();
    expect((await shop.call('DELETE', `/session/${session}`, undefined, shop.acme.token)).status).to.equal(200);
    expect(await stream.next()).to.equal(undefined);
  });

  it('closes when the access token expires and continues with a new one', async () => {
    const { uri, session } = await offer();
    const claims = JSON.parse(Buffer.from(shop.acme.token.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>;
    const issuedAt = Math.floor(Date.now() / 1000);
    const brief = signToken({ ...claims, iat: issuedAt, exp: issuedAt + 2 });
    const stream = await openSessionStream(session, brief);
    const first = await stream.next();
    expect(first?.data.status).to.equal('active');
    expect(await stream.next(), 'the stream closes without an error').to.equal(undefined);
    const rejectedStream = await shop.service.call('GET', address(session, brief));
    expect(rejectedStream.status).to.equal(401);
    await new RawWallet(shop.service, 'acme').accessToken(uri);
    const secondStream = await openSessionStream(session, shop.acme.token, first?.id);
    expect((await secondStream.next())?.data.status).to.equal('fetched');
  });

  it('replays missed events', async () => {
    const credential = await shop.issue();
    const request = await shop.requestPresentation();
    // A wallet that responds before its fetch is recorded completes the session directly.
    expect((await shop.call('GET', `/session/${request.session}`)).body.status).to.equal('fetched');
    await shop.present(request, credential);
    const readStatuses = async (lastEventId?: string) =>
      (await readToEnd(await openSessionStream(request.session, shop.token, lastEventId))).map(({ id, data }) => [
        data.status,
        Number(id) > Number(lastEventId ?? 0),
      ]);
    expect(await readStatuses()).to.deep.equal([['completed', true]]);
    expect(await readStatuses('1')).to.deep.equal([
      ['fetched', true],
      ['completed', true],
    ]);
    const [last] = await readToEnd(await openSessionStream(request.session, shop.token));
    expect(
      (await readStatuses(last?.id)).map(([status]) => status),
      'a client that has all events gets the end',
    ).to.deep.equal(['completed']);
    for (const eventId of ['999', 'x', '-1']) expect(await readStatuses(eventId)).to.have.length(1);
  });

  it('accepts the token in the query or in the header, and nothing else', async () => {
    const { session } = await offer();
    const { token } = shop.acme;
    const inHeader = await openStream(address(session), { Authorization: `Bearer ${token}` });
    streams.push(inHeader);
    expect((await inHeader.next())?.data.status).to.equal('active');
    const tampered = `${token.slice(0, -3)}abc`;
    const invalidAddresses = [address(session), address(session, ''), address(session, 'x'), address(session, tampered)];
    for (const url of [...invalidAddresses, `${address(session, token)}&token=${token}`]) {
      const answer = await shop.service.call('GET', url);
      expect(answer.status, url).to.equal(401);
      expect(answer.headers.get('www-authenticate')).to.include('Bearer');
      expect(answer.headers.get('content-type')).to.equal('application/problem+json');
    }
    const otherRoute = await shop.service.call('GET', `/session/${session}?token=${token}`);
    expect(otherRoute.status, 'only the stream accepts it in the query').to.equal(401);
  });

  it('returns the same 404 for an unknown session and for one of another tenant', async () => {
    const { session } = await offer();
    const responses = [
      await shop.service.call('GET', address('unknown', shop.token)),
      await shop.service.call('GET', address(session, shop.token)),
    ];
    for (const { status, body } of responses) expect([status, body.code]).to.deep.equal([404, 'not_found']);
  });

  it('closes at once when the service stops, which does not wait for it', async () => {
    const otherShop = await Shop.open();
    const request = await otherShop.requestPresentation();
    const url = `${otherShop.service.address}/session/${request.session}/events?token=${otherShop.token}`;
    const streams = await Promise.all([1, 2, 3].map(() => openStream(url)));
    for (const stream of streams) expect((await stream.next())?.data.status).to.equal('fetched');
    const startTime = performance.now();
    const [lastEvents] = await Promise.all([Promise.all(streams.map((stream) => stream.next())), otherShop.service.service.close()]);
    // An idle connection that is kept open would delay the stop by 65 seconds.
    expect(performance.now() - startTime).to.be.lessThan(30_000);
    expect(lastEvents, 'the streams close without an error').to.deep.equal([undefined, undefined, undefined]);
    await otherShop.backend.close();
  });
});

describe('client session', () => {
  let shop: Shop;
  let heldCredential: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    heldCredential = await shop.issue();
    await shop.configure({ id: 'told', webhook: { url: `${shop.backend.url}/told` } });
  });
  after(() => shop.close());
  beforeEach(() => {
    shop.backend.clearCalls();
    shop.backend.on('/told', { json: {} });
  });

  const asAcme = (method: string, path: string, json?: unknown) => shop.call(method, path, json, shop.acme.token);
  const OFFER = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };
  const offer = async (overrides: object = {}): Promise<{ uri: string; session: string }> => {
    const offerResponse = await asAcme('POST', '/issuer/offer', { ...OFFER, ...overrides });
    expect(offerResponse.status, offerResponse.text).to.equal(201);
    return offerResponse.body;
  };

  describe('in a search', () => {
    const searchSessions = async (q: string, token = shop.acme.token, overrides = '') => {
      const answer = await shop.call('GET', `/session?q=${encodeURIComponent(q)}${overrides}`, undefined, token);
      expect(answer.status, answer.text).to.equal(200);
      return answer.body.map(({ id }: { id: string }) => id);
    };

    it('is found by its reference, which other sessions may share, page by page', async () => {
      const ids: string[] = [];
      for (let i = 0; i < 3; i++) ids.push((await offer({ reference: 'order 17/ä' })).session);
      await offer({ reference: 'order 18' });
      expect(await searchSessions('order 17/ä')).to.have.members(ids);
      expect(await searchSessions('order 1')).to.deep.equal([]);
      const first = await asAcme('GET', '/session?q=order%2017%2F%C3%A4&limit=2');
      expect(first.body).to.have.length(2);
      const link = /<([^>]+)>/.exec(first.headers.get('link') ?? '')?.[1] ?? '';
      const nextPage = await asAcme('GET', link);
      expect([...first.body, ...nextPage.body].map(({ id }) => id)).to.have.members(ids);
      expect(first.body[0].reference).to.equal('order 17/ä');
      expect(await searchSessions('order 17/ä', shop.token), 'in another tenant').to.deep.equal([]);
    });

    it('is found by its id, its link, the target of the link and its code, redeemed or not', async () => {
      const { uri, session } = await offer();
      const address = new URL(uri).searchParams.get('credential_offer_uri') ?? '';
      const wallet = new RawWallet(shop.service, 'acme');
      const code = await wallet.code(uri);
      for (const q of [session, uri, address, address.split('/').at(-1) ?? '', code]) {
        expect(await searchSessions(q), q).to.deep.equal([session]);
      }
      expect((await wallet.redeem(code)).status).to.equal(200);
      expect(await searchSessions(code)).to.deep.equal([session]);
      expect(await searchSessions(code, undefined, '&status=failed')).to.deep.equal([]);
      expect(await searchSessions(`${code}x`)).to.deep.equal([]);
      expect(await searchSessions(code, shop.token), 'in another tenant').to.deep.equal([]);
    });

    it('is found by the nonce, the link and the addresses of a request, and by its reference', async () => {
      const request = await shop.requestPresentation('check', { reference: 'counter 4' });
      const { nonce, response_uri: responseUri } = request.payload;
      for (const q of [nonce, request.uri, request.url, responseUri, 'counter 4', request.session]) {
        expect(await searchSessions(q, shop.token), q).to.deep.equal([request.session]);
      }
      expect(await searchSessions(nonce), 'in another tenant').to.deep.equal([]);
    });

    it('is not found by restricted clients, and too long or empty searches are rejected', async () => {
      const { session } = await offer({ reference: 'hidden' });
      const secret = 'a-secret-of-this-very-client';
      await asAcme('POST', '/client', { clientId: 'verifier', secret, roles: ['presentation:request'] });
      const token = await shop.service.token('verifier', secret);
      expect(await searchSessions('hidden', token)).to.deep.equal([]);
      expect(await searchSessions(session, token)).to.deep.equal([]);
      for (const q of ['', 'x'.repeat(8_001)]) {
        expect((await asAcme('GET', `/session?q=${q}`)).status).to.equal(400);
      }
      for (const reference of ['', 'x'.repeat(201), 'a\u0000b', 'a\nb', 7]) {
        expect((await asAcme('POST', '/issuer/offer', { ...OFFER, reference })).status).to.equal(400);
      }
    });

    it('is never shown to a wallet by its reference', async () => {
      const { uri } = await offer({ reference: 'for us alone' });
      const offerResponse = await shop.service.call('GET', new URL(uri).searchParams.get('credential_offer_uri') ?? '');
      expect(offerResponse.text).to.not.include('for us alone');
      expect((await shop.requestPresentation('check', { reference: 'for us alone' })).text).to.not.include('for us alone');
    });
  });

  describe('that is cancelled', () => {
    const cancel = (id: string, token = shop.acme.token) => shop.call('POST', `/session/${id}/cancel`, undefined, token);

    it('is cancelled before its code is redeemed, and the wallet gets nothing', async () => {
      const { uri, session } = await offer();
      const wallet = new RawWallet(shop.service, 'acme');
      const code = await wallet.code(uri);
      const answer = await cancel(session);
      expect([answer.status, answer.body.status, answer.body.failure.code], answer.text).to.deep.equal([200, 'failed', 'cancelled']);
      const { updatedAt: _updatedAt, ...cancelResponse } = answer.body;
      const { updatedAt: _sessionUpdatedAt, ...storedSession } = (await asAcme('GET', `/session/${session}`)).body;
      expect(storedSession).to.deep.equal(cancelResponse);
      const rejection = await wallet.redeem(code);
      expect([rejection.status, rejection.body.error]).to.deep.equal([400, 'invalid_grant']);
      const address = new URL(uri).searchParams.get('credential_offer_uri') ?? '';
      expect((await shop.service.call('GET', address)).status).to.be.oneOf([404, 410]);
      const secondCancel = await cancel(session);
      expect([secondCancel.status, secondCancel.body.code]).to.deep.equal([409, 'conflict']);
    });

    it('is cancelled after its code was redeemed, and the token is useless', async () => {
      const { uri, session } = await offer();
      const wallet = new RawWallet(shop.service, 'acme');
      const token = await wallet.accessToken(uri);
      expect((await cancel(session)).status).to.equal(200);
      const rejection = await wallet.request(token, 'card');
      expect(rejection.status, rejection.text).to.be.oneOf([400, 401]);
      expect(rejection.body.error).to.be.oneOf(['credential_request_denied', 'invalid_token']);
    });

    it('is cancelled before it is answered, and the wallet is rejected', async () => {
      const request = await shop.requestPresentation();
      expect((await cancel(request.session, shop.token)).body.failure.code).to.equal('cancelled');
      const answer = await shop.present(request, heldCredential);
      expect([answer.status, answer.body.error], answer.text).to.deep.equal([400, 'invalid_request']);
      const fetchResponse = await shop.service.call('GET', request.url);
      expect(fetchResponse.status).to.be.oneOf([400, 404, 410]);
    });

    it('is not cancelled after it has finished, or if it is unknown or belongs to another tenant', async () => {
      const request = await shop.requestPresentation();
      expect((await shop.present(request, heldCredential)).status).to.equal(200);
      expect((await cancel(request.session, shop.token)).status).to.equal(409);
      expect((await shop.session(request.session)).status).to.equal('completed');
      expect((await cancel('nowhere', shop.token)).status).to.equal(404);
      expect((await cancel(request.session)).status).to.equal(404);
    });

    it('is not cancelled during a call to its backend', async () => {
      let respondToWebhook: (() => void) | undefined;
      const webhookCalled = new Promise<void>((resolve) => {
        shop.backend.on('/told', (response) => {
          resolve();
          respondToWebhook = () => response.end('{}');
        });
      });
      const request = await shop.requestPresentation('told');
      const presentation = shop.present(request, heldCredential);
      await webhookCalled;
      expect((await cancel(request.session, shop.token)).status).to.equal(409);
      respondToWebhook?.();
      expect((await presentation).status).to.equal(200);
      expect((await shop.session(request.session)).status).to.equal('completed');
    });
  });

  describe('with a repeated delivery', () => {
    const retryDelivery = (session: string, delivery: string, token = shop.token) =>
      shop.call('POST', `/session/${session}/deliveries/${delivery}/retry`, undefined, token);
    const createFailed = async (): Promise<{ asked: FetchedRequest; id: string }> => {
      shop.backend.on('/told', (response) => response.writeHead(503).end());
      const request = await shop.requestPresentation('told');
      expect((await shop.present(request, heldCredential)).status).to.equal(400);
      const { deliveries } = await shop.session(request.session);
      return { asked: request, id: deliveries[0].id };
    };

    it('repeats it with the same id and body, and the backend gets the missed result', async () => {
      const { asked, id } = await createFailed();
      shop.backend.on('/told', (response) => response.end('OK'));
      const answer = await retryDelivery(asked.session, id);
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.body).to.include({ id, webhook: 'presentation', result: 'delivered' });
      expect(answer.body).to.not.have.property('detail');
      const [first, second] = shop.backend.calls;
      expect(second?.headers['idempotency-key']).to.equal(first?.headers['idempotency-key']);
      expect(second?.headers['webhook-id']).to.equal(id);
      expect(second?.body).to.deep.equal(first?.body);
      const { status, failure, deliveries } = await shop.session(asked.session);
      expect([status, failure.code]).to.deep.equal(['failed', 'webhook_failed']);
      expect(deliveries).to.deep.equal([answer.body]);
      const secondRetry = await retryDelivery(asked.session, id);
      expect([secondRetry.status, secondRetry.body.code]).to.deep.equal([409, 'conflict']);
      expect(shop.backend.calls).to.have.length(2);
    });

    it('repeats it once for concurrent requests', async () => {
      const { asked, id } = await createFailed();
      shop.backend.on('/told', { json: {} });
      shop.backend.clearCalls();
      const responses = await Promise.all(Array.from({ length: 30 }, () => retryDelivery(asked.session, id)));
      expect(responses.map(({ status }) => status).sort()).to.deep.equal([200, ...Array(29).fill(409)]);
      expect(shop.backend.calls).to.have.length(1);
    });

    it('repeats it also if it fails again, and if it reported a rejection', async () => {
      const { asked, id } = await createFailed();
      const failedRetry = await retryDelivery(asked.session, id);
      expect([failedRetry.status, failedRetry.body.result], failedRetry.text).to.deep.equal([200, 'failed']);
      expect(failedRetry.body.detail).to.include('503');
      const otherRequest = await shop.requestPresentation('told');
      const credentialOfOtherHolder = { ...heldCredential, holder: (await shop.issue()).holder };
      expect((await shop.present(otherRequest, credentialOfOtherHolder)).status).to.equal(400);
      const [delivery] = (await shop.session(otherRequest.session)).deliveries;
      expect(delivery).to.not.have.property('told');
      shop.backend.on('/told', { json: {} });
      shop.backend.clearCalls();
      expect((await retryDelivery(otherRequest.session, delivery.id)).body.result).to.equal('delivered');
      expect(shop.backend.calls[0]?.body.credentials[0]).to.have.keys('id', 'error');
    });

    it('repeats the delivery of a notification', async () => {
      shop.backend.on('/noted', (response) => response.writeHead(500).end());
      const { uri, session } = await offer({ notifyWebhook: { url: `${shop.backend.url}/noted` } });
      const wallet = new RawWallet(shop.service, 'acme');
      const token = await wallet.accessToken(uri);
      const { notification_id } = (await wallet.request(token, 'card')).body;
      const notification = await shop.service.call('POST', '/acme/notification', {
        headers: wallet.authorization(token, { path: 'notification' }),
        json: { notification_id, event: 'credential_accepted' },
      });
      expect(notification.status).to.equal(204);
      const { deliveries } = (await asAcme('GET', `/session/${session}`)).body;
      shop.backend.on('/noted', { json: {} });
      const answer = await retryDelivery(session, deliveries[0].id, shop.acme.token);
      expect([answer.status, answer.body.result], answer.text).to.deep.equal([200, 'delivered']);
      const [first, second] = shop.backend.callsTo('/noted');
      expect(second?.body).to.deep.equal(first?.body);
    });

    it('does not repeat it if it is unknown or belongs to another tenant', async () => {
      const { asked, id } = await createFailed();
      expect((await retryDelivery(asked.session, 'nothing')).status).to.equal(404);
      expect((await retryDelivery(asked.session, id, shop.acme.token)).status).to.equal(404);
      expect((await retryDelivery('nowhere', id)).status).to.equal(404);
    });
  });
});
