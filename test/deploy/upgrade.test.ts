import { existsSync, globSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { BOTH_DIALECTS } from '../../adapters/persistence/migrations/both-dialects.ts';
import { freePort } from '../demo/process.ts';
import { type DatabaseKind, databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { HealthBalancer } from '../support/health-balancer.ts';
import { IssuingLoad } from '../support/issuing-load.ts';
import { createResource, offerBody } from '../support/populated.ts';
import { issue, present, requestPresentation } from '../support/present.ts';
import { type RunningProgram, runProcess, stopPrograms } from '../support/programs.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import {
  asService,
  createState,
  expectStateUsable,
  presentCredential,
  type ReleaseState,
  readStatus,
  redeemOffer,
  revoke,
} from '../support/release-state.ts';
import { createTenant } from '../support/test-service.ts';
import { type EarlierRelease, Releases, stop } from '../support/upgrade.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** The number of the last migration of the first release. */
const LAST_OF_FIRST = 7;
/** Flows of a load between two steps of a rolling upgrade. */
const FLOWS_PER_STEP = 6;
/** In the log of an earlier release: a statement that a connection prepared before the migration failed (SQLSTATE 0A000), once. */
const STALE_PLAN = '"errorCode":"0A000"';

/** @returns the results of `work`, which is repeated until `start` has finished. */
async function callDuringStart<T>(start: () => Promise<unknown>, work: () => Promise<T>): Promise<readonly T[]> {
  const results: T[] = [];
  let isStarted = false;
  const startup = start().finally(() => {
    isStarted = true;
  });
  while (!isStarted) results.push(await work());
  await startup;
  return results;
}

describe('migrations', () => {
  it('remove nothing that a former release reads, or are listed in docs/reference/compatibility.md', () => {
    const page = readFileSync(new URL('../../docs/reference/compatibility.md', import.meta.url), 'utf8');
    const files = globSync('adapters/persistence/migrations/*/Migration*.ts', { cwd: ROOT });
    const fileMigrations = files.map((file) => [file, readFileSync(`${ROOT}${file}`, 'utf8')] as const);
    const dialectMigrations = Object.entries(BOTH_DIALECTS).map(([migration, statements]) => [migration, statements.join('\n')] as const);
    const laterMigrations = [...fileMigrations, ...dialectMigrations].filter(
      ([migration]) => Number(/Migration0*(\d+)/.exec(migration)?.[1]) > LAST_OF_FIRST,
    );
    expect(laterMigrations.length).to.be.greaterThan(20);
    for (const [migration, text] of laterMigrations) {
      const takesAway = /drop (table|column)|rename (to|column)|alter column \S+ (type|set not null)/i;
      const [name = ''] = /Migration\d+/.exec(migration) ?? [];
      if (takesAway.test(text)) expect(page, migration).to.include(name);
    }
  });
});

for (const kind of databases()) {
  describe(`upgrade from the first release, on ${kind.name}`, suite(kind, 'first'));
  describe(`upgrade from the state of 2026-11-28, on ${kind.name}`, suite(kind, '2026-11-28'));
}

function suite(kind: DatabaseKind, state: EarlierRelease) {
  return function (this: Mocha.Suite) {
    this.timeout(120_000);
    let database: TestDatabase | undefined;
    let releases: Releases;
    let ports: [number, number];
    const machines: Releases[] = [];

    beforeEach(async function () {
      database = await kind.openEmpty();
      if (database === undefined) return this.skip();
      ports = [await freePort(createServer), await freePort(createServer)];
      releases = new Releases(`http://localhost:${ports[0]}`, { DATABASE_URL: database.url });
    });
    afterEach(async () => {
      await stopPrograms();
      for (const machine of machines.splice(0)) machine.remove();
      releases?.remove();
      await database?.drop();
    });

    const prepareState = async (): Promise<ReleaseState> => {
      const earlierService = await releases.start(state, ports[0]);
      const releaseState = await createState(releases.callsTo(ports[0]));
      await stop(earlierService);
      return releaseState;
    };

    it('keeps offers, tokens, requests, revocations and the audit log', async () => {
      const state = await prepareState();
      await releases.start('present', ports[0]);
      await expectStateUsable(releases.callsTo(ports[0]), state);
      const environment = releases.environment(ports[0]);
      const verified = await runProcess('commands/audit-verify', [], environment);
      expect(verified.code, verified.stderr).to.equal(0);
      const examined = await runProcess('commands/doctor', [], environment);
      expect(examined.code, examined.stdout).to.equal(0);
    });

    // The first release does not report that it is unhealthy while it drains.
    if (kind.name === 'postgres' && state !== 'first')
      it('loses no request, credential or revocation in a rolling upgrade under load', async function () {
        this.timeout(300_000);
        const rolling = new Releases(`http://localhost:${ports[0]}`, {
          DATABASE_URL: database?.url ?? '',
          DRAIN_SECONDS: '1',
          RATE_LIMIT_TOKEN: '0',
          RATE_LIMIT_NONCE: '0',
        });
        const old = [await rolling.start(state, ports[0]), await rolling.start(state, ports[1])];
        const balancer = await HealthBalancer.start(ports);
        const calls = rolling.callsTo(Number(new URL(balancer.address).port));
        const { token } = await createState(calls);
        const load = new IssuingLoad(calls, token);
        try {
          await load.waitForFlows(FLOWS_PER_STEP);
          for (const [index, port] of ports.entries()) {
            await stop(old[index] as RunningProgram);
            await load.waitForFlows(FLOWS_PER_STEP);
            await rolling.start('present', port);
            await load.waitForFlows(FLOWS_PER_STEP);
          }
        } finally {
          await load.end();
          balancer.close();
        }
        // Releases up to 0.3.0 do not repeat a statement whose plan became stale: docs/reference/compatibility.md.
        const stalePlans = old.map((program) => program.output().split(STALE_PLAN).length - 1).reduce((sum, count) => sum + count);
        expect(load.failures).to.have.length.at.most(stalePlans, load.failures.join('\n'));
        const newService = rolling.callsTo(ports[1]);
        for (const { credential, isRevoked, uri } of load.issued) {
          expect(await readStatus(newService, credential)).to.equal(isRevoked ? 1 : 0);
          const { body } = await newService.call('GET', `/session/${credential.session}`, { token });
          expect(body.status).to.equal('completed');
          const wallet = new RawWallet(newService, 'acme');
          const repeatedRedemption = await wallet.redeem(await wallet.code(uri).catch(() => ''));
          expect(repeatedRedemption.status, 'the offer once more').to.equal(400);
        }
        const verified = await runProcess('commands/audit-verify', [], rolling.environment(ports[1]));
        expect(verified.code, verified.stdout).to.equal(0);
        rolling.remove();
      });

    if (kind.name === 'postgres' && state === 'first')
      it('loses no request when a migration adds columns to all tables under load', async function () {
        this.timeout(300_000);
        const running = [await releases.start('present', ports[0]), await releases.start('present', ports[1])];
        const balancer = await HealthBalancer.start(ports);
        const calls = releases.callsTo(Number(new URL(balancer.address).port));
        const { token } = await createState(calls);
        const load = new IssuingLoad(calls, token);
        try {
          await load.waitForFlows(2 * FLOWS_PER_STEP);
          await rawSql(database?.url ?? '', async (run) => {
            const tables = await run(`select table_name as name from information_schema.tables where table_schema = 'public'`);
            const additions = tables.map(({ name }) => `alter table "${name}" add "of_the_next_release" int null`);
            await run(['begin', 'lock table "tenants" in access exclusive mode', ...additions, 'commit'].join(';'));
          });
          await load.waitForFlows(2 * FLOWS_PER_STEP);
        } finally {
          await load.end();
          balancer.close();
        }
        expect(load.failures, running.map(({ output }) => output()).join('\n')).to.deep.equal([]);
      });

    /** A process on another machine. */
    const releasesIn = (folder: string) => {
      const machine = new Releases(`http://localhost:${ports[0]}`, {
        DATABASE_URL: database?.url ?? '',
        DATA_FOLDER: join(releases.folder, folder),
      });
      machines.push(machine);
      return machine;
    };

    it('creates the record of the database position at the first start, and requires it at later ones', async () => {
      const state = await prepareState();
      const recorded =
        kind.name === 'sqlite' ? `${database?.url.slice('sqlite:'.length)}-witness` : join(releases.folder, 'one/witness.json');
      // The earlier release had no persistent data folder.
      rmSync(recorded, { force: true });
      const present = await releasesIn('one').start('present', ports[0]);
      await expectStateUsable(releases.callsTo(ports[0]), state);
      await stop(present);
      expect(existsSync(recorded)).to.equal(true);
      await stop(await releasesIn('one').start('present', ports[0]));
      rmSync(recorded);
      const rejectedStart = releasesIn('one').launch('present', ports[0]);
      expect(await rejectedStart.ended).to.equal(1);
      expect(rejectedStart.output()).to.include(`${recorded} has no record`).and.to.include('ACCEPT_REWIND=');
    });

    if (kind.name === 'postgres')
      it('runs both releases side by side, and starts further processes of this release with empty folders', async () => {
        const firstService = await releases.start(state, ports[0]);
        const releaseState = await createState(releases.callsTo(ports[0]));
        const statuses = await callDuringStart(
          () => releasesIn('one').start('present', ports[1]),
          async () => {
            const calls = releases.callsTo(ports[0]);
            return (await calls.call('POST', '/issuer/offer', { token: releaseState.token, json: offerBody('pid') })).status;
          },
        );
        expect(new Set(statuses), 'of the earlier release, while tables are brought up to date').to.have.keys(201);
        expect(statuses.length).to.be.greaterThan(10);
        const [old, newService] = [releases.callsTo(ports[0]), releases.callsTo(ports[1])];
        const { token } = releaseState;
        // A flow starts at one process and ends at the other.
        for (const [source, target] of [
          [old, newService],
          [newService, old],
        ] as const) {
          const offer = await createResource(source, token, '/issuer/offer', offerBody('pid'));
          await redeemOffer(target, offer.uri);
          const credential = await issue(asService(source), { id: 'acme', token }, 'pid');
          const request = await requestPresentation(asService(source), token, 'check');
          expect((await present(asService(target), request, credential)).status).to.equal(200);
          await revoke(target, token, credential);
          expect(await presentCredential(source, token, credential), 'revoked by the other release').to.equal(400);
          expect(await readStatus(source, credential)).to.equal(1);
        }
        await expectStateUsable(newService, releaseState);
        const laterPort = await freePort(createServer);
        await releasesIn('two').start('present', laterPort);
        await stop(firstService);
        const nextOffer = await createResource(releases.callsTo(laterPort), token, '/issuer/offer', offerBody('pid'));
        await redeemOffer(newService, nextOffer.uri);
        const verified = await runProcess('commands/audit-verify', [], releases.environment(ports[1]));
        expect(verified.code, verified.stdout).to.equal(0);
      });

    // What follows is about the first release alone.
    if (state !== 'first') return;

    it('starts with the configuration folder of the first release, and keeps what it does not import', async () => {
      const CONFIG_FOLDER = fileURLToPath(new URL('../fixtures/releases/0.1.0/config', import.meta.url));
      const withFolder = new Releases(`http://localhost:${ports[0]}`, { DATABASE_URL: database?.url ?? '', CONFIG_FOLDER });
      const calls = withFolder.callsTo(ports[0]);
      const credentialTypes = async (tenant: string) => {
        const { body } = await calls.call('GET', `/.well-known/openid-credential-issuer/${tenant}`);
        return Object.keys(body.credential_configurations_supported ?? {}).sort();
      };
      const firstService = await withFolder.start('first', ports[0]);
      const typesBefore = [await credentialTypes('acme'), await credentialTypes('narrow')];
      expect(typesBefore).to.deep.equal([
        ['licence', 'student'],
        ['hooked', 'logo', 'named', 'typed'],
      ]);
      await stop(firstService);
      await withFolder.start('present', ports[0]);
      expect([await credentialTypes('acme'), await credentialTypes('narrow')]).to.deep.equal(typesBefore);
      const list = await calls.call('GET', '/acme/trust-list/issuers');
      expect(list.status).to.equal(200);
      withFolder.remove();
    });

    it('downgrades with data of this release, and upgrades again', async () => {
      const state = await prepareState();
      const present = await releases.start('present', ports[0]);
      const calls = releases.callsTo(ports[0]);
      const { token } = state;
      const issuedCredential = await issue(asService(calls), { id: 'acme', token }, 'pid');
      const openOffer = await createResource(calls, token, '/issuer/offer', offerBody('pid'));
      await createTenant(calls, 'later');
      const kiosk = { clientId: 'kiosk', secret: 'secret-of-the-kiosk-0123456789', roles: ['issuance:offer'] };
      await createResource(calls, token, '/client', kiosk);
      const rotation = await calls.call('POST', '/client/kiosk/rotate-secret?graceSeconds=300', { token });
      await stop(present);

      const formerService = await releases.start('first', ports[0]);
      await expectStateUsable(calls, state);
      expect(await presentCredential(calls, token, issuedCredential), 'a credential of this release').to.equal(200);
      await revoke(calls, token, issuedCredential);
      expect(await readStatus(calls, issuedCredential)).to.equal(1);
      await redeemOffer(calls, openOffer.uri);
      await createTenant(calls, 'meanwhile');
      await calls.token('kiosk', rotation.body.secret);
      const rejectedLogin = await calls.token('kiosk', kiosk.secret).catch((error: Error) => error.message);
      expect(rejectedLogin, 'the former secret, in its time of grace').to.include('401');
      await stop(formerService);

      await releases.start('present', ports[0]);
      expect(await readStatus(calls, issuedCredential)).to.equal(1);
      expect(await presentCredential(calls, token, issuedCredential)).to.equal(400);
      const lastCredential = await issue(asService(calls), { id: 'acme', token }, 'pid');
      expect(await presentCredential(calls, token, lastCredential)).to.equal(200);
      const verified = await runProcess('commands/audit-verify', [], releases.environment(ports[0]));
      expect(verified.code, verified.stdout).to.equal(0);
    });
  };
}
