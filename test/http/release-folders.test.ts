import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { FolderFaultsError } from '../../application/configuration-files/import-folder.ts';
import { NARROWED_RULES } from '../../domain/configuration-files/narrowed-rules.ts';
import { ConfigFolder } from '../support/config-folder.ts';
import { runCommand } from '../support/programs.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

const RELEASES = fileURLToPath(new URL('../fixtures/releases/', import.meta.url));
const folderOf = (release: string) => `${RELEASES}${release}/config`;
/** Files of the fixture of 0.1.0 that this release rejects for security reasons or because a specification requires it. */
const REJECTED_FILES = [
  ...['issuance/config.json', 'issuance/credentials/hooked.json', 'issuance/credentials/logo.json'],
  ...['issuance/credentials/named.json', 'issuance/credentials/typed.json', 'presentation/long.json'],
  ...['presentation/position.json', 'presentation/scheme.json', 'presentation/twice.json'],
  ...['trust-lists/notices.json', 'trust-lists/pid.json'],
].map((file) => `narrow/${file}`);

describe('configuration folder of an earlier release', function () {
  this.timeout(60_000);
  let service: TestService | undefined;
  afterEach(async () => {
    await service?.close();
    service = undefined;
  });
  const checkFolder = (folder: string) => runCommand('commands/config-check', [folder], {});

  for (const release of readdirSync(RELEASES).filter((name) => !name.endsWith('.md'))) {
    it(`of ${release} starts the service with every tenant`, async () => {
      service = await startTestService({ CONFIG_FOLDER: folderOf(release) });
      const token = await service.rootToken();
      const { body: tenants } = await service.call('GET', '/tenant', { token });
      expect(tenants.map(({ id }: { id: string }) => id)).to.deep.equal(readdirSync(folderOf(release)).sort());
    });
  }

  it('of 0.1.0 is imported except for the files that violate a narrowed rule', async () => {
    service = await startTestService({ CONFIG_FOLDER: folderOf('0.1.0') });
    const shopToken = await service.token('acme-shop', 'a-secret-of-0123456789');
    expect(shopToken).to.be.a('string');
    const published = await service.call('GET', '/acme/trust-list/issuers');
    expect(published.status).to.equal(200);
    const metadata = await service.call('GET', '/.well-known/openid-credential-issuer/acme');
    expect(metadata.status).to.equal(200);
    expect(Object.keys(metadata.body.credential_configurations_supported)).to.have.members(['student', 'licence']);
    const metadataOfNarrow = await service.call('GET', '/.well-known/openid-credential-issuer/narrow');
    expect(metadataOfNarrow.body.credential_configurations_supported ?? {}).to.deep.equal({});
  });

  it('of 0.1.0 fails config check with --strict, since some of its files are not imported', async () => {
    const { code, stderr } = await runCommand('commands/config-check', [folderOf('0.1.0'), '--strict'], {});
    expect(code).to.equal(1);
    expect(stderr).to.match(/: \d+ files are not imported$/m);
  });

  it('of 0.1.0 passes config check, which names each file that is not imported and the reason', async () => {
    const { code, stderr, stdout } = await checkFolder(folderOf('0.1.0'));
    expect(code, stderr).to.equal(0);
    const filesWithWarning = new Set([...stderr.matchAll(/^warning: (narrow\/\S+): .*not imported: /gm)].map(([, file]) => file));
    expect([...filesWithWarning].sort()).to.deep.equal(REJECTED_FILES);
    for (const file of REJECTED_FILES) expect(stdout).to.not.include(file);
    expect(stdout).to.include('acme/trust-lists/issuers.json');
    expect(stderr).to.match(/^note: acme\/trust-lists\/issuers\.json: entities\.0\.info\.streetAddress/m);
    const reasons = NARROWED_RULES.filter(({ because }) => stderr.includes(because));
    expect(reasons.length).to.be.greaterThan(9);
  });

  it('leaves the stored version of a file that violates a narrowed rule, and files that need it are not imported', async () => {
    const folder = new ConfigFolder();
    const credential = (vct: string) => ({ config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] }, vct });
    const request = (vct: string) => ({
      id: 'q',
      dcql_query: { credentials: [{ id: 'a', format: 'dc+sd-jwt', meta: { vct_values: [vct] } }] },
    });
    folder.write({
      'acme/tenant.json': { name: 'Acme', roles: ['issuance:manage'] },
      'acme/issuance/credentials/card.json': credential('urn:card:1'),
    });
    const database = new ConfigFolder();
    const environment = { DATABASE_URL: `sqlite:${database.path}/db`, CONFIG_FOLDER: folder.path };
    service = await startTestService(environment);
    await service.close();
    folder.write({
      'acme/issuance/credentials/card.json': credential('urn:karte:ä'),
      'acme/presentation/q.json': { ...request('urn:card:1'), redirectUri: 'custom:/done' },
      'acme/issuance/credentials/needs.json': {
        ...credential('urn:needs:1'),
        iaeActions: [{ type: 'openid4vp_presentation', presentationConfigId: 'q' }],
      },
    });
    service = await startTestService(environment);
    const { body } = await service.call('GET', '/.well-known/openid-credential-issuer/acme');
    const { card, needs } = body.credential_configurations_supported;
    expect([card.vct, needs]).to.deep.equal(['urn:card:1', undefined]);
    await service.close();
    service = undefined;
    const { stderr } = await checkFolder(folder.path);
    expect(stderr).to.match(/needs\.json: .*it requires a file that is not imported/);
    folder.remove();
    database.remove();
  });

  it('still stops the start with a file that no release accepted', async () => {
    const folder = new ConfigFolder();
    folder.write({
      'acme/tenant.json': { name: 'Acme' },
      'acme/issuance/credentials/card.json': {
        config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }], other: 1 },
        vct: 'urn:karte:ä',
      },
    });
    const error: unknown = await startTestService({ CONFIG_FOLDER: folder.path }).catch((reason) => reason);
    expect(error).to.be.instanceOf(FolderFaultsError);
    expect(String(error)).to.include('config.other').and.to.include('vct: ');
    folder.remove();
  });
});
