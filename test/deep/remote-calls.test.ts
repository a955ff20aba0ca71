import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { expect } from 'chai';
import { CallQueue } from '../../adapters/remote/call-queue.ts';
import { GuardedHttpClient } from '../../adapters/remote/http-client.ts';
import { RemoteError, type RemoteFault } from '../../application/ports/remote.ts';
import { WAIT_TIMEOUT_MS } from '../support/patience.ts';
import { makeServerCertificate } from '../support/server-certificate.ts';

const NAMES: Readonly<Record<string, string>> = {
  'lists.example': '127.0.0.1',
  'moved.example': '127.0.0.1',
  'inside.example': '127.0.0.2',
};

type ReceivedRequest = { readonly host: string | undefined; readonly path: string; readonly headers: IncomingHttpHeaders };

describe('redirects of fetches', () => {
  const GET = { tenantId: 'acme', method: 'GET', timeoutMs: 2_000, maxBytes: 1_024 } as const;
  const FOLLOW_REDIRECTS = { ...GET, followsRedirects: true } as const;

  const receivedRequests: ReceivedRequest[] = [];
  const servers: Server[] = [];
  const clients: GuardedHttpClient[] = [];
  const pages: Record<string, RequestListener> = {};
  let port: number;
  let baseUrl: number;

  const client = (...allow: readonly string[]) => {
    const resolve = async (host: string) => {
      const address = NAMES[host];
      return address === undefined ? [] : [{ address, family: 4 }];
    };
    const httpClient = new GuardedHttpClient({ allow, resolve });
    clients.push(httpClient);
    return httpClient;
  };
  const listen = async (server: Server, host: string) => {
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    return (server.address() as AddressInfo).port;
  };
  const answer: RequestListener = (request, response) => {
    const { url: path = '', headers } = request;
    receivedRequests.push({ host: headers.host?.split(':')[0], path, headers });
    (pages[path] ?? ((_request, fallbackResponse) => fallbackResponse.writeHead(404).end()))(request, response);
  };
  const redirectTo = (path: string, location: string | undefined, status = 302) => {
    pages[path] = (_request, response) => response.writeHead(status, location === undefined ? {} : { location }).end('elsewhere');
  };
  const targetUrl = (path: string, host = 'lists.example') => `http://${host}:${port}${path}`;
  const outcome = async (httpClient: GuardedHttpClient, url: string, options: object = {}) => {
    try {
      return (await httpClient.request(url, { ...FOLLOW_REDIRECTS, ...options })).body.toString();
    } catch (error) {
      if (error instanceof RemoteError) return error.fault;
      throw error;
    }
  };

  before(async () => {
    port = await listen(createServer(answer), '127.0.0.1');
    baseUrl = await listen(createServer(answer), '127.0.0.2');
    pages['/list'] = (_request, response) => response.end('the list');
    pages['/secret'] = (_request, response) => response.end('secret');
  });
  beforeEach(() => {
    receivedRequests.length = 0;
  });
  after(async () => {
    await Promise.all(clients.map((each) => each.close()));
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
  });

  for (const status of [301, 302, 303, 307, 308]) {
    it(`are followed by ${status}, to a path and to another host`, async () => {
      redirectTo('/relative', 'list#part', status);
      redirectTo('/absolute', targetUrl('/list', 'moved.example'), status);
      expect(await outcome(client('127.0.0.1/32'), targetUrl('/relative'))).to.equal('the list');
      expect(await outcome(client('127.0.0.1/32'), targetUrl('/absolute'))).to.equal('the list');
      expect(receivedRequests.map(({ host, path }) => `${host}${path}`)).to.deep.equal([
        ...['lists.example/relative', 'lists.example/list'],
        ...['lists.example/absolute', 'moved.example/list'],
      ]);
    });
  }

  it('are followed at most three times', async () => {
    redirectTo('/one', '/list');
    redirectTo('/two', '/one');
    redirectTo('/three', '/two');
    redirectTo('/four', '/three');
    expect(await outcome(client('127.0.0.1/32'), targetUrl('/three'))).to.equal('the list');
    receivedRequests.length = 0;
    expect(await outcome(client('127.0.0.1/32'), targetUrl('/four'))).to.equal('redirected');
    expect(receivedRequests).to.have.length(4);
  });

  it('end at the first server and are not repeated', async () => {
    redirectTo('/self', '/self#again');
    redirectTo('/there', '/back');
    redirectTo('/back', targetUrl('/there'));
    expect(await outcome(client('127.0.0.1/32'), targetUrl('/self'))).to.equal('redirected');
    expect(await outcome(client('127.0.0.1/32'), targetUrl('/there'))).to.equal('redirected');
    expect(receivedRequests.map(({ path }) => path)).to.deep.equal(['/self', '/there', '/back']);
  });

  it('are not followed unless the caller allows it, and never for a POST request', async () => {
    redirectTo('/moved', '/list');
    expect(await outcome(client('127.0.0.1/32'), targetUrl('/moved'), { followsRedirects: false })).to.equal('redirected');
    expect(await outcome(client('127.0.0.1/32'), targetUrl('/moved'), { method: 'POST', body: '{}' })).to.equal('redirected');
    expect(receivedRequests).to.have.length(2);
  });

  it('are not followed with another status, without an address, or with an invalid one', async () => {
    redirectTo('/choices', '/list', 300);
    redirectTo('/proxy', '/list', 305);
    redirectTo('/lost', undefined);
    redirectTo('/odd', 'http://[');
    redirectTo('/long', `/list?${'x'.repeat(2_048)}`);
    for (const path of ['/choices', '/proxy', '/lost', '/odd', '/long'])
      expect(await outcome(client('127.0.0.1/32'), targetUrl(path)), path).to.equal('redirected');
    expect(receivedRequests).to.have.length(5);
  });

  it('never lead to a blocked address, which gets no request', async () => {
    for (const [index, location] of [
      `http://127.0.0.2:${baseUrl}/secret`,
      `http://inside.example:${baseUrl}/secret`,
      `http://0x7f000002:${baseUrl}/secret`,
      `//127.0.0.2:${baseUrl}/secret`,
      'http://169.254.169.254/latest/meta-data/',
      'file:///etc/passwd',
      'gopher://lists.example/',
      `http://user:password@lists.example:${port}/list`,
    ].entries()) {
      redirectTo(`/hop${index}`, location);
      redirectTo(`/before${index}`, `/hop${index}`);
      expect(await outcome(client('127.0.0.1/32'), targetUrl(`/hop${index}`)), location).to.equal('refused_address');
      expect(await outcome(client('127.0.0.1/32'), targetUrl(`/before${index}`)), location).to.equal('refused_address');
    }
    expect(receivedRequests.filter(({ path }) => path === '/secret' || path === '/list')).to.deep.equal([]);
  });

  it('are followed only to addresses that the tenant may call', async () => {
    redirectTo('/inside', `http://127.0.0.2:${baseUrl}/secret`);
    const httpClient = client('127.0.0.1/32', 'acme=127.0.0.2/32');
    expect(await outcome(httpClient, targetUrl('/inside'))).to.equal('secret');
    expect(await outcome(httpClient, targetUrl('/inside'), { tenantId: 'globex' })).to.equal('refused_address');
  });

  it('forward only the accepted media types', async () => {
    redirectTo('/moved', targetUrl('/list', 'moved.example'));
    const headers = { accept: 'text/plain', authorization: 'Bearer secret', cookie: 'a=b', 'x-key': 'k' };
    expect(await outcome(client('127.0.0.1/32'), targetUrl('/moved'), { headers })).to.equal('the list');
    const [firstHeaders, secondHeaders] = receivedRequests.map((each) => each.headers);
    expect(firstHeaders).to.include(headers);
    expect(secondHeaders).to.include({ accept: 'text/plain', 'accept-encoding': 'identity' });
    expect(secondHeaders).to.not.have.any.keys('authorization', 'cookie', 'x-key', 'referer');
  });

  it('share one timeout and one size limit', async () => {
    const respondSlowly: RequestListener = (request, response) => {
      const location = request.url === '/slow' ? '/slower' : '/slowest';
      const respondLater = () => (request.url === '/slowest' ? response.end('the list') : response.writeHead(302, { location }).end());
      setTimeout(respondLater, 150);
    };
    for (const path of ['/slow', '/slower', '/slowest']) pages[path] = respondSlowly;
    expect(await outcome(client('127.0.0.1/32'), targetUrl('/slow'))).to.equal('the list');
    const start = performance.now();
    expect(await outcome(client('127.0.0.1/32'), targetUrl('/slow'), { timeoutMs: 250 })).to.equal('timeout');
    expect(performance.now() - start).to.be.lessThan(400);
    pages['/endless'] = (_request, response) => {
      response.writeHead(302, { location: '/list' });
      const timer = setInterval(() => response.write(Buffer.alloc(4_096)), 1);
      response.on('close', () => clearInterval(timer));
    };
    expect(await outcome(client('127.0.0.1/32'), targetUrl('/endless'))).to.equal('the list');
    expect(await outcome(client('127.0.0.1/32'), targetUrl('/endless'), { maxBytes: 4 })).to.equal('too_large');
  });

  it('release their slots: many of one tenant end, and the next call succeeds', async () => {
    redirectTo('/many', '/list');
    redirectTo('/circle', '/circle');
    const httpClient = client('127.0.0.1/32');
    const outcomes = await Promise.all(
      Array.from({ length: 60 }, (_, index) => outcome(httpClient, targetUrl(index % 2 === 0 ? '/many' : '/circle'))),
    );
    expect(outcomes.filter((each) => each === 'the list')).to.have.length(30);
    expect(outcomes.filter((each) => each === 'redirected')).to.have.length(30);
    expect(await outcome(httpClient, targetUrl('/list'))).to.equal('the list');
  });

  it('do not lead from https to http, and may lead from http to https', async () => {
    const { key, cert } = await makeServerCertificate('lists.example');
    setDefaultCACertificates([...getCACertificates('default'), cert]);
    const secure = await listen(createSecureServer({ key, cert }, answer) as unknown as Server, '127.0.0.1');
    redirectTo('/down', targetUrl('/list'));
    redirectTo('/up', `https://lists.example:${secure}/list`);
    redirectTo('/up-and-down', `https://lists.example:${secure}/down`);
    const httpClient = client('127.0.0.1/32');
    expect(await outcome(httpClient, targetUrl('/up'))).to.equal('the list');
    receivedRequests.length = 0;
    for (const url of [`https://lists.example:${secure}/down`, targetUrl('/up-and-down')]) {
      for (const isSigned of [true, false]) expect(await outcome(httpClient, url, { isSigned }), url).to.equal('refused_address');
    }
    expect(receivedRequests.filter(({ path }) => path === '/list')).to.deep.equal([]);
  });

  it('do not reveal their targets in messages', async () => {
    redirectTo('/token', '/token?key=secret');
    redirectTo('/token?key=secret', `http://127.0.0.2:${baseUrl}/path?key=secret`);
    const error = await client('127.0.0.1/32')
      .request(targetUrl('/token'), FOLLOW_REDIRECTS)
      .catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(RemoteError).with.property('message').that.not.contains('secret');
  });
});

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Sends data until the connection is closed. */
const endlessBody: RequestListener = (_request, response) => {
  const timer = setInterval(() => response.write(Buffer.alloc(16_384)), 2);
  response.on('close', () => clearInterval(timer));
};

const answers: Record<string, RequestListener> = {
  '/silent': () => {},
  '/endless': endlessBody,
  '/moved': (request, response) => endlessBody(request, response.writeHead(302, { location: '/x' }) as never),
  '/failed': (request, response) => endlessBody(request, response.writeHead(500) as never),
  '/refused': (_request, response) => response.writeHead(400).end('why'),
  '/here': (_request, response) => response.end('here'),
};

describe('outgoing calls of several tenants', () => {
  const GET = { method: 'GET', timeoutMs: 1500, maxBytes: 64 * 1024 } as const;

  let server: Server;
  let url: (path: string) => string;
  let client: GuardedHttpClient;
  const sockets = new Set<Socket>();

  beforeEach(async () => {
    server = createServer((request, response) => answers[request.url ?? '']?.(request, response));
    server.on('connection', (socket) => {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    url = (path) => `http://127.0.0.1:${port}${path}`;
    client = new GuardedHttpClient({ allow: ['127.0.0.1/32'] });
  });
  afterEach(async () => {
    server.closeAllConnections();
    await client.close();
    server.close();
  });

  async function outcome(tenantId: string, path: string, overrides = {}): Promise<RemoteFault | number> {
    try {
      return (await client.request(url(path), { ...GET, tenantId, ...overrides })).status;
    } catch (error) {
      if (error instanceof RemoteError) return error.fault;
      throw error;
    }
  }
  const sendMany = (count: number, tenantId: string, path: string) => Array.from({ length: count }, () => outcome(tenantId, path));

  it('do not wait for each other when one path of their origin hangs', async () => {
    const hangingCalls = sendMany(200, 'noisy', '/silent');
    await pause(100);
    const start = performance.now();
    expect(await Promise.all(sendMany(100, 'quiet', '/here'))).to.deep.equal(Array(100).fill(200));
    expect(performance.now() - start).to.be.lessThan(1_000);
    expect(sockets.size).to.be.at.most(64);
    const outcomes = await Promise.all(hangingCalls);
    expect(outcomes.filter((each) => each === 'busy')).to.have.length(200 - 32 - 96);
    expect(outcomes.filter((each) => each === 'timeout')).to.have.length(32 + 96);
  });

  it('get a slot when calls of another tenant hang with all slots of an origin', async () => {
    const noisyCalls = Array.from({ length: 10 }, (_, index) => sendMany(32, `noisy-${index}`, '/silent')).flat();
    await pause(150);
    expect(sockets.size).to.be.at.most(257);
    const start = performance.now();
    expect(await Promise.all(sendMany(10, 'quiet', '/here'))).to.deep.equal(Array(10).fill(200));
    expect(performance.now() - start).to.be.lessThan(1_000);
    await Promise.all(noisyCalls);
  });

  it('keep no open connection that still receives data', async () => {
    expect(await outcome('acme', '/moved')).to.equal('redirected');
    expect(await outcome('acme', '/failed')).to.equal(500);
    expect(await outcome('acme', '/endless')).to.equal('too_large');
    expect(await outcome('acme', '/endless', { maxBytes: 10_000_000, timeoutMs: 200 })).to.equal('timeout');
    expect(await outcome('acme', '/silent', { timeoutMs: 100 })).to.equal('timeout');
    await pause(100);
    expect(sockets.size).to.equal(0);
  });

  it('read the body of an error response only on request, and keep the connection', async () => {
    const rejection = await client.request(url('/refused'), { ...GET, tenantId: 'acme' });
    expect(rejection.body).to.have.length(0);
    await pause(20);
    const errorResponse = await client.request(url('/refused'), { ...GET, tenantId: 'acme', readsErrors: true });
    expect(errorResponse.body.toString()).to.equal('why');
    expect(sockets.size).to.equal(1);
  });

  it('use at most their share of memory', async () => {
    const largeOptions = { maxBytes: 20 * 1024 * 1024, timeoutMs: WAIT_TIMEOUT_MS };
    const outcomes = Promise.all(Array.from({ length: 4 }, () => outcome('noisy', '/endless', largeOptions)));
    expect(await outcome('quiet', '/here')).to.equal(200);
    expect(await outcomes).to.include('busy');
  });
});

describe('CallQueue', () => {
  const createQueue = () => new CallQueue({ slots: 4, slotsPerKey: 3, waitingPerKey: 2, waiting: 3 });
  const call = () => new AbortController();

  it('admits the tenant with the fewest slots', async () => {
    const queue = createQueue();
    const order: string[] = [];
    const [firstCall] = await Promise.all([
      queue.enter('a', call()),
      queue.enter('a', call()),
      queue.enter('b', call()),
      queue.enter('b', call()),
    ]);
    const lateEntries = ['a', 'a', 'b'].map((owner) =>
      queue.enter(owner, call()).then((leaveQueue) => {
        order.push(owner);
        return leaveQueue;
      }),
    );
    await pause(1);
    expect(order).to.deep.equal([]);
    firstCall?.();
    const leaveQueue = await lateEntries[0];
    leaveQueue?.();
    await Promise.all(lateEntries.slice(1, 2));
    expect(order.slice(0, 2)).to.deep.equal(['a', 'a']);
  });

  it('gives a waiting call the slot of the oldest call of the tenant with most slots', async () => {
    const queue = createQueue();
    const calls = [call(), call(), call()];
    for (const each of calls) await queue.enter('a', each);
    await queue.enter('b', call());
    await queue.enter('c', call());
    expect(calls.map(({ signal }) => signal.aborted)).to.deep.equal([true, false, false]);
    expect(queue.heldCount).to.equal(4);
  });

  it('is idle after all calls ended, were aborted or were rejected', async () => {
    const queue = createQueue();
    const entered = [await queue.enter('a', call()), await queue.enter('a', call()), await queue.enter('a', call())];
    const waitingCall = call();
    const rejectedEntry = queue.enter('a', waitingCall).catch((error: unknown) => error);
    const secondCall = call();
    const secondEntry = queue.enter('a', secondCall);
    await expectBusy(queue.enter('a', call()));
    waitingCall.abort(new Error('no time'));
    expect(await rejectedEntry).to.have.property('message', 'no time');
    for (const leaveQueue of entered) leaveQueue();
    (await secondEntry)();
    for (const leaveQueue of entered) leaveQueue();
    expect(queue.isIdle).to.equal(true);
  });

  async function expectBusy(entry: Promise<unknown>): Promise<void> {
    expect(await entry.catch((error: unknown) => error)).to.include({ fault: 'busy' });
  }
});
