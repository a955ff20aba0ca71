import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundledPackages, ROOT } from './build.mjs';

/**
 * `npm run sbom`: prints the components of a release as CycloneDX. `npm sbom --omit=dev` would also leave out packages that developers
 * need too, and licences that a package states as a list; therefore it gets a lock file with only the production packages. Development
 * packages that are bundled into the console and the wallet are part of the release.
 */
const lock = readJson(join(ROOT, 'package-lock.json'));
const [[, root], ...lockEntries] = Object.entries(lock.packages);
const { devDependencies: _dev, bin: _bin, workspaces: _workspaces, ...releaseEntry } = root;
const bundled = new Set((await bundledPackages()).map((name) => `node_modules/${name}`));
// The workspaces are bundled into files of the release.
const production = lockEntries
  .filter(([path, { dev, link }]) => (dev !== true || bundled.has(path)) && link !== true && !path.startsWith('packages/'))
  .map(([path, entry]) => [path, entry.dev === true ? asBundled(entry) : entry]);
releaseEntry.dependencies = {
  ...releaseEntry.dependencies,
  ...Object.fromEntries(
    production.filter(([path]) => bundled.has(path)).map(([path, { version }]) => [path.slice('node_modules/'.length), version]),
  ),
};

const folder = mkdtempSync(join(tmpdir(), 'vidimus-sbom-'));
// `npm sbom` uses the name of the folder as the name of the release.
const stage = join(folder, releaseEntry.name);
try {
  mkdirSync(stage);
  const { devDependencies: _ours, scripts: _scripts, workspaces: _parts, ...manifest } = readJson(join(ROOT, 'package.json'));
  write('package.json', { ...manifest, dependencies: releaseEntry.dependencies });
  write('package-lock.json', { ...lock, packages: Object.fromEntries([['', releaseEntry], ...production]) });
  const args = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application'];
  const bom = JSON.parse(execFileSync('npm', args, { cwd: stage, encoding: 'utf8', maxBuffer: 1 << 26 }));
  for (const component of bom.components) component.licenses ??= licencesOf(component);
  console.log(JSON.stringify(bom, null, 2));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** @returns the entry of a bundled package, with only those dependencies that are bundled as well. */
function asBundled({ dev: _dev, dependencies = {}, peerDependencies: _peers, optionalDependencies: _optional, ...entry }) {
  const bundledDependencies = Object.entries(dependencies).filter(([name]) => bundled.has(`node_modules/${name}`));
  return { ...entry, dependencies: Object.fromEntries(bundledDependencies) };
}

function licencesOf({ name, version }) {
  const found = production.find(
    ([path, entry]) => (entry.name ?? path.split('node_modules/').at(-1)) === name && entry.version === version,
  );
  const { license, licenses = license } = readJson(join(ROOT, found[0], 'package.json'));
  return [licenses].flat().map((declaredLicense) => ({ license: { name: declaredLicense.type ?? declaredLicense } }));
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}

function write(file, value) {
  writeFileSync(join(stage, file), JSON.stringify(value));
}
