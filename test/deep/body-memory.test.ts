import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { createTenant, ROOT, startTestService, type TestService } from '../support/test-service.ts';

const MEBIBYTE = 1024 * 1024;

describe('request bodies', () => {
  let service: TestService;
  let token: string;
  const openSockets: Socket[] = [];

  before(async () => {
    service = await startTestService({ BODY_MEMORY: '8', TRUST_PROXY: '1', MAX_CONNECTIONS: '60' });
    ({ token } = await createTenant(service, 'acme'));
  });
  afterEach(async () => {
    for (const socket of openSockets.splice(0)) socket.destroy();
    // The service notices the disconnect later.
    await new Promise((resolve) => setTimeout(resolve, 100));
  });
  after(() => service.close());

  /** Sends the head and a part of the body, and waits until the service has received it. @returns the response. */
  async function startRequest(
    path: string,
    headers: Readonly<Record<string, string>>,
    sentBytes: number,
    contentLength: number,
  ): Promise<() => string> {
    const { hostname, port } = new URL(service.address);
    const socket = connect(Number(port), hostname === 'localhost' ? '127.0.0.1' : hostname);
    openSockets.push(socket);
    let answer = '';
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.toString('latin1');
    });
    // An immediately closed connection also ends here.
    socket.on('error', () => {});
    const lines = { Host: 'localhost', 'Content-Length': String(contentLength), ...headers };
    const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`POST ${path} HTTP/1.1\r\n${head.join('')}\r\n`);
    await new Promise<void>((resolve) => {
      socket.write(Buffer.alloc(sentBytes, 0x41), () => resolve());
      setTimeout(resolve, 300);
    });
    return () => answer;
  }

  const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const JSON_TYPE = { 'Content-Type': 'application/json' };
  const waitForService = () => new Promise((resolve) => setTimeout(resolve, 200));

  it('are not read for callers with an invalid token', async () => {
    for (const headers of [{}, { Authorization: 'Bearer nonsense' }]) {
      const answer = await startRequest('/verifier/config', { ...JSON_TYPE, ...headers }, 1000, MEBIBYTE);
      await waitForService();
      expect(answer(), 'answered while most of the body is still to come').to.match(/^HTTP\/1.1 401 /);
    }
    const expectForbidden = await service.token(ROOT.clientId, ROOT.secret);
    const headers = { ...JSON_TYPE, Authorization: `Bearer ${expectForbidden}` };
    const answer = await startRequest('/verifier/config', headers, 1000, MEBIBYTE);
    await waitForService();
    expect(answer()).to.match(/^HTTP\/1.1 403 /);
  });

  it('of unauthenticated callers have a limit, and administrators have a separate limit', async () => {
    const holdBody = (address: string) => startRequest('/acme/response/x', { ...FORM, 'X-Forwarded-For': address }, 900_000, MEBIBYTE);
    const answers: (() => string)[] = [];
    for (let i = 0; i < 6; i++) answers.push(await holdBody(`9.9.${i}.1`));
    await waitForService();
    // Requests without a slot were rejected before their body was complete, and use no memory any more.
    const isRejected = (answer: () => string) => /^HTTP\/1.1 503 /.test(answer());
    expect(answers.filter(isRejected)).to.have.length(2);
    const rejection = await service.call('POST', '/acme/response/x', {
      headers: { ...FORM, 'X-Forwarded-For': '9.8.7.6' },
      text: `vp_token=${'A'.repeat(700_000)}`,
    });
    expect(rejection.status, 'four megabytes for unauthenticated callers').to.equal(503);
    expect(rejection.headers.get('retry-after')).to.equal('5');
    expect(rejection.body.error).to.equal('temporarily_unavailable');
    const configurationResponse = await service.call('POST', '/issuer/config', {
      token,
      json: { display: [{ name: 'Acme', locale: 'en' }] },
    });
    expect(configurationResponse.status, configurationResponse.text).to.equal(201);
  });

  it('of one address do not use up the memory of other addresses', async () => {
    for (let i = 0; i < 3; i++) {
      await startRequest('/acme/response/x', { ...FORM, 'X-Forwarded-For': '9.9.9.9' }, 900_000, MEBIBYTE);
    }
    await waitForService();
    const send = (address: string) =>
      service.call('POST', '/acme/response/x', {
        headers: { ...FORM, 'X-Forwarded-For': address },
        text: `vp_token=${'A'.repeat(500_000)}`,
      });
    expect((await send('9.9.9.9')).status).to.equal(503);
    expect((await send('9.9.9.8')).status).to.equal(404);
  });

  it('of one tenant do not use up the memory of other tenants', async () => {
    const { token: otherToken } = await createTenant(service, 'beta');
    const headers = { ...JSON_TYPE, Authorization: `Bearer ${otherToken}` };
    for (let i = 0; i < 6; i++) await startRequest('/verifier/config', headers, 900_000, MEBIBYTE);
    await waitForService();
    const configurationResponse = await service.call('POST', '/issuer/config', {
      token,
      json: { display: [{ name: 'Acme', locale: 'en' }] },
    });
    expect(configurationResponse.status, configurationResponse.text).to.equal(201);
  });

  it('are released when their requests end', async () => {
    for (let attempt = 0; attempt < 30; attempt++) {
      const { status } = await service.call('POST', '/acme/response/x', {
        headers: { ...FORM, 'X-Forwarded-For': '9.9.9.7' },
        text: `vp_token=${'A'.repeat(900_000)}`,
      });
      expect(status).to.equal(404);
    }
  });

  it('wait behind connections, which are limited, too', async () => {
    const { hostname, port } = new URL(service.address);
    const closedSockets: Promise<boolean>[] = [];
    for (let i = 0; i < 80; i++) {
      const socket = connect(Number(port), hostname === 'localhost' ? '127.0.0.1' : hostname);
      openSockets.push(socket);
      closedSockets.push(
        new Promise((resolve) => {
          socket.once('close', () => resolve(true));
          socket.on('error', () => {});
          setTimeout(() => resolve(false), 1_000);
        }),
      );
    }
    const dropped = (await Promise.all(closedSockets)).filter(Boolean).length;
    expect(dropped).to.be.within(20, 60);
  });
});
