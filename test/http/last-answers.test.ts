import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import type { Log } from '../../application/ports/log.ts';
import { HttpServer } from '../../bootstrap/http-server.ts';

const GRACE_MS = 5_000;

describe('A connection of a service that stops', () => {
  /** @returns what came back, and how many requests were worked on. @param sends when the service begins to stop. */
  async function ending(sends: { readonly before: number; readonly after: number }) {
    let handled = 0;
    const listen: RequestListener = (request, response) => {
      handled++;
      setTimeout(() => response.end(request.url), 100);
    };
    const server = new HttpServer({ IncomingMessage, ServerResponse, listen }, 10, {} as Log);
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
});
