import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

type Component = {
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly licenses?: readonly { readonly license?: { readonly id?: string; readonly name?: string }; readonly expression?: string }[];
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
};
type Bom = {
  readonly bomFormat: string;
  readonly specVersion: string;
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
};
type Entry = {
  readonly version: string;
  readonly dev?: boolean;
  /** A workspace, which is part of the release itself. */
  readonly link?: boolean;
  readonly name?: string;
};

describe('software bill of materials', function () {
  this.timeout(60_000);
  let bom: Bom;
  const readJson = (name: string): unknown => JSON.parse(readFileSync(`${ROOT}${name}`, 'utf8'));

  before(() => {
    bom = JSON.parse(execFileSync('npm', ['run', '--silent', 'sbom'], { cwd: ROOT, encoding: 'utf8' })) as Bom;
  });

  it('is valid CycloneDX for this release', () => {
    const { version } = readJson('package.json') as { version: string };
    expect(bom).to.include({ bomFormat: 'CycloneDX' });
    expect(bom.specVersion).to.match(/^1\.[5-9]$/);
    expect(bom.metadata.component).to.include({ name: 'vidimus', version });
  });

  it('lists every locked production package, including bundled ones, and no development package', async () => {
    const { packages } = readJson('package-lock.json') as { packages: Record<string, Entry> };
    const { bundledPackages } = (await import(`${ROOT}tools/build.mjs`)) as { bundledPackages(): Promise<readonly string[]> };
    const bundled = (await bundledPackages()).map((name) => `node_modules/${name}`);
    expect(bundled).to.include.members(['node_modules/preact', 'node_modules/@openid4vc/openid4vp', 'node_modules/@owf/mdoc']);
    const expectedPackages = Object.entries(packages)
      .filter(([path, { dev, link }]) => path.startsWith('node_modules/') && (dev !== true || bundled.includes(path)) && link !== true)
      .map(([path, { version, name = path.split('node_modules/').at(-1) }]) => `${name}@${version}`);
    const namedPackages = bom.components.map(({ purl }) => decodeURIComponent(purl.slice('pkg:npm/'.length)).split('?')[0]);
    expect(expectedPackages.length).to.be.greaterThan(150);
    expect([...new Set(namedPackages)].sort()).to.deep.equal([...new Set(expectedPackages)].sort());
  });

  it('has the licence and identifier of each package, and resolves every dependency', () => {
    for (const { name, licenses = [], hashes = [] } of bom.components) {
      expect(licenses.length, `the licence of ${name}`).to.be.greaterThan(0);
      expect(hashes[0]?.alg, `the hash of ${name}`).to.equal('SHA-512');
    }
    const refs = new Set(bom.dependencies.map(({ ref }) => ref));
    for (const { ref, dependsOn } of bom.dependencies)
      for (const dependency of dependsOn) expect(refs.has(dependency), `${ref} needs ${dependency}`).to.equal(true);
  });
});
