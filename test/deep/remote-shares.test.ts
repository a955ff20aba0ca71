import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { expect } from 'chai';
import { ByteShares } from '../../adapters/remote/byte-shares.ts';
import { FairGate } from '../../adapters/remote/fair-gate.ts';
import { GuardedHttpClient } from '../../adapters/remote/http-client.ts';
import { RemoteError, type RemoteFault } from '../../application/ports/remote.ts';
import { PATIENCE_MS } from '../support/patience.ts';

const GET = { method: 'GET', timeoutMs: 1500, maxBytes: 64 * 1024 } as const;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Sends until the connection is closed. */
const endless: RequestListener = (_request, response) => {
  const timer = setInterval(() => response.write(Buffer.alloc(16_384)), 2);
  response.on('close', () => clearInterval(timer));
};

const answers: Record<string, RequestListener> = {
  '/silent': () => {},
  '/endless': endless,
  '/moved': (request, response) => endless(request, response.writeHead(302, { location: '/x' }) as never),
  '/failed': (request, response) => endless(request, response.writeHead(500) as never),
  '/refused': (_request, response) => response.writeHead(400).end('why'),
  '/here': (_request, response) => response.end('here'),
};

describe('Calls of several tenants', () => {
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

  async function outcome(tenantId: string, path: string, more = {}): Promise<RemoteFault | number> {
    try {
      return (await client.request(url(path), { ...GET, tenantId, ...more })).status;
    } catch (error) {
      if (error instanceof RemoteError) return error.fault;
      throw error;
    }
  }
  const many = (count: number, tenantId: string, path: string) =>
    Array.from({ length: count }, () => outcome(tenantId, path));

  it('wait for nobody else when the path of one hangs at the origin of all', async () => {
    const hanging = many(200, 'noisy', '/silent');
    await pause(100);
    const start = performance.now();
    expect(await Promise.all(many(100, 'quiet', '/here'))).to.deep.equal(Array(100).fill(200));
    expect(performance.now() - start).to.be.lessThan(1_000);
    expect(sockets.size).to.be.at.most(64);
    const outcomes = await Promise.all(hanging);
    expect(outcomes.filter((each) => each === 'busy')).to.have.length(200 - 32 - 96);
    expect(outcomes.filter((each) => each === 'timeout')).to.have.length(32 + 96);
  });

  it('find a place where others hang with all that an origin gets', async () => {
    const noisy = Array.from({ length: 10 }, (_, index) => many(32, `noisy-${index}`, '/silent')).flat();
    await pause(150);
    expect(sockets.size).to.be.at.most(257);
    const start = performance.now();
    expect(await Promise.all(many(10, 'quiet', '/here'))).to.deep.equal(Array(10).fill(200));
    expect(performance.now() - start).to.be.lessThan(1_000);
    await Promise.all(noisy);
  });

  it('leave no connection behind that somebody still sends to', async () => {
    expect(await outcome('acme', '/moved')).to.equal('redirected');
    expect(await outcome('acme', '/failed')).to.equal(500);
    expect(await outcome('acme', '/endless')).to.equal('too_large');
    expect(await outcome('acme', '/endless', { maxBytes: 10_000_000, timeoutMs: 200 })).to.equal('timeout');
    expect(await outcome('acme', '/silent', { timeoutMs: 100 })).to.equal('timeout');
    await pause(100);
    expect(sockets.size).to.equal(0);
  });

  it('read what comes with an error only where it is wanted, and keep the connection', async () => {
    const refused = await client.request(url('/refused'), { ...GET, tenantId: 'acme' });
    expect(refused.body).to.have.length(0);
    await pause(20);
    const wanted = await client.request(url('/refused'), { ...GET, tenantId: 'acme', readsErrors: true });
    expect(wanted.body.toString()).to.equal('why');
    expect(sockets.size).to.equal(1);
  });

  it('hold no more than their share of bytes', async () => {
    const large = { maxBytes: 20 * 1024 * 1024, timeoutMs: PATIENCE_MS };
    const outcomes = Promise.all(Array.from({ length: 4 }, () => outcome('noisy', '/endless', large)));
    expect(await outcome('quiet', '/here')).to.equal(200);
    expect(await outcomes).to.include('busy');
  });
});

describe('FairGate', () => {
  const gate = () => new FairGate({ atOnce: 4, ofOne: 3, waitingOfOne: 2, waiting: 3 });
  const call = () => new AbortController();

  it('lets the party in next that has fewest inside', async () => {
    const doors = gate();
    const order: string[] = [];
    const [first] = await Promise.all([
      doors.enter('a', call()),
      doors.enter('a', call()),
      doors.enter('b', call()),
      doors.enter('b', call()),
    ]);
    const late = ['a', 'a', 'b'].map((party) =>
      doors.enter(party, call()).then((leave) => {
        order.push(party);
        return leave;
      }),
    );
    await pause(1);
    expect(order).to.deep.equal([]);
    first?.();
    const leave = await late[0];
    leave?.();
    await Promise.all(late.slice(1, 2));
    expect(order.slice(0, 2)).to.deep.equal(['a', 'a']);
  });

  it('gives a newcomer the place of the oldest of the largest', async () => {
    const doors = gate();
    const calls = [call(), call(), call()];
    for (const each of calls) await doors.enter('a', each);
    await doors.enter('b', call());
    await doors.enter('c', call());
    expect(calls.map(({ signal }) => signal.aborted)).to.deep.equal([true, false, false]);
    expect(doors.inside).to.equal(4);
  });

  it('is idle again after all have left, given up or waited in vain', async () => {
    const doors = gate();
    const inside = [
      await doors.enter('a', call()),
      await doors.enter('a', call()),
      await doors.enter('a', call()),
    ];
    const waiting = call();
    const vain = doors.enter('a', waiting).catch((error: unknown) => error);
    const second = call();
    const other = doors.enter('a', second);
    await expectBusy(doors.enter('a', call()));
    waiting.abort(new Error('no time'));
    expect(await vain).to.have.property('message', 'no time');
    for (const leave of inside) leave();
    (await other)();
    for (const leave of inside) leave();
    expect(doors.isIdle).to.equal(true);
  });

  async function expectBusy(entering: Promise<unknown>): Promise<void> {
    expect(await entering.catch((error: unknown) => error)).to.include({ fault: 'busy' });
  }
});

describe('ByteShares', () => {
  it('takes back what the largest holds when it is too much for all', () => {
    const shares = new ByteShares({ all: 100, ofOne: 80 });
    const [large, small, other] = [new AbortController(), new AbortController(), new AbortController()];
    shares.open('a', small).add(10);
    shares.open('a', large).add(60);
    const own = shares.open('b', other);
    own.add(40);
    expect([large, small, other].map(({ signal }) => signal.aborted)).to.deep.equal([true, false, false]);
    expect(() => own.add(41)).to.throw(RemoteError);
    own.release();
    own.release();
    shares.open('c', new AbortController()).add(80);
    expect(small.signal.aborted).to.equal(false);
  });
});
