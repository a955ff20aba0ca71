import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundledPackages, ROOT } from './build.mjs';

/**
 * `npm run sbom`: prints what a release is made of, as CycloneDX. `npm sbom --omit=dev` leaves out what developers need as
 * well, and where a package says its licence in a list, that; so it is given the lock file of production alone. Packages of developers
 * that the bundler takes into the console and the wallet are in the release, too.
 */
const lock = readJson(join(ROOT, 'package-lock.json'));
const [[, root], ...others] = Object.entries(lock.packages);
const { devDependencies: _dev, bin: _bin, workspaces: _workspaces, ...own } = root;
const bundled = new Set((await bundledPackages()).map((name) => `node_modules/${name}`));
// The workspaces are in the release as parts of its own files.
const production = others
  .filter(([path, { dev, link }]) => (dev !== true || bundled.has(path)) && link !== true && !path.startsWith('packages/'))
  .map(([path, entry]) => [path, entry.dev === true ? asBundled(entry) : entry]);
own.dependencies = {
  ...own.dependencies,
  ...Object.fromEntries(
    production.filter(([path]) => bundled.has(path)).map(([path, { version }]) => [path.slice('node_modules/'.length), version]),
  ),
};

const folder = mkdtempSync(join(tmpdir(), 'vidimus-sbom-'));
// It calls the release as its folder is called.
const stage = join(folder, own.name);
try {
  mkdirSync(stage);
  const { devDependencies: _ours, scripts: _scripts, workspaces: _parts, ...manifest } = readJson(join(ROOT, 'package.json'));
  write('package.json', { ...manifest, dependencies: own.dependencies });
  write('package-lock.json', { ...lock, packages: Object.fromEntries([['', own], ...production]) });
  const args = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application'];
  const bom = JSON.parse(execFileSync('npm', args, { cwd: stage, encoding: 'utf8', maxBuffer: 1 << 26 }));
  for (const component of bom.components) component.licenses ??= licencesOf(component);
  console.log(JSON.stringify(bom, null, 2));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** What it was built with is in the release only if the bundler took it in, which then has an entry of its own. */
function asBundled({ dev: _dev, dependencies = {}, peerDependencies: _peers, optionalDependencies: _optional, ...entry }) {
  const taken = Object.entries(dependencies).filter(([name]) => bundled.has(`node_modules/${name}`));
  return { ...entry, dependencies: Object.fromEntries(taken) };
}

function licencesOf({ name, version }) {
  const found = production.find(
    ([path, entry]) => (entry.name ?? path.split('node_modules/').at(-1)) === name && entry.version === version,
  );
  const { license, licenses = license } = readJson(join(ROOT, found[0], 'package.json'));
  return [licenses].flat().map((each) => ({ license: { name: each.type ?? each } }));
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}

function write(file, value) {
  writeFileSync(join(stage, file), JSON.stringify(value));
}
