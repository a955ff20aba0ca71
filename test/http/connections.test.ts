import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import type { Log } from '../../application/ports/log.ts';
import { effectiveMaxConnections, parseOpenFilesLimit } from '../../bootstrap/start/open-files.ts';
import { HttpServer, MAX_PIPELINED, STALLED_MS } from '../../bootstrap/wiring/http-server.ts';

const SIZE = 64 * 1024 * 1024;
const requests = (count: number) => Array.from({ length: count }, (_, at) => `GET /${at} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join('');

describe('HTTP connection', () => {
  let server: HttpServer;
  let socket: Socket;

  const open = async (listen: RequestListener) => {
    const limits = { maxConnections: 10, keepAliveSeconds: 65 };
    server = new HttpServer({ IncomingMessage, ServerResponse, listen }, limits, {} as Log);
    socket = connect(await server.listen(0, '127.0.0.1'), '127.0.0.1');
    socket.on('error', () => {});
  };
  const ended = () => new Promise<void>((done) => socket.once('close', () => done()));
  afterEach(async () => {
    socket.destroy();
    await server.close(0, 0);
  });

  it('has one request served at a time, regardless of the number of pipelined requests', async () => {
    const finish: (() => void)[] = [];
    let most = 0;
    await open((request, response) => {
      finish.push(() => response.end(request.url));
      most = Math.max(most, finish.length);
    });
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    socket.write(requests(20));
    while (!text.includes('/19')) {
      finish.shift()?.();
      await turn();
    }
    expect(most).to.equal(1);
    const paths = [...text.matchAll(/\r\n\r\n(?:\d+\r\n)?(\/\d+)/g)].map(([, path]) => path);
    expect(paths).to.deep.equal(Array.from({ length: 20 }, (_, at) => `/${at}`));
  });

  it('is closed when more requests wait than one connection may have', async () => {
    let begun = 0;
    await open(() => {
      begun++;
    });
    socket.write(requests(MAX_PIPELINED + 2));
    await ended();
    expect(begun).to.equal(1);
  });

  for (const [part, header, body] of [
    ['bodies', 10, 60_000],
    ['headers', 15_000, 10],
  ] as const)
    it(`is closed when the ${part} of the requests that wait have more bytes than one connection may have`, async () => {
      let begun = 0;
      await open(() => {
        begun++;
      });
      const head = `Host: localhost\r\nX-Filler: ${'h'.repeat(header)}\r\nContent-Length: ${body}\r\n`;
      socket.write(`${requests(1)}${`POST / HTTP/1.1\r\n${head}\r\n${'b'.repeat(body)}`.repeat(40)}`);
      await ended();
      expect(begun).to.equal(1);
    });

  it('serves a body that arrived while the previous request was served', async () => {
    const body = 'b'.repeat(200_000);
    await open((request, response) => {
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

  it('starts no waiting request after a response that ends the connection', async () => {
    const begun: (string | undefined)[] = [];
    await open((request, response) => {
      begun.push(request.url);
      response.setHeader('Connection', 'close');
      setImmediate(() => response.end());
    });
    socket.resume();
    socket.write(requests(3));
    await ended();
    expect(begun).to.deep.equal(['/0']);
  });

  it('starts no waiting request when the client has disconnected', async () => {
    let begun = 0;
    let isClosed = false;
    await open((request, response) => {
      begun++;
      response.once('close', () => {
        isClosed = true;
      });
      if (request.url === '/0') socket.destroy();
    });
    socket.write(requests(3));
    while (!isClosed) await turn();
    await turn();
    expect(begun).to.equal(1);
  });

  for (const kind of ['one large response', 'many small writes, such as those of an event stream'] as const)
    it(`is closed when the client reads nothing of ${kind} for two minutes`, async () => {
      let isBegun = false;
      await open((_request, response) => {
        isBegun = true;
        if (kind === 'one large response') response.end(Buffer.alloc(SIZE));
        else for (let at = 0; at < 1_024; at++) response.write(Buffer.alloc(64 * 1024));
      });
      socket.pause();
      socket.write(requests(1));
      while (!isBegun) await turn();
      // The system takes what fits in its buffers first, which counts as progress.
      let now = performance.now();
      do {
        server.closeStalled(now);
        server.closeStalled(now + STALLED_MS - 1);
        expect(server.connectionCount).to.equal(1);
        now += STALLED_MS;
        server.closeStalled(now);
        for (let at = 0; at < 20; at++) await turn();
      } while (server.connectionCount > 0);
    });

  it('stays open while the client reads slowly, and while a response is being built', async () => {
    let finish: (() => void) | undefined;
    await open((_request, response) => {
      finish = () => response.end(Buffer.alloc(SIZE));
    });
    let read = 0;
    let wanted = 0;
    socket.on('data', (chunk: Buffer) => {
      read += chunk.length;
      if (read >= wanted) socket.pause();
    });
    socket.write(requests(1));
    while (finish === undefined) await turn();
    let now = performance.now();
    server.closeStalled(now);
    now += 10 * STALLED_MS;
    server.closeStalled(now);
    expect(server.connectionCount).to.equal(1);
    finish();
    // More than the buffers of the system hold, so that each step takes bytes from the service.
    for (wanted = SIZE / 4; wanted <= SIZE; wanted += SIZE / 4) {
      socket.resume();
      while (read < wanted) await turn();
      now += STALLED_MS - 1;
      server.closeStalled(now);
      expect(server.connectionCount).to.equal(1);
    }
  });
});

describe('maximum number of connections of a process', () => {
  it('is read from the limits of the system', () => {
    const line = (soft: string) => `Limit  Soft Limit  Hard Limit  Units\nMax open files            ${soft}      4096   files\n`;
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
