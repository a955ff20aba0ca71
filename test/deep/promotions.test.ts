import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { databases, type TestDatabase } from '../support/databases.ts';
import { canDump, findToolFolder, rawSql } from '../support/postgres-server.ts';
import { runCommand } from '../support/programs.ts';
import { createRevocableIssuer, issueBatch, parseStatuses, type StatusEntry } from '../support/revocable-cards.ts';
import { Cluster, canMakeClusters, MovingAddress, waitUntil } from '../support/standby.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

const MASTER_SECRET = 'a master secret for the tests 0123456789';

/** Two processes on a primary that has a standby. */
class World {
  readonly folder = mkdtempSync(join(tmpdir(), 'vidimus-promotion-'));
  readonly primary: Cluster;
  readonly standby: Cluster;
  readonly address: MovingAddress;
  one!: TestService;
  other!: TestService;

  constructor(primary: Cluster, standby: Cluster, address: MovingAddress) {
    this.primary = primary;
    this.standby = standby;
    this.address = address;
  }

  /** @param settings of the primary. */
  static async make(settings: Readonly<Record<string, string>> = {}): Promise<World> {
    const primary = await Cluster.make();
    await primary.start();
    await rawSql(primary.urlOf('postgres'), (run) => run('create database vidimus'));
    await primary.stop();
    const standby = await primary.standby();
    await primary.start(settings);
    await standby.start(primary.followed);
    const world = new World(primary, standby, await MovingAddress.to(primary.port));
    world.one = await world.start();
    world.other = await world.start();
    return world;
  }

  get environment(): Record<string, string> {
    const { primary, address, folder } = this;
    const DATABASE_URL = primary.urlOf('vidimus', address.port);
    return { DATABASE_URL, DATA_FOLDER: folder, MASTER_SECRET, DATABASE_TIMEOUT: '5' };
  }

  start(): Promise<TestService> {
    // What one has signed for its clients, the other takes.
    return startTestService({ ...this.environment, JWT_ISSUER: 'https://issuer.example' });
  }

  async end(): Promise<void> {
    for (const service of [this.one, this.other]) await service?.close();
    await this.address.close();
    for (const cluster of [this.standby, this.primary]) await cluster.remove();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const key = ({ listId, idx }: StatusEntry) => `${listId} ${idx}`;

const historyOf = async (service: TestService): Promise<string> => (await service.call('GET', '/health')).body.details.history.status;
const isIssuing = (service: TestService, tenant: Tenant) => () => issueBatch(service, tenant, 1).then(() => true);

type Tenant = { readonly id: string; readonly token: string };

describe('promoted standby', () => {
  before(function () {
    if (!canMakeClusters()) this.skip();
  });

  describe('that lacks the last changes', () => {
    let world: World;
    let tenant: Tenant;
    const issued: StatusEntry[] = [];
    let revoked: { readonly session: string; readonly entries: readonly StatusEntry[] };
    let other: { readonly session: string; readonly entries: readonly StatusEntry[] };

    const revoke = (service: TestService, sessionId: string) =>
      service.call('POST', '/session/revoke', { token: tenant.token, json: { sessionId, status: 1 } });
    const statusOf = async (service: TestService, { listId, idx }: StatusEntry) => {
      const list = await service.call('GET', `/${tenant.id}/status-list/${listId}`);
      return list.status === 200 ? parseStatuses(list)(idx) : list.status;
    };

    before(async () => {
      world = await World.make();
      const { one, other: second, primary, standby, address } = world;
      tenant = await createRevocableIssuer(one, 'acme', 10);
      revoked = await issueBatch(one, tenant);
      other = await issueBatch(second, tenant);
      issued.push(...revoked.entries, ...other.entries);
      expect((await revoke(one, revoked.session)).status).to.equal(201);
      await primary.waitForReplication();
      await standby.stop();
      for (const service of [one, second, one, second]) {
        const lost = await issueBatch(service, tenant);
        issued.push(...lost.entries);
        expect((await revoke(service, lost.session)).status).to.equal(201);
        for (const entry of lost.entries.slice(0, 1)) {
          await waitUntil(async () => (await statusOf(second, entry)) === 1);
          await waitUntil(async () => (await statusOf(one, entry)) === 1);
        }
      }
      await primary.stop('SIGQUIT');
      await standby.start(primary.followed);
      await standby.promote();
      address.moveTo(standby.port);
    });
    after(() => world?.end());

    it('is detected within seconds by running processes, which then issue nothing', async () => {
      for (const service of [world.one, world.other]) {
        await waitUntil(async () => (await historyOf(service)) === 'down');
        const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };
        const { status, text } = await service.call('POST', '/issuer/offer', { token: tenant.token, json });
        expect(status).to.equal(503);
        expect(text, 'the reason is for the log').to.not.include('fence');
      }
    });

    it('keeps the revocations that it has, and accepts new ones', async () => {
      const [first] = revoked.entries;
      const [second] = other.entries;
      if (first === undefined || second === undefined) throw new Error('nothing was issued');
      for (const service of [world.one, world.other]) {
        expect(await statusOf(service, first)).to.equal(1);
        expect(await statusOf(service, second)).to.equal(0);
      }
      // The version of the list was in use before, for what was lost.
      expect((await revoke(world.one, other.session)).status).to.equal(201);
      for (const service of [world.one, world.other]) {
        await waitUntil(async () => (await statusOf(service, second)) === 1);
        expect(await statusOf(service, first)).to.equal(1);
      }
    });

    it('prevents a start', async () => {
      const started = await world.start().catch((error: Error) => error);
      expect(started).to.be.instanceOf(Error);
      expect((started as Error).message).to.include('ACCEPT_REWIND=');
    });

    it('is used after the fence command by processes that were not restarted', async () => {
      const { code, stderr } = await runCommand('commands/restore-fence', [], world.environment);
      expect(code, stderr).to.equal(0);
      for (const service of [world.one, world.other]) {
        await waitUntil(isIssuing(service, tenant));
        expect(await historyOf(service)).to.equal('up');
        for (let i = 0; i < 15; i++) issued.push(...(await issueBatch(service, tenant)).entries);
      }
      expect(new Set(issued.map(key)).size).to.equal(issued.length);
    });
  });

  describe('that is synchronous', () => {
    let world: World;
    after(() => world?.end());

    it('continues without an operator, and no answered value is lost or issued again', async () => {
      world = await World.make({ synchronous_standby_names: '*' });
      const { one, other, primary, standby, address } = world;
      const tenant = await createRevocableIssuer(one, 'acme', 10);
      const issued: StatusEntry[] = [];
      const sessions: string[] = [];
      let isOver = false;
      const buyer = async (service: TestService) => {
        while (!isOver) {
          const made = await issueBatch(service, tenant, 2).catch(() => pause(20));
          if (made === undefined) continue;
          issued.push(...made.entries);
          sessions.push(made.session);
        }
      };
      const buyers = [one, other, one, other].map(buyer);
      await pause(1_500);
      await primary.stop('SIGQUIT');
      const before = sessions.length;
      await standby.promote();
      address.moveTo(standby.port);
      for (const service of [one, other]) await waitUntil(isIssuing(service, tenant));
      await pause(1_000);
      isOver = true;
      await Promise.all(buyers);
      expect(before).to.be.above(20);
      expect(sessions.length).to.be.above(before);
      expect(new Set(issued.map(key)).size).to.equal(issued.length);
      for (const session of sessions) {
        const { status } = await one.call('GET', `/session/${session}`, { token: tenant.token });
        expect(status, session).to.equal(200);
      }
      for (const service of [one, other]) expect(await historyOf(service)).to.equal('up');
      const terms = await rawSql(standby.urlOf('vidimus'), (run) => run('select how, lost_at from service_terms order by number'));
      expect(terms).to.deep.equal([
        { how: 'begun', lost_at: null },
        { how: 'promoted', lost_at: null },
      ]);
      const started = await world.start();
      await started.close();
    });
  });
});

describe('PostgreSQL dump that is restored in another cluster', () => {
  const postgres = databases().find(({ name }) => name === 'postgres');
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-dump-'));
  const file = join(folder, 'vidimus.dump');
  let database: TestDatabase | undefined;
  let cluster: Cluster | undefined;
  let tenant: { readonly id: string; readonly token: string };
  let url = '';
  const issued: StatusEntry[] = [];

  const environment = (more: Record<string, string> = {}) => ({
    DATABASE_URL: database?.url ?? '',
    DATA_FOLDER: join(folder, 'data'),
    JWT_ISSUER: 'https://issuer.example',
    MASTER_SECRET,
    ...more,
  });
  const start = (more: Record<string, string> = {}): Promise<TestService> => startTestService(environment(more));
  const refusal = async (more: Record<string, string>) => {
    const service = await start(more).catch((error: Error) => error);
    if (service instanceof Error) return service.message;
    await service.close();
    return '';
  };

  before(async function () {
    database = await postgres?.open();
    if (database === undefined || !canMakeClusters() || !(await canDump(database.url))) return this.skip();
    const service = await start();
    tenant = await createRevocableIssuer(service, 'acme', 10);
    issued.push(...(await issueBatch(service, tenant)).entries);
    execFileSync(join(findToolFolder(), 'pg_dump'), ['-Fc', '-f', file, database.url], { stdio: 'pipe' });
    for (let i = 0; i < 3; i++) issued.push(...(await issueBatch(service, tenant)).entries);
    await service.close();
    cluster = await Cluster.make();
    await cluster.start();
    await rawSql(cluster.urlOf('postgres'), (run) => run('create database vidimus'));
    url = cluster.urlOf('vidimus');
    execFileSync(join(findToolFolder(), 'pg_restore'), ['--no-owner', '-d', url, file], { stdio: 'pipe' });
  });
  after(async () => {
    await cluster?.remove();
    await database?.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('is not served, with or without a process that used the former database', async () => {
    const elsewhere = { DATABASE_URL: url, DATA_FOLDER: join(folder, 'elsewhere') };
    expect(await refusal(elsewhere))
      .to.include('is at another place')
      .and.to.include('ACCEPT_REWIND=');
    expect(await refusal({ DATABASE_URL: url }))
      .to.include('went back in time')
      .and.to.include('ACCEPT_REWIND=');
    expect(await refusal(elsewhere), 'the start before has told the database').to.include('a process detected');
  });

  it('is served after the fence command', async () => {
    const { code, stderr } = await runCommand('commands/restore-fence', [], environment({ DATABASE_URL: url }));
    expect(code, stderr).to.equal(0);
    const service = await start({ DATABASE_URL: url });
    try {
      for (let i = 0; i < 5; i++) issued.push(...(await issueBatch(service, tenant)).entries);
      const names = issued.map(({ listId, idx }) => `${listId} ${idx}`);
      expect(new Set(names).size).to.equal(names.length);
    } finally {
      await service.close();
    }
    expect(await refusal({ DATABASE_URL: url })).to.equal('');
  });
});
