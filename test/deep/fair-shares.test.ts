import { Agent, request, type ServerResponse } from 'node:http';
import { expect } from 'chai';
import { databases, type TestDatabase } from '../support/databases.ts';
import { TestRegistrar } from '../support/registrar.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const FLOOD_CLIENTS = 200;
const QUIET = { clients: 4, each: 10 };
const pauseMs = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

type Tenant = { readonly id: string; readonly token: string };

/** Requests of the flood, answered from the database and from memory. */
const REQUESTS = {
  'the administrative interface': ({ token }: Tenant) => ({ path: '/issuer/credentials', headers: { Authorization: `Bearer ${token}` } }),
  'the addresses of wallets': ({ id }: Tenant) => ({ path: `/.well-known/openid-credential-issuer/${id}`, headers: {} }),
};

for (const kind of databases()) {
  describe(`request slots, on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let service: TestService;
    let noisyTenant: Tenant;
    let quietTenant: Tenant;
    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      service = await startTestService({ DATABASE_URL: database.url });
      noisyTenant = await createTenant(service, 'noisy');
      quietTenant = await createTenant(service, 'quiet');
      for (const { token } of [noisyTenant, quietTenant]) {
        const json = { display: [{ name: 'Issuer', locale: 'en' }] };
        await service.call('POST', '/issuer/config', { token, json });
      }
    });
    after(async () => {
      await service?.close();
      await database?.drop();
    });

    /** Sends a request. @returns the status; 0 when the connection ended. */
    function sendRequest(agent: Agent, { path, headers }: { path: string; headers: object }): Promise<number> {
      return new Promise((resolve) => {
        const { port } = new URL(service.address);
        const options = { host: '127.0.0.1', port, agent, path, headers: { ...headers } };
        const clientRequest = request(options, (answer) => {
          answer.resume();
          answer.on('end', () => resolve(answer.statusCode ?? 0));
        });
        clientRequest.on('error', () => resolve(0));
        clientRequest.end();
      });
    }

    /** Clients that repeat a request until they are stopped. */
    function flood(request: { path: string; headers: object }) {
      const agent = new Agent({ keepAlive: true, maxSockets: FLOOD_CLIENTS });
      const statuses: number[] = [];
      let isStopped = false;
      const floodClient = async () => {
        while (!isStopped) statuses.push(await sendRequest(agent, request));
      };
      const clients = Promise.all(Array.from({ length: FLOOD_CLIENTS }, floodClient));
      const stop = async () => {
        isStopped = true;
        await clients;
        agent.destroy();
      };
      return { statuses, stop };
    }

    for (const [target, requestFor] of Object.entries(REQUESTS)) {
      it(`are shared by tenants at ${target}, regardless of how many requests of one tenant wait`, async () => {
        expect(await sendRequest(new Agent(), requestFor(quietTenant))).to.equal(200);
        const floodRun = flood(requestFor(noisyTenant));
        while (floodRun.statuses.length < FLOOD_CLIENTS) await pauseMs(5);
        const agent = new Agent({ keepAlive: true, maxSockets: QUIET.clients });
        const floodBefore = floodRun.statuses.length;
        const answers = await Promise.all(
          Array.from({ length: QUIET.clients }, async () => {
            const statuses: number[] = [];
            while (statuses.length < QUIET.each) statuses.push(await sendRequest(agent, requestFor(quietTenant)));
            return statuses;
          }),
        );
        const floodMeanwhile = floodRun.statuses.length - floodBefore;
        await floodRun.stop();
        agent.destroy();
        const total = QUIET.clients * QUIET.each;
        expect(answers.flat()).to.deep.equal(new Array(total).fill(200));
        expect(
          floodRun.statuses.every((status) => status === 200),
          'no request is rejected',
        ).to.equal(true);
        // In the order of arrival, each request of the quiet tenant would wait for the whole flood.
        expect(floodMeanwhile, 'answers to the flood meanwhile').to.be.below((QUIET.each * FLOOD_CLIENTS) / 2);
        expect(floodMeanwhile, 'the flood continues').to.be.above(QUIET.each);
      });
    }
  });
}

describe('request slots of requests that wait for a backend', () => {
  let service: TestService;
  let registrar: TestRegistrar;
  before(async () => {
    service = await startTestService({ REQUESTS_AT_ONCE: '4' });
    registrar = await TestRegistrar.start();
  });
  after(async () => {
    await service.close();
    await registrar.close();
  });

  it('are released meanwhile, also when many requests wait for the same call', async () => {
    const { token: quietToken } = await createTenant(service, 'quiet');
    const slowRequests: string[] = [];
    for (const id of ['slow-1', 'slow-2', 'slow-3']) {
      const { token } = await createTenant(service, id);
      const configurationResponse = await service.call('POST', '/registrar/config', { token, json: registrar.login() });
      expect(configurationResponse.status, configurationResponse.text).to.equal(201);
      slowRequests.push(token);
    }
    // Each tenant logs in again once, and all its requests wait for the login.
    registrar.revokeTokens();
    const hangingResponses: ServerResponse[] = [];
    registrar.answers.set('/token', (response) => hangingResponses.push(response));
    let answeredCount = 0;
    const waitingRequests: Promise<unknown>[] = [];
    for (const token of slowRequests) {
      for (let i = 0; i < 6; i++) {
        const json = { body: { credentials: [{ format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid:1'] } }] } };
        const call = service.call('POST', '/registrar/registration-certificate', { token, json });
        waitingRequests.push(call.then(() => answeredCount++));
      }
    }
    await pauseMs(200);
    const startedAt = performance.now();
    for (let i = 0; i < 5; i++) {
      const answer = await service.call('GET', '/issuer/credentials', { token: quietToken });
      expect(answer.status, answer.text).to.equal(200);
    }
    expect(performance.now() - startedAt, 'milliseconds').to.be.below(2_000);
    expect(answeredCount, 'answers of those who wait').to.equal(0);
    expect(hangingResponses.length, 'logins').to.be.above(0);
    registrar.answers.clear();
    for (const response of hangingResponses) response.destroy();
    await Promise.all(waitingRequests);
    expect(answeredCount).to.equal(18);
  });
});
