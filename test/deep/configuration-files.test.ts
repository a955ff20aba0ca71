import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { ConfigFolder, dump, FILES, placeholder, SECRETS } from '../support/config-folder.ts';
import { databases } from '../support/databases.ts';
import { runProcess } from '../support/programs.ts';
import { startSecondProcess } from '../support/raced-services.ts';
import { MASTER_SECRET, ROOT, startTestService } from '../support/test-service.ts';

const SETTINGS = { MASTER_SECRET, AUTH_CLIENT_ID: ROOT.clientId, AUTH_CLIENT_SECRET: ROOT.secret };

for (const { name, open } of databases())
  describe(`several processes that start with one configuration folder, on ${name}`, () => {
    it('import it once, and audit the import once', async function () {
      const database = await open();
      if (database === undefined) return this.skip();
      const folder = new ConfigFolder();
      folder.write(FILES);
      const common = { DATABASE_URL: database.url, CONFIG_FOLDER: folder.path, PUBLIC_URL: 'http://localhost:3999', ...SECRETS };
      const environment = { HOST: '127.0.0.1', LOG_LEVEL: 'silent', ...SETTINGS, ...common };
      try {
        const starts = await Promise.allSettled([1, 2].map(() => startSecondProcess(environment)));
        const processes = starts.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
        await Promise.all(processes.map((each) => each.stop()));
        const startErrors = starts.flatMap((each) => (each.status === 'rejected' ? [String(each.reason)] : []));
        if (name === 'postgres') expect(startErrors).to.deep.equal([]);
        else expect(startErrors.join()).to.match(/another service uses .*; several processes require PostgreSQL/);
        const rows = await dump(database.url);
        expect(rows['tenants']).to.have.length(2);
        expect(rows['key_chains']).to.have.length(9);
        expect(rows['trust_list_versions']).to.have.length(0);
        const imports = async () => (await dump(database.url))['audit_entries']?.filter((row) => row.includes('folder import'));
        const entries = await imports();
        expect(entries).to.not.be.empty;
        expect(entries?.join()).to.not.include(SECRETS.ACME_WEBHOOK);
        await (await startTestService(common)).close();
        expect(await imports()).to.deep.equal(entries);
      } finally {
        folder.remove();
        await database.drop();
      }
    });
  });

describe('processes that read or write configuration files', () => {
  let folder: ConfigFolder;
  beforeEach(() => {
    folder = new ConfigFolder();
    folder.write(FILES);
  });
  afterEach(() => folder.remove());

  it('check a valid folder with exit code 0', async () => {
    const { code, stdout, stderr } = await runProcess('commands/config-check', [folder.path], SECRETS);
    expect(code, stderr).to.equal(0);
    expect(stdout).to.match(/10 files of 2 tenants are valid/);
  });

  it('export a tenant in production without AUTH_CLIENT_SECRET', async () => {
    const database = `sqlite:${join(mkdtempSync(join(tmpdir(), 'vidimus-data-')), 'vidimus.sqlite')}`;
    const common = { MASTER_SECRET, DATABASE_URL: database };
    const service = await startTestService({ ...common, CONFIG_FOLDER: folder.path, PUBLIC_URL: 'http://localhost:3999', ...SECRETS });
    await service.close();
    const target = new ConfigFolder();
    const { code, stderr } = await runProcess('commands/config-export', ['acme', target.path], { ...common, NODE_ENV: 'production' });
    target.remove();
    expect([code, stderr]).to.deep.equal([0, '']);
  });

  it('stop a start with an invalid file with the message of the check, exit code 1 and no secrets', async () => {
    const environment = { ...SECRETS, ...SETTINGS, DATA_FOLDER: join(folder.path, '.data'), CONFIG_FOLDER: folder.path, PORT: '3998' };
    writeFileSync(join(folder.path, 'acme/tenant.yaml'), `name: ${placeholder('NOT_SET')}\nx: 1\n`);
    const { code, stdout, stderr } = await runProcess('main', [], environment);
    expect(code).to.equal(1);
    expect(stderr).to.match(/^ {2}- acme\/tenant.yaml: name: the variable NOT_SET is not set$/m);
    expect(stderr).to.match(/^ {2}- acme\/tenant.yaml: x: there is no such property$/m);
    for (const secret of Object.values(SECRETS)) expect(stdout + stderr).to.not.include(secret);
  });
});
