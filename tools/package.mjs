import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildClient } from '../packages/client/package.mjs';
import { build, bundleDemo, DIST, ROOT } from './build.mjs';
import { copySite } from './build-docs.mjs';

/**
 * `npm run package [-- <folder>]`: writes the package that is installed with `npm install <file>`. It is assembled in a temporary folder,
 * because `npm pack` runs no scripts here (`.npmrc`), and would include parts of former builds.
 */
const EXCLUDED = /\.map$|(^|\/)(sources\.txt|dropped\.json)$/;
const COPIED = [
  'LICENSE',
  'README.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'bootstrap/commands/vidimus.mjs',
  'bootstrap/commands/start-service.mjs',
];

const PAGES = 'swagger-ui-dist';
const PAGES_FILES = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png', 'LICENSE', 'NOTICE'];
/** The package that counts installations; it is replaced. */
const REPLACED = '@scarf/scarf';

/** @returns the path of the package file. */
export async function makePackage(target) {
  await build();
  const stage = mkdtempSync(join(tmpdir(), 'vidimus-package-'));
  try {
    for (const file of COPIED) copy(stage, file);
    const beside = globSync('{docs,deploy,examples}/**/*.*', { cwd: ROOT, exclude: isNotCopied });
    for (const file of beside) copy(stage, file);
    copyBuilt(stage);
    copySite(join(stage, 'docs/site'));
    await buildClient(join(stage, CLIENT));
    await addDemo(stage);
    addPages(stage);
    write(stage, 'package.json', asText(manifest()));
    const options = { cwd: stage, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] };
    const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', resolve(target)];
    const packed = Object.values(JSON.parse(execFileSync('npm', args, options)));
    return join(resolve(target), packed[0].filename);
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

/** @returns true for secrets that `make-secrets.sh` generated, which must not be published, and for the site, which is built anew. */
function isNotCopied(path) {
  return /(^|\/)(secrets|\.env)$/.test(path) || /^docs[/](site|\.vitepress)$/.test(path);
}

function copy(stage, file) {
  mkdirSync(dirname(join(stage, file)), { recursive: true });
  cpSync(join(ROOT, file), join(stage, file));
}

/** Copies the files of this build. Parts of earlier builds are left out, because only processes on this machine use them. */
function copyBuilt(stage) {
  const dropped = Object.keys(readJson(join(DIST, 'dropped.json')));
  const isShipped = (file) => !EXCLUDED.test(file) && !dropped.includes(file.split('/').at(-1));
  for (const file of globSync('**/*.{js,txt}', { cwd: DIST }).filter(isShipped)) copy(stage, join('dist', file));
  for (const file of globSync('config/examples/**/*.*', { cwd: ROOT }))
    cpSync(join(ROOT, file), join(stage, 'dist', file), { recursive: true });
}

async function addDemo(stage) {
  const { files, notices } = await bundleDemo();
  for (const { path, contents } of files) write(stage, relative(ROOT, path), contents);
  write(stage, 'dist/test/demo/third-party-notices.txt', notices);
}

/** The place of the client in the package, for `import … from 'vidimus/client'`. */
const CLIENT = 'packages/client/dist';

/**
 * @returns the manifest without development entries, and with every production package at the tested version, because npm ignores the
 *   lock file of a package. The package stays private, so that it cannot be published by mistake.
 */
function manifest() {
  const {
    devDependencies: _dev,
    scripts: _scripts,
    overrides: _overrides,
    files: _files,
    workspaces: _workspaces,
    ...rest
  } = readJson(join(ROOT, 'package.json'));
  const { packages } = readJson(join(ROOT, 'package-lock.json'));
  const productionVersions = Object.entries(packages).flatMap(([path, { dev, link, optional, version }]) => {
    const name = /^node_modules\/((@[^/]+\/)?[^/]+)$/.exec(path)?.[1];
    return name === undefined || dev || link || optional || name === REPLACED ? [] : [[name, version]];
  });
  const client = { types: `./${CLIENT}/index.d.ts`, default: `./${CLIENT}/index.js` };
  const exports = { ...rest.exports, './client': client };
  return { ...rest, exports, dependencies: Object.fromEntries(productionVersions), bundleDependencies: [PAGES] };
}

/**
 * Adds the package of the API reference. It counts installations with a package that `overrides` replaces only in this repository, so it
 * is added without that package.
 */
function addPages(stage) {
  const from = join(ROOT, 'node_modules', PAGES);
  const { dependencies: _counts, scripts: _scripts, ...rest } = readJson(join(from, 'package.json'));
  for (const file of PAGES_FILES) write(stage, join('node_modules', PAGES, file), readFileSync(join(from, file)));
  write(stage, join('node_modules', PAGES, 'package.json'), asText(rest));
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}

const asText = (value) => `${JSON.stringify(value, null, 2)}\n`;

function write(stage, file, contents) {
  mkdirSync(dirname(join(stage, file)), { recursive: true });
  writeFileSync(join(stage, file), contents);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(await makePackage(process.argv[2] ?? '.'));
