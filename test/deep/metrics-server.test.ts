import { connect, createServer, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { expect } from 'chai';
import { MetricsServer } from '../../adapters/system/metrics/metrics-server.ts';
import { startFailure } from '../../bootstrap/start-failure.ts';
import { freePort } from '../demo/process.ts';

describe('The address for metrics alone', () => {
  let port: number;
  let server: MetricsServer;
  let sockets: Socket[];

  beforeEach(async () => {
    port = await freePort(createServer);
    server = await MetricsServer.open({ host: '127.0.0.1', port }, async () => 'some_number 1\n');
    sockets = [];
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    await server.close();
  });

  /** More than there is room for. */
  const hold = async (first: string) => {
    for (let i = 0; i < 40; i++) {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => {});
      socket.write(first);
      sockets.push(socket);
    }
    await setTimeout(500);
  };
  const scraped = async (): Promise<string> => {
    for (;;) {
      const text = await fetch(`http://127.0.0.1:${port}/metrics`)
        .then((response) => response.text())
        .catch(() => undefined);
      if (text !== undefined) return text;
      await setTimeout(200);
    }
  };

  for (const [who, first, within] of [
    ['say nothing', '', 9_000],
    ['never end what they begin to say', 'GET /metrics HTTP/1.1\r\nHost: a\r\n', 9_000],
    ['have had their answer and stay', 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n', 2_000],
  ] as const) {
    it(`is not held by those who ${who}`, async () => {
      await hold(first);
      const began = performance.now();
      expect(await scraped()).to.equal('some_number 1\n');
      expect(performance.now() - began).to.be.below(within);
    });
  }

  it('says which setting to change when its port is taken', async () => {
    const failure = await MetricsServer.open({ host: '127.0.0.1', port }, async () => '').catch(startFailure);
    expect(failure).to.equal(
      `Vidimus could not start: port ${port} is taken; set METRICS_ADDRESS to another one`,
    );
  });
});
