import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { deriveKey } from '../../adapters/crypto/cipher.ts';
import { type FetchedRequest, type HeldCredential, Shop } from '../support/present.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { type EventStream, openStream } from '../support/sse.ts';
import { startTestService } from '../support/test-service.ts';

const MASTER_SECRET = 'a master secret for the tests 0123456789';

/** An access token as the service makes them, with claims of the test. */
function resigned(claims: object): string {
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
  const follow = async (id: string, token: string, lastEventId?: string): Promise<EventStream> => {
    const headers: Record<string, string> = lastEventId === undefined ? {} : { 'Last-Event-ID': lastEventId };
    const stream = await openStream(address(id, token), headers);
    streams.push(stream);
    return stream;
  };
  /** Statuses up to the end of the stream, with what was told. */
  const rest = async (stream: EventStream) => {
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
    const stream = await follow(session, shop.acme.token);
    expect(stream.headers.get('content-type')).to.equal('text/event-stream');
    expect(stream.headers.get('cache-control')).to.equal('no-store');
    const message = await stream.next();
    expect(message?.data).to.have.all.keys('id', 'status', 'updatedAt');
    const { updatedAt } = (await shop.call('GET', `/session/${session}`, undefined, shop.acme.token)).body;
    expect(message?.data).to.deep.equal({ id: session, status: 'active', updatedAt });
    expect(message?.id).to.equal('1');
  });

  it('sends every change of an issuance at once and ends with it', async () => {
    const { uri, session } = await offer();
    const stream = await follow(session, shop.acme.token);
    expect((await stream.next())?.data.status).to.equal('active');
    const wallet = new RawWallet(shop.service, 'acme');
    const accessToken = await wallet.accessToken(uri);
    expect((await stream.next())?.data.status).to.equal('fetched');
    expect((await wallet.request(accessToken, 'card')).status).to.equal(200);
    const messages = await rest(stream);
    expect(messages.map(({ data }) => data.status)).to.deep.equal(['completed']);
  });

  it('sends every change of a verification to all listeners and ends with it', async () => {
    const held = await shop.issue();
    const made = await shop.call('POST', '/verifier/offer', { response_type: 'uri', requestId: 'check' });
    const { session } = made.body;
    const listeners = await Promise.all([1, 2, 3].map(() => follow(session, shop.token)));
    for (const stream of listeners) expect((await stream.next())?.data.status).to.equal('active');
    const url = new URL(made.body.uri).searchParams.get('request_uri') ?? '';
    const text = (await shop.service.call('GET', url)).text;
    for (const stream of listeners) expect((await stream.next())?.data.status).to.equal('fetched');
    const payload = JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString());
    await shop.present({ session, uri: made.body.uri, url, text, header: {}, payload }, held);
    for (const stream of listeners) expect((await rest(stream)).map(({ data }) => data.status)).to.deep.equal(['completed']);
  });

  it('sends failures, and sends an ended session once and closes', async () => {
    const asked = await shop.requestPresentation();
    const stream = await follow(asked.session, shop.token);
    expect((await stream.next())?.data.status).to.equal('fetched');
    await shop.postResponse(asked, { error: 'access_denied', state: asked.payload['state'] });
    expect((await rest(stream)).map(({ data }) => data.status)).to.deep.equal(['failed']);
    const late = await rest(await follow(asked.session, shop.token));
    expect(late.map(({ data }) => data.status)).to.deep.equal(['failed']);
    const expiring = await offer();
    const clock = sinon.useFakeTimers({ now: Date.now() + 86_401_000, toFake: ['Date'] });
    try {
      const fresh = await shop.service.call('POST', '/oauth2/token', {
        json: { grant_type: 'client_credentials', client_id: 'acme-admin', client_secret: await rotated('acme-admin') },
      });
      const over = await rest(await follow(expiring.session, fresh.body.access_token));
      expect(over.map(({ data }) => data.status)).to.deep.equal(['expired']);
    } finally {
      clock.restore();
    }
  });

  const rotated = async (clientId: string): Promise<string> => {
    const root = await shop.service.call('POST', '/oauth2/token', {
      json: { grant_type: 'client_credentials', client_id: 'root', client_secret: 'root-secret-for-the-tests' },
    });
    // The token of the tests goes on to count.
    const path = `/client/${clientId}/rotate-secret?graceSeconds=300`;
    return (await shop.service.call('POST', path, { token: root.body.access_token })).body.secret;
  };

  it('ends with the client secret that its token was issued for', async () => {
    const secret = 'a-secret-of-the-listener';
    const json = { clientId: 'listener', roles: ['issuance:offer'], secret };
    expect((await shop.call('POST', '/client', json, shop.acme.token)).status).to.equal(201);
    const token = await shop.service.token('listener', secret);
    const { session, uri } = await offer();
    const stream = await follow(session, token);
    await stream.next();
    const path = '/client/listener/rotate-secret';
    expect((await shop.call('POST', path, undefined, shop.acme.token)).status).to.equal(201);
    // There is something to tell, and nobody to tell it to.
    await fetch(new URL(uri).searchParams.get('credential_offer_uri') ?? '');
    expect((await shop.call('GET', `/session/${session}`, undefined, shop.acme.token)).body.status).to.equal('fetched');
    expect(await stream.next()).to.equal(undefined);
    const again = await fetch(`${shop.service.address}/session/${session}/events?token=${token}`);
    expect(again.status).to.equal(401);
  });

  it('ends when the session is deleted', async () => {
    const { session } = await offer();
    const stream = await follow(session, shop.acme.token);
    await stream.next();
    expect((await shop.call('DELETE', `/session/${session}`, undefined, shop.acme.token)).status).to.equal(200);
    expect(await stream.next()).to.equal(undefined);
  });

  it('ends with the access token and continues with a new one', async () => {
    const { uri, session } = await offer();
    const claims = JSON.parse(Buffer.from(shop.acme.token.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>;
    const issued = Math.floor(Date.now() / 1000);
    const brief = resigned({ ...claims, iat: issued, exp: issued + 2 });
    const stream = await follow(session, brief);
    const first = await stream.next();
    expect(first?.data.status).to.equal('active');
    expect(await stream.next(), 'an end, not an error').to.equal(undefined);
    const late = await shop.service.call('GET', address(session, brief));
    expect(late.status).to.equal(401);
    await new RawWallet(shop.service, 'acme').accessToken(uri);
    const again = await follow(session, shop.acme.token, first?.id);
    expect((await again.next())?.data.status).to.equal('fetched');
  });

  it('replays missed events', async () => {
    const held = await shop.issue();
    const asked = await shop.requestPresentation();
    // A wallet that is quicker than the note of its fetch goes straight to the end.
    expect((await shop.call('GET', `/session/${asked.session}`)).body.status).to.equal('fetched');
    await shop.present(asked, held);
    const told = async (lastEventId?: string) =>
      (await rest(await follow(asked.session, shop.token, lastEventId))).map(({ id, data }) => [
        data.status,
        Number(id) > Number(lastEventId ?? 0),
      ]);
    expect(await told()).to.deep.equal([['completed', true]]);
    expect(await told('1')).to.deep.equal([
      ['fetched', true],
      ['completed', true],
    ]);
    const [last] = await rest(await follow(asked.session, shop.token));
    expect(
      (await told(last?.id)).map(([status]) => status),
      'who has all hears the end',
    ).to.deep.equal(['completed']);
    for (const invented of ['999', 'x', '-1']) expect(await told(invented)).to.have.length(1);
  });

  it('accepts the token in the query or in the header, and nothing else', async () => {
    const { session } = await offer();
    const { token } = shop.acme;
    const inHeader = await openStream(address(session), { Authorization: `Bearer ${token}` });
    streams.push(inHeader);
    expect((await inHeader.next())?.data.status).to.equal('active');
    const tampered = `${token.slice(0, -3)}abc`;
    const bad = [address(session), address(session, ''), address(session, 'x'), address(session, tampered)];
    for (const url of [...bad, `${address(session, token)}&token=${token}`]) {
      const answer = await shop.service.call('GET', url);
      expect(answer.status, url).to.equal(401);
      expect(answer.headers.get('www-authenticate')).to.include('Bearer');
      expect(answer.headers.get('content-type')).to.equal('application/problem+json');
    }
    const elsewhere = await shop.service.call('GET', `/session/${session}?token=${token}`);
    expect(elsewhere.status, 'only the stream takes it there').to.equal(401);
  });

  it('answers 404 for an unknown session and one of another tenant alike', async () => {
    const { session } = await offer();
    const answers = [
      await shop.service.call('GET', address('unknown', shop.token)),
      await shop.service.call('GET', address(session, shop.token)),
    ];
    for (const { status, body } of answers) expect([status, body.code]).to.deep.equal([404, 'not_found']);
  });

  it('ends at once when the service stops, which does not wait for it', async () => {
    const other = await Shop.open();
    const asked = await other.requestPresentation();
    const url = `${other.service.address}/session/${asked.session}/events?token=${other.token}`;
    const open = await Promise.all([1, 2, 3].map(() => openStream(url)));
    for (const stream of open) expect((await stream.next())?.data.status).to.equal('fetched');
    const began = performance.now();
    const [ended] = await Promise.all([Promise.all(open.map((stream) => stream.next())), other.service.service.close()]);
    // A connection that is kept open would hold the stop up for 65 seconds.
    expect(performance.now() - began).to.be.lessThan(30_000);
    expect(ended, 'an end, not an error').to.deep.equal([undefined, undefined, undefined]);
    await other.backend.close();
  });
});

describe('client session', () => {
  let shop: Shop;
  let held: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    held = await shop.issue();
    await shop.configure({ id: 'told', webhook: { url: `${shop.backend.url}/told` } });
  });
  after(() => shop.close());
  beforeEach(() => {
    shop.backend.clearCalls();
    shop.backend.on('/told', { json: {} });
  });

  const asAcme = (method: string, path: string, json?: unknown) => shop.call(method, path, json, shop.acme.token);
  const OFFER = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };
  const offer = async (more: object = {}): Promise<{ uri: string; session: string }> => {
    const made = await asAcme('POST', '/issuer/offer', { ...OFFER, ...more });
    expect(made.status, made.text).to.equal(201);
    return made.body;
  };

  describe('in a search', () => {
    const found = async (q: string, token = shop.acme.token, more = '') => {
      const answer = await shop.call('GET', `/session?q=${encodeURIComponent(q)}${more}`, undefined, token);
      expect(answer.status, answer.text).to.equal(200);
      return answer.body.map(({ id }: { id: string }) => id);
    };

    it('is found by its reference, which other sessions may share, page by page', async () => {
      const ids: string[] = [];
      for (let i = 0; i < 3; i++) ids.push((await offer({ reference: 'order 17/ä' })).session);
      await offer({ reference: 'order 18' });
      expect(await found('order 17/ä')).to.have.members(ids);
      expect(await found('order 1')).to.deep.equal([]);
      const first = await asAcme('GET', '/session?q=order%2017%2F%C3%A4&limit=2');
      expect(first.body).to.have.length(2);
      const link = /<([^>]+)>/.exec(first.headers.get('link') ?? '')?.[1] ?? '';
      const rest = await asAcme('GET', link);
      expect([...first.body, ...rest.body].map(({ id }) => id)).to.have.members(ids);
      expect(first.body[0].reference).to.equal('order 17/ä');
      expect(await found('order 17/ä', shop.token), 'in another tenant').to.deep.equal([]);
    });

    it('is found by its id, its link, the target of the link and its code, redeemed or not', async () => {
      const { uri, session } = await offer();
      const address = new URL(uri).searchParams.get('credential_offer_uri') ?? '';
      const wallet = new RawWallet(shop.service, 'acme');
      const code = await wallet.code(uri);
      for (const q of [session, uri, address, address.split('/').at(-1) ?? '', code]) {
        expect(await found(q), q).to.deep.equal([session]);
      }
      expect((await wallet.redeem(code)).status).to.equal(200);
      expect(await found(code)).to.deep.equal([session]);
      expect(await found(code, undefined, '&status=failed')).to.deep.equal([]);
      expect(await found(`${code}x`)).to.deep.equal([]);
      expect(await found(code, shop.token), 'in another tenant').to.deep.equal([]);
    });

    it('is found by the nonce, the link and the addresses of a request, and by its reference', async () => {
      const asked = await shop.requestPresentation('check', { reference: 'counter 4' });
      const { nonce, response_uri: responseUri } = asked.payload;
      for (const q of [nonce, asked.uri, asked.url, responseUri, 'counter 4', asked.session]) {
        expect(await found(q, shop.token), q).to.deep.equal([asked.session]);
      }
      expect(await found(nonce), 'in another tenant').to.deep.equal([]);
    });

    it('is not found by restricted clients, and too long or empty searches are rejected', async () => {
      const { session } = await offer({ reference: 'hidden' });
      const secret = 'a-secret-of-this-very-client';
      await asAcme('POST', '/client', { clientId: 'verifier', secret, roles: ['presentation:request'] });
      const token = await shop.service.token('verifier', secret);
      expect(await found('hidden', token)).to.deep.equal([]);
      expect(await found(session, token)).to.deep.equal([]);
      for (const q of ['', 'x'.repeat(8_001)]) {
        expect((await asAcme('GET', `/session?q=${q}`)).status).to.equal(400);
      }
      for (const reference of ['', 'x'.repeat(201), 'a\u0000b', 'a\nb', 7]) {
        expect((await asAcme('POST', '/issuer/offer', { ...OFFER, reference })).status).to.equal(400);
      }
    });

    it('is never shown to a wallet by its reference', async () => {
      const { uri } = await offer({ reference: 'for us alone' });
      const shown = await shop.service.call('GET', new URL(uri).searchParams.get('credential_offer_uri') ?? '');
      expect(shown.text).to.not.include('for us alone');
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
      const { updatedAt: _at, ...shown } = answer.body;
      const { updatedAt: _then, ...seen } = (await asAcme('GET', `/session/${session}`)).body;
      expect(seen).to.deep.equal(shown);
      const redeemed = await wallet.redeem(code);
      expect([redeemed.status, redeemed.body.error]).to.deep.equal([400, 'invalid_grant']);
      const address = new URL(uri).searchParams.get('credential_offer_uri') ?? '';
      expect((await shop.service.call('GET', address)).status).to.be.oneOf([404, 410]);
      const again = await cancel(session);
      expect([again.status, again.body.code]).to.deep.equal([409, 'conflict']);
    });

    it('is cancelled after its code was redeemed, and the token is useless', async () => {
      const { uri, session } = await offer();
      const wallet = new RawWallet(shop.service, 'acme');
      const token = await wallet.accessToken(uri);
      expect((await cancel(session)).status).to.equal(200);
      const refused = await wallet.request(token, 'card');
      expect(refused.status, refused.text).to.be.oneOf([400, 401]);
      expect(refused.body.error).to.be.oneOf(['credential_request_denied', 'invalid_token']);
    });

    it('is cancelled before it is answered, and the wallet is rejected', async () => {
      const asked = await shop.requestPresentation();
      expect((await cancel(asked.session, shop.token)).body.failure.code).to.equal('cancelled');
      const answer = await shop.present(asked, held);
      expect([answer.status, answer.body.error], answer.text).to.deep.equal([400, 'invalid_request']);
      const fetched = await shop.service.call('GET', asked.url);
      expect(fetched.status).to.be.oneOf([400, 404, 410]);
    });

    it('is not cancelled after it ended, or if it is unknown or belongs to another tenant', async () => {
      const asked = await shop.requestPresentation();
      expect((await shop.present(asked, held)).status).to.equal(200);
      expect((await cancel(asked.session, shop.token)).status).to.equal(409);
      expect((await shop.session(asked.session)).status).to.equal('completed');
      expect((await cancel('nowhere', shop.token)).status).to.equal(404);
      expect((await cancel(asked.session)).status).to.equal(404);
    });

    it('is not cancelled during a call to its backend', async () => {
      let told: (() => void) | undefined;
      const asking = new Promise<void>((resolve) => {
        shop.backend.on('/told', (response) => {
          resolve();
          told = () => response.end('{}');
        });
      });
      const asked = await shop.requestPresentation('told');
      const presented = shop.present(asked, held);
      await asking;
      expect((await cancel(asked.session, shop.token)).status).to.equal(409);
      told?.();
      expect((await presented).status).to.equal(200);
      expect((await shop.session(asked.session)).status).to.equal('completed');
    });
  });

  describe('with a repeated delivery', () => {
    const retry = (session: string, delivery: string, token = shop.token) =>
      shop.call('POST', `/session/${session}/deliveries/${delivery}/retry`, undefined, token);
    const failing = async (): Promise<{ asked: FetchedRequest; id: string }> => {
      shop.backend.on('/told', (response) => response.writeHead(503).end());
      const asked = await shop.requestPresentation('told');
      expect((await shop.present(asked, held)).status).to.equal(400);
      const { deliveries } = await shop.session(asked.session);
      return { asked, id: deliveries[0].id };
    };

    it('repeats it with the same id and body, and its backend gets what it missed', async () => {
      const { asked, id } = await failing();
      shop.backend.on('/told', (response) => response.end('OK'));
      const answer = await retry(asked.session, id);
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
      const again = await retry(asked.session, id);
      expect([again.status, again.body.code]).to.deep.equal([409, 'conflict']);
      expect(shop.backend.calls).to.have.length(2);
    });

    it('repeats it once for concurrent requests', async () => {
      const { asked, id } = await failing();
      shop.backend.on('/told', { json: {} });
      shop.backend.clearCalls();
      const answers = await Promise.all(Array.from({ length: 30 }, () => retry(asked.session, id)));
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, ...Array(29).fill(409)]);
      expect(shop.backend.calls).to.have.length(1);
    });

    it('repeats it also if it fails again, and if it reported a rejection', async () => {
      const { asked, id } = await failing();
      const failed = await retry(asked.session, id);
      expect([failed.status, failed.body.result], failed.text).to.deep.equal([200, 'failed']);
      expect(failed.body.detail).to.include('503');
      const refused = await shop.requestPresentation('told');
      const wrong = { ...held, holder: (await shop.issue()).holder };
      expect((await shop.present(refused, wrong)).status).to.equal(400);
      const [delivery] = (await shop.session(refused.session)).deliveries;
      expect(delivery).to.not.have.property('told');
      shop.backend.on('/told', { json: {} });
      shop.backend.clearCalls();
      expect((await retry(refused.session, delivery.id)).body.result).to.equal('delivered');
      expect(shop.backend.calls[0]?.body.credentials[0]).to.have.keys('id', 'error');
    });

    it('repeats the delivery of a notification', async () => {
      shop.backend.on('/noted', (response) => response.writeHead(500).end());
      const { uri, session } = await offer({ notifyWebhook: { url: `${shop.backend.url}/noted` } });
      const wallet = new RawWallet(shop.service, 'acme');
      const token = await wallet.accessToken(uri);
      const { notification_id } = (await wallet.request(token, 'card')).body;
      const told = await shop.service.call('POST', '/acme/notification', {
        headers: wallet.authorization(token, { path: 'notification' }),
        json: { notification_id, event: 'credential_accepted' },
      });
      expect(told.status).to.equal(204);
      const { deliveries } = (await asAcme('GET', `/session/${session}`)).body;
      shop.backend.on('/noted', { json: {} });
      const answer = await retry(session, deliveries[0].id, shop.acme.token);
      expect([answer.status, answer.body.result], answer.text).to.deep.equal([200, 'delivered']);
      const [first, second] = shop.backend.callsTo('/noted');
      expect(second?.body).to.deep.equal(first?.body);
    });

    it('does not repeat it if it is unknown or belongs to another tenant', async () => {
      const { asked, id } = await failing();
      expect((await retry(asked.session, 'nothing')).status).to.equal(404);
      expect((await retry(asked.session, id, shop.acme.token)).status).to.equal(404);
      expect((await retry('nowhere', id)).status).to.equal(404);
    });
  });
});
