import { Agent, request } from 'node:http';
import { createServer } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import { HealthBalancer } from '../support/health-balancer.ts';
import { createResource, credentialBody, offerBody } from '../support/populated.ts';
import { createTenant } from '../support/test-service.ts';
import { callerFor, WorkerService } from '../support/worker-service.ts';

const [, postgres] = databases();

for (const workers of ['1', '2']) {
  describe(`rolling restart with WORKERS=${workers}`, () => {
    let database: TestDatabase | undefined;
    let balancer: HealthBalancer | undefined;
    let ports: readonly number[];
    let services: WorkerService[] = [];
    let environment: Readonly<Record<string, string>>;

    before(async function () {
      database = await postgres?.open();
      if (database === undefined) return this.skip();
      environment = { DATABASE_URL: database.url, WORKERS: workers, DRAIN_SECONDS: '1', LOG_LEVEL: 'info' };
      ports = [await freePort(createServer), await freePort(createServer)];
      const [firstService, secondService] = ports.map((port) => WorkerService.startAt(port, environment));
      services = [await (firstService as Promise<WorkerService>), await (secondService as Promise<WorkerService>)];
      balancer = await HealthBalancer.start(ports);
    });
    after(async () => {
      balancer?.close();
      for (const service of services) await service.stop();
      await database?.drop();
    });

    it('interrupts no request, on kept and new connections, and announces how long a connection is served', async () => {
      const { address } = balancer as HealthBalancer;
      const calls = callerFor(address);
      const { token } = await createTenant(calls, 'acme');
      await createResource(calls, token, '/issuer/credentials', credentialBody('pid', 'signing'));
      const body = JSON.stringify(offerBody('pid'));
      const failures: string[] = [];
      let answeredCount = 0;
      // A failed test must stop its load, too.
      const endTime = Date.now() + 60_000;
      let isStopped = false;
      const load = async (agent: Agent | false) => {
        while (!isStopped && Date.now() < endTime) {
          try {
            const status = await sendTokenRequest(`${address}/issuer/offer`, { agent, token, body });
            if (status === 201) answeredCount++;
            else failures.push(String(status));
          } catch (error) {
            failures.push(String((error as { code?: string }).code));
          }
        }
      };
      const agents = Array.from({ length: 3 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
      const loads = [...agents, false as const, false as const, false as const].map(load);
      for (const [index, port] of ports.entries()) {
        const oldService = services[index] as WorkerService;
        await setTimeout(300);
        const answeredBefore = answeredCount;
        oldService.process.kill('SIGTERM');
        await setTimeout(400);
        const directCalls = callerFor(oldService.address);
        const statuses = [];
        for (const path of ['/health/ready', '/health', '/health/live', '/']) statuses.push((await directCalls.call('GET', path)).status);
        expect(statuses, 'while it drains').to.deep.equal([503, 503, 200, 200]);
        expect(await oldService.ended, oldService.errors).to.equal(0);
        expect(answeredCount - answeredBefore).to.be.greaterThan(20);
        services[index] = await WorkerService.startAt(port, environment);
        while ((await callerFor(services[index].address).call('GET', '/health/ready')).status !== 200) await setTimeout(50);
        await setTimeout(200);
      }
      isStopped = true;
      await Promise.all(loads);
      for (const agent of agents) agent.destroy();
      expect(failures).to.deep.equal([]);
    });
  });
}

type TokenRequest = { readonly agent: Agent | false; readonly token: string; readonly body: string };

/** Sends without retries, which would hide interrupted requests. */
function sendTokenRequest(url: string, { agent, token, body }: TokenRequest): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body), Authorization: `Bearer ${token}` };
    const clientRequest = request(url, { method: 'POST', agent, headers }, (response) => {
      response.once('end', () => resolve(response.statusCode ?? 0)).resume();
      response.once('error', reject);
    });
    clientRequest.once('error', reject);
    clientRequest.end(body);
  });
}
