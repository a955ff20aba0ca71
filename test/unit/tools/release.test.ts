import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { assertNextVersion, ReleaseError, releaseChangelog, withChartVersion, withPackageVersion } from '../../../tools/release.ts';

const ROOT = new URL('../../../', import.meta.url);
const read = (file: string) => readFileSync(new URL(file, ROOT), 'utf8');

const WORKSPACES = ['packages/attack', 'packages/client', 'packages/console', 'packages/wallet'];

const CHANGELOG = `# Changelog

## Unreleased

### Fixed

- One thing.

## 0.1.0 (2026-11-21)

- The first release.
`;

describe('release command', () => {
  for (const version of ['0.1.1', '0.2.0', '1.0.0', '0.10.0'])
    it(`accepts ${version} after 0.1.0`, () => assertNextVersion(version, '0.1.0'));

  for (const version of ['0.1.0', '0.0.9', '0.2', 'v0.2.0', '0.2.0-rc1', ''])
    it(`rejects "${version}" after 0.1.0`, () => {
      expect(() => assertNextVersion(version, '0.1.0')).to.throw(ReleaseError, version);
    });

  it('moves the unreleased changes below a heading with version and date', () => {
    expect(releaseChangelog(CHANGELOG, '0.2.0', '2026-11-28')).to.equal(
      CHANGELOG.replace('## Unreleased\n', '## Unreleased\n\n## 0.2.0 (2026-11-28)\n'),
    );
  });

  it('rejects a release without changes', () => {
    const released = releaseChangelog(CHANGELOG, '0.2.0', '2026-11-28');
    expect(() => releaseChangelog(released, '0.3.0', '2026-11-29')).to.throw(ReleaseError, 'is empty');
  });

  it('rejects a changelog without the section Unreleased', () => {
    expect(() => releaseChangelog('# Changelog\n', '0.3.0', '2026-11-29')).to.throw(ReleaseError, 'no section');
  });

  it('rejects breaking changes in a patch release', () => {
    const breaking = CHANGELOG.replace('### Fixed', '### Breaking');
    expect(() => releaseChangelog(breaking, '0.1.1', '2026-11-28')).to.throw(ReleaseError, 'breaking changes');
    expect(releaseChangelog(breaking, '0.2.0', '2026-11-28')).to.include('## 0.2.0');
  });

  it('sets the version of the package and its workspaces, and of no dependency', () => {
    const lock = JSON.parse(read('package-lock.json'));
    const lockFile = JSON.parse(withPackageVersion(read('package-lock.json'), '9.8.7'));
    expect([lockFile.version, lockFile.packages[''].version]).to.deep.equal(['9.8.7', '9.8.7']);
    lock.version = '9.8.7';
    for (const folder of ['', ...WORKSPACES]) lock.packages[folder].version = '9.8.7';
    expect(lockFile).to.deep.equal(lock);
  });

  it('keeps the layout of package.json and package-lock.json', () => {
    for (const file of ['package.json', 'package-lock.json', ...WORKSPACES.map((folder) => `${folder}/package.json`)])
      expect(withPackageVersion(read(file), JSON.parse(read(file)).version)).to.equal(read(file));
  });

  it('sets both versions of the Helm chart', () => {
    const chart = withChartVersion(read('deploy/helm/vidimus/Chart.yaml'), '9.8.7');
    expect(chart.match(/^(version|appVersion): 9\.8\.7$/gm)).to.have.length(2);
  });

  it('finds one version in all manifests', () => {
    const { version } = JSON.parse(read('package.json'));
    expect(JSON.parse(read('package-lock.json')).version).to.equal(version);
    for (const folder of WORKSPACES) expect(JSON.parse(read(`${folder}/package.json`)).version, folder).to.equal(version);
    expect(read('deploy/helm/vidimus/Chart.yaml')).to.include(`appVersion: ${version}\n`);
  });
});
