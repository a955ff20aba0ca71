import { randomBytes } from 'node:crypto';
import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import type { Log } from '../../application/ports/log.ts';
import { HttpServer } from '../../bootstrap/wiring/http-server.ts';
import { sendBytes } from '../support/raw-request.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

const HOST = 'Host: localhost\r\n';
const JSON_TYPE = 'Content-Type: application/json\r\n';

/** Sent bytes and the allowed response statuses; none when the connection is only closed. */
const CASES: Readonly<Record<string, readonly [bytes: string | Buffer, statuses: readonly number[]]>> = {
  'what is no HTTP': ['GARBAGE\r\n\r\n', [400]],
  'random bytes': [randomBytes(4_096), [400]],
  'the greeting of TLS': [Buffer.from('16030100a5010000a10303', 'hex'), [400]],
  'an unknown version': [`GET / HTTP/9.9\r\n${HOST}\r\n`, [400]],
  'no host': ['GET /health HTTP/1.1\r\n\r\n', [400]],
  'NUL in a header': [`GET /health HTTP/1.1\r\n${HOST}X: a\0b\r\n\r\n`, [400]],
  'a header without a name': [`GET /health HTTP/1.1\r\n${HOST}: x\r\n\r\n`, [400]],
  'a space before the colon': [`GET /health HTTP/1.1\r\n${HOST}X : y\r\n\r\n`, [400]],
  'one header of 100 KB': [`GET /health HTTP/1.1\r\n${HOST}X: ${'x'.repeat(100_000)}\r\n\r\n`, [431]],
  'thousands of headers': [`GET /health HTTP/1.1\r\n${HOST}${'X: y\r\n'.repeat(20_000)}\r\n`, [431]],
  'an address of 100 KB': [`GET /${'x'.repeat(100_000)} HTTP/1.1\r\n${HOST}\r\n`, [431]],
  'two lengths': [`POST /oauth2/token HTTP/1.1\r\n${HOST}Content-Length: 1\r\nContent-Length: 2\r\n\r\nx`, [400]],
  'a length and chunks': [
    `POST /oauth2/token HTTP/1.1\r\n${HOST}${JSON_TYPE}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    [400],
  ],
  'an absolute address that is invalid': [`GET http://[::1/health HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`, [400]],
  'a negative length': [`POST /oauth2/token HTTP/1.1\r\n${HOST}Content-Length: -1\r\n\r\n`, [400]],
  'a chunk of nonsense': [`POST /oauth2/token HTTP/1.1\r\n${HOST}${JSON_TYPE}Transfer-Encoding: chunked\r\n\r\nzz\r\nxx\r\n`, [400]],
  'a transfer encoding that is unknown': [`POST /oauth2/token HTTP/1.1\r\n${HOST}Transfer-Encoding: gzip, nonsense\r\n\r\n`, [400, 501]],
  'an unsupported expectation': [`POST /oauth2/token HTTP/1.1\r\n${HOST}Expect: the-unexpected\r\nConnection: close\r\n\r\n`, [417]],
  'a tunnel': [`CONNECT example.com:443 HTTP/1.1\r\n${HOST}\r\n`, []],
  'a star': [`OPTIONS * HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`, [400, 404, 405]],
  'a method that does not exist': [`BREW / HTTP/1.1\r\n${HOST}\r\n`, [400, 405]],
  'the address of another party': [`GET http://evil.example/nowhere HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`, [404]],
  'a protocol that we do not speak': [`GET /nowhere HTTP/1.1\r\n${HOST}Upgrade: websocket\r\nConnection: Upgrade, close\r\n\r\n`, [404]],
};

/** Partial requests, after which the peer disconnects. */
const PARTIAL_REQUESTS: Readonly<Record<string, string>> = {
  nothing: '',
  'half a request line': 'GET /hea',
  'half a header': `GET /health HTTP/1.1\r\n${HOST}X-Half`,
  'half a body': `POST /oauth2/token HTTP/1.1\r\n${HOST}${JSON_TYPE}Content-Length: 1000\r\n\r\n{"grant`,
  'half a chunk': `POST /oauth2/token HTTP/1.1\r\n${HOST}${JSON_TYPE}Transfer-Encoding: chunked\r\n\r\nff\r\nx`,
};

describe('connection with', () => {
  let service: TestService;
  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  const expectAlive = async () => expect((await service.call('GET', '/health')).status).to.equal(200);

  for (const [name, [bytes, statuses]] of Object.entries(CASES)) {
    it(`${name} is rejected and closed, and the service continues`, async () => {
      const { text, closed } = await sendBytes(service.address, [bytes]);
      expect(closed, text).to.equal(true);
      const responseStatuses = [...text.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status));
      if (statuses.length === 0) expect(responseStatuses).to.deep.equal([]);
      else expect(responseStatuses, text).to.have.length(1);
      for (const status of responseStatuses) expect(status, text).to.be.oneOf([...statuses]);
      expect(text).not.to.match(/node_modules|file:\/\/|<html/i);
      await expectAlive();
    });
  }

  for (const [name, text] of Object.entries(PARTIAL_REQUESTS)) {
    it(`${name} is closed when the peer disconnects, and the service continues`, async () => {
      const { closed, text: answer } = await sendBytes(service.address, [text], { end: true });
      expect(closed).to.equal(true);
      expect(answer).to.match(/^(HTTP\/1\.1 4\d\d |$)/);
      await expectAlive();
    });
  }

  it('half a request does not delay other connections, regardless of their number', async () => {
    const halfRequest = `POST /oauth2/token HTTP/1.1\r\n${HOST}${JSON_TYPE}Content-Length: 1000\r\n\r\n{`;
    const openRequests = Array.from({ length: 200 }, () => sendBytes(service.address, [halfRequest], { timeoutMs: 1_000 }));
    const startedAt = performance.now();
    await expectAlive();
    expect(performance.now() - startedAt).to.be.lessThan(900);
    await Promise.all(openRequests);
    await expectAlive();
  });

  it('many pipelined requests gets an answer to each, in order', async () => {
    const pipelinedRequest = (id: number) => `GET /health HTTP/1.1\r\n${HOST}X-Request-Id: r${id}\r\n\r\n`;
    const lastRequest = `GET /health HTTP/1.1\r\n${HOST}X-Request-Id: r99\r\nConnection: close\r\n\r\n`;
    const pipeline = Array.from({ length: 99 }, (_, id) => pipelinedRequest(id)).join('') + lastRequest;
    const { text } = await sendBytes(service.address, [pipeline]);
    const ids = [...text.matchAll(/^X-Caller-Request-Id: r(\d+)/gim)].map(([, id]) => Number(id));
    expect(ids).to.deep.equal(Array.from({ length: 100 }, (_, id) => id));
  });
});

const GRACE_MS = 5_000;
const NOTICE_MS = 200;
/** A peer that a blocked main thread does not delay. */
const PEER = `
const { parentPort, workerData } = require('node:worker_threads');
const socket = require('node:net').connect(workerData, '127.0.0.1');
let text = '';
socket.on('data', (chunk) => { text += chunk; parentPort.postMessage(text); });
socket.once('error', () => {}).once('close', () => parentPort.postMessage(text + 'closed'));
parentPort.on('message', (path) => socket.write('GET ' + path + ' HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n'));
`;

describe('connection of a stopping service', () => {
  /**
   * Stops a server between requests.
   * @param sends number of requests before and after the stop.
   * @returns the output and the number of handled requests.
   */
  async function stopDuringRequests(sends: { readonly before: number; readonly after: number }) {
    let handledCount = 0;
    const listen: RequestListener = (request, response) => {
      handledCount++;
      setTimeout(() => response.end(request.url), 100);
    };
    const server = new HttpServer({ IncomingMessage, ServerResponse, listen }, { maxConnections: 10, keepAliveSeconds: 65 }, {} as Log);
    const socket = connect(await server.listen(0, '127.0.0.1'), '127.0.0.1');
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    const socketClosed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    const send = (count: number) =>
      socket.write(Array.from({ length: count }, (_, index) => `GET /${index} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join(''));
    send(sends.before);
    await pause(30);
    const serverClosed = server.close(GRACE_MS, GRACE_MS);
    send(sends.after);
    await Promise.all([serverClosed, socketClosed]);
    return { handled: handledCount, answers: Buffer.concat(chunks).toString().split('HTTP/1.1 200').slice(1) };
  }

  for (const sends of [
    { before: 10, after: 0 },
    { before: 5, after: 5 },
    { before: 1, after: 10 },
  ])
    it(`gets an answer to each of ${sends.before} requests and ${sends.after} more, and the last one closes it`, async () => {
      const { handled: handledCount, answers } = await stopDuringRequests(sends);
      expect(handledCount).to.equal(sends.before + sends.after);
      expect(answers).to.have.length(handledCount);
      const response = answers.map((answer) => /^Connection: close\r$/m.test(answer));
      expect(response).to.deep.equal([...Array(handledCount - 1).fill(false), true]);
    });

  it('is not closed before a request that arrived while the service was busy is answered', async () => {
    const listen: RequestListener = (request, response) => response.end(request.url);
    const server = new HttpServer({ IncomingMessage, ServerResponse, listen }, { maxConnections: 10, keepAliveSeconds: 65 }, {} as Log);
    const peer = new Worker(PEER, { eval: true, workerData: await server.listen(0, '127.0.0.1') });
    let output = '';
    peer.on('message', (text: string) => {
      output = text;
    });
    const waitForMark = async (mark: string) => {
      while (!output.includes(mark)) await pause(5);
    };
    peer.postMessage('/first');
    await waitForMark('/first');
    const serverClosed = server.close(GRACE_MS, NOTICE_MS);
    await pause(NOTICE_MS - 40);
    peer.postMessage('/second');
    // Meanwhile the request arrives and the notice period ends; timers run next in the event loop.
    await turn();
    const blockThread = performance.now() + 150;
    while (performance.now() < blockThread);
    await serverClosed;
    await waitForMark('closed');
    await peer.terminate();
    expect(output).to.match(/Connection: close\r\n[\s\S]*\/secondclosed$/);
  });
});
