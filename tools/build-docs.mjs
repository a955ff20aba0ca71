import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, globSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './build.mjs';

/**
 * `npm run docs:build` writes the pages of `docs/` as a site with search to `docs/site`, and fails for a dead link;
 * `npm run docs` serves them and follows changes. The generator has a manifest of its own, so `npm ci` does not install it.
 */
const GENERATOR = join(ROOT, 'docs/.vitepress');
const SITE = join(ROOT, 'docs/site');
/** Packages whose code is in the pages; their licences require a notice. */
const BUNDLED = [
  'vitepress',
  'vue',
  '@vueuse/core',
  '@vueuse/integrations',
  '@vueuse/shared',
  'minisearch',
  'mark.js',
  'focus-trap',
  'tabbable',
];

/** @param command `build`, or `dev` for a server that follows changes. @param stdio of the generator. */
export function runGenerator(command, stdio = 'inherit') {
  const options = { stdio, cwd: ROOT };
  if (!isInstalled()) execFileSync('npm', ['ci', '--prefix', GENERATOR, '--no-audit', '--no-fund', '--ignore-scripts'], options);
  const script = join(GENERATOR, 'node_modules/vitepress/bin/vitepress.js');
  execFileSync(process.execPath, [script, command, join(ROOT, 'docs')], options);
  if (command === 'build') writeFileSync(join(SITE, 'third-party-notices.txt'), notices());
}

/** npm writes its record after the last package. */
function isInstalled() {
  const record = join(GENERATOR, 'node_modules/.package-lock.json');
  return existsSync(record) && statSync(record).mtimeMs >= statSync(join(GENERATOR, 'package-lock.json')).mtimeMs;
}

function notices() {
  const licenceOf = (name) => {
    const folder = join(GENERATOR, 'node_modules', name);
    const [file] = globSync('LICEN[CS]E*', { cwd: folder });
    const { license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    return file === undefined ? `${license}\n` : readFileSync(join(folder, file), 'utf8');
  };
  return BUNDLED.map((name) => `${name}\n\n${licenceOf(name)}`).join(`\n${'-'.repeat(80)}\n\n`);
}

/** Copies the site into a package. @param target folder that becomes `docs/site` of the package. */
export function copySite(target) {
  // Standard output has only the path of the package.
  runGenerator('build', ['ignore', 'ignore', 'inherit']);
  cpSync(SITE, target, { recursive: true });
}

if (process.argv[1]?.endsWith('build-docs.mjs')) runGenerator(process.argv.includes('--serve') ? 'dev' : 'build');
