import { readFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { collectRoutes } from '../../bootstrap/wiring/routes.ts';
import { type Schemas, VidimusClient, VidimusError } from '../../packages/client/src/index.ts';
import { clientTypes } from '../../tools/write-client-types.ts';
import { generateClient, isClientGeneratorInstalled } from '../support/generated-client.ts';
import { decode, type HeldCredential, present } from '../support/present.ts';
import { cuttingProxy } from '../support/proxies.ts';
import { newKey, RawWallet } from '../support/raw-wallet.ts';
import { createTenant, ROOT, startTestService, type TestService } from '../support/test-service.ts';

const BADGE: Schemas['CredentialConfigurationInput'] = {
  id: 'badge',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Badge', locale: 'en' }] },
  vct: 'urn:acme:badge:1',
  claims: { name: 'Ada' },
};

describe('client that waits for a session', () => {
  let service: TestService;
  let tenant: { id: string; token: string };
  const clientAt = (url: string) => new VidimusClient({ url, accessToken: () => tenant.token });
  const offer = () =>
    clientAt(service.address).post('/issuer/offer', {
      body: { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['badge'] },
    });
  const redeemOffer = async (uri: string) => {
    const wallet = new RawWallet(service, tenant.id);
    const token = await wallet.accessToken(uri);
    expect((await wallet.request(token, 'badge', { key: newKey() })).status).to.equal(200);
  };

  before(async () => {
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
    await clientAt(service.address).post('/issuer/credentials', { body: BADGE });
  });
  after(() => service.close());

  it('receives every status and the ended session', async () => {
    const { session, uri } = await offer();
    const observedStatuses: string[] = [];
    const waiting = clientAt(service.address).waitForSession(session, {
      onStatus: (status) => {
        observedStatuses.push(status);
        if (status === 'active') void redeemOffer(uri);
      },
    });
    const endedSession = await waiting;
    expect([endedSession.id, endedSession.status]).to.deep.equal([session, 'completed']);
    expect(observedStatuses[0]).to.equal('active');
    expect(observedStatuses.at(-1)).to.equal('completed');
  });

  it('returns an already ended session, with any result', async () => {
    const client = clientAt(service.address);
    const { session } = await offer();
    await client.post('/session/{id}/cancel', { path: { id: session } });
    const finalSession = await client.waitForSession(session);
    expect([finalSession.status, finalSession.failure?.code]).to.deep.equal(['failed', 'cancelled']);
  });

  it('reconnects when its connection is cut', async () => {
    const { session, uri } = await offer();
    const proxy = await cuttingProxy(service.address);
    try {
      let onFirstStatus: () => void = () => undefined;
      const firstStatus = new Promise<void>((resolve) => {
        onFirstStatus = resolve;
      });
      const finalSession = clientAt(proxy.url).waitForSession(session, { onStatus: () => onFirstStatus() });
      await firstStatus;
      proxy.cut();
      await redeemOffer(uri);
      proxy.restore();
      expect((await finalSession).status).to.equal('completed');
    } finally {
      await proxy.end();
    }
  });

  it('stops after its timeout and on abort, and does not wait for an unknown session', async () => {
    const { session } = await offer();
    const client = clientAt(service.address);
    expect((await refusal(client.waitForSession(session, { timeoutMs: 100 }))).code).to.equal('timeout');
    const abortController = new AbortController();
    const pendingSession = client.waitForSession(session, { signal: abortController.signal });
    abortController.abort(new Error('the user left'));
    expect(await pendingSession.catch(({ message }: Error) => message)).to.equal('the user left');
    expect((await refusal(client.waitForSession('nobody'))).code).to.equal('not_found');
    const unauthorizedClient = new VidimusClient({ url: service.address, accessToken: () => 'none' });
    expect((await refusal(unauthorizedClient.waitForSession(session))).code).to.equal('unauthenticated');
  });
});

describe('client that waits for a session, with a faulty stream', () => {
  let server: Server;
  let client: VidimusClient;
  let streams: (string | undefined)[];
  let openStreams: number;
  /** Responses to the attempts to follow a session; the last one repeats. */
  let responses: ((response: ServerResponse) => void)[];
  let status: string;

  before(async () => {
    server = createServer((request, response) => {
      if (!request.url?.endsWith('/events')) {
        openStreams += 1;
        response.setHeader('Content-Type', 'application/json');
        response.end(JSON.stringify({ id: 's', status }));
        return;
      }
      streams.push(request.headers['last-event-id'] as string | undefined);
      const answer = responses.length > 1 ? responses.shift() : responses[0];
      answer?.(response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    client = new VidimusClient({ url, accessToken: () => 'token' });
  });
  beforeEach(() => {
    [streams, openStreams, status] = [[], 0, 'active'];
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  const stream = (response: ServerResponse) => response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  const event = (id: number, status: string) => `id: ${id}\ndata: {"id":"s","status":"${status}"}\n\n`;

  it('sends the id of the last event, and reports no status twice', async () => {
    const statuses: string[] = [];
    responses = [
      (response) => stream(response).end(event(3, 'active')),
      (response) => {
        stream(response).end(event(3, 'active') + event(4, 'fetched'));
      },
      (response) => {
        status = 'completed';
        stream(response).end(event(5, 'completed'));
      },
    ];
    await client.waitForSession('s', { onStatus: (status) => statuses.push(status) });
    expect(streams).to.deep.equal([undefined, '3', '4']);
    // A status that was read in between is as old as the response of the server.
    expect(statuses.filter((status, index) => status !== statuses[index - 1])).to.deep.equal(statuses);
    expect(statuses.at(-1)).to.equal('completed');
  });

  it('parses events with any chunking and line separator', async () => {
    const statuses: string[] = [];
    responses = [
      async (response) => {
        stream(response);
        status = 'failed';
        const text = `: keep-alive\r\n\r\nid:7\r\ndata:{"id":"s",\r\ndata: "status":"fetched"}\r\n\r\n${event(8, 'failed')}`;
        for (const character of text) {
          response.write(character);
          if (character === '\r') await new Promise((resolve) => setTimeout(resolve, 2));
        }
      },
    ];
    const finalSession = await client.waitForSession('s', { onStatus: (status) => statuses.push(status) });
    expect([finalSession.status, statuses]).to.deep.equal(['failed', ['fetched', 'failed']]);
  });

  it('polls the session when no stream is available', async () => {
    responses = [(response) => response.writeHead(502).end('<h1>Bad Gateway</h1>')];
    setTimeout(() => {
      status = 'expired';
    }, 1_000);
    expect((await client.waitForSession('s')).status).to.equal('expired');
    expect([streams.length, openStreams > 1]).to.deep.equal([1, true]);
  });

  it('does not buffer an event without end', async () => {
    responses = [
      (response) => {
        stream(response);
        for (let index = 0; index < 70; index++) response.write(`data: ${'x'.repeat(1000)}\n`);
        status = 'completed';
      },
    ];
    expect((await client.waitForSession('s')).status).to.equal('completed');
  });
});

async function refusal(call: Promise<unknown>): Promise<VidimusError> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error, String(error)).to.be.instanceOf(VidimusError);
  return error as VidimusError;
}

describe('client that is generated from the API document', () => {
  let service: TestService;

  before(async function () {
    if (!isClientGeneratorInstalled()) this.skip();
    service = await startTestService();
  });
  after(() => service?.close());

  it('compiles in strict mode and runs a whole issuance and a whole verification', async () => {
    const client = await generateClient((await service.call('GET', '/openapi.json')).body);
    try {
      expect(client.faults).to.equal('');
      const { wholeRun } = await client.load();
      let credential: HeldCredential | undefined;
      const { seen } = await wholeRun(
        { address: service.address, ...ROOT },
        {
          async collect(tenant, uri) {
            const wallet = new RawWallet(service, tenant);
            const holder = newKey();
            const credentialResponse = await wallet.request(await wallet.accessToken(uri), 'badge', { key: holder });
            expect(credentialResponse.status, credentialResponse.text).to.equal(200);
            credential = { text: credentialResponse.body.credentials[0].credential, holder, session: '' };
          },
          async present(uri) {
            const url = new URL(uri).searchParams.get('request_uri') ?? '';
            const { text } = await service.call('GET', url);
            if (credential === undefined) throw new Error('no credential was issued');
            const answer = await present(service, { session: '', uri, url, text, ...decode(text) }, credential);
            expect(answer.status, answer.text).to.equal(200);
          },
        },
      );
      expect(seen[0]).to.equal('Ada');
      expect(seen[1]).to.include('CN=');
    } finally {
      client.remove();
    }
  });

  it('has the types of the published client (npm run client:generate)', () => {
    const committed = readFileSync(new URL('../../packages/client/src/api.d.ts', import.meta.url), 'utf8');
    // A diff of nine thousand lines would not help.
    const isUpToDate = clientTypes(collectRoutes(service.service.container)) === committed;
    expect(isUpToDate, 'npm run client:generate').to.equal(true);
  });
});
