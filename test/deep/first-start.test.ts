import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { expect } from 'chai';
import { prepareFirstStart } from '../../bootstrap/start/first-start.ts';
import { readSettings, SettingsError } from '../../config/settings.ts';
import { freePort } from '../demo/process.ts';
import { minimalEnvironment } from '../support/compile-cache.ts';
import { startedProgram } from '../support/start-options.ts';

describe('first start', () => {
  let folder: string;
  let data: string;
  const file = () => join(data, 'secrets.env');
  const readStoredSecrets = () => parseEnv(readFileSync(file(), 'utf8'));

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
    data = join(folder, 'data');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('generates missing secrets once, readable for the owner only, and prints them once', () => {
    const firstStart = prepareFirstStart({ DATA_FOLDER: data });
    const settings = readSettings(firstStart.environment);
    expect(settings.MASTER_SECRET[0]).to.match(/^[\w-]{64}$/);
    expect(settings.AUTH_CLIENT_SECRET).to.match(/^[\w-]{32}$/);
    expect(firstStart.generated).to.deep.equal({ file: file(), clientId: 'root', clientSecret: settings.AUTH_CLIENT_SECRET });
    expect(statSync(file()).mode & 0o777).to.equal(0o600);
    expect(statSync(data).mode & 0o777).to.equal(0o700);
    expect(readdirSync(data)).to.deep.equal(['secrets.env']);

    const text = readFileSync(file(), 'utf8');
    const secondStart = prepareFirstStart({ DATA_FOLDER: data });
    const generated = ['MASTER_SECRET', 'AUTH_CLIENT_ID', 'AUTH_CLIENT_SECRET'];
    for (const start of [firstStart, secondStart]) expect([...start.fromFile]).to.have.members(generated);
    const ownSettings = { DATA_FOLDER: data, AUTH_CLIENT_ID: 'root' };
    expect([...prepareFirstStart(ownSettings).fromFile], 'what the environment says').not.to.include('AUTH_CLIENT_ID');
    expect(secondStart.generated).to.equal(undefined);
    expect(secondStart.stored).to.deep.equal({ file: file(), clientId: 'root' });
    expect(readSettings(secondStart.environment)).to.deep.equal(settings);
    expect(readFileSync(file(), 'utf8')).to.equal(text);
  });

  it('generates no secret for a start that fails, since a secret is shown once', () => {
    expect(() => prepareFirstStart({ DATA_FOLDER: data, PORT: 'abc' })).to.throw(SettingsError, 'PORT');
    expect(existsSync(data)).to.equal(false);
  });

  it('generates no secret in place of a misspelt variable', () => {
    const secret = 'a master secret for the tests 0123456789';
    for (const [name, suggestedName] of [
      ['MASTER_SECERT', 'MASTER_SECRET'],
      ['MASTERSECRET', 'MASTER_SECRET'],
      ['AUTH_CLIENT_SECRETS', 'AUTH_CLIENT_SECRET'],
    ] as const) {
      const start = () => prepareFirstStart({ DATA_FOLDER: data, [name]: secret });
      expect(start, name).to.throw(SettingsError, `${name}: is not a setting; did you mean ${suggestedName}?`);
      expect(start, name).to.not.throw(SettingsError, secret);
    }
    expect(existsSync(data)).to.equal(false);
    const givenSettings = { DATA_FOLDER: data, MASTER_SECERT: secret, MASTER_SECRET: secret };
    expect(prepareFirstStart(givenSettings).environment['MASTER_SECRET'], 'beside the right one').to.equal(secret);
  });

  it('prints no secret that opens nothing', () => {
    prepareFirstStart({ DATA_FOLDER: data });
    const oidc = { OIDC: 'https://login.example', OIDC_CLIENT_ID: 'vidimus', OIDC_CLIENT_SECRET: 'a-secret' };
    const laterStart = prepareFirstStart({ DATA_FOLDER: data, ...oidc });
    expect([laterStart.generated, laterStart.stored]).to.deep.equal([undefined, undefined]);
    expect(prepareFirstStart({ DATA_FOLDER: data }).stored).to.include({ clientId: 'root' });
  });

  it('generates unique secrets', () => {
    const [firstSecrets, secondSecrets] = ['one', 'other'].map((name) =>
      readSettings(prepareFirstStart({ DATA_FOLDER: join(folder, name) }).environment),
    );
    expect(firstSecrets?.MASTER_SECRET).to.not.deep.equal(secondSecrets?.MASTER_SECRET);
    expect(firstSecrets?.AUTH_CLIENT_SECRET).to.not.equal(secondSecrets?.AUTH_CLIENT_SECRET);
  });

  it('generates no configured secrets, and configured secrets override generated ones', () => {
    const givenSettings = { DATA_FOLDER: data, AUTH_CLIENT_ID: 'operator', AUTH_CLIENT_SECRET: 'a-secret-of-the-operator' };
    const firstStart = prepareFirstStart(givenSettings);
    expect(firstStart.generated, 'no generated secret').to.equal(undefined);
    expect(Object.keys(readStoredSecrets())).to.deep.equal(['MASTER_SECRET']);
    const { MASTER_SECRET } = readSettings(firstStart.environment);
    const configuredSecret = 'a master secret of our own 0123456789';
    const laterStart = readSettings(prepareFirstStart({ ...givenSettings, MASTER_SECRET: configuredSecret }).environment);
    expect(laterStart.MASTER_SECRET).to.deep.equal([configuredSecret]);
    expect(readStoredSecrets()['MASTER_SECRET'], 'kept').to.equal(MASTER_SECRET[0]);
  });

  it('adds secrets that a later start lacks, and keeps existing ones', () => {
    prepareFirstStart({ DATA_FOLDER: data });
    const { MASTER_SECRET } = readStoredSecrets();
    writeFileSync(file(), `MASTER_SECRET=${MASTER_SECRET}\n`, { mode: 0o600 });
    const repeatedStart = prepareFirstStart({ DATA_FOLDER: data, AUTH_CLIENT_ID: '' });
    expect(repeatedStart.generated?.clientId).to.equal('root');
    expect(readStoredSecrets()).to.include({ MASTER_SECRET, AUTH_CLIENT_ID: 'root' });
    expect(statSync(file()).mode & 0o777).to.equal(0o600);
  });

  it('generates no new master secret for a database that is sealed under another one', () => {
    prepareFirstStart({ DATA_FOLDER: data });
    writeFileSync(join(data, 'vidimus.sqlite'), '');
    for (const damagedContent of ['', 'AUTH_CLIENT_ID=root\n', undefined]) {
      rmSync(file(), { force: true });
      if (damagedContent !== undefined) writeFileSync(file(), damagedContent);
      expect(() => prepareFirstStart({ DATA_FOLDER: data }))
        .to.throw(SettingsError)
        .with.property('message')
        .that.matches(/MASTER_SECRET.*restore the file/);
      expect(existsSync(file()) ? readFileSync(file(), 'utf8') : undefined, 'unchanged').to.equal(damagedContent);
    }
    prepareFirstStart({ DATA_FOLDER: data, MASTER_SECRET: 'a master secret of our own 0123456789' });
  });

  it('accepts the former name of the master secret', () => {
    const JWT_SECRET = 'a master secret of our own 0123456789';
    for (let start = 0; start < 2; start++) {
      const { environment } = prepareFirstStart({ DATA_FOLDER: data, JWT_SECRET });
      expect(readSettings(environment).MASTER_SECRET).to.deep.equal([JWT_SECRET]);
    }
    expect(readStoredSecrets()).to.not.have.property('MASTER_SECRET');
  });

  it('prefers the former name in the environment to a generated secret', () => {
    prepareFirstStart({ DATA_FOLDER: data });
    const JWT_SECRET = 'a master secret of our own 0123456789';
    const { environment } = prepareFirstStart({ DATA_FOLDER: data, JWT_SECRET });
    expect(readSettings(environment).MASTER_SECRET).to.deep.equal([JWT_SECRET]);
  });

  it('restricts an existing file to its owner', () => {
    prepareFirstStart({ DATA_FOLDER: data });
    const { MASTER_SECRET } = readStoredSecrets();
    rmSync(file());
    writeFileSync(file(), `MASTER_SECRET=${MASTER_SECRET}\n`, { mode: 0o644 });
    prepareFirstStart({ DATA_FOLDER: data });
    expect(statSync(file()).mode & 0o777).to.equal(0o600);
  });

  it('generates no secrets in production, where a missing secret stops the start', () => {
    const production = { NODE_ENV: 'production', DATA_FOLDER: data, PUBLIC_URL: 'https://id.example' };
    const { environment, generated } = prepareFirstStart(production);
    expect(generated).to.equal(undefined);
    expect(existsSync(data)).to.equal(false);
    expect(() => readSettings(environment))
      .to.throw(SettingsError)
      .with.property('message')
      .that.includes('MASTER_SECRET')
      .and.includes('AUTH_CLIENT_SECRET');
    prepareFirstStart({ DATA_FOLDER: data });
    expect(() => readSettings(prepareFirstStart(production).environment), 'nor does it use them').to.throw(SettingsError);
  });
});

describe('simultaneous first starts', () => {
  it('use the same secrets, also after a start that crashed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
    const module = new URL('../../bootstrap/start/first-start.ts', import.meta.url).href;
    // All processes wait for the same start time.
    const script = `const { prepareFirstStart } = await import(${JSON.stringify(module)});
      while (Date.now() < Number(process.argv[1])) {}
      const { environment, generated } = prepareFirstStart({ DATA_FOLDER: ${JSON.stringify(folder)} });
      console.log(JSON.stringify([environment.MASTER_SECRET, environment.AUTH_CLIENT_SECRET, generated !== undefined]));`;
    const start = (startTime: number) =>
      new Promise<[string, string, boolean]>((resolve, reject) => {
        const child = spawn(process.execPath, ['--input-type=module', '-e', script, String(startTime)]);
        let output = '';
        child.stdout.on('data', (chunk) => {
          output += chunk;
        });
        child.once('exit', () => (output === '' ? reject(new Error('no output')) : resolve(JSON.parse(output))));
      });
    try {
      for (let attempt = 0; attempt < 3; attempt++) {
        rmSync(join(folder, 'secrets.env'), { force: true });
        const startTime = Date.now() + 1_500;
        const starts = await Promise.all(Array.from({ length: 6 }, () => start(startTime)));
        expect(new Set(starts.map(([masterSecrets]) => masterSecrets)).size).to.equal(1);
        expect(new Set(starts.map(([, secret]) => secret)).size).to.equal(1);
        expect(starts.filter(([, , isGenerated]) => isGenerated)).to.have.length(1);
        const { MASTER_SECRET } = parseEnv(readFileSync(join(folder, 'secrets.env'), 'utf8'));
        expect(MASTER_SECRET).to.equal(starts[0]?.[0]);
      }
      rmSync(join(folder, 'secrets.env'));
      writeFileSync(join(folder, 'secrets.env.lock'), '');
      utimesSync(join(folder, 'secrets.env.lock'), new Date(0), new Date(0));
      expect((await start(0))[2]).to.equal(true);
      expect(readdirSync(folder)).to.deep.equal(['secrets.env']);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('start without installed packages', () => {
  it('prints the remedy instead of a stack trace', () => {
    const folder = mkdtempSync(join(tmpdir(), 'vidimus-bare-'));
    try {
      mkdirSync(join(folder, 'bootstrap'));
      const script = join(folder, 'bootstrap', 'check-node.mjs');
      copyFileSync(new URL('../../bootstrap/check-node.mjs', import.meta.url), script);
      const { status, stderr } = spawnSync(process.execPath, [script], { encoding: 'utf8' });
      expect(status).to.equal(1);
      expect(stderr).to.include('Run "npm ci" first').and.to.not.include('    at ');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('reports a misspelt secret together with every other fault', () => {
    const folder = mkdtempSync(join(tmpdir(), 'vidimus-faults-'));
    try {
      const environment = { ...minimalEnvironment(), DATA_FOLDER: folder, PORT: 'abc', MASTER_SECRTE: 'x' };
      const { status, stderr } = spawnSync(process.execPath, [startedProgram()], { encoding: 'utf8', env: environment });
      expect(status).to.equal(1);
      expect(stderr).to.include('MASTER_SECRTE').and.to.include('did you mean MASTER_SECRET').and.to.include('PORT');
      expect(readdirSync(folder)).to.deep.equal([]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('is rejected with arguments, which it would ignore', () => {
    const { status, stderr } = spawnSync(process.execPath, [startedProgram(), '--port', '4000'], { encoding: 'utf8' });
    expect([status, stderr.trim()]).to.deep.equal([
      2,
      'Vidimus accepts no arguments; it is configured by the environment variables in docs/reference/settings.md.',
    ]);
  });
});

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

async function answers(address: string): Promise<boolean> {
  try {
    return (await fetch(`${address}/health/live`)).ok;
  } catch {
    return false;
  }
}

/** Starts the service by a command, and sends SIGTERM to the command only. @returns whether the service still answers. */
async function endCommand(command: string, args: readonly string[], isEnded: (address: string) => Promise<boolean>): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-command-'));
  const port = await freePort(createServer);
  const address = `http://localhost:${port}`;
  const environment = { HOME: folder, DATA_FOLDER: folder, PORT: String(port), DRAIN_SECONDS: '0' };
  // A separate process group, so that the signal reaches only the command.
  const child = spawn(command, args, { cwd: ROOT, env: { ...minimalEnvironment(), ...environment }, stdio: 'ignore', detached: true });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  try {
    while (!(await answers(address))) {
      expect(child.exitCode, `${command} has ended`).to.equal(null);
      await setTimeout(50);
    }
    child.kill('SIGTERM');
    await exited;
    return await isEnded(address);
  } finally {
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
    } catch {
      // All of them have ended.
    }
    rmSync(folder, { recursive: true, force: true });
  }
}

describe('service that is started by a command', () => {
  it('has ended when npm start ends on SIGTERM', async () => {
    expect(await endCommand('npm', ['start'], async (address) => !(await answers(address)))).to.equal(true);
  });

  it('ends soon after npx has ended on SIGTERM, whose shell forwards no signal', async () => {
    const isEnded = async (address: string) => {
      while (await answers(address)) await setTimeout(50);
      return true;
    };
    expect(await endCommand('npx', ['vidimus', 'start'], isEnded)).to.equal(true);
  });
});

const SOURCES = ['domain', 'application', 'adapters', 'bootstrap', 'config', 'packages', 'tools'];
const FILES = ['package.json', 'package-lock.json'];

describe('program that npm start runs', () => {
  let sourceTree: string;

  beforeEach(() => {
    sourceTree = realpathSync(mkdtempSync(join(tmpdir(), 'vidimus-build-')));
    for (const name of [...SOURCES, ...FILES]) cpSync(join(ROOT, name), join(sourceTree, name), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(sourceTree, 'node_modules'));
  });
  afterEach(() => rmSync(sourceTree, { recursive: true, force: true }));

  const program = () =>
    execFileSync(process.execPath, [join(sourceTree, 'tools/program.mjs')], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  const stamp = () => readFileSync(join(sourceTree, 'dist/sources.txt'), 'utf8');
  /** The service rejects arguments before any other check. */
  const expectRejected = (file: string): string => {
    try {
      return execFileSync(process.execPath, [file, 'argument'], { encoding: 'utf8', stdio: 'pipe' });
    } catch (error) {
      return (error as { stderr: string }).stderr;
    }
  };

  it('is built from the sources, and rebuilt after a source was changed, added or removed', () => {
    const buildStamp = join(sourceTree, 'dist/bootstrap/main.js');
    expect(program()).to.equal(buildStamp);
    expect(expectRejected(buildStamp)).to.include('accepts no arguments');
    const source = join(sourceTree, 'bootstrap/run.ts');
    for (const [description, change] of [
      ['changed', () => appendFileSync(source, "\nconsole.error('changed');\n")],
      ['came', () => cpSync(join(sourceTree, 'bootstrap/main.ts'), join(sourceTree, 'bootstrap/further.ts'))],
      ['went', () => rmSync(join(sourceTree, 'bootstrap/further.ts'))],
    ] as const) {
      const stampBefore = stamp();
      change();
      expect(program(), description).to.equal(buildStamp);
      const stampAfter = stamp();
      expect(stampAfter, description).to.not.equal(stampBefore);
      expect(expectRejected(buildStamp), description).to.include('changed');
      expect(program(), description).to.equal(buildStamp);
      expect(stamp()).to.equal(stampAfter);
    }
  });

  it('consists of the unbuilt sources when they cannot be built', () => {
    const source = join(sourceTree, 'bootstrap/main.ts');
    writeFileSync(join(sourceTree, 'bootstrap/run.ts'), 'this is no program');
    expect(program()).to.equal(source);
    // Without development dependencies.
    rmSync(join(sourceTree, 'node_modules'));
    expect(program()).to.equal(source);
  });

  it('finds its files at the places of their sources', () => {
    program();
    const migrations = (folder: string) =>
      readdirSync(join(folder, 'adapters/persistence/migrations/postgres'))
        .filter((file) => /^Migration.*\.[jt]s$/.test(file))
        .map((file) => file.slice(0, -3));
    expect(migrations(join(sourceTree, 'dist'))).to.deep.equal(migrations(sourceTree));
    for (const file of [
      'bootstrap/workers/worker.js',
      'adapters/kms/pkcs11/session-worker.js',
      'bootstrap/workers/trust-list-thread.js',
      'adapters/persistence/sqlite/checkpoint-worker.js',
    ])
      expect(existsSync(join(sourceTree, 'dist', file)), file).to.equal(true);
    const parts = readdirSync(join(sourceTree, 'dist/parts'));
    expect(parts.filter((name) => /^service-.*\.js$/.test(name))).to.have.length(1);
    const nonAsciiFiles = parts.filter(
      (name) => name.endsWith('.js') && /[^\0-\x7f]/.test(readFileSync(join(sourceTree, 'dist/parts', name), 'utf8')),
    );
    expect(nonAsciiFiles, 'kept in twice the memory').to.deep.equal([]);
  });
});
