import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import type { Log } from '../../application/ports/log.ts';
import { HttpServer } from '../../bootstrap/http-server.ts';

const GRACE_MS = 5_000;
const NOTICE_MS = 200;
/** A peer that is not held up by what this thread does. */
const PEER = `
const { parentPort, workerData } = require('node:worker_threads');
const socket = require('node:net').connect(workerData, '127.0.0.1');
let text = '';
socket.on('data', (chunk) => { text += chunk; parentPort.postMessage(text); });
socket.once('error', () => {}).once('close', () => parentPort.postMessage(text + 'closed'));
parentPort.on('message', (path) => socket.write('GET ' + path + ' HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n'));
`;

describe('A connection of a service that stops', () => {
  /** @returns what came back, and how many requests were worked on. @param sends when the service begins to stop. */
  async function ending(sends: { readonly before: number; readonly after: number }) {
    let handled = 0;
    const listen: RequestListener = (request, response) => {
      handled++;
      setTimeout(() => response.end(request.url), 100);
    };
    const server = new HttpServer(
      { IncomingMessage, ServerResponse, listen },
      { maxConnections: 10, keepAliveSeconds: 65 },
      {} as Log,
    );
    const socket = connect(await server.listen(0, '127.0.0.1'), '127.0.0.1');
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    const ended = new Promise<void>((done) => socket.once('close', () => done()));
    const send = (count: number) =>
      socket.write(
        Array.from({ length: count }, (_, at) => `GET /${at} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join(''),
      );
    send(sends.before);
    await pause(30);
    const closing = server.close(GRACE_MS, GRACE_MS);
    send(sends.after);
    await Promise.all([closing, ended]);
    return { handled, answers: Buffer.concat(chunks).toString().split('HTTP/1.1 200').slice(1) };
  }

  for (const sends of [
    { before: 10, after: 0 },
    { before: 5, after: 5 },
    { before: 1, after: 10 },
  ])
    it(`has an answer for each of ${sends.before} requests and ${sends.after} more, and the last says that it ends`, async () => {
      const { handled, answers } = await ending(sends);
      expect(handled).to.equal(sends.before + sends.after);
      expect(answers).to.have.length(handled);
      const ends = answers.map((answer) => /^Connection: close\r$/m.test(answer));
      expect(ends).to.deep.equal([...Array(handled - 1).fill(false), true]);
    });

  it('is not closed over a request that came while the service was busy', async () => {
    const listen: RequestListener = (request, response) => response.end(request.url);
    const server = new HttpServer(
      { IncomingMessage, ServerResponse, listen },
      { maxConnections: 10, keepAliveSeconds: 65 },
      {} as Log,
    );
    const peer = new Worker(PEER, { eval: true, workerData: await server.listen(0, '127.0.0.1') });
    let seen = '';
    peer.on('message', (text: string) => {
      seen = text;
    });
    const until = async (mark: string) => {
      while (!seen.includes(mark)) await pause(5);
    };
    peer.postMessage('/first');
    await until('/first');
    const closing = server.close(GRACE_MS, NOTICE_MS);
    await pause(NOTICE_MS - 40);
    peer.postMessage('/second');
    // Meanwhile it arrives, and the notice ends; what comes next in the event loop are timers.
    await turn();
    const busy = performance.now() + 150;
    while (performance.now() < busy);
    await closing;
    await until('closed');
    await peer.terminate();
    expect(seen).to.match(/Connection: close\r\n[\s\S]*\/secondclosed$/);
  });
});
