import { chmodSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { createResource, trustListBody } from '../support/populated.ts';
import { runProcess, stopPrograms } from '../support/programs.ts';
import { makeServerCertificate } from '../support/server-certificate.ts';
import { DoctorService, MASTER_SECRET, messages } from '../support/service-with-faults.ts';

describe('doctor', () => {
  let subject: DoctorService;

  beforeEach(async () => {
    subject = await DoctorService.make();
  });
  afterEach(async () => {
    await stopPrograms();
    subject.remove();
  });

  it('reports no problem of a running service, and changes nothing', async () => {
    await subject.start();
    await subject.makeTenant();
    const { code, findings, stdout } = await subject.examine();
    expect(code, stdout).to.equal(0);
    expect(findings.filter(({ outcome }) => outcome !== 'ok')).to.deep.equal([]);
    expect(new Set(findings.map(({ check }) => check))).to.include.keys(
      ...['settings', 'node', 'memory', 'disk', 'defaults', 'database', 'clock', 'secrets', 'keys', 'lists'],
      ...['address', 'health', 'well-known', 'proxy'],
    );
    const strictOutput = await runProcess('commands/doctor', ['--strict'], subject.environment);
    expect(strictOutput.code, strictOutput.stdout).to.equal(0);
    expect(strictOutput.stdout)
      .to.match(/^ok +settings: /m)
      .and.to.include('0 faults, 0 warnings');
  });

  it('reports every fault of the settings, and misspelt names', async () => {
    const { code, findings } = await subject.examine({ PORT: 'many', NODE_ENV: 'production', PUBLIC_URl: 'x' });
    expect(code).to.equal(2);
    expect(messages(findings, 'fault', 'settings'))
      .to.include('PORT: ')
      .and.to.include('PUBLIC_URL: ');
    const misspelt = await subject.examine({ STATUS_BITZ: '2' }, '--offline');
    expect(misspelt.code).to.equal(0);
    expect(messages(misspelt.findings, 'warning', 'settings')).to.include('did you mean STATUS_BITS?');
    const offlineResult = await subject.examine({ STATUS_BITZ: '2' }, '--offline', '--strict');
    expect(offlineResult.code).to.equal(1);
  });

  it('reports that the service was never started, and creates nothing', async () => {
    for (const name of ['MASTER_SECRET', 'AUTH_CLIENT_ID', 'AUTH_CLIENT_SECRET']) delete subject.environment[name];
    const { code, findings } = await subject.examine();
    expect(code).to.equal(0);
    expect(messages(findings, 'warning', 'settings')).to.include('no secrets');
    expect(readdirSync(subject.folder)).to.deep.equal([]);
  });

  it('reports files of the configuration folder that are not imported, and warnings about others', async () => {
    const CONFIG_FOLDER = fileURLToPath(new URL('../fixtures/releases/0.1.0/config', import.meta.url));
    const { code, findings } = await subject.examine({ CONFIG_FOLDER }, '--offline');
    expect(code).to.equal(2);
    expect(messages(findings, 'fault', 'configuration'))
      .to.include('narrow/issuance/credentials/hooked.json: claimsWebhook.auth.config.headerName')
      .and.to.include('not imported: release 0.1.0 accepted it');
    const folder = fileURLToPath(new URL('../fixtures/releases/2026-11-28/config', import.meta.url));
    const warnedResult = await subject.examine({ CONFIG_FOLDER: folder }, '--offline');
    expect(warnedResult.code).to.equal(0);
    expect(messages(warnedResult.findings, 'warning', 'configuration')).to.include('beta/');
  });

  it('reports generated secrets that other users can read', async () => {
    for (const name of ['MASTER_SECRET', 'AUTH_CLIENT_ID', 'AUTH_CLIENT_SECRET']) delete subject.environment[name];
    const service = await subject.start();
    service.child.kill('SIGTERM');
    await service.ended;
    chmodSync(join(subject.folder, 'secrets.env'), 0o644);
    const { code, findings } = await subject.examine({}, '--offline');
    expect(code).to.equal(2);
    expect(messages(findings, 'fault', 'settings')).to.include('other accounts');
  });

  it('reports a secret that does not open the database, and former secrets that are not needed', async () => {
    const service = await subject.start();
    await subject.makeTenant();
    const otherSecret = 'another master secret that opens nothing 0123456789';
    const wrongSecretResult = await subject.examine({ MASTER_SECRET: otherSecret }, '--offline');
    expect(wrongSecretResult.code).to.equal(2);
    expect(messages(wrongSecretResult.findings, 'fault')).to.include('MASTER_SECRET');
    expect(wrongSecretResult.stdout).to.not.include(otherSecret);
    const formerSecretResult = await subject.examine({ MASTER_SECRET: `${otherSecret},${MASTER_SECRET}` }, '--offline');
    expect(formerSecretResult.code).to.equal(0);
    expect(messages(formerSecretResult.findings, 'warning', 'secrets')).to.include('still required');
    service.child.kill('SIGTERM');
    await service.ended;
    const bothSecrets = { MASTER_SECRET: `${otherSecret},${MASTER_SECRET}` };
    const resealResult = await runProcess('commands/reseal', [], { ...subject.environment, ...bothSecrets });
    expect(resealResult.code, resealResult.stderr).to.equal(0);
    const afterReseal = await subject.examine(bothSecrets, '--offline');
    expect(messages(afterReseal.findings, 'warning', 'secrets')).to.include('no data is sealed under the former');
  });

  it('reports a trust list that was not signed in time', async () => {
    const service = await subject.start();
    const token = await subject.makeTenant();
    await createResource(subject.calls, token, '/trust-list', trustListBody('partners', 'signing'));
    const resultAfterStart = await subject.examine({}, '--offline');
    expect(messages(resultAfterStart.findings, 'ok', 'lists')).to.equal('no trust list has expired');
    service.child.kill('SIGTERM');
    await service.ended;
    const url = `sqlite:${join(subject.folder, 'vidimus.sqlite')}`;
    await rawSql(url, (run) => run('update trust_lists set next_update = 1000'));
    const { code, findings } = await subject.examine({}, '--offline');
    expect(code).to.equal(2);
    expect(messages(findings, 'fault', 'lists')).to.equal('the trust list "partners" of acme has expired');
  });

  it('checks backups', async () => {
    const backup = join(subject.folder, 'backup.sqlite');
    const checkBackup = async (...args: string[]) => (await subject.examine({}, '--offline', ...args)).findings.at(-1);
    expect(await checkBackup('--backup', backup)).to.include({ check: 'backup', outcome: 'fault' });
    writeFileSync(backup, 'something');
    expect(await checkBackup('--backup', backup)).to.include({ check: 'backup', outcome: 'ok' });
    for (const [hours, outcome] of [
      [30, 'warning'],
      [400, 'fault'],
    ] as const) {
      const modifiedAt = new Date(Date.now() - hours * 3_600_000);
      utimesSync(backup, modifiedAt, modifiedAt);
      expect(await checkBackup('--backup', backup), `${hours} hours`).to.include({ check: 'backup', outcome });
    }
  });

  describe('on PostgreSQL', () => {
    let database: TestDatabase | undefined;
    before(async function () {
      database = await databases()
        .find(({ name }) => name === 'postgres')
        ?.open();
      if (database === undefined) this.skip();
    });
    after(() => database?.drop());

    it('accepts a user that owns the tables, and reports a user that does not', async () => {
      const { url = '' } = database ?? {};
      const { code, findings, stdout } = await subject.examine({ DATABASE_URL: url }, '--offline');
      expect(code, stdout).to.equal(0);
      expect(messages(findings, 'ok', 'database')).to.include('PostgreSQL');
      const role = `doctor_${Date.now()}`;
      await rawSql(url, (run) => run(`create role ${role} login password 'word-of-the-role'`));
      try {
        const limitedUrl = new URL(url);
        limitedUrl.username = role;
        limitedUrl.password = 'word-of-the-role';
        await rawSql(url, (run) => run(`grant select on all tables in schema public to ${role}`));
        const limitedResult = await subject.examine({ DATABASE_URL: limitedUrl.href }, '--offline');
        expect(limitedResult.code, limitedResult.stdout).to.equal(2);
        expect(messages(limitedResult.findings, 'fault', 'database'))
          .to.include('may not create tables')
          .and.to.include('may not read and write');
        expect(limitedResult.stdout).to.not.include('word-of-the-role');
      } finally {
        await rawSql(url, (run) => run(`drop owned by ${role}; drop role ${role}`));
      }
    });

    it('suggests a remedy for an empty database and for one that does not exist', async () => {
      const emptyDatabase = await databases()
        .find(({ name }) => name === 'postgres')
        ?.openEmpty();
      try {
        const emptyResult = await subject.examine({ DATABASE_URL: emptyDatabase?.url ?? '' }, '--offline');
        expect(emptyResult.code, emptyResult.stdout).to.equal(0);
        expect(messages(emptyResult.findings, 'warning', 'database'))
          .to.include('is empty')
          .and.not.to.include('older');
        await rawSql(emptyDatabase?.url ?? '', async (run) => {
          await run('create table schema_migrations (name text, executed_at timestamptz)');
        });
        const olderResult = await subject.examine({ DATABASE_URL: emptyDatabase?.url ?? '' }, '--offline');
        expect(olderResult.code, olderResult.stdout).to.equal(0);
        expect(messages(olderResult.findings, 'warning', 'database'))
          .to.include('of an older release')
          .and.not.to.include('empty');
        const absentResult = await subject.examine({ DATABASE_URL: `${emptyDatabase?.url}_absent` }, '--offline');
        expect(absentResult.code).to.equal(2);
        expect(messages(absentResult.findings, 'fault', 'database')).to.include('does not exist; create it');
      } finally {
        await emptyDatabase?.drop();
      }
    });

    it('reports a database that rejects writes', async () => {
      const standby = await databases()
        .find(({ name }) => name === 'postgres')
        ?.open();
      const { url = '' } = standby ?? {};
      try {
        const name = new URL(url).pathname.slice(1);
        await rawSql(url, (run) => run(`alter database ${name} set default_transaction_read_only = on`));
        const { code, findings } = await subject.examine({ DATABASE_URL: url }, '--offline');
        expect(code).to.equal(2);
        expect(messages(findings, 'fault', 'database')).to.include('rejects writes');
      } finally {
        await standby?.drop();
      }
    });
  });
});

describe('doctor, from outside', () => {
  let subject: DoctorService;

  beforeEach(async () => {
    subject = await DoctorService.make();
  });
  afterEach(async () => {
    await stopPrograms();
    subject.remove();
  });

  it('accepts a proxy that forwards everything, also below a path', async () => {
    const address = `${await subject.startProxy()}/vidimus`;
    await subject.start({ PUBLIC_URL: address });
    const { code, findings, stdout } = await subject.examine({ PUBLIC_URL: address });
    expect(code, stdout).to.equal(0);
    expect(findings.filter(({ outcome }) => outcome === 'fault')).to.deep.equal([]);
  });

  for (const [description, change, check, message] of [
    ['removes the token', { dropsRequestHeader: 'authorization' }, 'proxy', 'Authorization does not arrive'],
    ['does not forward well-known documents', { hiddenPath: '/.well-known/' }, 'well-known', 'does not reach the service'],
    ['answers instead of the service', { hiddenPath: '/' }, 'address', 'is not this service'],
    ['rejects large bodies', { maxBody: 1_048_576 }, 'proxy', 'bodies of 2 MiB'],
    ['removes response headers', { dropsResponseHeader: 'x-content-type-options' }, 'proxy', 'answers lose'],
  ] as const) {
    it(`reports a proxy that ${description}`, async () => {
      const address = await subject.startProxy(change);
      await subject.start({ PUBLIC_URL: address });
      await subject.makeTenant();
      const { findings, stdout } = await subject.examine({ PUBLIC_URL: address });
      const problems = findings.filter(({ outcome }) => outcome !== 'ok');
      expect(messages(problems, undefined, check), stdout).to.include(message);
    });
  }

  it('reports a certificate that is not trusted and expires soon', async () => {
    const certificate = await makeServerCertificate('localhost');
    const address = await subject.startProxy({ certificate });
    await subject.start({ PUBLIC_URL: address });
    const { code, findings } = await subject.examine({ PUBLIC_URL: address });
    expect(code).to.equal(2);
    expect(messages(findings, 'fault', 'certificate'))
      .to.include('do not trust')
      .and.to.include('ends in 0 days');
  });

  it('reports processes with another public address, and no processes at all', async () => {
    const address = await subject.startProxy();
    const unreachableResult = await subject.examine({ PUBLIC_URL: address });
    expect(messages(unreachableResult.findings, 'fault', 'address')).to.match(/cannot be reached|is not this service/);
    await subject.start();
    const { findings } = await subject.examine({ PUBLIC_URL: address });
    expect(messages(findings, 'fault', 'address')).to.include('publishes http://localhost:');
  });

  it('reports a broker and an OpenID provider that do not answer', async () => {
    await subject.start();
    const closedAddress = `127.0.0.1:${await freePort(createServer)}`;
    const { code, findings, stdout } = await subject.examine({
      AMQP_URL: `amqp://user:word-of-the-broker@${closedAddress}`,
      OIDC: `http://${closedAddress}/realm`,
      OIDC_CLIENT_ID: 'vidimus',
      OIDC_CLIENT_SECRET: 'word-of-the-provider',
    });
    expect(code).to.equal(2);
    expect(messages(findings, 'fault', 'broker')).to.include('127.0.0.1');
    expect(messages(findings, 'fault', 'identity-provider')).to.include(closedAddress);
    expect(stdout).to.not.match(/word-of-the/);
  });
});
