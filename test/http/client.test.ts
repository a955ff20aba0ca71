import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { expect } from 'chai';
import { VidimusClient, VidimusError } from '../../packages/client/src/index.ts';
import { createTenant, startTestService, TENANT_ROLES, type TestService } from '../support/test-service.ts';

describe('The client', () => {
  let service: TestService;
  let credentials: { url: string; clientId: string; clientSecret: string };
  let requests: { method: string; path: string; headers: Headers }[];

  /** Calls the global fetch, and records the request. */
  const recordingFetch = async (address: string, init: RequestInit) => {
    const { pathname } = new URL(address);
    requests.push({ method: init.method ?? '', path: pathname, headers: new Headers(init.headers) });
    return fetch(address, init);
  };
  const logins = () => requests.filter(({ path }) => path === '/oauth2/token').length;
  const badge = (id: string) => ({
    id,
    config: { format: 'dc+sd-jwt' as const, display: [{ name: 'Badge', locale: 'en' }] },
    vct: 'urn:shop:badge:1',
    claims: { name: 'Ada' },
  });

  before(async () => {
    service = await startTestService();
    const { token } = await createTenant(service, 'shop');
    const json = { clientId: 'shop-backend', roles: TENANT_ROLES };
    expect((await service.call('POST', '/client', { token, json })).status).to.equal(201);
    const { body } = await service.call('GET', '/client/shop-backend/secret', { token });
    credentials = { url: service.address, clientId: 'shop-backend', clientSecret: body.secret };
  });
  beforeEach(() => {
    requests = [];
  });
  after(() => service.close());

  it('logs in once for concurrent calls, and reads and writes as documented', async () => {
    const client = new VidimusClient({ ...credentials, url: `${credentials.url}/`, fetch: recordingFetch });
    const [creation] = await Promise.all([
      client.post('/issuer/credentials', { body: badge('badge') }),
      client.get('/session'),
      client.get('/session', { query: { limit: 1 } }),
    ]);
    expect(creation.id).to.equal('badge');
    expect((await client.get('/issuer/credentials/{id}', { path: { id: 'badge' } })).vct).to.equal('urn:shop:badge:1');
    expect((await client.get('/issuer/credentials')).map(({ id }) => id)).to.deep.equal(['badge']);
    expect(logins()).to.equal(1);
  });

  it('edits with the tag that it read, and reports a concurrent change', async () => {
    const client = new VidimusClient(credentials);
    const path = { id: 'badge' };
    const { headers } = await client.request('get', '/issuer/credentials/{id}', { path });
    const header = { 'If-Match': headers.get('etag') ?? '' };
    const editDescription = (description: string) => client.patch('/issuer/credentials/{id}', { path, header, body: { description } });
    expect((await editDescription('first')).description).to.equal('first');
    const error = await rejectionOf(editDescription('second'));
    expect([error.code, error.status]).to.deep.equal(['conflict', 409]);
  });

  it('reads a list page by page, only as far as requested', async () => {
    const client = new VidimusClient({ ...credentials, fetch: recordingFetch });
    for (const id of ['a', 'b', 'c', 'd']) {
      await client.post('/issuer/credentials', { body: badge(id) });
    }
    requests = [];
    const ids: string[] = [];
    for await (const { id } of client.list('/issuer/credentials', { query: { limit: 2 } })) {
      ids.push(id);
    }
    expect(ids.toSorted()).to.deep.equal(['a', 'b', 'badge', 'c', 'd']);
    expect(requests).to.have.length(3);
    for await (const _first of client.list('/issuer/credentials', { query: { limit: 2 } })) break;
    expect(requests).to.have.length(4);
  });

  it('reports the reason, the path and the log id of a rejected call', async () => {
    const client = new VidimusClient({ ...credentials, fetch: recordingFetch });
    const unknownSession = await rejectionOf(client.get('/session/{id}', { path: { id: 'nothing/like that?' } }));
    expect([unknownSession.code, unknownSession.status]).to.deep.equal(['not_found', 404]);
    expect(unknownSession.requestId).to.match(/^[\w-]{10,}$/);
    expect(requests.at(-1)?.path).to.equal('/session/nothing%2Flike%20that%3F');
    const invalidConfiguration = { ...badge('wrong'), vct: 17 as unknown as string };
    const invalid = await rejectionOf(client.post('/issuer/credentials', { body: invalidConfiguration }));
    expect(invalid.code).to.equal('invalid_input');
    expect(invalid.errors.map(({ path }) => path)).to.deep.equal(['vct']);
    expect(invalid.message).to.include(invalid.detail).and.include('vct');
  });

  it('is rejected with a wrong secret, which appears in no error and no dump', async () => {
    const clientSecret = 'a secret that must not be printed';
    const client = new VidimusClient({ ...credentials, clientSecret });
    const error = await rejectionOf(client.get('/session'));
    expect([error.code, error.status]).to.deep.equal(['invalid_client', 401]);
    for (const output of [inspect(error, { depth: 9 }), inspect(client, { depth: 9 }), JSON.stringify(client)]) {
      expect(output).not.to.include(clientSecret);
    }
  });

  it('logs in again once when its token is rejected, but not with an external token', async () => {
    let broken = 1;
    const client = new VidimusClient({
      ...credentials,
      async fetch(address, init) {
        const headers = new Headers(init.headers);
        const isBroken = headers.has('authorization') && broken-- > 0;
        return recordingFetch(address, isBroken ? { ...init, headers: { Authorization: 'Bearer ended' } } : init);
      },
    });
    expect(await client.get('/session')).to.deep.equal([]);
    expect(logins()).to.equal(2);
    broken = 5;
    expect((await rejectionOf(client.get('/session'))).code).to.equal('unauthenticated');
    expect(broken).to.equal(3);
    requests = [];
    const clientWithToken = new VidimusClient({ url: service.address, accessToken: () => 'ended', fetch: recordingFetch });
    expect((await rejectionOf(clientWithToken.get('/session'))).code).to.equal('unauthenticated');
    expect(requests).to.have.length(1);
  });

  it('reuses a token until shortly before its expiry', async () => {
    for (const [seconds, expected] of [
      [3600, 1],
      [30, 1],
      [0, 2],
    ] as const) {
      const client = new VidimusClient({
        ...credentials,
        async fetch(address) {
          requests.push({ method: '', path: new URL(address).pathname, headers: new Headers() });
          const token = { access_token: 'one', token_type: 'Bearer', expires_in: seconds };
          return Response.json(address.endsWith('/oauth2/token') ? token : []);
        },
      });
      requests = [];
      await client.get('/session');
      await client.get('/session');
      expect(logins(), `${seconds} seconds`).to.equal(expected);
    }
  });

  it('rejects parameters that change the address, and invalid settings', async () => {
    const client = new VidimusClient({ ...credentials, fetch: recordingFetch });
    for (const id of ['', '.', '..', undefined as unknown as string]) {
      const error = await client.delete('/session/{id}', { path: { id } }).catch((reason: unknown) => reason);
      expect(error).to.be.instanceOf(TypeError);
    }
    expect(() => new VidimusClient({ ...credentials, url: 'ftp://id.acme.example' })).to.throw(TypeError);
    expect(() => new VidimusClient({ url: service.address })).to.throw('clientId and clientSecret');
    expect(requests).to.deep.equal([]);
  });
});

describe('client connected to a server of another kind', () => {
  let server: Server;
  let url: string;
  let reply: (path: string) => { status: number; type?: string; text?: string; location?: string } | 'silence';
  const requests: string[] = [];
  const clientFor = (address: string) => new VidimusClient({ url: address, accessToken: () => 'token', timeoutMs: 200 });

  before(async () => {
    server = createServer((request, response) => {
      requests.push(request.url ?? '');
      const scripted = reply(request.url ?? '');
      if (scripted === 'silence') return;
      const { status, type = 'text/html', text = '', location } = scripted;
      const headers = { 'Content-Type': type, ...(location === undefined ? {} : { Location: location }) };
      response.writeHead(status, headers).end(text);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  for (const [name, answer] of [
    ['the page of a proxy', { status: 502, text: '<h1>Bad Gateway</h1>' }],
    ['truncated JSON', { status: 200, type: 'application/json', text: '[{"id":' }],
    ['null instead of an error', { status: 500, type: 'application/json', text: 'null' }],
  ] as const) {
    it(`reports an unexpected response: ${name}`, async () => {
      reply = () => answer;
      const error = await rejectionOf(clientFor(url).get('/session'));
      expect([error.code, error.status]).to.deep.equal(['unexpected_answer', answer.status]);
    });
  }

  it('follows no redirect, which would forward the token', async () => {
    reply = () => ({ status: 307, location: `${url}/elsewhere` });
    expect((await rejectionOf(clientFor(url).get('/session'))).code).to.equal('unreachable');
    expect(requests).not.to.include('/elsewhere');
  });

  it('stops at its timeout, and when the caller aborts', async () => {
    reply = () => 'silence';
    expect((await rejectionOf(clientFor(url).get('/session'))).code).to.equal('timeout');
    const controller = new AbortController();
    const call = clientFor(url).get('/session', { signal: controller.signal, timeoutMs: 5_000 });
    controller.abort(new Error('the user left'));
    expect(await call.catch((error: Error) => error.message)).to.equal('the user left');
  });

  it('reports that no server is reachable', async () => {
    const error = await rejectionOf(clientFor('http://127.0.0.1:1').get('/session'));
    expect([error.code, error.status, error.detail]).to.deep.equal(['unreachable', undefined, 'http://127.0.0.1:1 cannot be reached']);
  });
});

async function rejectionOf(call: Promise<unknown>): Promise<VidimusError> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error, String(error)).to.be.instanceOf(VidimusError);
  return error as VidimusError;
}
