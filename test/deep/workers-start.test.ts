import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { ConfigFolder } from '../support/config-folder.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import { callsTo, WorkerService } from '../support/worker-service.ts';

const [, postgres] = databases();

describe('a start of several workers', () => {
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

  /** How a start ends, and all that it says. */
  const failure = async (environment: Readonly<Record<string, string>>, port?: number) => {
    const service = new WorkerService(port ?? (await freePort(createServer)), environment);
    const code = await service.ended;
    return { code, says: service.errors.trim(), workers: service.workers };
  };

  it('ends with one message, the one that a single process has, when the database cannot be reached', async () => {
    const port = await freePort(createServer);
    const unreachable = { DATABASE_URL: `postgres://vidimus:secret@127.0.0.1:${port}/vidimus` };
    const { code, says, workers } = await failure(unreachable);
    expect([code, workers]).to.deep.equal([1, []]);
    expect(says)
      .to.match(/^Vidimus could not start: /)
      .and.not.include('secret');
    expect(says).to.equal((await failure({ ...unreachable, WORKERS: '1' })).says);
  });

  it('ends with one message when the settings are wrong, before there is a worker', async () => {
    expect(await failure({ DATABASE_URL: 'sqlite:./a.sqlite', PORT: '' })).to.deep.equal({
      code: 1,
      says:
        'The configuration is not valid:\n  - WORKERS: 2 processes cannot share an SQLite file; ' +
        'set DATABASE_URL to a PostgreSQL (postgres://…), or WORKERS=1',
      workers: [],
    });
  });

  it('ends with one message, and without workers, when the port is taken', async () => {
    const taken = await freePort(createServer);
    const server = createServer().listen(taken, '127.0.0.1');
    servers.push(server);
    const { code, says } = await failure({ DATABASE_URL: database?.url ?? '' }, taken);
    expect([code, says]).to.deep.equal([
      1,
      `Vidimus could not start: port ${taken} is taken; set PORT to another one`,
    ]);
  });

  it('says that secrets which it has just made are not those of the database, with workers and without', async () => {
    const DATABASE_URL = database?.url ?? '';
    expect(await (await WorkerService.start({ DATABASE_URL })).stop()).to.equal(0);
    const none = { MASTER_SECRET: '', AUTH_CLIENT_ID: '', AUTH_CLIENT_SECRET: '' };
    for (const WORKERS of ['2', '1']) {
      const DATA_FOLDER = join(folder, WORKERS);
      const file = join(DATA_FOLDER, 'secrets.env');
      const start = () => failure({ ...none, DATABASE_URL, DATA_FOLDER, WORKERS });
      const first = await start();
      expect([first.code, first.workers]).to.deep.equal([1, []]);
      expect(first.says).to.include('First start: secrets were generated');
      expect(first.says).to.include('MASTER_SECRET is not the one that sealed this database');
      expect(first.says).to.include(
        `The secrets in ${file} were generated just now and are not those of this database. Set MASTER_SECRET to that of ` +
          `the other processes on it, and AUTH_CLIENT_ID, AUTH_CLIENT_SECRET and PUBLIC_URL as well; ${file} may be deleted`,
      );
      const { MASTER_SECRET = '' } = parseEnv(readFileSync(file, 'utf8'));
      expect(MASTER_SECRET, 'nothing is deleted').to.have.length(64);
      const again = await start();
      expect(again.says)
        .to.include(`This start took its MASTER_SECRET from ${file}`)
        .and.not.include('deleted');
      const own = await failure({ ...none, MASTER_SECRET, DATABASE_URL, DATA_FOLDER, WORKERS });
      expect(own.says).to.include('MASTER_SECRET is not the one').and.not.include('This start took');
    }
  });

  it('makes secrets and imports tenants once, and every worker has them', async () => {
    tenants.write({ 'acme/tenant.json': { id: 'acme', name: 'Acme', roles: ['clients:manage'] } });
    const none = { MASTER_SECRET: '', AUTH_CLIENT_ID: '', AUTH_CLIENT_SECRET: '' };
    const service = await WorkerService.start({
      ...none,
      DATABASE_URL: database?.url ?? '',
      DATA_FOLDER: folder,
      CONFIG_FOLDER: tenants.path,
    });
    try {
      expect(service.errors.match(/First start: secrets were generated/g)).to.have.length(1);
      const kept = parseEnv(readFileSync(join(folder, 'secrets.env'), 'utf8'));
      const calls = callsTo(service.address);
      const token = await calls.token(kept['AUTH_CLIENT_ID'] ?? '', kept['AUTH_CLIENT_SECRET'] ?? '');
      for (let call = 0; call < 4; call++) {
        const { status, body } = await calls.call('GET', '/tenant', { token });
        expect([status, body.length]).to.deep.equal([200, 1]);
      }
      const told = service.lines.filter(({ msg }) => msg.startsWith('configuration folder: tenant imported'));
      expect(told).to.have.length(1);
    } finally {
      expect(await service.stop()).to.equal(0);
    }
  });
});
