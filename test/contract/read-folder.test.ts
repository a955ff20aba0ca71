import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { MAX_FILE_BYTES, MAX_FILES, readFolder } from '../../config/configuration-files/read-folder.ts';

const SECRET = 'a secret of a client';
/** A placeholder, written so that the linter does not take it for a template. */
const placeholder = (name: string) => `$\{${name}}`;

describe('configuration folder', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const write = (files: Readonly<Record<string, string>>) => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
  };
  const readWith = (environment = {}) => readFolder(folder, environment);
  const faults = () => readWith().faults.map(({ file, path, message }) => `${file}|${path}|${message}`);

  it('is read in the order of names, and the path of each file decides its kind', () => {
    write({
      'b/tenant.yaml': 'name: B',
      'a/tenant.json': '{"name": "A"}',
      'a/registrar.yml': 'username: u',
      'a/keys/signing.json': '{}',
      'a/issuance/config.json': '{}',
      'a/issuance/credentials/pid.yaml': 'id: pid',
      'a/presentation/age.check.json': '{}',
      'a/trust-lists/issuers.json': '{}',
      'a/clients/shop.json': '{}',
    });
    const { documents, tenants, faults } = readWith();
    expect(faults).to.deep.equal([]);
    expect(tenants).to.deep.equal(['a', 'b']);
    expect(documents.map(({ tenant, kind, name }) => `${tenant} ${kind} ${name}`)).to.deep.equal([
      'a client shop',
      'a issuance-configuration config',
      'a credential-configuration pid',
      'a key-chain signing',
      'a presentation-configuration age.check',
      'a registrar-configuration registrar',
      'a tenant tenant',
      'a trust-list issuers',
      'b tenant tenant',
    ]);
    expect(documents.at(-1)).to.deep.include({ file: 'b/tenant.yaml', value: { name: 'B' }, unfilled: [] });
  });

  it('ignores files outside of the configuration', () => {
    write({
      'README.md': '#',
      'secrets.env.example': '',
      '.git/config': '',
      'a/.tenant.json.swp': '',
      'a/secrets.env.example': '',
      'a/tenant.json': '{}',
    });
    expect(readWith()).to.deep.include({ faults: [], tenants: ['a'] });
  });

  it('rejects any other file', () => {
    write({
      'tenant.json': '{}',
      'a/tenants.json': '{}',
      'a/tenant.toml': '',
      'a/issuance/pid.json': '{}',
      'a/issuance/credentials/deep/pid.json': '{}',
      'a/keys/README.md': '',
      'a/other/x.json': '{}',
      'a/constructor.json': '{}',
    });
    const { documents, faults } = readWith();
    expect(documents).to.deep.equal([]);
    expect(faults.map(({ file }) => file)).to.deep.equal([
      'a/constructor.json',
      'a/issuance/credentials/deep',
      'a/issuance/pid.json',
      'a/keys/README.md',
      'a/other',
      'a/tenant.toml',
      'a/tenants.json',
      'tenant.json',
    ]);
  });

  it('reports every fault of every file, and no file content', () => {
    write({
      'a/tenant.json': `{"name": "${SECRET}" "x"}`,
      'a/clients/one.json': `{"secret": "${placeholder('ONE')}", "description": "${placeholder('TWO')}"}`,
      'a/clients/two.yaml': `secret: ${SECRET}\nsecret: x`,
      'b/tenant.json': `{"name": "${placeholder('A-B')}"}`,
    });
    const problems = faults();
    expect(problems).to.have.length(5);
    expect(problems[0]).to.equal('a/clients/one.json|secret|the variable ONE is not set');
    expect(problems[1]).to.equal('a/clients/one.json|description|the variable TWO is not set');
    expect(problems[2]).to.match(/^a\/clients\/two.yaml\|\|.*duplicate key \(line 2\)$/);
    expect(problems[3]).to.match(/^a\/tenant.json\|\|is not JSON/);
    expect(problems[4]).to.match(/^b\/tenant.json\|name\|a placeholder is written/);
    expect(problems.join()).to.not.include(SECRET);
    expect(readWith().invalidFiles.map(({ file }) => file)).to.deep.equal(['a/clients/two.yaml', 'a/tenant.json']);
    const [broken] = readWith().documents;
    expect(broken?.unfilled).to.deep.equal(['secret', 'description']);
  });

  it('hides environment values in messages', () => {
    write({ 'a/tenant.json': `{"name": "${placeholder('NAME')}", "description": "${placeholder('OTHER:public')}"}` });
    const { documents, redact } = readWith({ NAME: SECRET });
    expect(documents[0]?.value).to.deep.equal({ name: SECRET, description: 'public' });
    expect(redact(`there is no "${SECRET}", but public`)).to.equal(`there is no "${placeholder('NAME')}", but public`);
  });

  it('detects a tenant folder that is given instead of its parent folder', () => {
    write({ 'tenant.yaml': 'name: A', 'keys/signing.json': '{}', 'stray.txt': '' });
    expect(readWith().faults).to.deep.equal([{ file: '', path: '', message: 'this is the folder of one tenant; use its parent folder' }]);
    write({ 'a/tenant.json': '{"name": "A"}' });
    expect(readWith().faults.map(({ file }) => file)).to.deep.equal(['keys/signing.json', 'stray.txt', 'tenant.yaml']);
  });

  it('follows symbolic links within the folder, such as in mounted volumes, and rejects links that leave it', () => {
    const otherFolder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
    try {
      writeFileSync(join(otherFolder, 'secret.json'), '{}');
      write({ 'a/..data/tenant.json': '{"name": "A"}', 'a/keys/real.json': '{}' });
      symlinkSync('..data/tenant.json', join(folder, 'a/tenant.json'));
      symlinkSync(join(otherFolder, 'secret.json'), join(folder, 'a/registrar.json'));
      symlinkSync(otherFolder, join(folder, 'b'));
      symlinkSync('nowhere.json', join(folder, 'a/keys/dangling.json'));
      symlinkSync('loop.json', join(folder, 'a/keys/loop.json'));
      symlinkSync('..', join(folder, 'a/clients'));
      const { documents, faults } = readWith();
      expect(documents.map(({ file }) => file)).to.deep.equal(['a/keys/real.json', 'a/tenant.json']);
      expect(faults.map(({ file, message }) => `${file} ${message.split(' ').slice(0, 4).join(' ')}`)).to.deep.equal([
        'a/clients is a symbolic link',
        'a/keys/dangling.json is a broken link',
        'a/keys/loop.json is a broken link',
        'a/registrar.json is a symbolic link',
        'b is a symbolic link',
      ]);
    } finally {
      rmSync(otherFolder, { recursive: true, force: true });
    }
  });

  it('does not block on an entry that is not a regular file', () => {
    write({ 'a/tenant.json': '{}' });
    execFileSync('mkfifo', [join(folder, 'a/registrar.json')]);
    expect(faults()).to.have.length(1);
    expect(faults()[0]).to.match(/^a\/registrar.json\|\|is not expected here/);
  });

  it('limits the number and sizes of files', () => {
    write({ 'a/tenant.json': `{"name": "${'x'.repeat(MAX_FILE_BYTES)}"}` });
    expect(faults()).to.deep.equal(['a/tenant.json||has more than 1024 KiB']);
    mkdirSync(join(folder, 'a/clients'));
    for (let i = 0; i <= MAX_FILES; i++) writeFileSync(join(folder, `a/clients/${i}.json`), '{}');
    expect(readWith().documents).to.have.length(MAX_FILES);
    expect(faults()).to.include('a/tenant.json||has more than 1024 KiB');
    expect(faults().filter((fault) => fault.includes(`limit of ${MAX_FILES} files`))).to.have.length(1);
  });

  it('is rejected when it does not exist', () => {
    const missing = readFolder(join(folder, 'none'), {});
    expect(missing.faults).to.have.length(1);
    expect(missing.faults[0]?.message).to.match(/no such folder/);
    writeFileSync(join(folder, 'file'), '');
    expect(readFolder(join(folder, 'file'), {}).faults).to.have.length(1);
  });
});
