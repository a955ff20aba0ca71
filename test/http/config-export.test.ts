import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { expect } from 'chai';
import { AGE, CARD, ConfigFolder, dump, FILES, makeImportedKey, placeholder, SECRETS } from '../support/config-folder.ts';
import { httpDatabases, type TestDatabase } from '../support/databases.ts';
import { type ProcessResult, runCommand } from '../support/programs.ts';
import { ROOT, startTestService, type TestService } from '../support/test-service.ts';

const PUBLIC_URL = 'http://localhost:3999';
const SETTINGS = {
  MASTER_SECRET: 'a master secret for the tests 0123456789',
  AUTH_CLIENT_ID: ROOT.clientId,
  AUTH_CLIENT_SECRET: ROOT.secret,
};
const STARS = {
  config: { format: 'dc+sd-jwt', display: [{ name: '***', locale: 'en' }] },
  vct: 'urn:acme:stars:1',
  description: '***',
  claims: { name: '***', more: [['***']] },
};
const MORE_SECRETS = { admin: '', more: 'the-secret-of-another-client' };

function run(command: string, args: readonly string[], environment: Readonly<Record<string, string>>): Promise<ProcessResult> {
  return runCommand(`commands/${command}`, args, environment);
}

/** The values that belong to the variables of an export. */
function valuesOf(folder: string): Record<string, string> {
  const values: Record<string, string> = {};
  for (const name of Object.keys(parseEnv(readFileSync(join(folder, 'acme/secrets.env.example'), 'utf8')))) {
    const [, value] = Object.entries({
      WEBHOOK_KEY: SECRETS.ACME_WEBHOOK,
      ISSUANCE_CLIENT_SECRET: SECRETS.ACME_UPSTREAM,
      PASSWORD: SECRETS.ACME_PASSWORD,
      ACME_SHOP_SECRET: SECRETS.ACME_SHOP,
      ADMIN_SECRET: MORE_SECRETS.admin,
      MORE_SECRET: MORE_SECRETS.more,
      MORE_SECRET_2: MORE_SECRETS.more,
    }).find(([ending]) => name.endsWith(ending)) ?? [name, ''];
    values[name] = value;
  }
  return values;
}

const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
const contents = (folder: string) => Object.fromEntries(filesIn(folder).map((file) => [file, readFileSync(join(folder, file), 'utf8')]));

for (const { name, open } of httpDatabases()) {
  describe(`tenant export to files, from ${name}`, () => {
    let database: TestDatabase;
    const folders: ConfigFolder[] = [];
    let running: TestService | undefined;

    before(async function () {
      const opened = await open();
      if (opened === undefined) return this.skip();
      database = opened;
      const folder = newFolder();
      folder.write(FILES);
      const service = await start({ CONFIG_FOLDER: folder.path, ...SECRETS });
      await addMore(service);
      await stop();
    });
    afterEach(() => stop());
    after(async () => {
      for (const folder of folders) folder.remove();
      await database?.drop();
    });

    const newFolder = () => {
      const folder = new ConfigFolder();
      folders.push(folder);
      return folder;
    };
    const start = async (environment: Readonly<Record<string, string>>, url = database.url) => {
      running = await startTestService({ DATABASE_URL: url, PUBLIC_URL, ...environment });
      return running;
    };
    const stop = async () => {
      await running?.close();
      running = undefined;
    };
    const doExport = (folder: ConfigFolder, ...args: string[]) =>
      run('config-export', ['acme', folder.path, ...args], { ...SETTINGS, DATABASE_URL: database.url });

    /** What only the API makes. */
    const addMore = async (service: TestService) => {
      const base = `http://127.0.0.1:${service.service.port}`;
      const as = async (client_id: string, client_secret: string) => {
        const json = { grant_type: 'client_credentials', client_id, client_secret };
        const { access_token: token } = (await service.call('POST', `${base}/oauth2/token`, { json })).body;
        return async (method: string, path: string, json: unknown = {}) => {
          const answer = await service.call(method, base + path, { token, json });
          expect(answer.status, answer.text).to.be.oneOf([200, 201]);
          return answer.body;
        };
      };
      const root = await as(ROOT.clientId, ROOT.secret);
      MORE_SECRETS.admin = (await root('POST', '/client/acme-admin/rotate-secret')).secret;
      const admin = await as('acme-admin', MORE_SECRETS.admin);
      const secret = MORE_SECRETS.more;
      await admin('POST', '/client', { clientId: 'acme:more', roles: ['issuance:manage'], secret });
      await admin('POST', '/client', {
        clientId: 'acme:More',
        roles: ['issuance:manage', 'presentation:manage'],
        secret,
        // May be made later, or is gone since.
        allowedIssuanceConfigs: ['later', 'card'],
        allowedPresentationConfigs: ['gone'],
      });
      await admin('PATCH', '/issuer/credentials/card', { description: `not a ${placeholder('PLACEHOLDER')}` });
      await admin('POST', '/key', { id: 'unused', description: 'For nothing yet' });
      await admin('POST', '/key-chain', { id: 'lists', usageType: 'trustList', selfSigned: true });
      const brought = await makeImportedKey();
      await admin('POST', '/key-chain/import', { id: 'brought', usageType: 'signing', ...brought });
      await admin('POST', '/key-chain/second/rotate');
      // What stands for a secret in answers is a text like any other everywhere else.
      await admin('PATCH', '/issuer/credentials/card', { config: { ...CARD.config, display: [{ name: '***', locale: 'en' }] } });
      await admin('POST', '/issuer/credentials', { ...STARS, id: 'stars' });
      await admin('POST', '/key', { id: 'stars', description: '***' });
      await admin('POST', '/key-chain', { id: 'starred', usageType: 'access', organization: '***' });
      await root('PATCH', '/tenant/acme', { name: '***', description: '***' });
    };

    it('leaves the tenant unchanged, and can be imported as an equal tenant on another service', async () => {
      const folder = newFolder();
      const { code, stderr } = await doExport(folder);
      expect([code, stderr]).to.deep.equal([0, '']);
      const before = await dump(database.url);
      const values = valuesOf(folder.path);
      expect(Object.entries(values).filter(([, value]) => value === '')).to.deep.equal([]);
      await start({ CONFIG_FOLDER: folder.path, ...values });
      await stop();
      expect(await dump(database.url)).to.deep.equal(before);

      const elsewhere = await open();
      if (elsewhere === undefined) throw new Error('There was a database a moment ago.');
      const first = database;
      try {
        database = elsewhere;
        const service = await start({ CONFIG_FOLDER: folder.path, ...values });
        const json = { grant_type: 'client_credentials', client_id: 'acme-admin', client_secret: MORE_SECRETS.admin };
        const base = `http://127.0.0.1:${service.service.port}`;
        expect((await service.call('POST', `${base}/oauth2/token`, { json })).status).to.equal(200);
        await stop();
        const again = newFolder();
        expect((await doExport(again)).code).to.equal(0);
        const withoutBrought = (all: Record<string, string>) => ({ ...all, 'acme/keys/brought.json': '' });
        expect(withoutBrought(contents(again.path))).to.deep.equal(withoutBrought(contents(folder.path)));
        const keys = JSON.stringify((await dump(elsewhere.url))['key_chains']);
        for (const row of (await dump(first.url))['key_chains'] ?? []) expect(keys).to.not.include(row);
      } finally {
        database = first;
        await elsewhere.drop();
      }
    });

    it('contains no secret, and the same files each time', async () => {
      const [one, other] = [newFolder(), newFolder()];
      expect((await doExport(one)).code).to.equal(0);
      expect((await doExport(other)).code).to.equal(0);
      const files = contents(one.path);
      expect(contents(other.path)).to.deep.equal(files);
      expect(Object.keys(files)).to.deep.equal([
        'acme/clients/acme-admin.json',
        'acme/clients/acme-shop.json',
        'acme/clients/acme_More.json',
        'acme/clients/acme_more-2.json',
        'acme/issuance/config.json',
        'acme/issuance/credentials/card.json',
        'acme/issuance/credentials/stars.json',
        'acme/keys/access.json',
        'acme/keys/brought.json',
        'acme/keys/lists.json',
        'acme/keys/second.json',
        'acme/keys/signing.json',
        'acme/keys/starred.json',
        'acme/keys/stars.json',
        'acme/keys/status-list.json',
        'acme/keys/trust-list.json',
        'acme/keys/unused.json',
        'acme/presentation/age.json',
        'acme/registrar.json',
        'acme/secrets.env.example',
        'acme/tenant.json',
        'acme/trust-lists/issuers.json',
      ]);
      const text = Object.values(files).join('\n');
      for (const secret of [...Object.values(SECRETS), ...Object.values(MORE_SECRETS)]) {
        expect(text).to.not.include(secret);
      }
      expect(text).to.not.match(/PRIVATE KEY|"d":|argon2/);
      expect(JSON.parse(files['acme/keys/status-list.json'] ?? '')).to.include({ rootKeyChainId: 'signing' });
      expect(JSON.parse(files['acme/keys/lists.json'] ?? '')).to.include({ selfSigned: true });
      const card = JSON.parse(files['acme/issuance/credentials/card.json'] ?? '');
      expect(card.claimsWebhook.auth.config.value).to.equal(placeholder('ACME_CARD_CLAIMS_WEBHOOK_KEY'));
      expect(card.description).to.equal(`not a $${placeholder('PLACEHOLDER')}`);
      expect(files['acme/secrets.env.example']).to.match(/^ACME_CARD_CLAIMS_WEBHOOK_KEY=$/m);
    });

    // The rest is the same whatever the database.
    if (name !== 'sqlite') return;

    it('overwrites a folder only with an option, and lists the files that it keeps', async () => {
      const folder = newFolder();
      folder.write({ 'acme/clients/gone.json': '{}', 'acme/tenant.json': '{}' });
      const refused = await doExport(folder);
      expect(refused.code).to.equal(1);
      expect(refused.stderr).to.match(/acme is not empty; --force overwrites/);
      expect(readFileSync(join(folder.path, 'acme/tenant.json'), 'utf8')).to.equal('{}');
      const forced = await doExport(folder, '--force');
      expect(forced.code).to.equal(0);
      expect(forced.stderr).to.match(/clients\/gone.json existed before/);
      expect(readFileSync(join(folder.path, 'acme/tenant.json'), 'utf8')).to.include('"id": "acme"');
    });

    it('fails for an unknown tenant and without the secrets of the service', async () => {
      const folder = newFolder();
      const settings = { ...SETTINGS, DATABASE_URL: database.url };
      const unknown = await run('config-export', ['nobody', folder.path], settings);
      expect([unknown.code, unknown.stderr]).to.deep.equal([1, 'there is no tenant "nobody"\n']);
      const { MASTER_SECRET: _secret, ...rest } = settings;
      const locked = await run('config-export', ['acme', folder.path], { ...rest, DATA_FOLDER: folder.path });
      expect(locked.code).to.equal(1);
      expect(locked.stderr).to.include(`there is no ${join(folder.path, 'secrets.env')}`);
      const { AUTH_CLIENT_ID: _id, AUTH_CLIENT_SECRET: _clientSecret, ...production } = settings;
      const elsewhere = newFolder();
      const exported = await run('config-export', ['acme', elsewhere.path], { ...production, NODE_ENV: 'production' });
      expect([exported.code, exported.stderr]).to.deep.equal([0, '']);
      for (const [wrong, fault] of [
        [['acme'], 'name a tenant and a folder'],
        [['acme', folder.path, 'other'], 'only one tenant is exported, into one folder'],
        [['acme', folder.path, '--all'], "Unknown option '--all'"],
        [['--help'], undefined],
      ] as const) {
        const { code, stderr } = await run('config-export', wrong, settings);
        const usage = 'usage: npm run config:export -- <tenant> <folder> [--force]';
        expect([code, stderr.split('\n')]).to.deep.equal([2, [...(fault === undefined ? [] : [fault]), usage, '']]);
      }
      const empty = { ...settings, DATABASE_URL: `sqlite:${join(folder.path, 'nothing', 'here.sqlite')}` };
      const nothing = await run('config-export', ['acme', folder.path], empty);
      expect([nothing.code, nothing.stderr]).to.deep.equal([
        1,
        `the export failed: there is no database ${join(folder.path, 'nothing', 'here.sqlite')}\n`,
      ]);
      expect(readdirSync(folder.path)).to.deep.equal([]);
    });
  });
}

/** Without what may be so, and what others make of it. */
function withoutNotes(text: string): string {
  return text.replaceAll(/^note: .*\n/gm, '');
}

describe('configuration files that are checked without a service', () => {
  let folder: ConfigFolder;

  beforeEach(() => {
    folder = new ConfigFolder();
    folder.write(FILES);
  });
  afterEach(() => folder.remove());

  it('are listed if valid, without the values of variables', async () => {
    folder.write({
      'acme/clients/till.json': { clientId: placeholder('ACME_SHOP'), roles: ['issuance:offer'] },
      'acme/clients/desk.json': { clientId: `${placeholder('DESK')}-desk`, roles: ['issuance:offer'] },
    });
    const environment = { ...SECRETS, DESK: 'shop' };
    const { code, stdout, stderr } = await run('config-check', [folder.path], environment);
    expect([code, withoutNotes(stderr)]).to.deep.equal([0, '']);
    expect(stderr)
      .to.include('note: acme/presentation/')
      .and.not.match(/HAIP|ARF|EUDI/);
    expect(stdout).to.match(/^acme\/clients\/acme-shop.json: client acme-shop$/m);
    expect(stdout).to.include(`acme/clients/desk.json: client ${placeholder('DESK')}-desk\n`);
    expect(stdout).to.include(`acme/clients/till.json: client ${placeholder('ACME_SHOP')}\n`);
    for (const secret of Object.values(SECRETS)) expect(stdout).to.not.include(secret);
    expect(stdout).to.match(/12 files of 2 tenants are valid/);
  });

  const VAULT = { type: 'vault', address: 'https://vault.example:8200', auth: { method: 'token', token: placeholder('VAULT_LOGIN') } };
  const tenantWith = (kms: string) => `${FILES['acme/tenant.yaml']}kms: ${kms}\n`;
  const KEY_PROVIDERS = { default: 'local', providers: { local: { type: 'local' }, house: VAULT } };

  it('pass without a tenant, with a warning if one was expected', async () => {
    const empty = new ConfigFolder();
    try {
      const { code, stderr } = await run('config-check', [empty.path], SECRETS);
      expect([code, stderr.trim()]).to.deep.equal([
        0,
        `warning: ${empty.path} has no tenant. A tenant is a folder with tenant.json: ${empty.path}/<tenant>/tenant.json`,
      ]);
    } finally {
      empty.remove();
    }
  });

  it('may name key providers of KMS_CONFIG, which the check does not call', async () => {
    folder.write({ 'acme/tenant.yaml': tenantWith('house') });
    const { code, stdout, stderr } = await run('config-check', [folder.path], {
      ...SECRETS,
      KMS_CONFIG: JSON.stringify(KEY_PROVIDERS),
      VAULT_LOGIN: 'a token of the vault',
    });
    expect([code, withoutNotes(stderr)]).to.deep.equal([0, '']);
    expect(stdout).to.include('files of 2 tenants are valid');
  });

  it('may name key providers of kms.json in the data folder', async () => {
    folder.write({ 'acme/tenant.yaml': tenantWith('house') });
    const DATA_FOLDER = mkdtempSync(join(tmpdir(), 'vidimus-data-'));
    writeFileSync(join(DATA_FOLDER, 'kms.json'), JSON.stringify(KEY_PROVIDERS));
    const environment = { ...SECRETS, DATA_FOLDER, VAULT_LOGIN: 'a token of the vault' };
    const { code, stderr } = await run('config-check', [folder.path], environment);
    expect([code, withoutNotes(stderr)]).to.deep.equal([0, '']);
  });

  it('are rejected with a key provider that KMS_CONFIG lacks', async () => {
    folder.write({ 'acme/tenant.yaml': tenantWith('hose') });
    const { code, stderr } = await run('config-check', [folder.path], {
      ...SECRETS,
      KMS_CONFIG: JSON.stringify(KEY_PROVIDERS),
      VAULT_LOGIN: 'a token of the vault',
    });
    expect(code).to.equal(1);
    expect(stderr).to.match(/acme\/tenant\.yaml: kms: .*hose/);
  });

  it('are not checked with an invalid KMS_CONFIG, whose secrets are not printed', async () => {
    const { code, stderr } = await run('config-check', [folder.path], {
      ...SECRETS,
      KMS_CONFIG: JSON.stringify({ providers: { house: { ...VAULT, type: 'safe' } } }),
      VAULT_LOGIN: 'a token of the vault',
    });
    expect(code).to.equal(1);
    expect(stderr).to.include('KMS_CONFIG: providers.house').and.not.include('a token of the vault');
  });

  it('are reported with all faults, without secrets', async () => {
    folder.write({
      'acme/tenant.yaml': 'name: 7',
      'acme/presentation/who.json': { dcql_query: {}, accessKeyChainId: 'nowhere' },
      'acme/keys/access.json': { usageType: 'access', key: placeholder('ACME_WEBHOOK') },
      'acme/clients/till.json': { roles: [], secret: SECRETS.ACME_SHOP, allowedIssuanceConfigs: ['none'] },
    });
    const { code, stdout, stderr } = await run('config-check', [folder.path], SECRETS);
    expect([code, stdout]).to.deep.equal([1, '']);
    const files = stderr.split('\n').map((line) => line.split(':').slice(0, 2).join(':'));
    expect(files).to.include.members([
      'acme/clients/till.json: roles',
      'acme/keys/access.json: key',
      'acme/presentation/who.json: dcql_query.credentials',
      'acme/tenant.yaml: name',
    ]);
    for (const secret of Object.values(SECRETS)) expect(stderr).to.not.include(secret);
  });

  it('have readable errors, regardless of the variables', async () => {
    folder.write({ 'acme/presentation/age.json': { ...AGE, accessKeyChainId: 'acess' } });
    const environment = { ...SECRETS, ACME_WEBHOOK: 'key', ACME_UPSTREAM: 'acme' };
    const { code, stderr } = await run('config-check', [folder.path], environment);
    expect([code, stderr.split('\n')[0]]).to.deep.equal([
      1,
      'acme/presentation/age.json: accessKeyChainId: There is no key chain "acess".',
    ]);
  });

  it('may restrict a client to missing configurations, with a warning', async () => {
    folder.write({
      'acme/clients/till.json': {
        roles: ['issuance:offer'],
        allowedIssuanceConfigs: ['card', placeholder('TILL')],
        allowedPresentationConfigs: ['gone'],
      },
    });
    const { code, stdout, stderr } = await run('config-check', [folder.path], { ...SECRETS, TILL: 'nowhere-to-be-seen' });
    const warning = (member: string, id: string) =>
      `warning: acme/clients/till.json: ${member}: the configuration "${id}" does not exist yet, so this id allows nothing`;
    expect([code, withoutNotes(stderr).split('\n')]).to.deep.equal([
      0,
      [warning('allowedIssuanceConfigs.1', placeholder('TILL')), warning('allowedPresentationConfigs.0', 'gone'), ''],
    ]);
    expect(stdout).to.match(/11 files of 2 tenants are valid/);
  });

  it('are rejected with a masked secret', async () => {
    const auth = { type: 'apiKey', config: { headerName: 'X-Key', value: '***' } };
    const webhook = { url: 'https://backend.example/hook', auth };
    const registrar = { registrarUrl: 'https://registrar.example', oidcUrl: 'https://login.example' };
    const upstream = { issuer: 'https://login.example', clientId: 'acme', clientSecret: '***' };
    folder.write({
      'acme/registrar.json': { ...registrar, clientId: 'a', clientSecret: '***', username: 'b', password: '***' },
      'acme/presentation/age.json': { ...AGE, webhook },
      'acme/issuance/config.json': { display: [{ name: 'Acme', locale: 'en' }], chainedAs: { upstream } },
      'acme/issuance/credentials/card.json': { ...CARD, claimsWebhook: webhook, notificationWebhook: webhook },
      'acme/clients/acme-shop.json': { roles: ['issuance:offer'], secret: '***' },
    });
    const { code, stderr } = await run('config-check', [folder.path], SECRETS);
    expect(code).to.equal(1);
    expect(stderr.split('\n').filter((line) => line.includes('is a masked secret'))).to.have.length(7);
  });

  it('are found in the configured folder', async () => {
    const none = join(folder.path, 'none');
    const missing = await run('config-check', [none], SECRETS);
    expect([missing.code, missing.stderr]).to.deep.equal([1, `${none}: there is no such folder, or it cannot be read\n`]);
    const one = join(folder.path, 'acme');
    const tenant = await run('config-check', [one], SECRETS);
    expect([tenant.code, tenant.stderr]).to.deep.equal([1, `${one}: this is the folder of one tenant; use its parent folder\n`]);
    for (const [wrong, fault] of [
      [[], 'a folder is missing'],
      [[folder.path, one], 'only one folder is checked'],
      [['--lax', folder.path], "Unknown option '--lax'"],
      [['--profile', 'arf', folder.path], 'Unknown profile "arf" in --profile. Allowed: haip, eu.'],
      [['--help'], undefined],
    ] as const) {
      const { code, stdout, stderr } = await run('config-check', wrong, SECRETS);
      const said = [...(fault === undefined ? [] : [fault]), 'usage: npm run config:check -- <folder> [--profile haip|eu] [--strict]', ''];
      expect([code, stdout, stderr.split('\n')]).to.deep.equal([2, '', said]);
    }
  });
});
