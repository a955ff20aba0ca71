import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { deriveKey } from '../../adapters/crypto/cipher.ts';
import { Shop } from '../support/present.ts';
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

describe('the event stream of a session', () => {
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
    for (let message = await stream.next(); message !== undefined; message = await stream.next())
      messages.push(message);
    return messages;
  };
  const offer = async (): Promise<{ uri: string; session: string }> => {
    const json = {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: ['card'],
    };
    return (await shop.call('POST', '/issuer/offer', json, shop.acme.token)).body;
  };

  it('is a stream of events that nothing may keep, with the published data', async () => {
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

  it('tells every change of an issuance at once, and ends with it', async () => {
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

  it('tells every change of a verification to all who listen, and ends with it', async () => {
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
    for (const stream of listeners)
      expect((await rest(stream)).map(({ data }) => data.status)).to.deep.equal(['completed']);
  });

  it('tells failures, and tells a finished session once and ends', async () => {
    const asked = await shop.ask();
    const stream = await follow(asked.session, shop.token);
    expect((await stream.next())?.data.status).to.equal('fetched');
    await shop.post(asked, { error: 'access_denied', state: asked.payload['state'] });
    expect((await rest(stream)).map(({ data }) => data.status)).to.deep.equal(['failed']);
    const late = await rest(await follow(asked.session, shop.token));
    expect(late.map(({ data }) => data.status)).to.deep.equal(['failed']);
    const expiring = await offer();
    const clock = sinon.useFakeTimers({ now: Date.now() + 86_401_000, toFake: ['Date'] });
    try {
      const fresh = await shop.service.call('POST', '/oauth2/token', {
        json: {
          grant_type: 'client_credentials',
          client_id: 'acme-admin',
          client_secret: await rotated('acme-admin'),
        },
      });
      const over = await rest(await follow(expiring.session, fresh.body.access_token));
      expect(over.map(({ data }) => data.status)).to.deep.equal(['expired']);
    } finally {
      clock.restore();
    }
  });

  const rotated = async (clientId: string): Promise<string> => {
    const root = await shop.service.call('POST', '/oauth2/token', {
      json: {
        grant_type: 'client_credentials',
        client_id: 'root',
        client_secret: 'root-secret-for-the-tests',
      },
    });
    // The token of the tests goes on to count.
    const path = `/client/${clientId}/rotate-secret?graceSeconds=300`;
    return (await shop.service.call('POST', path, { token: root.body.access_token })).body.secret;
  };

  it('ends with the secret that its token was had with', async () => {
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
    expect((await shop.call('GET', `/session/${session}`, undefined, shop.acme.token)).body.status).to.equal(
      'fetched',
    );
    expect(await stream.next()).to.equal(undefined);
    const again = await fetch(`${shop.service.address}/session/${session}/events?token=${token}`);
    expect(again.status).to.equal(401);
  });

  it('ends when the session is deleted', async () => {
    const { session } = await offer();
    const stream = await follow(session, shop.acme.token);
    await stream.next();
    expect((await shop.call('DELETE', `/session/${session}`, undefined, shop.acme.token)).status).to.equal(
      200,
    );
    expect(await stream.next()).to.equal(undefined);
  });

  it('ends with the access token, and goes on with a new one', async () => {
    const { uri, session } = await offer();
    const claims = JSON.parse(
      Buffer.from(shop.acme.token.split('.')[1] ?? '', 'base64url').toString(),
    ) as Record<string, unknown>;
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

  it('replays what a listener missed', async () => {
    const held = await shop.issue();
    const asked = await shop.ask();
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

  it('takes the token in the query or in the header, and nothing else', async () => {
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

  it('is not found for an unknown session and one of another tenant, alike', async () => {
    const { session } = await offer();
    const answers = [
      await shop.service.call('GET', address('unknown', shop.token)),
      await shop.service.call('GET', address(session, shop.token)),
    ];
    for (const { status, body } of answers) expect([status, body.code]).to.deep.equal([404, 'not_found']);
  });

  it('ends at once when the service stops, which does not wait for it', async () => {
    const other = await Shop.open();
    const asked = await other.ask();
    const url = `${other.service.address}/session/${asked.session}/events?token=${other.token}`;
    const open = await Promise.all([1, 2, 3].map(() => openStream(url)));
    for (const stream of open) expect((await stream.next())?.data.status).to.equal('fetched');
    const began = performance.now();
    const [ended] = await Promise.all([
      Promise.all(open.map((stream) => stream.next())),
      other.service.service.close(),
    ]);
    // A connection that is kept open would hold the stop up for 65 seconds.
    expect(performance.now() - began).to.be.lessThan(30_000);
    expect(ended, 'an end, not an error').to.deep.equal([undefined, undefined, undefined]);
    await other.backend.close();
  });
});
