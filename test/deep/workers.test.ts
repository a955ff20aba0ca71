import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, type ClientRequest, request } from 'node:http';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { parseEnv } from 'node:util';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { ConfigFolder } from '../support/config-folder.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import { createResource, credentialBody, offerBody } from '../support/populated.ts';
import { callInParallel, countOutcomes } from '../support/raced-services.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { openStream } from '../support/sse.ts';
import { type Callable, createTenant } from '../support/test-service.ts';
import { callerFor, isRunning, NODE_OPTION, WorkerService } from '../support/worker-service.ts';

const [, postgres] = databases();

describe('several workers', () => {
  let database: TestDatabase | undefined;
  let service: WorkerService;
  let token: string;
  let wallet: RawWallet;

  before(async function () {
    database = await postgres?.open();
    if (database === undefined) return this.skip();
    service = await WorkerService.start({ DATABASE_URL: database.url });
    const calls = callerFor(service.address);
    ({ token } = await createTenant(calls, 'acme'));
    await createResource(calls, token, '/issuer/credentials', credentialBody('pid', 'signing'));
    wallet = new RawWallet(calls, 'acme');
  });
  after(async () => {
    await service?.stop();
    await database?.drop();
  });

  const offer = () => createResource(callerFor(service.address), token, '/issuer/offer', offerBody('pid'));

  it('issue, with each step of a wallet over another connection', async () => {
    for (let attempt = 0; attempt < 5; attempt++) {
      const { uri, session } = await offer();
      const answer = await wallet.request(await wallet.accessToken(uri), 'pid');
      expect([answer.status, answer.body?.credentials?.length], answer.text).to.deep.equal([200, 1]);
      const { body } = await callerFor(service.address).call('GET', `/session/${session}`, { token });
      expect(body.status).to.equal('completed');
    }
  });

  it('redeem a code once for any number of simultaneous attempts', async () => {
    for (let attempt = 0; attempt < 3; attempt++) {
      const code = await wallet.code((await offer()).uri);
      const answers = await callInParallel(40, () => new RawWallet(wallet.service, 'acme').redeem(code));
      expect(countOutcomes(answers)).to.deep.equal({ 200: 1, '400 invalid_grant': 39 });
    }
  });

  it('notify a stream of a change by another worker', async () => {
    const { uri, session } = await offer();
    const streams = await callInParallel(2, () => openStream(`${service.address}/session/${session}/events?token=${token}`));
    for (const stream of streams) expect((await stream.next())?.data.status).to.equal('active');
    await wallet.offer(uri);
    for (const stream of streams) expect((await stream.next())?.data.status).to.equal('fetched');
    for (const stream of streams) stream.leave();
  });

  it('are started with the Node options of the service', () => {
    expect(service.workers).to.have.length(2);
    for (const pid of service.workers) expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')).to.include(NODE_OPTION);
  });

  it('write whole lines, also while their output is not read for a while', async () => {
    const linesBefore = service.lines.filter(({ msg }) => msg === 'request').length;
    service.process.stdout?.pause();
    const agent = new Agent({ keepAlive: true, maxSockets: 8 });
    for (let attempt = 0; attempt < 20; attempt++) await callInParallel(100, () => callerFor(service.address, agent).call('GET', '/'));
    agent.destroy();
    service.process.stdout?.resume();
    // The test parses each line.
    await service.line(({ msg }) => msg === 'request', linesBefore + 2_000);
  });

  it('have equal shares of connections; a killed worker loses only its own, and is replaced', async () => {
    const clients: (Callable & { readonly agent: Agent; lost: number })[] = [];
    for (let count = 0; count < 10; count++) {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const client = { ...callerFor(service.address, agent), agent, lost: 0 };
      expect((await client.call('GET', '/health')).status).to.equal(200);
      clients.push(client);
    }
    let isStopped = false;
    const load = clients.map(async (client) => {
      while (!isStopped) {
        const answer = await client.call('GET', '/').catch(() => undefined);
        if (answer?.status !== 200) client.lost++;
      }
    });
    await setTimeout(300);
    const [killedPid] = service.workers;
    if (killedPid === undefined) throw new Error('no worker said that it started');
    process.kill(killedPid, 'SIGKILL');
    const endLine = await service.line(({ msg }) => msg.startsWith('a worker ended'));
    expect(endLine).to.include({ pid: killedPid, signal: 'SIGKILL' });
    const restartLine = await service.line(({ msg }) => msg === 'a worker was restarted');
    await setTimeout(300);
    isStopped = true;
    await Promise.all(load);
    for (const { agent } of clients) agent.destroy();
    expect(clients.map(({ lost: lostCount }) => lostCount).toSorted()).to.deep.equal([0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
    // An idle worker buffers its log line for half a second.
    for (let attempts = 100; attempts > 0 && service.workers.length < 3; attempts--) await setTimeout(50);
    expect(service.workers).to.have.length(3).and.include(restartLine.pid);
    expect(isRunning(killedPid)).to.equal(false);
  });

  it('answer on a connection that was on its way to an ended worker', async () => {
    const [stoppedPid] = service.workers.filter(isRunning);
    if (stoppedPid === undefined) throw new Error('no worker runs');
    // The stopped worker accepts nothing, but gets every other connection.
    process.kill(stoppedPid, 'SIGSTOP');
    const answers = callInParallel(4, () => callerFor(service.address).call('GET', '/'));
    await setTimeout(200);
    process.kill(stoppedPid, 'SIGKILL');
    expect((await answers).map(({ status }) => status)).to.deep.equal([200, 200, 200, 200]);
  });
});

describe('several workers that are stopped', () => {
  let database: TestDatabase | undefined;
  let service: WorkerService;

  before(async function () {
    database = await postgres?.open();
    if (database === undefined) return this.skip();
  });
  beforeEach(async () => {
    service = await WorkerService.start({ DATABASE_URL: database?.url ?? '', LOG_LEVEL: 'info' });
  });
  afterEach(() => {
    service.process.kill('SIGKILL');
  });
  after(() => database?.drop());

  /** Opens a connection without sending a request. */
  const connected = (): Promise<ClientRequest> =>
    new Promise((resolve, reject) => {
      const pendingRequest = request(`${service.address}/health`, { agent: false, method: 'POST' });
      pendingRequest.once('error', reject);
      pendingRequest.once('socket', (socket) => socket.once('connect', () => resolve(pendingRequest)));
    });
  const answerTo = (pendingRequest: ClientRequest): Promise<number> =>
    new Promise((resolve, reject) => {
      pendingRequest.once('response', (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      pendingRequest.once('error', reject);
      if (pendingRequest.destroyed) reject(new Error('cut before anything was sent'));
      pendingRequest.end();
    });

  it('interrupt no request, on kept, new or just opened connections', async () => {
    let signalled = Number.POSITIVE_INFINITY;
    const interrupted: string[] = [];
    let answeredCount = 0;
    /** Calls the service until it accepts no more connections. */
    const load = async (agent: Agent | false) => {
      for (;;) {
        let connectedAt = 0;
        const clientRequest = request(`${service.address}/`, { agent });
        clientRequest.once('socket', (socket) => {
          if (socket.connecting) socket.once('connect', () => (connectedAt = performance.now()));
        });
        try {
          expect(await answerTo(clientRequest)).to.equal(200);
          answeredCount++;
        } catch (error) {
          // Connections after the signal may be refused.
          const isAfterSignal = !clientRequest.reusedSocket && (connectedAt === 0 || connectedAt > signalled);
          if (!isAfterSignal) interrupted.push(`${(error as { code?: string }).code} reused: ${clientRequest.reusedSocket}`);
          if (signalled !== Number.POSITIVE_INFINITY) return;
        }
      }
    };
    const loads = [
      ...Array.from({ length: 4 }, () => load(new Agent({ keepAlive: true, maxSockets: 1 }))),
      ...Array.from({ length: 4 }, () => load(false)),
    ];
    await setTimeout(500);
    // Connections that the kernel has accepted, but no process yet, when the signal comes.
    const { pid: supervisor = 0 } = service.process;
    const allProcesses = [supervisor, ...service.workers];
    for (const pid of allProcesses) process.kill(pid, 'SIGSTOP');
    const earlyConnections = await callInParallel(40, connected);
    signalled = performance.now();
    // The signal goes to all processes, as from a terminal or a service manager.
    for (const pid of allProcesses) process.kill(pid, 'SIGTERM');
    process.kill(supervisor, 'SIGCONT');
    await setTimeout(200);
    for (const pid of service.workers) process.kill(pid, 'SIGCONT');
    const statuses = await Promise.all(earlyConnections.map(answerTo));
    expect(new Set(statuses), 'each has an answer').to.deep.equal(new Set([405]));
    expect(await service.ended, service.errors).to.equal(0);
    await Promise.all(loads);
    expect(interrupted).to.deep.equal([]);
    expect(answeredCount).to.be.greaterThan(50);
    expect(service.lines.filter(({ msg }) => msg === 'stopped')).to.have.length(3);
  });

  it('log which worker drains, stops and has stopped', async () => {
    await service.stop();
    const environment = { DATABASE_URL: database?.url ?? '', DRAIN_SECONDS: '1' };
    const draining = await WorkerService.start(environment);
    expect(await draining.stop()).to.equal(0);
    for (const message of ['draining', 'stopping', 'stopped']) {
      const pids = draining.lines.flatMap(({ msg, pid }) => (msg === message && pid !== undefined ? [pid] : []));
      expect(pids, message).to.have.members(draining.workers);
    }
  });

  it('end at once by a second signal', async () => {
    // Its request has begun, and the service waits for it.
    const openConnection = connect(Number(new URL(service.address).port), '127.0.0.1');
    openConnection.on('error', () => {}).write('GET / HTTP/1.1\r\nHost: ');
    await setTimeout(300);
    const startedAt = performance.now();
    service.process.kill('SIGTERM');
    await setTimeout(300);
    expect(service.process.exitCode).to.equal(null);
    service.process.kill('SIGINT');
    expect(await service.ended).to.equal(1);
    while (service.workers.some(isRunning) && performance.now() - startedAt < 3_000) await setTimeout(20);
    expect(service.workers.filter(isRunning)).to.deep.equal([]);
  });

  it('do not wait for idle connections, and end when their supervisor has ended', async () => {
    const agent = new Agent({ keepAlive: true });
    await callInParallel(6, () => callerFor(service.address, agent).call('GET', '/'));
    const startedAt = performance.now();
    service.process.kill('SIGKILL');
    expect(await service.ended).to.equal('SIGKILL');
    while (service.workers.some(isRunning) && performance.now() - startedAt < 5_000) await setTimeout(20);
    expect(performance.now() - startedAt).to.be.lessThan(5_000);
    expect(service.workers.filter(isRunning)).to.deep.equal([]);
    agent.destroy();
  });
});

describe('start of several workers', () => {
  let database: TestDatabase | undefined;
  let folder: string;
  let tenants: ConfigFolder;
  let servers: Server[];

  beforeEach(async function () {
    database = await postgres?.openEmpty();
    if (database === undefined) return this.skip();
    folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
    tenants = new ConfigFolder();
    servers = [];
  });
  afterEach(async () => {
    if (database === undefined) return;
    await database.drop();
    for (const server of servers) server.close();
    tenants.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Exit code and output of a failed start. */
  const failure = async (environment: Readonly<Record<string, string>>, port?: number) => {
    const service = new WorkerService(port ?? (await freePort(createServer)), environment);
    const code = await service.ended;
    return { code, says: service.errors.trim(), workers: service.workers };
  };

  it('ends with one message, as with a single process, when the database cannot be reached', async () => {
    const port = await freePort(createServer);
    const unreachable = { DATABASE_URL: `postgres://vidimus:secret@127.0.0.1:${port}/vidimus` };
    const { code, says, workers } = await failure(unreachable);
    expect([code, workers]).to.deep.equal([1, []]);
    expect(says)
      .to.match(/^Vidimus could not start: /)
      .and.not.include('secret');
    expect(says).to.equal((await failure({ ...unreachable, WORKERS: '1' })).says);
  });

  it('ends with one message when the settings are invalid, before a worker starts', async () => {
    expect(await failure({ DATABASE_URL: 'sqlite:./a.sqlite', PORT: '' })).to.deep.equal({
      code: 1,
      says:
        'The configuration is not valid:\n  - WORKERS: 2 processes cannot share an SQLite file; ' +
        'set DATABASE_URL to a PostgreSQL (postgres://…), or WORKERS=1',
      workers: [],
    });
  });

  it('ends with one message, and without workers, when the port is in use', async () => {
    const takenPort = await freePort(createServer);
    const server = createServer().listen(takenPort, '127.0.0.1');
    servers.push(server);
    const { code, says } = await failure({ DATABASE_URL: database?.url ?? '' }, takenPort);
    expect([code, says]).to.deep.equal([1, `Vidimus could not start: port ${takenPort} is in use; set PORT to another one`]);
  });

  it('reports that its newly generated secrets are not those of the database, with and without workers', async () => {
    const DATABASE_URL = database?.url ?? '';
    expect(await (await WorkerService.start({ DATABASE_URL })).stop()).to.equal(0);
    const noSettings = { MASTER_SECRET: '', AUTH_CLIENT_ID: '', AUTH_CLIENT_SECRET: '' };
    for (const WORKERS of ['2', '1']) {
      const DATA_FOLDER = join(folder, WORKERS);
      const file = join(DATA_FOLDER, 'secrets.env');
      const start = () => failure({ ...noSettings, DATABASE_URL, DATA_FOLDER, WORKERS });
      const firstStart = await start();
      expect([firstStart.code, firstStart.workers]).to.deep.equal([1, []]);
      expect(firstStart.says).to.include('First start: secrets were generated');
      expect(firstStart.says).to.include('MASTER_SECRET is not the one that sealed this database');
      expect(firstStart.says).to.include(
        `The secrets in ${file} were just generated and are not those of this database. Set MASTER_SECRET to that of ` +
          `the other processes on it, and AUTH_CLIENT_ID, AUTH_CLIENT_SECRET and PUBLIC_URL as well; ${file} may be deleted`,
      );
      const { MASTER_SECRET = '' } = parseEnv(readFileSync(file, 'utf8'));
      expect(MASTER_SECRET, 'no file is deleted').to.have.length(64);
      const repeatedStart = await start();
      expect(repeatedStart.says).to.include(`This start took its MASTER_SECRET from ${file}`).and.not.include('deleted');
      const ownSecretFailure = await failure({ ...noSettings, MASTER_SECRET, DATABASE_URL, DATA_FOLDER, WORKERS });
      expect(ownSecretFailure.says).to.include('MASTER_SECRET is not the one').and.not.include('This start took');
    }
  });

  it('generates secrets and imports tenants once, and every worker has them', async () => {
    tenants.write({ 'acme/tenant.json': { id: 'acme', name: 'Acme', roles: ['clients:manage'] } });
    const noSettings = { MASTER_SECRET: '', AUTH_CLIENT_ID: '', AUTH_CLIENT_SECRET: '' };
    const service = await WorkerService.start({
      ...noSettings,
      DATABASE_URL: database?.url ?? '',
      DATA_FOLDER: folder,
      CONFIG_FOLDER: tenants.path,
    });
    try {
      expect(service.errors.match(/First start: secrets were generated/g)).to.have.length(1);
      const storedSecrets = parseEnv(readFileSync(join(folder, 'secrets.env'), 'utf8'));
      const calls = callerFor(service.address);
      const token = await calls.token(storedSecrets['AUTH_CLIENT_ID'] ?? '', storedSecrets['AUTH_CLIENT_SECRET'] ?? '');
      for (let call = 0; call < 4; call++) {
        const { status, body } = await calls.call('GET', '/tenant', { token });
        expect([status, body.length]).to.deep.equal([200, 1]);
      }
      const importLines = service.lines.filter(({ msg }) => msg.startsWith('configuration folder: tenant imported'));
      expect(importLines).to.have.length(1);
    } finally {
      expect(await service.stop()).to.equal(0);
    }
  });
});
