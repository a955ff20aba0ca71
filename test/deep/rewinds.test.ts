import { copyFileSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import timers, { setTimeout } from 'node:timers/promises';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { type DatabaseKind, databases, type TestDatabase } from '../support/databases.ts';
import { rawSql } from '../support/postgres-server.ts';
import { decode } from '../support/present.ts';
import { runCommand } from '../support/programs.ts';
import { keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { CARD, createRevocableIssuer, issueBatch, offer, type StatusEntry } from '../support/revocable-cards.ts';
import { waitUntil } from '../support/standby.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

const MASTER_SECRET = 'a master secret for the tests 0123456789';
const REFUSED = /went back in time|at another place|differs from the one that this machine/;

/** A service whose database can be restored from a backup. */
class RewindSetup {
  readonly kind: DatabaseKind;
  readonly folder = mkdtempSync(join(tmpdir(), 'vidimus-rewind-'));
  readonly port: number;
  database: TestDatabase;
  readonly #all: TestDatabase[] = [];

  constructor(kind: DatabaseKind, database: TestDatabase, port: number) {
    this.kind = kind;
    this.database = database;
    this.port = port;
    this.#all.push(database);
  }

  get environment(): Record<string, string> {
    const { folder: DATA_FOLDER, database, port } = this;
    return { DATA_FOLDER, DATABASE_URL: database.url, PORT: String(port), MASTER_SECRET };
  }

  start(extraSettings: Record<string, string> = {}): Promise<TestService> {
    return startTestService({ ...this.environment, ...extraSettings });
  }

  /** No connection to it may be open. */
  async backUp(): Promise<TestDatabase> {
    const backup = await this.kind.backUp(this.database);
    this.#all.push(backup);
    return backup;
  }

  /** Restores as an operator does: replaces the SQLite file, or restores the dump into another database. */
  async restore(backup: TestDatabase): Promise<void> {
    if (this.kind.name === 'sqlite') {
      const file = this.database.url.slice('sqlite:'.length);
      for (const path of [file, `${file}-wal`, `${file}-shm`]) rmSync(path, { force: true });
      copyFileSync(backup.url.slice('sqlite:'.length), file);
    } else {
      this.database = await this.kind.backUp(backup);
      this.#all.push(this.database);
    }
  }

  fence(...args: string[]) {
    return runCommand('commands/restore-fence', args, this.environment);
  }

  /** The audit log anchor that an operator stores elsewhere. */
  async anchor(): Promise<string> {
    const { stdout } = await runCommand('commands/audit-verify', [], this.environment);
    return stdout.trim().split('\n').join(',');
  }

  /** @returns the error of a start. */
  async refusal(extraSettings: Record<string, string> = {}): Promise<string> {
    const service = await this.start(extraSettings).catch((error: Error) => error);
    if (service instanceof Error) return service.message;
    await service.close();
    return '';
  }

  /** The error of a start without other processes, which skips the wait of thirty seconds for their answers. */
  async refusalOfSingleProcess(extraSettings: Record<string, string> = {}): Promise<string> {
    const { setTimeout: pause } = timers;
    timers.setTimeout = ((_milliseconds, value) => pause(1, value)) as typeof pause;
    syncBuiltinESMExports();
    try {
      return await this.refusal(extraSettings);
    } finally {
      timers.setTimeout = pause;
      syncBuiltinESMExports();
    }
  }

  async end(): Promise<void> {
    for (const database of this.#all) await database.drop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const positionOf = (message: string) => /ACCEPT_REWIND=(\S+)/.exec(message)?.[1] ?? '';
const sequenceNumberOf = (jwt: string) => decode(jwt).payload['LoTE'].ListAndSchemeInformation.LoTESequenceNumber;

for (const kind of databases()) {
  describe(`restored backup of ${kind.name}`, () => {
    let setup: RewindSetup;
    let tenant: { readonly id: string; readonly token: string };
    let backup: TestDatabase;
    let redeemedCode: string;
    let openOffer: string;
    let nonce: string;
    let lostSession: { readonly session: string; readonly entries: readonly StatusEntry[] };
    const issuedEntries: StatusEntry[] = [];
    let lastNumber = 0;
    /** A wallet that has an access token at the time of the backup. */
    let formerWallet: RawWallet;
    let formerToken: string;
    /** A wallet that was authorized after the backup, for an earlier completed offer. */
    let lateToken: string;
    /** The audit log anchors at the time of the backup and at the end. */
    let auditAnchor = '';
    let anchor = '';

    const list = (service: TestService, method: string, name: string, id = 'own') =>
      service.call(method, method === 'POST' ? '/trust-list' : `/trust-list/${id}`, {
        token: tenant.token,
        json: {
          ...(method === 'POST' && { id }),
          entities: [
            {
              type: 'internal',
              issuerKeyChainId: 'signing',
              revocationKeyChainId: 'status-list',
              info: { name, country: 'DE', streetAddress: 'Weg 1' },
            },
          ],
        },
      });
    const published = async (service: TestService, id = 'own') =>
      sequenceNumberOf((await service.call('GET', `/${tenant.id}/trust-list/${id}`)).text);
    const wallet = (service: TestService) => new RawWallet(service, tenant.id);
    const authorized = async (holderWallet: RawWallet, uri: string): Promise<string> => {
      const code = await holderWallet.authorize(await holderWallet.push(uri, CARD.id));
      return (await holderWallet.redeemCode(code)).body.access_token;
    };

    before(async function (this: Mocha.Context) {
      const database = await kind.open();
      if (database === undefined) return this.skip();
      setup = new RewindSetup(kind, database, await freePort(createServer));
      let service = await setup.start();
      tenant = await createRevocableIssuer(service, 'acme', 10);
      for (let i = 0; i < 3; i++) issuedEntries.push(...(await issueBatch(service, tenant)).entries);
      formerWallet = wallet(service);
      formerToken = await formerWallet.accessToken((await offer(service, tenant)).uri);
      const sharedOffer = await offer(service, tenant, 'authorization_code');
      const firstCredential = await formerWallet.request(await authorized(formerWallet, sharedOffer.uri), CARD.id);
      expect(firstCredential.status, firstCredential.text).to.equal(200);
      redeemedCode = await wallet(service).code((await offer(service, tenant)).uri);
      openOffer = await wallet(service).code((await offer(service, tenant)).uri);
      expect((await list(service, 'POST', 'first')).status).to.equal(201);
      await service.close();
      auditAnchor = await setup.anchor();
      backup = await setup.backUp();
      service = await setup.start();
      // Changes after the backup.
      for (let i = 0; i < 14; i++) issuedEntries.push(...(await issueBatch(service, tenant)).entries);
      lostSession = await issueBatch(service, tenant);
      issuedEntries.push(...lostSession.entries);
      expect((await wallet(service).redeem(redeemedCode)).status).to.equal(200);
      for (const name of ['second', 'third']) expect((await list(service, 'PUT', name)).status).to.equal(200);
      expect((await list(service, 'POST', 'first', 'forgotten')).status).to.equal(201);
      lastNumber = await published(service);
      expect(lastNumber).to.equal(3);
      nonce = await wallet(service).nonce();
      lateToken = await authorized(formerWallet, sharedOffer.uri);
      // Tokens contain whole seconds only.
      await setTimeout(1_000);
      await service.close();
      anchor = await setup.anchor();
      await setup.restore(backup);
    });
    after(() => setup?.end());

    it('is not served', async () => {
      const message = await setup.refusal();
      expect(message).to.match(REFUSED).and.to.include('npx vidimus restore fence').and.to.include('restore:fence');
      expect(positionOf(message)).to.match(/^\d+\.\d+$/);
      expect(await setup.refusal(), 'again').to.equal(message);
      expect(await setup.refusal({ ACCEPT_REWIND: '1.1' }), 'of another rewind').to.equal(message);
    });

    it('is not served without a witness either, when the audit log is compared with a stored anchor', async () => {
      const otherFolder = { DATA_FOLDER: join(setup.folder, 'elsewhere') };
      const witness = kind.name === 'sqlite' ? `${setup.database.url.slice('sqlite:'.length)}-witness` : undefined;
      if (witness !== undefined) renameSync(witness, `${witness}-away`);
      try {
        const message = await setup.refusal({ ...otherFolder, EXPECT_AUDIT_LOG: anchor });
        expect(message).to.include('EXPECT_AUDIT_LOG').and.to.include('restore:fence');
        const startError = await setup.refusal({ ...otherFolder, EXPECT_AUDIT_LOG: auditAnchor });
        expect(startError, 'what it has').to.not.include('EXPECT_AUDIT_LOG');
        expect(startError, 'the database has moved').to.match(REFUSED);
      } finally {
        if (witness !== undefined) renameSync(`${witness}-away`, witness);
      }
    });

    it('is fenced once', async () => {
      const { code, stdout, stderr } = await setup.fence();
      expect([code, stdout], stderr).to.deep.equal([
        0,
        'Values that were issued before are no longer valid. The service can be started.\n',
      ]);
      expect(stderr)
        .to.match(/status lists filled up: 1\n/)
        .and.to.match(/codes and refresh tokens ended: [1-9]/);
      expect((await setup.fence()).code, 'again').to.equal(3);
    });

    it('issues nothing a second time after the fence', async () => {
      const service = await setup.start();
      try {
        const laterEntries: StatusEntry[] = [];
        for (let i = 0; i < 30; i++) laterEntries.push(...(await issueBatch(service, tenant)).entries);
        expect(laterEntries).to.have.length(300);
        const allEntries = [...issuedEntries, ...laterEntries].map(({ listId, idx }) => `${listId} ${idx}`);
        expect(new Set(allEntries).size).to.equal(allEntries.length);
        for (const code of [redeemedCode, openOffer]) {
          const { status, body } = await wallet(service).redeem(code);
          expect([status, body.error]).to.deep.equal([400, 'invalid_grant']);
        }
        for (const token of [formerToken, lateToken]) {
          const lateResponse = await formerWallet.request(token, CARD.id, { key: newKey() });
          expect([lateResponse.status, lateResponse.body.error]).to.deep.equal([401, 'invalid_token']);
        }
        expect((await list(service, 'PUT', 'other')).status).to.equal(200);
        expect(await published(service)).to.be.above(lastNumber);
        expect((await list(service, 'POST', 'another', 'forgotten')).status).to.equal(201);
        expect(await published(service, 'forgotten'), 'of a list that the backup does not know').to.be.above(1);
        const entry = (await service.call('GET', '/audit-log', { token: await service.rootToken() })).body;
        expect(JSON.stringify(entry)).to.include('"fenced"');
      } finally {
        await service.close();
      }
    });

    it('rejects earlier nonces', async () => {
      const service = await setup.start();
      try {
        const newWallet = wallet(service);
        const token = await newWallet.accessToken((await offer(service, tenant)).uri);
        const proofBody = (nonce: string) => ({
          credential_configuration_id: CARD.id,
          proofs: { jwt: [keyProof(newKey(), newWallet.issuer, nonce)] },
        });
        const staleResponse = await newWallet.request(token, CARD.id, { body: proofBody(nonce) });
        expect([staleResponse.status, staleResponse.body.error]).to.deep.equal([400, 'invalid_nonce']);
        const freshResponse = await newWallet.request(token, CARD.id, { body: proofBody(await newWallet.nonce()) });
        expect(freshResponse.status, freshResponse.text).to.equal(200);
      } finally {
        await service.close();
      }
    });

    it('is served when an operator accepts it, and the same setting does not accept another rewind', async () => {
      await setup.restore(backup);
      const message = await setup.refusal();
      const ACCEPT_REWIND = positionOf(message);
      expect(await setup.refusal({ ACCEPT_REWIND })).to.equal('');
      expect(await setup.refusal(), 'from then on without').to.equal('');
      const service = await setup.start();
      await issueBatch(service, tenant);
      await service.close();
      await setup.restore(backup);
      expect(await setup.refusal({ ACCEPT_REWIND })).to.match(REFUSED);
    });

    it('is fenced at any time with --force', async () => {
      await setup.fence();
      expect((await setup.fence('--force')).code).to.equal(0);
      expect(await setup.refusal()).to.equal('');
    });
  });
}

describe('SQLite database file', () => {
  const sqlite = databases().find(({ name }) => name === 'sqlite');
  let setup: RewindSetup;
  beforeEach(async () => {
    const database = await sqlite?.open();
    if (sqlite === undefined || database === undefined) throw new Error('SQLite is always there');
    setup = new RewindSetup(sqlite, database, await freePort(createServer));
  });
  afterEach(() => setup.end());

  it('that is replaced under its name is not used any more', async () => {
    const service = await setup.start();
    const tenant = await createRevocableIssuer(service, 'acme', 1);
    const { entries } = await issueBatch(service, tenant, 1);
    await service.close();
    const backup = await setup.backUp();
    const runningService = await setup.start();
    try {
      await issueBatch(runningService, tenant, 1);
      await setup.restore(backup);
      await waitUntil(async () => {
        const { body } = await runningService.call('GET', '/health');
        return body.details.history.status === 'down';
      });
      const rejection = await issueBatch(runningService, tenant, 1).catch((error: Error) => error.message);
      expect(rejection).to.match(/^offer: 503/);
      // Reads continue, so processes stay ready.
      expect((await runningService.call('GET', '/health/ready')).status).to.equal(200);
      const [entry] = entries;
      expect((await runningService.call('GET', `/acme/status-list/${entry?.listId}`)).status).to.equal(200);
    } finally {
      await runningService.close();
    }
    expect(await setup.refusal()).to.match(REFUSED);
  });

  it('that is new and replaces another one is accepted only by an operator', async () => {
    await (await setup.start()).close();
    const file = setup.database.url.slice('sqlite:'.length);
    rmSync(file);
    const message = await setup.refusal();
    expect(message).to.include('differs from the one that this machine has seen');
    expect(await setup.refusal({ ACCEPT_REWIND: positionOf(message) })).to.equal('');
    expect(await setup.refusal()).to.equal('');
  });

  it('that moves with its witness continues', async () => {
    const service = await setup.start();
    const tenant = await createRevocableIssuer(service, 'acme', 1);
    await service.close();
    const oldPath = setup.database.url.slice('sqlite:'.length);
    const newPath = join(setup.folder, 'moved.sqlite');
    for (const end of ['', '-witness']) copyFileSync(`${oldPath}${end}`, `${newPath}${end}`);
    const movedService = await setup.start({ DATABASE_URL: `sqlite:${newPath}` });
    try {
      await waitUntil(() => issueBatch(movedService, tenant, 1).then(() => true));
    } finally {
      await movedService.close();
    }
  });
});

/** Restores the contents of a database in place, as a disk snapshot does. */
class DiskSnapshot {
  readonly #database: TestDatabase;
  readonly #file: string | undefined;

  private constructor(database: TestDatabase) {
    const { url } = database;
    this.#database = database;
    this.#file = url.startsWith('sqlite:') ? url.slice('sqlite:'.length) : undefined;
  }

  static async of(database: TestDatabase): Promise<DiskSnapshot> {
    const snapshot = new DiskSnapshot(database);
    if (snapshot.#file !== undefined) copyFileSync(snapshot.#file, `${snapshot.#file}-snapshot`);
    else await snapshot.#forEachTable('create table snapshot.%1$I as table public.%1$I', 'create schema snapshot');
    return snapshot;
  }

  /** Replaces the snapshot by the current contents. */
  async renew(): Promise<void> {
    if (this.#file !== undefined) copyFileSync(this.#file, `${this.#file}-snapshot`);
    else await this.#forEachTable('drop table snapshot.%1$I; create table snapshot.%1$I as table public.%1$I', 'select 1');
  }

  async restoreContents(): Promise<void> {
    if (this.#file === undefined)
      return this.#forEachTable(
        'truncate public.%1$I; insert into public.%1$I table snapshot.%1$I',
        'set session_replication_role = replica',
      );
    for (const end of ['-wal', '-shm']) rmSync(this.#file + end, { force: true });
    writeFileSync(this.#file, readFileSync(`${this.#file}-snapshot`));
  }

  async #forEachTable(statement: string, firstStatement: string): Promise<void> {
    await rawSql(this.#database.url, async (run) => {
      await run(firstStatement);
      await run(`do $$ declare name text; begin
        for name in select tablename from pg_tables where schemaname = 'public' loop
          execute format('${statement}', name);
        end loop;
      end $$`);
    });
  }
}

for (const kind of databases()) {
  describe(`database on ${kind.name} that is restored in place`, () => {
    let setup: RewindSetup;
    let tenant: { readonly id: string; readonly token: string };
    let code: string;
    let snapshot: DiskSnapshot;
    const witness = () =>
      kind.name === 'sqlite' ? `${setup.database.url.slice('sqlite:'.length)}-witness` : join(setup.folder, 'witness.json');
    const redeem = (service: TestService) => new RawWallet(service, tenant.id).redeem(code);

    beforeEach(async function (this: Mocha.Context) {
      const database = await kind.open();
      if (database === undefined) return this.skip();
      setup = new RewindSetup(kind, database, await freePort(createServer));
      const service = await setup.start();
      tenant = await createRevocableIssuer(service, 'acme', 10);
      code = await new RawWallet(service, tenant.id).code((await offer(service, tenant)).uri);
      await service.close();
      snapshot = await DiskSnapshot.of(setup.database);
    });
    afterEach(() => setup?.end());

    /** The code was redeemed, but the restored database does not contain that. */
    const restore = async () => {
      const service = await setup.start();
      expect((await redeem(service)).status).to.equal(200);
      await service.close();
      await snapshot.restoreContents();
    };

    it('is rejected with instructions when DATA_FOLDER is empty, and a used code stays unusable after the fence', async () => {
      await restore();
      rmSync(witness());
      const message = await setup.refusalOfSingleProcess();
      expect(message)
        .to.include(`${witness()} has no record`)
        .and.to.include('Mount the volume')
        .and.to.include('npx vidimus restore fence')
        .and.to.match(/ACCEPT_REWIND=\d+\.\d+/);
      expect(existsSync(witness()), 'a rejected start leaves no record').to.equal(false);
      // SQLite has no other processes to wait for.
      const { code: exitCode, stderr } = await setup.fence(...(kind.name === 'sqlite' ? [] : ['--force']));
      expect(exitCode, stderr).to.equal(0);
      expect((await setup.fence()).code, 'again').to.equal(3);
      // The fence command may run in a separate container.
      rmSync(witness());
      const service = await setup.start();
      try {
        const { status, body } = await redeem(service);
        expect([status, body.error]).to.deep.equal([400, 'invalid_grant']);
      } finally {
        await service.close();
      }
    });

    it('is rejected when the record has a later position', async () => {
      await restore();
      expect(await setup.refusal()).to.include('went back in time');
    });

    it('is rejected when the record is older than the backup, as in an old copy of the folder', async function () {
      // The record of another process is tested below.
      if (kind.name === 'postgres') this.skip();
      const formerWitness = `${witness()}-former`;
      copyFileSync(witness(), formerWitness);
      const service = await setup.start();
      await issueBatch(service, tenant);
      await service.close();
      await snapshot.renew();
      await restore();
      renameSync(formerWitness, witness());
      const message = await setup.refusal();
      expect(message).to.include(`${witness()} is out of date`).and.to.include('restore fence');
      expect((await setup.fence()).code).to.equal(0);
      const fenceRun = await setup.start();
      try {
        expect((await redeem(fenceRun)).body.error).to.equal('invalid_grant');
      } finally {
        await fenceRun.close();
      }
    });

    it('is served without a record when an operator accepts it', async () => {
      rmSync(witness());
      const [term] = await rawSql(setup.database.url, (run) => run('select number, counter from service_terms'));
      const ACCEPT_REWIND = `${term?.['number']}.${term?.['counter']}`;
      expect(await setup.refusal({ ACCEPT_REWIND })).to.equal('');
      expect(await setup.refusal(), 'from then on without').to.equal('');
    });

    it('is taken over from a release that marked no terms, and the record is created', async () => {
      rmSync(witness());
      await rawSql(setup.database.url, (run) => run('update service_terms set witnessed_at = null'));
      expect(await setup.refusal()).to.equal('');
      expect(existsSync(witness())).to.equal(true);
    });

    if (kind.name !== 'postgres') return;

    /** Settings of another machine. */
    const createOtherFolder = async () => ({ DATA_FOLDER: join(setup.folder, 'other'), PORT: String(await freePort(createServer)) });

    it('is served with an empty DATA_FOLDER while a process without missing changes runs', async () => {
      const livingService = await setup.start();
      try {
        const otherService = await setup.start(await createOtherFolder());
        await otherService.close();
        expect(existsSync(join(setup.folder, 'other/witness.json'))).to.equal(true);
      } finally {
        await livingService.close();
      }
    });

    it('is rejected with the record of a process that was stopped before the backup, as after scaling down', async () => {
      const scaledService = await createOtherFolder();
      const keptService = await setup.start();
      await (await setup.start(scaledService)).close();
      await issueBatch(keptService, tenant);
      await keptService.close();
      await snapshot.renew();
      await restore();
      const message = await setup.refusalOfSingleProcess(scaledService);
      expect(message)
        .to.include('other/witness.json is out of date')
        .and.to.include(`${witness()} recorded`)
        .and.to.include('restore fence');
      expect(await setup.refusal(), 'the newest record shows it').to.include('went back in time');
    });

    it('is served with the record of a stopped process while a process without missing changes runs', async () => {
      const scaledService = await createOtherFolder();
      const keptService = await setup.start();
      try {
        await (await setup.start(scaledService)).close();
        await issueBatch(keptService, tenant);
        await waitUntil(async () => {
          const [term] = await rawSql(setup.database.url, (run) => run('select counter, witnessed_counter from service_terms'));
          return term?.['counter'] === term?.['witnessed_counter'];
        });
        expect(await setup.refusal(scaledService)).to.equal('');
      } finally {
        await keptService.close();
      }
    });

    it('is abandoned by running processes once the record of a start shows missing changes', async () => {
      await restore();
      // Processes of an earlier release registered no records in the database.
      await rawSql(setup.database.url, (run) => run('update service_terms set witnessed_at = null, witnessed_counter = null'));
      const runningService = await setup.start(await createOtherFolder());
      try {
        expect(await setup.refusal()).to.include('went back in time');
        const history = async () => (await runningService.call('GET', '/health')).body.details.history.status;
        await waitUntil(async () => (await history()) === 'down');
        expect((await redeem(runningService)).status).to.equal(503);
        expect((await setup.fence()).code).to.equal(0);
        await waitUntil(async () => (await history()) === 'up');
        expect((await redeem(runningService)).body.error).to.equal('invalid_grant');
      } finally {
        await runningService.close();
      }
    });

    it('is rejected with an empty DATA_FOLDER while the only other process misses changes', async () => {
      const counter = async () => {
        const [term] = await rawSql(setup.database.url, (run) => run('select counter from service_terms'));
        return Number(term?.['counter']);
      };
      const countBefore = await counter();
      const livingService = await setup.start();
      try {
        expect((await redeem(livingService)).status).to.equal(200);
        // The process records its change count each second.
        await waitUntil(async () => (await counter()) > countBefore);
        await snapshot.restoreContents();
        const message = await setup.refusal(await createOtherFolder());
        expect(message).to.include('a process detected');
      } finally {
        await livingService.close();
      }
    });
  });
}
