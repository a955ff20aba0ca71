import { chmodSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer as createPlain, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer as createSecure } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { Finding } from '../../bootstrap/doctor/finding.ts';
import { freePort } from '../demo/process.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { answers, endPrograms, type Running, startProgram } from '../support/program.ts';
import { type Ended, runProcess } from '../support/run-command.ts';
import { aServerCertificate } from '../support/server-certificate.ts';

const MAIN = fileURLToPath(new URL('../../bootstrap/main.ts', import.meta.url));
const SECRET = 'an operator has this secret';
const MASTER = 'a master secret that is only for tests 0123456789';

describe('The doctor', function () {
  this.timeout(90_000);
  let folder: string;
  let port: number;
  let environment: Record<string, string>;
  const closers: (() => void)[] = [];

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-doctor-'));
    port = await freePort(createServer);
    environment = { PORT: String(port), DATA_FOLDER: folder, LOG_LEVEL: 'warn', AUTH_CLIENT_ID: 'root' };
    Object.assign(environment, { AUTH_CLIENT_SECRET: SECRET, MASTER_SECRET: MASTER });
  });
  afterEach(async () => {
    await endPrograms();
    for (const close of closers.splice(0)) close();
    rmSync(folder, { recursive: true, force: true });
  });

  const start = async (more: Record<string, string> = {}): Promise<Running> => {
    const given = { ...environment, ...more, PATH: process.env['PATH'] };
    const service = startProgram(process.execPath, [MAIN], { environment: given, cwd: folder });
    await answers(service, `http://127.0.0.1:${port}/health`);
    return service;
  };
  const examine = async (more: Record<string, string> = {}, ...args: string[]) => {
    const ended = await runProcess('commands/doctor', ['--json', ...args], { ...environment, ...more });
    for (const secret of [SECRET, MASTER]) expect(ended.stdout + ended.stderr).to.not.include(secret);
    return { ...ended, findings: findingsOf(ended) };
  };
  const makeTenant = async () => {
    const base = `http://127.0.0.1:${port}`;
    const body = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: 'root',
      client_secret: SECRET,
    });
    const { access_token: token } = (await (
      await fetch(`${base}/oauth2/token`, { method: 'POST', body })
    ).json()) as {
      access_token: string;
    };
    const made = await fetch(`${base}/tenant`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ id: 'acme', name: 'Acme', roles: ['issuance:offer'] }),
    });
    expect(made.status).to.equal(201);
  };
  /** A proxy in front of the service, which does with requests what `change` says. */
  const startProxy = async (change: Change = {}) => {
    const handle = proxyTo(port, change);
    const server = change.certificate ? createSecure(change.certificate, handle) : createPlain(handle);
    closers.push(() => void server.close());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port: own } = server.address() as AddressInfo;
    return `${change.certificate ? 'https' : 'http'}://localhost:${own}`;
  };

  it('finds nothing wrong with a service that runs, and changes nothing', async () => {
    await start();
    await makeTenant();
    const { code, findings, stdout } = await examine();
    expect(code, stdout).to.equal(0);
    expect(findings.filter(({ outcome }) => outcome !== 'ok')).to.deep.equal([]);
    expect(new Set(findings.map(({ check }) => check))).to.include.keys(
      ...['settings', 'node', 'memory', 'disk', 'defaults', 'database', 'clock', 'secrets', 'keys', 'lists'],
      ...['address', 'health', 'well-known', 'proxy'],
    );
    const plain = await runProcess('commands/doctor', ['--strict'], environment);
    expect(plain.code, plain.stdout).to.equal(0);
    expect(plain.stdout)
      .to.match(/^ok +settings: /m)
      .and.to.include('0 faults, 0 warnings');
  });

  it('names every fault of the settings, and what is misspelt', async () => {
    const { code, findings } = await examine({ PORT: 'many', NODE_ENV: 'production', PUBLIC_URl: 'x' });
    expect(code).to.equal(2);
    expect(messages(findings, 'fault', 'settings'))
      .to.include('PORT: ')
      .and.to.include('PUBLIC_URL: ');
    const misspelt = await examine({ STATUS_BITZ: '2' }, '--offline');
    expect(misspelt.code).to.equal(0);
    expect(messages(misspelt.findings, 'warning', 'settings')).to.include('did you mean STATUS_BITS?');
    const strict = await examine({ STATUS_BITZ: '2' }, '--offline', '--strict');
    expect(strict.code).to.equal(1);
  });

  it('says that nothing was started yet, and makes nothing', async () => {
    for (const name of ['MASTER_SECRET', 'AUTH_CLIENT_ID', 'AUTH_CLIENT_SECRET']) delete environment[name];
    const { code, findings } = await examine();
    expect(code).to.equal(0);
    expect(messages(findings, 'warning', 'settings')).to.include('no secrets');
    expect(readdirSync(folder)).to.deep.equal([]);
  });

  it('notices generated secrets that others can read', async () => {
    for (const name of ['MASTER_SECRET', 'AUTH_CLIENT_ID', 'AUTH_CLIENT_SECRET']) delete environment[name];
    const service = await start();
    service.child.kill('SIGTERM');
    await service.ended;
    chmodSync(join(folder, 'secrets.env'), 0o644);
    const { code, findings } = await examine({}, '--offline');
    expect(code).to.equal(2);
    expect(messages(findings, 'fault', 'settings')).to.include('other accounts');
  });

  it('notices a secret that does not open the database, and former ones that nothing needs', async () => {
    await start();
    await makeTenant();
    const other = 'another master secret that opens nothing 0123456789';
    const wrong = await examine({ MASTER_SECRET: other }, '--offline');
    expect(wrong.code).to.equal(2);
    expect(messages(wrong.findings, 'fault')).to.include('MASTER_SECRET');
    expect(wrong.stdout).to.not.include(other);
    const former = await examine({ MASTER_SECRET: `${other},${MASTER}` }, '--offline');
    expect(former.code).to.equal(0);
    expect(messages(former.findings, 'warning', 'secrets')).to.include('still needed');
  });

  it('looks at backups', async () => {
    const backup = join(folder, 'backup.sqlite');
    const judge = async (...args: string[]) => (await examine({}, '--offline', ...args)).findings.at(-1);
    expect(await judge('--backup', backup)).to.include({ check: 'backup', outcome: 'fault' });
    writeFileSync(backup, 'something');
    expect(await judge('--backup', backup)).to.include({ check: 'backup', outcome: 'ok' });
    for (const [hours, outcome] of [
      [30, 'warning'],
      [400, 'fault'],
    ] as const) {
      const at = new Date(Date.now() - hours * 3_600_000);
      utimesSync(backup, at, at);
      expect(await judge('--backup', backup), `${hours} hours`).to.include({ check: 'backup', outcome });
    }
  });

  describe('from outside', () => {
    it('is content behind a proxy that hands on everything, below a path as well', async () => {
      const address = `${await startProxy()}/vidimus`;
      await start({ PUBLIC_URL: address });
      const { code, findings, stdout } = await examine({ PUBLIC_URL: address });
      expect(code, stdout).to.equal(0);
      expect(findings.filter(({ outcome }) => outcome === 'fault')).to.deep.equal([]);
    });

    for (const [what, change, check, words] of [
      ['takes the token away', { loses: 'authorization' }, 'proxy', 'Authorization does not arrive'],
      [
        'keeps well-known documents to itself',
        { hides: '/.well-known/' },
        'well-known',
        'does not reach the service',
      ],
      ['answers by itself', { hides: '/' }, 'address', 'is not this service'],
      ['refuses large bodies', { maxBody: 1_048_576 }, 'proxy', 'bodies of 2 MiB'],
      ['takes headers of answers away', { losesAnswer: 'x-content-type-options' }, 'proxy', 'answers lose'],
    ] as const) {
      it(`finds a proxy that ${what}`, async () => {
        const address = await startProxy(change);
        await start({ PUBLIC_URL: address });
        await makeTenant();
        const { findings, stdout } = await examine({ PUBLIC_URL: address });
        const found = findings.filter(({ outcome }) => outcome !== 'ok');
        expect(messages(found, undefined, check), stdout).to.include(words);
      });
    }

    it('finds a certificate that nobody trusts and that ends', async () => {
      const certificate = await aServerCertificate('localhost');
      const address = await startProxy({ certificate });
      await start({ PUBLIC_URL: address });
      const { code, findings } = await examine({ PUBLIC_URL: address });
      expect(code).to.equal(2);
      expect(messages(findings, 'fault', 'certificate'))
        .to.include('do not trust')
        .and.to.include('ends in 0 days');
    });

    it('finds processes with another public address, and none at all', async () => {
      const address = await startProxy();
      const none = await examine({ PUBLIC_URL: address });
      expect(messages(none.findings, 'fault', 'address')).to.match(/cannot be reached|is not this service/);
      await start();
      const { findings } = await examine({ PUBLIC_URL: address });
      expect(messages(findings, 'fault', 'address')).to.include('publishes http://localhost:');
    });

    it('finds a broker and a provider of identities that do not answer', async () => {
      await start();
      const dead = `127.0.0.1:${await freePort(createServer)}`;
      const { code, findings, stdout } = await examine({
        AMQP_URL: `amqp://user:word-of-the-broker@${dead}`,
        OIDC: `http://${dead}/realm`,
        OIDC_CLIENT_ID: 'vidimus',
        OIDC_CLIENT_SECRET: 'word-of-the-provider',
      });
      expect(code).to.equal(2);
      expect(messages(findings, 'fault', 'broker')).to.include('127.0.0.1');
      expect(messages(findings, 'fault', 'identity-provider')).to.include(dead);
      expect(stdout).to.not.match(/word-of-the/);
    });
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

    it('is content with a user that owns the tables, and finds one that does not', async () => {
      const { url = '' } = database ?? {};
      const { code, findings, stdout } = await examine({ DATABASE_URL: url }, '--offline');
      expect(code, stdout).to.equal(0);
      expect(messages(findings, 'ok', 'database')).to.include('PostgreSQL');
      const role = `doctor_${Date.now()}`;
      await rawSql(url, (run) => run(`create role ${role} login password 'word-of-the-role'`));
      try {
        const limited = new URL(url);
        limited.username = role;
        limited.password = 'word-of-the-role';
        await rawSql(url, (run) => run(`grant select on all tables in schema public to ${role}`));
        const bad = await examine({ DATABASE_URL: limited.href }, '--offline');
        expect(bad.code, bad.stdout).to.equal(2);
        expect(messages(bad.findings, 'fault', 'database'))
          .to.include('may make no tables')
          .and.to.include('may not read and write');
        expect(bad.stdout).to.not.include('word-of-the-role');
      } finally {
        await rawSql(url, (run) => run(`drop owned by ${role}; drop role ${role}`));
      }
    });

    it('says of one that is empty, or that is not there, what to do', async () => {
      const empty = await databases()
        .find(({ name }) => name === 'postgres')
        ?.openEmpty();
      try {
        const behind = await examine({ DATABASE_URL: empty?.url ?? '' }, '--offline');
        expect(behind.code, behind.stdout).to.equal(0);
        expect(messages(behind.findings, 'warning', 'database')).to.include('of an older release');
        const absent = await examine({ DATABASE_URL: `${empty?.url}_absent` }, '--offline');
        expect(absent.code).to.equal(2);
        expect(messages(absent.findings, 'fault', 'database')).to.include('there is no postgres://');
      } finally {
        await empty?.drop();
      }
    });

    it('finds a database that takes no writes', async () => {
      const standby = await databases()
        .find(({ name }) => name === 'postgres')
        ?.open();
      const { url = '' } = standby ?? {};
      try {
        const name = new URL(url).pathname.slice(1);
        await rawSql(url, (run) => run(`alter database ${name} set default_transaction_read_only = on`));
        const { code, findings } = await examine({ DATABASE_URL: url }, '--offline');
        expect(code).to.equal(2);
        expect(messages(findings, 'fault', 'database')).to.include('takes no writes');
      } finally {
        await standby?.drop();
      }
    });
  });
});

type Change = {
  readonly loses?: string;
  readonly losesAnswer?: string;
  readonly hides?: string;
  readonly maxBody?: number;
  readonly certificate?: { readonly key: string; readonly cert: string };
};

function proxyTo(port: number, { loses, losesAnswer, hides, maxBody }: Change) {
  return (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const isLarge = Number(incoming.headers['content-length'] ?? 0) > (maxBody ?? Infinity);
    if (isLarge || (hides !== undefined && incoming.url?.startsWith(hides)))
      return outgoing
        .writeHead(isLarge ? 413 : 404, { 'Content-Type': 'text/html', Connection: 'close' })
        .end('<html>');
    const headers = Object.fromEntries(Object.entries(incoming.headers).filter(([name]) => name !== loses));
    const onward = request(
      { port, host: '127.0.0.1', path: incoming.url, method: incoming.method, headers },
      (answer) => {
        const kept = Object.entries(answer.headers).filter(([name]) => name !== losesAnswer);
        outgoing.writeHead(answer.statusCode ?? 502, Object.fromEntries(kept));
        answer.pipe(outgoing);
      },
    );
    onward.on('error', () => outgoing.destroy());
    return incoming.pipe(onward);
  };
}

function findingsOf({ stdout, stderr }: Ended): readonly Finding[] {
  try {
    return (JSON.parse(stdout) as { findings: Finding[] }).findings;
  } catch {
    throw new Error(`the doctor did not say what it found: ${stdout}${stderr}`);
  }
}

function messages(findings: readonly Finding[], outcome?: Finding['outcome'], check?: string): string {
  return findings
    .filter(
      (each) =>
        (outcome === undefined || each.outcome === outcome) && (check === undefined || each.check === check),
    )
    .map(({ message }) => message)
    .join('\n');
}
