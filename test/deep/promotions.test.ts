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

/** Two processes on a primary with a standby. */
class PromotionSetup {
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

  /** @param settings settings of the primary. */
  static async make(settings: Readonly<Record<string, string>> = {}): Promise<PromotionSetup> {
    const primary = await Cluster.make();
    await primary.start();
    await rawSql(primary.urlOf('postgres'), (run) => run('create database vidimus'));
    await primary.stop();
    const standby = await primary.standby();
    await primary.start(settings);
    await standby.start(primary.followed);
    const setup = new PromotionSetup(primary, standby, await MovingAddress.to(primary.port));
    setup.one = await setup.start();
    setup.other = await setup.start();
    return setup;
  }

  get environment(): Record<string, string> {
    const { primary, address, folder } = this;
    const DATABASE_URL = primary.urlOf('vidimus', address.port);
    return { DATABASE_URL, DATA_FOLDER: folder, MASTER_SECRET, DATABASE_TIMEOUT: '5' };
  }

  start(): Promise<TestService> {
    // Each process accepts tokens that the other signed.
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

const readHistoryHealth = async (service: TestService): Promise<string> =>
  (await service.call('GET', '/health')).body.details.history.status;
const isIssuing = (service: TestService, tenant: Tenant) => () => issueBatch(service, tenant, 1).then(() => true);

type Tenant = { readonly id: string; readonly token: string };

describe('promoted standby', () => {
  before(function () {
    if (!canMakeClusters()) this.skip();
  });

  describe('that lacks the last changes', () => {
    let setup: PromotionSetup;
    let tenant: Tenant;
    const issued: StatusEntry[] = [];
    let revokedSession: { readonly session: string; readonly entries: readonly StatusEntry[] };
    let unrevokedSession: { readonly session: string; readonly entries: readonly StatusEntry[] };

    const revoke = (service: TestService, sessionId: string) =>
      service.call('POST', '/session/revoke', { token: tenant.token, json: { sessionId, status: 1 } });
    const readStatus = async (service: TestService, { listId, idx }: StatusEntry) => {
      const list = await service.call('GET', `/${tenant.id}/status-list/${listId}`);
      return list.status === 200 ? parseStatuses(list)(idx) : list.status;
    };

    before(async () => {
      setup = await PromotionSetup.make();
      const { one, other: secondService, primary, standby, address } = setup;
      tenant = await createRevocableIssuer(one, 'acme', 10);
      revokedSession = await issueBatch(one, tenant);
      unrevokedSession = await issueBatch(secondService, tenant);
      issued.push(...revokedSession.entries, ...unrevokedSession.entries);
      expect((await revoke(one, revokedSession.session)).status).to.equal(201);
      await primary.waitForReplication();
      await standby.stop();
      for (const service of [one, secondService, one, secondService]) {
        const lostEntries = await issueBatch(service, tenant);
        issued.push(...lostEntries.entries);
        expect((await revoke(service, lostEntries.session)).status).to.equal(201);
        for (const entry of lostEntries.entries.slice(0, 1)) {
          await waitUntil(async () => (await readStatus(secondService, entry)) === 1);
          await waitUntil(async () => (await readStatus(one, entry)) === 1);
        }
      }
      await primary.stop('SIGQUIT');
      await standby.start(primary.followed);
      await standby.promote();
      address.moveTo(standby.port);
    });
    after(() => setup?.end());

    it('is detected within seconds by running processes, which then issue nothing', async () => {
      for (const service of [setup.one, setup.other]) {
        await waitUntil(async () => (await readHistoryHealth(service)) === 'down');
        const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };
        const { status, text } = await service.call('POST', '/issuer/offer', { token: tenant.token, json });
        expect(status).to.equal(503);
        expect(text, 'the reason is for the log').to.not.include('fence');
      }
    });

    it('keeps the revocations that it has, and accepts new ones', async () => {
      const [firstEntry] = revokedSession.entries;
      const [secondEntry] = unrevokedSession.entries;
      if (firstEntry === undefined || secondEntry === undefined) throw new Error('no credential was issued');
      for (const service of [setup.one, setup.other]) {
        expect(await readStatus(service, firstEntry)).to.equal(1);
        expect(await readStatus(service, secondEntry)).to.equal(0);
      }
      // This version of the list was already used by a lost change.
      expect((await revoke(setup.one, unrevokedSession.session)).status).to.equal(201);
      for (const service of [setup.one, setup.other]) {
        await waitUntil(async () => (await readStatus(service, secondEntry)) === 1);
        expect(await readStatus(service, firstEntry)).to.equal(1);
      }
    });

    it('prevents a start', async () => {
      const startError = await setup.start().catch((error: Error) => error);
      expect(startError).to.be.instanceOf(Error);
      expect((startError as Error).message).to.include('ACCEPT_REWIND=');
    });

    it('is used after the fence command by processes that were not restarted', async () => {
      const { code, stderr } = await runCommand('commands/restore-fence', [], setup.environment);
      expect(code, stderr).to.equal(0);
      for (const service of [setup.one, setup.other]) {
        await waitUntil(isIssuing(service, tenant));
        expect(await readHistoryHealth(service)).to.equal('up');
        for (let i = 0; i < 15; i++) issued.push(...(await issueBatch(service, tenant)).entries);
      }
      expect(new Set(issued.map(key)).size).to.equal(issued.length);
    });
  });

  describe('that is synchronous', () => {
    let setup: PromotionSetup;
    after(() => setup?.end());

    it('continues without an operator, and no answered value is lost or issued again', async () => {
      setup = await PromotionSetup.make({ synchronous_standby_names: '*' });
      const { one, other: unrevokedSession, primary, standby, address } = setup;
      const tenant = await createRevocableIssuer(one, 'acme', 10);
      const issued: StatusEntry[] = [];
      const sessions: string[] = [];
      let isStopped = false;
      const buyer = async (service: TestService) => {
        while (!isStopped) {
          const batch = await issueBatch(service, tenant, 2).catch(() => pause(20));
          if (batch === undefined) continue;
          issued.push(...batch.entries);
          sessions.push(batch.session);
        }
      };
      const buyers = [one, unrevokedSession, one, unrevokedSession].map(buyer);
      await pause(1_500);
      await primary.stop('SIGQUIT');
      const sessionsBefore = sessions.length;
      await standby.promote();
      address.moveTo(standby.port);
      for (const service of [one, unrevokedSession]) await waitUntil(isIssuing(service, tenant));
      await pause(1_000);
      isStopped = true;
      await Promise.all(buyers);
      expect(sessionsBefore).to.be.above(20);
      expect(sessions.length).to.be.above(sessionsBefore);
      expect(new Set(issued.map(key)).size).to.equal(issued.length);
      for (const session of sessions) {
        const { status } = await one.call('GET', `/session/${session}`, { token: tenant.token });
        expect(status, session).to.equal(200);
      }
      for (const service of [one, unrevokedSession]) expect(await readHistoryHealth(service)).to.equal('up');
      const terms = await rawSql(standby.urlOf('vidimus'), (run) => run('select how, lost_at from service_terms order by number'));
      expect(terms).to.deep.equal([
        { how: 'begun', lost_at: null },
        { how: 'promoted', lost_at: null },
      ]);
      const startError = await setup.start();
      await startError.close();
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

  const environment = (extraSettings: Record<string, string> = {}) => ({
    DATABASE_URL: database?.url ?? '',
    DATA_FOLDER: join(folder, 'data'),
    JWT_ISSUER: 'https://issuer.example',
    MASTER_SECRET,
    ...extraSettings,
  });
  const start = (extraSettings: Record<string, string> = {}): Promise<TestService> => startTestService(environment(extraSettings));
  const refusal = async (extraSettings: Record<string, string>) => {
    const service = await start(extraSettings).catch((error: Error) => error);
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
    const otherFolder = { DATABASE_URL: url, DATA_FOLDER: join(folder, 'elsewhere') };
    expect(await refusal(otherFolder))
      .to.include('is at another place')
      .and.to.include('ACCEPT_REWIND=');
    expect(await refusal({ DATABASE_URL: url }))
      .to.include('went back in time')
      .and.to.include('ACCEPT_REWIND=');
    expect(await refusal(otherFolder), 'the previous start registered in the database').to.include('a process detected');
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
