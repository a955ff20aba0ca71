import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { expect } from 'chai';
import * as client from '../../packages/client/src/index.ts';
import { freePort } from '../demo/process.ts';
import { ConfigFolder, SECRETS } from '../support/config-folder.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { expectPropertiesNamed, namedCodeBlocks, readPage, Terminal, withCertificate } from '../support/docs-pages.ts';
import { canDump } from '../support/postgres-server.ts';
import { hasPrograms, runProgram } from '../support/programs.ts';
import { newKey } from '../support/raw-wallet.ts';
import { type CertifiedKey, certify, certifyKey, pem } from '../support/test-certificates.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { callerFor } from '../support/worker-service.ts';

const NAME = 'docs/guides/backup-and-restore.md';
const START = 'npm start';
const FENCE = 'npm run restore:fence';

const DATABASE_OWNER = 'vidimus_owner_test';

describe('the commands of the page about backups', () => {
  const PAGE = readFileSync(new URL('../../docs/guides/backup-and-restore.md', import.meta.url), 'utf8');
  /** docs-operating.test.ts runs these, as root of a machine. */
  const ON_MACHINE = ['Make backups', 'Anchors of the audit log'];
  const BLOCKS = namedCodeBlocks(PAGE.replaceAll(/^ {3}/gm, '')).filter(
    ({ language, section }) => language === 'sh' && !ON_MACHINE.includes(section),
  );
  const findBlock = (fragment: string): string => {
    const matches = BLOCKS.filter(({ text }) => text.includes(fragment));
    expect(matches, fragment).to.have.length(1);
    return matches[0]?.text ?? '';
  };
  /** Returns a command from the table of backups. */
  const commandFromTable = (program: string) => new RegExp(`\`(${program} [^\`]+)\``).exec(PAGE)?.[1] ?? 'false';

  let terminal: Terminal;
  let address: string;
  let database: TestDatabase | undefined;
  let restoredDatabase: string | undefined;

  const startTerminal = async (replacements: Record<string, string>, environment: Record<string, string>) => {
    address = `http://localhost:${await freePort(createServer)}`;
    terminal = new Terminal({ instead: replacements, environment });
  };
  afterEach(async () => {
    await terminal?.close();
    if (restoredDatabase !== undefined) {
      const name = new URL(restoredDatabase).pathname.slice(1);
      const server = new URL('/postgres', restoredDatabase).href;
      await rawSql(server, (run) => run(`drop database if exists ${name}`));
    }
    await database?.drop();
    restoredDatabase = undefined;
    database = undefined;
  });

  const type = async (text: string): Promise<string> => {
    const { code, stdout, stderr } = await terminal.type(text, address);
    expect(code, `${text}\n${stdout}${stderr}`).to.equal(0);
    return stdout;
  };
  /** The error message of a rejected start. */
  const refusal = () =>
    terminal.type(START, address).then(
      () => '',
      (error: Error) => error.message,
    );
  const makeTenant = async (id: string) => {
    const storedSecrets = parseEnv(readFileSync(join(terminal.folder, 'data/secrets.env'), 'utf8'));
    const calls = callerFor(address);
    const root = () => calls.token(storedSecrets['AUTH_CLIENT_ID'] ?? '', storedSecrets['AUTH_CLIENT_SECRET'] ?? '');
    await createTenant({ ...calls, rootToken: root }, id);
  };
  /** Tests the restoration of a backup by `command`. */
  const testBackup = async (command: string) => {
    await type(START);
    await makeTenant('acme');
    mkdirSync(join(terminal.folder, 'backup'), { recursive: true });
    await type(command);
    await makeTenant('later');
    // Wait until the position of the database is recorded outside of it.
    await terminal.stop();
  };

  it('are those that the tests below type', () => {
    const fragments = ['createdb', 'mkdir lost', START, `${FENCE}\n${START}`, FENCE, 'ACCEPT_REWIND='];
    expect(BLOCKS).to.have.length(fragments.length);
    for (const [index, fragment] of fragments.entries()) expect(BLOCKS[index]?.text).to.include(fragment);
  });

  it('restore an SQLite file, which is fenced before it serves, or served when an operator accepts it', async function () {
    if (!hasPrograms(NAME, ['sqlite3'])) return this.skip();
    await startTerminal({}, {});
    await testBackup(commandFromTable('sqlite3'));
    await type(findBlock('mkdir lost'));
    expect(existsSync(join(terminal.folder, 'lost/vidimus.sqlite'))).to.equal(true);
    expect(await refusal()).to.include('went back in time');
    expect(await type(findBlock('restore:fence\nnpm start'))).to.include('Values that were issued before are no longer valid');
    await makeTenant('later');
    await terminal.stop();
    for (const end of ['', '-wal', '-shm']) rmSync(join(terminal.folder, `data/vidimus.sqlite${end}`), { force: true });
    copyFileSync(join(terminal.folder, 'backup/vidimus.sqlite'), join(terminal.folder, 'data/vidimus.sqlite'));
    const [, position = ''] = /ACCEPT_REWIND=(\S+)/.exec(await refusal()) ?? [];
    const acceptCommand = findBlock('ACCEPT_REWIND').replace(/=\S+ /, `=${position}\n`);
    await type(`export ${acceptCommand}`);
    await makeTenant('later');
    const fenceResult = await terminal.type(`${FENCE} -- --force`, address);
    expect(fenceResult.stderr, 'while the service runs').to.include('nothing is fenced: another service');
    await terminal.stop();
    await type(`${FENCE} -- --force`);
  });

  it('bring back a dump of PostgreSQL in another database', async function () {
    const [, postgres] = databases();
    database = await postgres?.openEmpty();
    if (database === undefined || !hasPrograms(NAME, ['pg_dump', 'pg_restore', 'createdb'])) return this.skip();
    if (!(await canDump(database.url))) return this.skip();
    const { hostname, port, username, password, pathname } = new URL(database.url);
    const name = pathname.slice(1);
    // The service runs as the user that docs/guides/without-docker.md creates: it owns the database and may create no other.
    await rawSql(database.url, async (run) => {
      await run(`do $$ begin create role ${DATABASE_OWNER} login password '${password}';
        exception when duplicate_object or unique_violation then null; end $$`);
      await run(`alter database ${name} owner to ${DATABASE_OWNER}`);
    });
    const withOwner = (path: string) => {
      const url = new URL(path, database?.url);
      url.username = DATABASE_OWNER;
      return url.href;
    };
    restoredDatabase = withOwner(`/${name}_restored`);
    await startTerminal(
      {
        '-h db.example -U postgres -O vidimus': `-h ${hostname} -p ${port || 5432} -U ${username} -O ${DATABASE_OWNER}`,
        '-h db.example -U vidimus': `-h ${hostname} -p ${port || 5432} -U ${DATABASE_OWNER}`,
        'postgres://vidimus:…@db.example:5432/vidimus_restored': restoredDatabase,
        vidimus_restored: `${name}_restored`,
        'vidimus.dump vidimus': `vidimus.dump ${name}`,
      },
      { DATABASE_URL: withOwner(pathname), ...(password !== '' && { PGPASSWORD: decodeURIComponent(password) }) },
    );
    await testBackup(commandFromTable('pg_dump'));
    await type(findBlock('createdb'));
    expect(await refusal()).to.match(/went back in time|not where it was/);
    await type(FENCE);
    await type(START);
    await makeTenant('later');
  });
});

describe('the example of configuration files', () => {
  it('can be imported unchanged', async () => {
    const service = await startTestService({
      CONFIG_FOLDER: fileURLToPath(new URL('../../config/examples', import.meta.url)),
      DEMO_BACKEND: 'http://localhost:8080',
      DEMO_API_KEY: 'key',
      OUTBOUND_ALLOW: 'localhost:8080',
    });
    try {
      const tenant = await service.call('GET', '/tenant/demo', { token: await service.rootToken() });
      expect(tenant.body.clients[0].clientId).to.equal('demo-admin');
      const metadata = await service.call('GET', '/demo/.well-known/openid-credential-issuer');
      expect(metadata.body.credential_configurations_supported).to.have.all.keys('pid', 'mdl');
    } finally {
      await service.close();
    }
  });
});

describe('the page about configuration files', () => {
  const PAGE = readFileSync(new URL('../../docs/reference/configuration-files.md', import.meta.url), 'utf8');
  const files = [...PAGE.matchAll(/^`(\S+)`\n```(?:json|yaml)\n([\s\S]*?)```$/gm)].map(([, name = '', text = '']) => [name, text] as const);

  it('shows files that a service starts with', async () => {
    expect(files).to.have.length([...PAGE.matchAll(/^```(json|yaml)$/gm)].length);
    const folder = new ConfigFolder();
    folder.write(Object.fromEntries(files));
    const service = await startTestService({
      CONFIG_FOLDER: folder.path,
      ACME_ACCESS_KEY: SECRETS.ACME_ACCESS_KEY,
      ACME_LOGIN_SECRET: 'a secret at the login',
      ACME_BACKEND: 'https://backend.example',
      ACME_API_KEY: 'a-key',
      ACME_SHOP_SECRET: 'the-secret-of-the-shop',
    });
    try {
      const token = await service.token('acme-shop', 'the-secret-of-the-shop');
      const json = { response_type: 'uri', requestId: 'who' };
      const offerResponse = await service.call('POST', '/verifier/offer', { token, json });
      expect(offerResponse.status, offerResponse.text).to.equal(201);
      const metadata = await service.call('GET', '/acme/.well-known/openid-credential-issuer');
      expect(metadata.body.credential_configurations_supported).to.have.property('badge');
    } finally {
      await service.close();
      folder.remove();
    }
  });
});

const KEY = /-----BEGIN PRIVATE KEY-----.*?-----END PRIVATE KEY-----\\n/;

describe('the page about keys', () => {
  const PAGE = readPage('reference/keys.md');

  let service: TestService;
  let root: CertifiedKey;

  before(async () => {
    service = await startTestService();
    root = await certify({ name: 'Root', ca: true });
  });
  after(() => service.close());

  it('shows requests that the service accepts in this order', async () => {
    const { token } = await createTenant(service, 'acme');
    const externalKey = newKey();
    const key = externalKey.privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
    for (const { method, path, text } of PAGE.requests) {
      const jwk = method === 'PATCH' ? (await service.call('GET', path, { token })).body.activeKey : externalKey.jwk;
      const certificate = await certifyKey(jwk, { name: 'Leaf', by: root });
      const exampleText = withCertificate(text, pem({ ...root, certificate }));
      const json = JSON.parse(exampleText.replace(KEY, JSON.stringify(key).slice(1, -1)));
      const answer = await service.call(method, path, { token, json });
      const isNew = path === '/key-chain' || path === '/key-chain/import';
      expect(answer.status, `${path}: ${answer.text}`).to.equal(isNew ? 201 : 200);
    }
    const pid = (await service.call('GET', '/key-chain/pid', { token })).body;
    const status = (await service.call('GET', '/key-chain/pid-status', { token })).body;
    expect(status.rootCertificate).to.equal(pid.rootCertificate);
    expect(pid.previousKeys).to.have.length(2);
  });

  it('names every property for creating, importing and certifying a key chain', async () => {
    const { components } = (await service.call('GET', '/openapi.json')).body;
    for (const schema of ['KeyChainCreation', 'KeyChainImport', 'KeyChainRotation', 'CertificateSigningRequest']) {
      expectPropertiesNamed(PAGE, Object.keys(components.schemas[schema].properties));
    }
  });
});

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const text = readFileSync(join(ROOT, 'docs/reference/client.md'), 'utf8');

/** Declarations that the examples of the page assume. */
const ASSUMED_CODE = 'declare const app: any, express: any, query: any, claimsFor: any;';

describe('the page about the client', () => {
  it('shows code that fits the types', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vidimus-docs-client-'));
    try {
      mkdirSync(join(folder, 'node_modules'));
      symlinkSync(ROOT, join(folder, 'node_modules/vidimus'));
      symlinkSync(join(ROOT, 'node_modules/@types'), join(folder, 'node_modules/@types'));
      const [setup, ...otherBlocks] = namedCodeBlocks(text).filter(({ language }) => language === 'js' || language === 'ts');
      const blocks = otherBlocks.map((frame) => `{\n${frame.text}\n}`);
      writeFileSync(join(folder, 'page.mts'), [setup?.text, ASSUMED_CODE, ...blocks].join('\n'));
      const options = ['--noEmit', '--module', 'nodenext', '--target', 'es2024'];
      const args = [...options, '--strict', 'false', '--types', 'node', '--skipLibCheck', 'page.mts'];
      const compiler = join(ROOT, 'node_modules/.bin/tsc');
      const { code, output } = await runProgram(compiler, [...args, '--rewriteRelativeImportExtensions'], {
        cwd: folder,
        environment: { PATH: process.env['PATH'] },
      });
      expect(code, output).to.equal(0);
      expect(blocks).to.have.length.greaterThan(3);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('names all that there is', () => {
    const error = Object.keys(new client.VidimusError('timeout', 'late')).filter((name) => name !== 'name');
    const methods = Object.getOwnPropertyNames(client.VidimusClient.prototype).slice(1);
    for (const name of [...Object.keys(client), ...error, ...methods]) expect(text, name).to.match(new RegExp(`\\b${name}\\b`));
  });
});
