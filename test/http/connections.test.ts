import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import type { Log } from '../../application/ports/log.ts';
import { effectiveMaxConnections, parseOpenFilesLimit } from '../../bootstrap/start/open-files.ts';
import { HttpServer, MAX_PIPELINED, STALLED_MS } from '../../bootstrap/wiring/http-server.ts';

const SIZE = 64 * 1024 * 1024;
const requests = (count: number) =>
  Array.from({ length: count }, (_, index) => `GET /${index} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join('');

describe('HTTP connection', () => {
  let server: HttpServer;
  let socket: Socket;

  const openConnection = async (listen: RequestListener) => {
    const limits = { maxConnections: 10, keepAliveSeconds: 65 };
    server = new HttpServer({ IncomingMessage, ServerResponse, listen }, limits, {} as Log);
    socket = connect(await server.listen(0, '127.0.0.1'), '127.0.0.1');
    socket.on('error', () => {});
  };
  const waitForClose = () => new Promise<void>((resolve) => socket.once('close', () => resolve()));
  afterEach(async () => {
    socket.destroy();
    await server.close(0, 0);
  });

  it('has one request served at a time, regardless of the number of pipelined requests', async () => {
    const finishers: (() => void)[] = [];
    let most = 0;
    await openConnection((request, response) => {
      finishers.push(() => response.end(request.url));
      most = Math.max(most, finishers.length);
    });
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    socket.write(requests(20));
    while (!text.includes('/19')) {
      finishers.shift()?.();
      await turn();
    }
    expect(most).to.equal(1);
    const paths = [...text.matchAll(/\r\n\r\n(?:\d+\r\n)?(\/\d+)/g)].map(([, path]) => path);
    expect(paths).to.deep.equal(Array.from({ length: 20 }, (_, index) => `/${index}`));
  });

  it('is closed when more requests wait than one connection may have', async () => {
    let startedRequests = 0;
    await openConnection(() => {
      startedRequests++;
    });
    socket.write(requests(MAX_PIPELINED + 2));
    await waitForClose();
    expect(startedRequests).to.equal(1);
  });

  for (const [part, header, body] of [
    ['bodies', 10, 60_000],
    ['headers', 15_000, 10],
  ] as const)
    it(`is closed when the ${part} of the waiting requests exceeds the limit for one connection`, async () => {
      let startedRequests = 0;
      await openConnection(() => {
        startedRequests++;
      });
      const head = `Host: localhost\r\nX-Filler: ${'h'.repeat(header)}\r\nContent-Length: ${body}\r\n`;
      socket.write(`${requests(1)}${`POST / HTTP/1.1\r\n${head}\r\n${'b'.repeat(body)}`.repeat(40)}`);
      await waitForClose();
      expect(startedRequests).to.equal(1);
    });

  it('serves a body that arrived while the previous request was served', async () => {
    const body = 'b'.repeat(200_000);
    await openConnection((request, response) => {
      let length = 0;
      const finish = () => response.end(`${request.url}: ${length}.`);
      if (request.method === 'GET') setImmediate(finish);
      else
        request
          .on('data', (chunk: Buffer) => {
            length += chunk.length;
          })
          .once('end', finish);
    });
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    const post = `POST /1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    socket.write(`${requests(1)}${post}${requests(1)}`);
    while (text.split('/0: 0.').length < 3) await turn();
    expect(text).to.include('/1: 200000.');
  });

  it('starts no waiting request after a response that closes the connection', async () => {
    const startedRequests: (string | undefined)[] = [];
    await openConnection((request, response) => {
      startedRequests.push(request.url);
      response.setHeader('Connection', 'close');
      setImmediate(() => response.end());
    });
    socket.resume();
    socket.write(requests(3));
    await waitForClose();
    expect(startedRequests).to.deep.equal(['/0']);
  });

  it('starts no waiting request when the client has disconnected', async () => {
    let startedRequests = 0;
    let isClosed = false;
    await openConnection((request, response) => {
      startedRequests++;
      response.once('close', () => {
        isClosed = true;
      });
      if (request.url === '/0') socket.destroy();
    });
    socket.write(requests(3));
    while (!isClosed) await turn();
    await turn();
    expect(startedRequests).to.equal(1);
  });

  for (const kind of ['one large response', 'many small writes, such as those of an event stream'] as const)
    it(`is closed when the client reads nothing of ${kind} for two minutes`, async () => {
      let isStarted = false;
      await openConnection((_request, response) => {
        isStarted = true;
        if (kind === 'one large response') response.end(Buffer.alloc(SIZE));
        else for (let index = 0; index < 1_024; index++) response.write(Buffer.alloc(64 * 1024));
      });
      socket.pause();
      socket.write(requests(1));
      while (!isStarted) await turn();
      // The operating system first fills its buffers, which counts as progress.
      let now = performance.now();
      do {
        server.closeStalled(now);
        server.closeStalled(now + STALLED_MS - 1);
        expect(server.connectionCount).to.equal(1);
        now += STALLED_MS;
        server.closeStalled(now);
        for (let index = 0; index < 20; index++) await turn();
      } while (server.connectionCount > 0);
    });

  it('stays open while the client reads slowly, and while a response is being built', async () => {
    let finish: (() => void) | undefined;
    await openConnection((_request, response) => {
      finish = () => response.end(Buffer.alloc(SIZE));
    });
    let readBytes = 0;
    let wantedBytes = 0;
    socket.on('data', (chunk: Buffer) => {
      readBytes += chunk.length;
      if (readBytes >= wantedBytes) socket.pause();
    });
    socket.write(requests(1));
    while (finish === undefined) await turn();
    let now = performance.now();
    server.closeStalled(now);
    now += 10 * STALLED_MS;
    server.closeStalled(now);
    expect(server.connectionCount).to.equal(1);
    finish();
    // More than the buffers of the operating system, so that each step takes bytes from the service.
    for (wantedBytes = SIZE / 4; wantedBytes <= SIZE; wantedBytes += SIZE / 4) {
      socket.resume();
      while (readBytes < wantedBytes) await turn();
      now += STALLED_MS - 1;
      server.closeStalled(now);
      expect(server.connectionCount).to.equal(1);
    }
  });
});

describe('maximum number of connections of a process', () => {
  it('is read from the limits of the system', () => {
    const line = (softLimit: string) => `Limit  Soft Limit  Hard Limit  Units\nMax open files            ${softLimit}      4096   files\n`;
    expect(parseOpenFilesLimit(line('1024'))).to.equal(1_024);
    expect(parseOpenFilesLimit(line('unlimited'))).to.equal(undefined);
    expect(parseOpenFilesLimit('')).to.equal(undefined);
  });

  for (const [maxConnections, filesLimit, effective] of [
    [10_000, undefined, 10_000],
    [10_000, 1_048_576, 10_000],
    [10_000, 20_000, 10_000],
    [10_000, 10_000, 7_500],
    [10_000, 1_024, 512],
    [10_000, 200, 100],
    [50, 200, 50],
    [10, 10, 5],
  ] as const)
    it(`is ${effective} with MAX_CONNECTIONS ${maxConnections} and ${filesLimit ?? 'any number of'} open files`, () => {
      expect(effectiveMaxConnections(maxConnections, filesLimit)).to.equal(effective);
    });
});
