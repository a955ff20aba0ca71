import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from './build.mjs';

/**
 * `npm run sbom`: prints what a release is made of, as CycloneDX. `npm sbom --omit=dev` leaves out what developers need as
 * well, and where a package says its licence in a list, that; so it is given the lock file of production alone.
 */
const lock = readJson(join(ROOT, 'package-lock.json'));
const [[, root], ...others] = Object.entries(lock.packages);
const { devDependencies: _dev, bin: _bin, ...own } = root;
const production = others.filter(([, { dev }]) => dev !== true);

const folder = mkdtempSync(join(tmpdir(), 'vidimus-sbom-'));
// It calls the release as its folder is called.
const stage = join(folder, own.name);
try {
  mkdirSync(stage);
  const { devDependencies: _ours, scripts: _scripts, ...manifest } = readJson(join(ROOT, 'package.json'));
  write('package.json', manifest);
  write('package-lock.json', { ...lock, packages: Object.fromEntries([['', own], ...production]) });
  const args = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application'];
  const bom = JSON.parse(execFileSync('npm', args, { cwd: stage, encoding: 'utf8', maxBuffer: 1 << 26 }));
  for (const component of bom.components) component.licenses ??= licencesOf(component);
  console.log(JSON.stringify(bom, null, 2));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function licencesOf({ name, version }) {
  const found = production.find(
    ([path, entry]) =>
      (entry.name ?? path.split('node_modules/').at(-1)) === name && entry.version === version,
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
