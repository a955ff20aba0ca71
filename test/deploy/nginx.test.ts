import { createServer as createHttp, type IncomingHttpHeaders } from 'node:http';
import { Agent, request } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { connect } from 'node:tls';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import { hasNginx, type Nginx, startNginx } from '../support/nginx.ts';
import { createResource, credentialBody, offerBody } from '../support/populated.ts';
import { stopPrograms } from '../support/programs.ts';
import { createTenant } from '../support/test-service.ts';
import { callerFor, WorkerService } from '../support/worker-service.ts';

type NginxResponse = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  readonly agent?: Agent | false;
};
type Got = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly text: string };

describe('nginx with the configuration of deploy/', function () {
  this.timeout(120_000);
  let database: TestDatabase | undefined;
  let services: WorkerService[] = [];
  let nginx: Nginx | undefined;
  let ports: readonly [number, number];
  let environment: Readonly<Record<string, string>>;

  before(async function () {
    if (!hasNginx()) return this.skip();
    database = await databases()
      .find(({ name }) => name === 'postgres')
      ?.open();
    if (database === undefined) return this.skip();
    ports = [await freePort(createServer), await freePort(createServer)];
    nginx = await startNginx(ports);
    environment = { DATABASE_URL: database.url, WORKERS: '1', PUBLIC_URL: nginx.address, TRUST_PROXY: '1', DRAIN_SECONDS: '1' };
    services = [await WorkerService.startAt(ports[0], environment), await WorkerService.startAt(ports[1], environment)];
  });
  after(async () => {
    for (const service of services) await service.stop();
    await nginx?.close();
    await stopPrograms();
    await database?.drop();
  });

  const send = (path: string, { body, ...options }: NginxResponse = {}) =>
    new Promise<Got>((resolve, reject) => {
      const { address = '', certificate: ca = '' } = nginx ?? {};
      const clientRequest = request(`${address}${path}`, { agent: false, ...options, ca }, (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        answer.once('error', reject);
        answer.once('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }));
      });
      clientRequest.once('error', reject);
      clientRequest.end(body);
    });
  /** One process creates the resources. */
  const direct = () => callerFor((services[0] as WorkerService).address);
  const tenant = async (id: string) => (await createTenant(direct(), id)).token;

  it('terminates TLS 1.2 or later, and redirects plain requests to it', async () => {
    const { status, headers, text } = await send('/');
    expect(status, text).to.equal(200);
    expect(JSON.parse(text)).to.include({ issuerUrlTemplate: `${nginx?.address}/{tenant}` });
    expect(headers['strict-transport-security']).to.equal('max-age=31536000');
    expect(headers['server']).to.equal('nginx');
    const redirected = await fetch(`${nginx?.plainAddress}/x?y=1`, { redirect: 'manual' });
    expect(redirected.status).to.equal(308);
    expect(redirected.headers.get('location')).to.equal('https://localhost/x?y=1');
    const port = Number(new URL(nginx?.address ?? '').port);
    const connectionError = await new Promise<string>((resolve) => {
      const options = { port, host: '127.0.0.1', rejectUnauthorized: false, maxVersion: 'TLSv1.1', minVersion: 'TLSv1' } as const;
      const socket = connect({ ...options, ciphers: 'DEFAULT@SECLEVEL=0' }, () => resolve('connected'));
      socket.once('error', () => resolve('refused'));
    });
    expect(connectionError).to.equal('refused');
    // No client certificate is requested.
    expect((await send('/.well-known/openid-credential-issuer/nobody')).status).to.equal(404);
  });

  it('passes large bodies up to the limits of the service', async () => {
    const token = await tenant('large');
    const claims = { name: 'x'.repeat(1_500_000) };
    const body = JSON.stringify({ ...credentialBody('large', 'signing'), claims });
    const answer = await send('/issuer/credentials', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
      body,
    });
    // The service says what is too large for it, in its own words.
    expect(answer.headers['content-type']).to.match(/json/);
    expect(answer.text).to.not.include('nginx');
    const beyond = await send('/issuer/credentials', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Content-Length': String(21 * 1_048_576) },
    }).catch((error: Error) => ({ status: 0, text: error.message }));
    expect(beyond.status).to.be.oneOf([413, 0]);
  });

  it('forwards events immediately, and streams of both processes end with their sessions', async () => {
    const token = await tenant('streams');
    await createResource(direct(), token, '/issuer/credentials', credentialBody('pid', 'signing'));
    const { body } = await direct().call('POST', '/issuer/offer', { token, json: offerBody('pid') });
    const { session } = body as { session: string };
    const { address = '', certificate: ca = '' } = nginx ?? {};
    const chunks: string[] = [];
    const streamEnd = new Promise<void>((resolve, reject) => {
      const headers = { Authorization: `Bearer ${token}` };
      const stream = request(`${address}/session/${session}/events`, { ca, headers, agent: false }, (answer) => {
        answer.setEncoding('utf8').on('data', (chunk: string) => chunks.push(chunk));
        answer.once('end', resolve);
      });
      stream.once('error', reject);
      stream.end();
    });
    const deadline = Date.now() + 5_000;
    while (!chunks.join('').includes('active') && Date.now() < deadline) await setTimeout(20);
    expect(chunks.join('')).to.include('"status":"active"');
    const removed = await callerFor((services[1] as WorkerService).address).call('DELETE', `/session/${session}`, { token });
    expect(removed.status).to.be.oneOf([200, 204]);
    await streamEnd;
  });

  it('overwrites forged headers with the address of the caller, and drops no other header', async () => {
    const receivedHeaders: IncomingHttpHeaders[] = [];
    const echo = createHttp({ maxHeaderSize: 65_536 }, (incoming, outgoing) => {
      receivedHeaders.push(incoming.headers);
      outgoing.end('{}');
    });
    await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
    const { port } = echo.address() as AddressInfo;
    const formerNginx = nginx;
    nginx = await startNginx([port, port]);
    try {
      const proof = 'p'.repeat(12_000);
      const headers = { 'X-Forwarded-For': '9.9.9.9', 'X-Forwarded-Proto': 'ftp', 'X-Forwarded-Host': 'evil.example' };
      await send('/x', { headers: { ...headers, DPoP: proof, 'OAuth-Client-Attestation': proof, Authorization: 'DPoP t' } });
      expect(receivedHeaders[0]).to.include({
        ...{ 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'localhost' },
        ...{ dpop: proof, 'oauth-client-attestation': proof, authorization: 'DPoP t', host: 'localhost' },
      });
    } finally {
      await nginx.close();
      nginx = formerNginx;
      echo.close();
    }
  });

  it('drops no request during a rolling restart of the processes', async () => {
    const token = await tenant('rolling');
    await createResource(direct(), token, '/issuer/credentials', credentialBody('pid', 'signing'));
    const failed: string[] = [];
    let answeredCount = 0;
    let isStopped = false;
    const load = async (agent: Agent | false) => {
      while (!isStopped) {
        const requestOptions = {
          method: 'POST',
          headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
          body: JSON.stringify(offerBody('pid')),
        };
        const status = await send('/issuer/offer', { ...requestOptions, agent }).then(
          (answer) => answer.status,
          (error: Error) => error.message,
        );
        if (status === 201) answeredCount++;
        else failed.push(String(status));
      }
    };
    const agents = Array.from({ length: 3 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
    const loads = [...agents, false as const].map(load);
    for (const [index, port] of ports.entries()) {
      const answeredBefore = answeredCount;
      const old = services[index] as WorkerService;
      old.process.kill('SIGTERM');
      expect(await old.ended, old.errors).to.equal(0);
      services[index] = await WorkerService.startAt(port, environment);
      while ((await fetch(`http://localhost:${port}/health/ready`)).status !== 200) await setTimeout(50);
      // For so long nginx leaves one alone that took no connection.
      await setTimeout(2_500);
      expect(answeredCount - answeredBefore).to.be.greaterThan(20);
    }
    isStopped = true;
    await Promise.all(loads);
    for (const agent of agents) agent.destroy();
    expect(failed, nginx?.program.output()).to.deep.equal([]);
  });
});
