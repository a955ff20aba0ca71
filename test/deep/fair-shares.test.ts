import { Agent, request, type ServerResponse } from 'node:http';
import { expect } from 'chai';
import { databases, type TestDatabase } from '../support/databases.ts';
import { TestRegistrar } from '../support/registrar.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const FLOOD = 200;
const QUIET = { clients: 4, each: 10 };
const settle = (ms: number) => new Promise((done) => setTimeout(done, ms));

type Tenant = { readonly id: string; readonly token: string };

/** What is asked over and over: answered from the database, and from memory. */
const ASKED = {
  'the administrative interface': ({ token }: Tenant) => ({ path: '/issuer/credentials', headers: { Authorization: `Bearer ${token}` } }),
  'the addresses of wallets': ({ id }: Tenant) => ({ path: `/.well-known/openid-credential-issuer/${id}`, headers: {} }),
};

for (const kind of databases()) {
  describe(`request slots, on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let service: TestService;
    let noisy: Tenant;
    let quiet: Tenant;
    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      service = await startTestService({ DATABASE_URL: database.url });
      noisy = await createTenant(service, 'noisy');
      quiet = await createTenant(service, 'quiet');
      for (const { token } of [noisy, quiet]) {
        const json = { display: [{ name: 'Issuer', locale: 'en' }] };
        await service.call('POST', '/issuer/config', { token, json });
      }
    });
    after(async () => {
      await service?.close();
      await database?.drop();
    });

    /** @returns the status; 0 where the connection ended. */
    function ask(agent: Agent, { path, headers }: { path: string; headers: object }): Promise<number> {
      return new Promise((done) => {
        const { port } = new URL(service.address);
        const options = { host: '127.0.0.1', port, agent, path, headers: { ...headers } };
        const asked = request(options, (answer) => {
          answer.resume();
          answer.on('end', () => done(answer.statusCode ?? 0));
        });
        asked.on('error', () => done(0));
        asked.end();
      });
    }

    /** So many who ask again as soon as they have an answer, until they are stopped. */
    function flood(asked: { path: string; headers: object }) {
      const agent = new Agent({ keepAlive: true, maxSockets: FLOOD });
      const statuses: number[] = [];
      let isOver = false;
      const one = async () => {
        while (!isOver) statuses.push(await ask(agent, asked));
      };
      const all = Promise.all(Array.from({ length: FLOOD }, one));
      const stop = async () => {
        isOver = true;
        await all;
        agent.destroy();
      };
      return { statuses, stop };
    }

    for (const [where, askedBy] of Object.entries(ASKED)) {
      it(`are shared by tenants at ${where}, regardless of how many requests of one tenant wait`, async () => {
        expect(await ask(new Agent(), askedBy(quiet))).to.equal(200);
        const noise = flood(askedBy(noisy));
        while (noise.statuses.length < FLOOD) await settle(5);
        const agent = new Agent({ keepAlive: true, maxSockets: QUIET.clients });
        const before = noise.statuses.length;
        const answers = await Promise.all(
          Array.from({ length: QUIET.clients }, async () => {
            const statuses: number[] = [];
            while (statuses.length < QUIET.each) statuses.push(await ask(agent, askedBy(quiet)));
            return statuses;
          }),
        );
        const meanwhile = noise.statuses.length - before;
        await noise.stop();
        agent.destroy();
        const all = QUIET.clients * QUIET.each;
        expect(answers.flat()).to.deep.equal(new Array(all).fill(200));
        expect(
          noise.statuses.every((status) => status === 200),
          'nobody is refused',
        ).to.equal(true);
        // In the order of arrival, each round of the quiet ones would let the whole flood go first.
        expect(meanwhile, 'answers to the flood meanwhile').to.be.below((QUIET.each * FLOOD) / 2);
        expect(meanwhile, 'and the flood goes on').to.be.above(QUIET.each);
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
    const { token: quiet } = await createTenant(service, 'quiet');
    const slow: string[] = [];
    for (const id of ['slow-1', 'slow-2', 'slow-3']) {
      const { token } = await createTenant(service, id);
      const written = await service.call('POST', '/registrar/config', { token, json: registrar.login() });
      expect(written.status, written.text).to.equal(201);
      slow.push(token);
    }
    // Each tenant logs in once again, and all its requests wait for that.
    registrar.revokeTokens();
    const hanging: ServerResponse[] = [];
    registrar.answers.set('/token', (response) => hanging.push(response));
    let answered = 0;
    const waiting: Promise<unknown>[] = [];
    for (const token of slow) {
      for (let i = 0; i < 6; i++) {
        const json = { body: { credentials: [{ format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid:1'] } }] } };
        const call = service.call('POST', '/registrar/registration-certificate', { token, json });
        waiting.push(call.then(() => answered++));
      }
    }
    await settle(200);
    const begun = performance.now();
    for (let i = 0; i < 5; i++) {
      const answer = await service.call('GET', '/issuer/credentials', { token: quiet });
      expect(answer.status, answer.text).to.equal(200);
    }
    expect(performance.now() - begun, 'milliseconds').to.be.below(2_000);
    expect(answered, 'answers of those who wait').to.equal(0);
    expect(hanging.length, 'logins').to.be.above(0);
    registrar.answers.clear();
    for (const response of hanging) response.destroy();
    await Promise.all(waiting);
    expect(answered).to.equal(18);
  });
});
