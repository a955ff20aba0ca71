import { spawn, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { expect } from 'chai';
import { prepareFirstStart } from '../../bootstrap/first-start.ts';
import { readSettings, SettingsError } from '../../config/settings.ts';

describe('the first start', () => {
  let folder: string;
  let data: string;
  const file = () => join(data, 'secrets.env');
  const stored = () => parseEnv(readFileSync(file(), 'utf8'));

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
    data = join(folder, 'data');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('generates what is missing once, for the owner only, and says so once', () => {
    const first = prepareFirstStart({ DATA_FOLDER: data });
    const settings = readSettings(first.environment);
    expect(settings.MASTER_SECRET[0]).to.match(/^[\w-]{64}$/);
    expect(settings.AUTH_CLIENT_SECRET).to.match(/^[\w-]{32}$/);
    expect(first.generated).to.deep.equal({
      file: file(),
      clientId: 'root',
      clientSecret: settings.AUTH_CLIENT_SECRET,
    });
    expect(statSync(file()).mode & 0o777).to.equal(0o600);
    expect(statSync(data).mode & 0o777).to.equal(0o700);
    expect(readdirSync(data)).to.deep.equal(['secrets.env']);

    const text = readFileSync(file(), 'utf8');
    const second = prepareFirstStart({ DATA_FOLDER: data });
    const generated = ['MASTER_SECRET', 'AUTH_CLIENT_ID', 'AUTH_CLIENT_SECRET'];
    for (const start of [first, second]) expect([...start.fromFile]).to.have.members(generated);
    const own = { DATA_FOLDER: data, AUTH_CLIENT_ID: 'root' };
    expect([...prepareFirstStart(own).fromFile], 'what the environment says').not.to.include(
      'AUTH_CLIENT_ID',
    );
    expect(second.generated).to.equal(undefined);
    expect(second.kept).to.deep.equal({ file: file(), clientId: 'root' });
    expect(readSettings(second.environment)).to.deep.equal(settings);
    expect(readFileSync(file(), 'utf8')).to.equal(text);
  });

  it('generates nothing for a start that fails, since the secret is shown once', () => {
    expect(() => prepareFirstStart({ DATA_FOLDER: data, PORT: 'abc' })).to.throw(SettingsError, 'PORT');
    expect(existsSync(data)).to.equal(false);
  });

  it('generates no secret in place of one that is misspelt', () => {
    const secret = 'a master secret for the tests 0123456789';
    for (const [name, meant] of [
      ['MASTER_SECERT', 'MASTER_SECRET'],
      ['MASTERSECRET', 'MASTER_SECRET'],
      ['AUTH_CLIENT_SECRETS', 'AUTH_CLIENT_SECRET'],
    ] as const) {
      const start = () => prepareFirstStart({ DATA_FOLDER: data, [name]: secret });
      expect(start, name).to.throw(SettingsError, `${name}: is no setting; did you mean ${meant}?`);
      expect(start, name).to.not.throw(SettingsError, secret);
    }
    expect(existsSync(data)).to.equal(false);
    const given = { DATA_FOLDER: data, MASTER_SECERT: secret, MASTER_SECRET: secret };
    expect(prepareFirstStart(given).environment['MASTER_SECRET'], 'beside the right one').to.equal(secret);
  });

  it('speaks of no secret that opens nothing', () => {
    prepareFirstStart({ DATA_FOLDER: data });
    const oidc = {
      OIDC: 'https://login.example',
      OIDC_CLIENT_ID: 'vidimus',
      OIDC_CLIENT_SECRET: 'a-secret',
    };
    const later = prepareFirstStart({ DATA_FOLDER: data, ...oidc });
    expect([later.generated, later.kept]).to.deep.equal([undefined, undefined]);
    expect(prepareFirstStart({ DATA_FOLDER: data }).kept).to.include({ clientId: 'root' });
  });

  it('makes secrets that nobody else has', () => {
    const [one, other] = ['one', 'other'].map((name) =>
      readSettings(prepareFirstStart({ DATA_FOLDER: join(folder, name) }).environment),
    );
    expect(one?.MASTER_SECRET).to.not.deep.equal(other?.MASTER_SECRET);
    expect(one?.AUTH_CLIENT_SECRET).to.not.equal(other?.AUTH_CLIENT_SECRET);
  });

  it('generates nothing that is given, and what is given wins over what was generated', () => {
    const given = {
      DATA_FOLDER: data,
      AUTH_CLIENT_ID: 'operator',
      AUTH_CLIENT_SECRET: 'a-secret-of-the-operator',
    };
    const first = prepareFirstStart(given);
    expect(first.generated, 'nothing to show').to.equal(undefined);
    expect(Object.keys(stored())).to.deep.equal(['MASTER_SECRET']);
    const { MASTER_SECRET } = readSettings(first.environment);
    const own = 'a master secret of our own 0123456789';
    const later = readSettings(prepareFirstStart({ ...given, MASTER_SECRET: own }).environment);
    expect(later.MASTER_SECRET).to.deep.equal([own]);
    expect(stored()['MASTER_SECRET'], 'kept').to.equal(MASTER_SECRET[0]);
  });

  it('adds what a later start lacks, and keeps what is there', () => {
    prepareFirstStart({ DATA_FOLDER: data });
    const { MASTER_SECRET } = stored();
    writeFileSync(file(), `MASTER_SECRET=${MASTER_SECRET}\n`, { mode: 0o600 });
    const again = prepareFirstStart({ DATA_FOLDER: data, AUTH_CLIENT_ID: '' });
    expect(again.generated?.clientId).to.equal('root');
    expect(stored()).to.include({ MASTER_SECRET, AUTH_CLIENT_ID: 'root' });
    expect(statSync(file()).mode & 0o777).to.equal(0o600);
  });

  it('refuses to make a new master secret for a database that another one sealed', () => {
    prepareFirstStart({ DATA_FOLDER: data });
    writeFileSync(join(data, 'vidimus.sqlite'), '');
    for (const damaged of ['', 'AUTH_CLIENT_ID=root\n', undefined]) {
      rmSync(file(), { force: true });
      if (damaged !== undefined) writeFileSync(file(), damaged);
      expect(() => prepareFirstStart({ DATA_FOLDER: data }))
        .to.throw(SettingsError)
        .with.property('message')
        .that.matches(/MASTER_SECRET.*restore the file/);
      expect(existsSync(file()) ? readFileSync(file(), 'utf8') : undefined, 'unchanged').to.equal(damaged);
    }
    prepareFirstStart({ DATA_FOLDER: data, MASTER_SECRET: 'a master secret of our own 0123456789' });
  });

  it('accepts the older name of the master secret', () => {
    const JWT_SECRET = 'a master secret of our own 0123456789';
    for (let start = 0; start < 2; start++) {
      const { environment } = prepareFirstStart({ DATA_FOLDER: data, JWT_SECRET });
      expect(readSettings(environment).MASTER_SECRET).to.deep.equal([JWT_SECRET]);
    }
    expect(stored()).to.not.have.property('MASTER_SECRET');
  });

  it('prefers the older name that is given to a secret that was generated before', () => {
    prepareFirstStart({ DATA_FOLDER: data });
    const JWT_SECRET = 'a master secret of our own 0123456789';
    const { environment } = prepareFirstStart({ DATA_FOLDER: data, JWT_SECRET });
    expect(readSettings(environment).MASTER_SECRET).to.deep.equal([JWT_SECRET]);
  });

  it('makes an existing file private again', () => {
    prepareFirstStart({ DATA_FOLDER: data });
    const { MASTER_SECRET } = stored();
    rmSync(file());
    writeFileSync(file(), `MASTER_SECRET=${MASTER_SECRET}\n`, { mode: 0o644 });
    prepareFirstStart({ DATA_FOLDER: data });
    expect(statSync(file()).mode & 0o777).to.equal(0o600);
  });

  it('generates nothing in production, where a missing secret stops the start', () => {
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
    expect(() => readSettings(prepareFirstStart(production).environment), 'nor does it use them').to.throw(
      SettingsError,
    );
  });
});

describe('first starts at the same time', () => {
  it('come to the same secrets, also after one that died of it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
    const module = new URL('../../bootstrap/first-start.ts', import.meta.url).href;
    // Each waits for the same moment.
    const script = `const { prepareFirstStart } = await import(${JSON.stringify(module)});
      while (Date.now() < Number(process.argv[1])) {}
      const { environment, generated } = prepareFirstStart({ DATA_FOLDER: ${JSON.stringify(folder)} });
      console.log(JSON.stringify([environment.MASTER_SECRET, environment.AUTH_CLIENT_SECRET, generated !== undefined]));`;
    const start = (at: number) =>
      new Promise<[string, string, boolean]>((resolve, reject) => {
        const child = spawn(process.execPath, ['--input-type=module', '-e', script, String(at)]);
        let output = '';
        child.stdout.on('data', (chunk) => {
          output += chunk;
        });
        child.once('exit', () =>
          output === '' ? reject(new Error('no output')) : resolve(JSON.parse(output)),
        );
      });
    try {
      for (let round = 0; round < 3; round++) {
        rmSync(join(folder, 'secrets.env'), { force: true });
        const at = Date.now() + 1_500;
        const all = await Promise.all(Array.from({ length: 6 }, () => start(at)));
        expect(new Set(all.map(([master]) => master)).size).to.equal(1);
        expect(new Set(all.map(([, secret]) => secret)).size).to.equal(1);
        expect(all.filter(([, , isGenerated]) => isGenerated)).to.have.length(1);
        const { MASTER_SECRET } = parseEnv(readFileSync(join(folder, 'secrets.env'), 'utf8'));
        expect(MASTER_SECRET).to.equal(all[0]?.[0]);
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

describe('a start without the packages', () => {
  it('says what to do instead of showing a stack', () => {
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

  it('is refused with arguments, which would be passed over', () => {
    const main = fileURLToPath(new URL('../../bootstrap/main.ts', import.meta.url));
    const { status, stderr } = spawnSync(process.execPath, [main, '--port', '4000'], { encoding: 'utf8' });
    expect([status, stderr.trim()]).to.deep.equal([
      2,
      'Vidimus takes no arguments; it is set by environment variables, which docs/settings.md lists.',
    ]);
  });
});
