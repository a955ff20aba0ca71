import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { converse } from '../support/raw-request.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

const HOST = 'Host: localhost\r\n';
const JSON_TYPE = 'Content-Type: application/json\r\n';

/** Bytes, and the status lines that may come back; none when the connection is just closed. */
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
  'two lengths': [
    `POST /oauth2/token HTTP/1.1\r\n${HOST}Content-Length: 1\r\nContent-Length: 2\r\n\r\nx`,
    [400],
  ],
  'a length and chunks': [
    `POST /oauth2/token HTTP/1.1\r\n${HOST}${JSON_TYPE}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    [400],
  ],
  'an absolute address that is none': [
    `GET http://[::1/health HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`,
    [400],
  ],
  'a negative length': [`POST /oauth2/token HTTP/1.1\r\n${HOST}Content-Length: -1\r\n\r\n`, [400]],
  'a chunk of nonsense': [
    `POST /oauth2/token HTTP/1.1\r\n${HOST}${JSON_TYPE}Transfer-Encoding: chunked\r\n\r\nzz\r\nxx\r\n`,
    [400],
  ],
  'a transfer encoding that nobody knows': [
    `POST /oauth2/token HTTP/1.1\r\n${HOST}Transfer-Encoding: gzip, nonsense\r\n\r\n`,
    [400, 501],
  ],
  'an expectation that nobody meets': [
    `POST /oauth2/token HTTP/1.1\r\n${HOST}Expect: the-unexpected\r\nConnection: close\r\n\r\n`,
    [417],
  ],
  'a tunnel': [`CONNECT example.com:443 HTTP/1.1\r\n${HOST}\r\n`, []],
  'a star': [`OPTIONS * HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`, [400, 404, 405]],
  'a method that does not exist': [`BREW / HTTP/1.1\r\n${HOST}\r\n`, [400, 405]],
  'the address of somebody else': [
    `GET http://evil.example/nowhere HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`,
    [404],
  ],
  'a protocol that we do not speak': [
    `GET /nowhere HTTP/1.1\r\n${HOST}Upgrade: websocket\r\nConnection: Upgrade, close\r\n\r\n`,
    [404],
  ],
};

/** The peer leaves in the middle of these. */
const HALVES: Readonly<Record<string, string>> = {
  nothing: '',
  'half a request line': 'GET /hea',
  'half a header': `GET /health HTTP/1.1\r\n${HOST}X-Half`,
  'half a body': `POST /oauth2/token HTTP/1.1\r\n${HOST}${JSON_TYPE}Content-Length: 1000\r\n\r\n{"grant`,
  'half a chunk': `POST /oauth2/token HTTP/1.1\r\n${HOST}${JSON_TYPE}Transfer-Encoding: chunked\r\n\r\nff\r\nx`,
};

describe('A connection that carries', () => {
  let service: TestService;
  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  const expectAlive = async () => expect((await service.call('GET', '/health')).status).to.equal(200);

  for (const [name, [bytes, statuses]] of Object.entries(CASES)) {
    it(`${name} is refused and closed, and the service goes on`, async () => {
      const { text, closed } = await converse(service.address, [bytes]);
      expect(closed, text).to.equal(true);
      const answered = [...text.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status));
      if (statuses.length === 0) expect(answered).to.deep.equal([]);
      else expect(answered, text).to.have.length(1);
      for (const status of answered) expect(status, text).to.be.oneOf([...statuses]);
      expect(text).not.to.match(/node_modules|file:\/\/|<html/i);
      await expectAlive();
    });
  }

  for (const [name, text] of Object.entries(HALVES)) {
    it(`${name} is closed when the peer leaves, and the service goes on`, async () => {
      const { closed, text: answer } = await converse(service.address, [text], { end: true });
      expect(closed).to.equal(true);
      expect(answer).to.match(/^(HTTP\/1\.1 4\d\d |$)/);
      await expectAlive();
    });
  }

  it('half a request does not keep others waiting, however many there are', async () => {
    const half = `POST /oauth2/token HTTP/1.1\r\n${HOST}${JSON_TYPE}Content-Length: 1000\r\n\r\n{`;
    const waiting = Array.from({ length: 200 }, () =>
      converse(service.address, [half], { patienceMs: 1_000 }),
    );
    const began = performance.now();
    await expectAlive();
    expect(performance.now() - began).to.be.lessThan(900);
    await Promise.all(waiting);
    await expectAlive();
  });

  it('many requests at once answers each of them, in order', async () => {
    const one = (id: number) => `GET /health HTTP/1.1\r\n${HOST}X-Request-Id: r${id}\r\n\r\n`;
    const last = `GET /health HTTP/1.1\r\n${HOST}X-Request-Id: r99\r\nConnection: close\r\n\r\n`;
    const all = Array.from({ length: 99 }, (_, id) => one(id)).join('') + last;
    const { text } = await converse(service.address, [all]);
    const ids = [...text.matchAll(/^X-Caller-Request-Id: r(\d+)/gim)].map(([, id]) => Number(id));
    expect(ids).to.deep.equal(Array.from({ length: 100 }, (_, id) => id));
  });
});
