import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, readFileSync, statSync } from 'node:fs';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * `npm run build`: writes `dist`. Reading six hundred small files would take longer than running them, so modules that are loaded
 * together are bundled into one file; packages are not bundled. This file is plain JavaScript, because every `npm start` checks whether
 * `dist` is pathToDist to date, and a compiler would slow it down.
 */
export const ROOT = fileURLToPath(new URL('..', import.meta.url));
export const DIST = join(ROOT, 'dist');
const SOURCES = ['domain', 'application', 'adapters', 'bootstrap', 'config', 'packages/{attack,client,console,wallet}/src'];
/** Modules that are started or loaded by path; each has a separate file at the place of its source. */
const PROGRAMS = [
  'bootstrap/main.ts',
  'bootstrap/workers/worker.ts',
  'bootstrap/commands/*.ts',
  'packages/attack/src/main.ts',
  'adapters/kms/pkcs11/session-worker.ts',
  'bootstrap/workers/trust-list-thread.ts',
  'adapters/persistence/sqlite/checkpoint-worker.ts',
  'adapters/persistence/migrations/{postgres,sqlite}/*.ts',
];
/**
 * The doctor is bundled separately. It uses parts of many modules, so shared bundles would be split, and each start would read more files.
 */
const SEPARATE_PROGRAM = 'bootstrap/commands/doctor.ts';
/** These packages consist of two hundred small files, so they are bundled. */
const BUNDLED_PACKAGES = ['inversify', '@inversifyjs'];
const CONSOLE = 'packages/console/src';
const CONSOLE_BUILT = join(DIST, 'adapters/http/console/built');
/** Programs that need development packages. */
const DEMO_PROGRAMS = ['test/demo/demo.ts', 'packages/wallet/src/main.ts'];
const STAMP = join(DIST, 'sources.txt');
/** The times since which each part is not in a build. */
const DROPPED = join(DIST, 'dropped.json');
const NOTICES = join(DIST, 'third-party-notices.txt');
/** The file with the built commit, which `bootstrap/wiring/release.ts` reads. It is empty if the commit is unknown. */
const COMMIT = join(DIST, 'commit.txt');
/** cbor-x without its native module. */
const WITHOUT_NATIVE = { 'cbor-x': 'cbor-x/index-no-eval' };
/** A running process may still load parts of the previous build. */
const KEEP_PARTS_MS = 7 * 24 * 3_600_000;
/** A placeholder for the address of `dist`. Bundled modules use their original address instead of `import.meta.url`. */
const DIST_PLACEHOLDER = '__place_of_dist__';

/** @returns a hash that changes with every source of `dist`. */
export function stateOfSources() {
  const files = globSync([...SOURCES.map((folder) => `${folder}/**/*.{ts,tsx,css,svg,json}`), 'package-lock.json', 'tools/build.mjs'], {
    cwd: ROOT,
  });
  const hash = createHash('sha256');
  for (const file of files.sort()) {
    const { size, mtimeMs } = statSync(join(ROOT, file));
    hash.update(`${file} ${size} ${mtimeMs}\n`);
  }
  hash.update(currentCommit());
  return hash.digest('hex');
}

/** VIDIMUS_COMMIT names the commit when there is no clone, such as in the build of an image. */
function currentCommit() {
  const { VIDIMUS_COMMIT } = process.env;
  if (VIDIMUS_COMMIT !== undefined) return VIDIMUS_COMMIT;
  try {
    const options = { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] };
    return execFileSync('git', ['rev-parse', 'HEAD'], options).trim();
  } catch {
    return '';
  }
}

/** @returns true when `dist` was built from the present sources. */
export function isBuilt() {
  try {
    return readFileSync(STAMP, 'utf8') === stateOfSources();
  } catch {
    return false;
  }
}

/** @throws Error when the bundler is not installed, or `dist` cannot be written. */
export async function build() {
  // The state is taken before the bundler reads the sources: a later change is built the next time.
  const state = stateOfSources();
  const common = { sourcemap: 'linked', sourcesContent: false, external: packagesOf(() => true) };
  const programs = globSync(PROGRAMS, { cwd: ROOT }).filter((file) => file !== SEPARATE_PROGRAM);
  const split = await bundle(programs, { ...common, chunkNames: 'parts/[name]-[hash]', splitting: true });
  const alone = await bundle(globSync(SEPARATE_PROGRAM, { cwd: ROOT }), common);
  const page = await bundleConsole();
  const files = [...split.files, ...alone.files, ...page.files];
  const inputs = [...split.inputs, ...alone.inputs, ...page.inputs];
  for (const { path, contents } of files) await put(path, contents);
  await put(NOTICES, noticesOf(inputs));
  await put(COMMIT, currentCommit());
  await removeOld(new Set([NOTICES, COMMIT, ...files.map(({ path }) => path)]));
  await put(STAMP, state);
}

/**
 * Bundles the demo and the simulated wallet with their packages, because `dist` may not need development packages.
 * @returns the files, and the notices of the bundled packages.
 */
export async function bundleDemo() {
  const options = { external: packagesOf(({ dev }) => dev !== true), minifySyntax: true, alias: WITHOUT_NATIVE };
  const { files, inputs } = await bundle(DEMO_PROGRAMS, options);
  return { files, notices: noticesOf(inputs), packages: packagesIn(inputs) };
}

/** @returns the names of packages that are bundled into files of a release, such as those of the console and the wallet. */
export async function bundledPackages() {
  const [page, demo] = [await bundleConsole(), await bundleDemo()];
  return [...new Set([...packagesIn(page.inputs), ...demo.packages])];
}

/** Each page imports the shared modules first, so that they are bundled into one file. */
const sharedByPages = {
  name: 'shared-by-pages',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]console[\\/]src[\\/]pages[\\/].*\.tsx$/ }, ({ path }) => {
      const shared = join(ROOT, CONSOLE, 'shell/shared.ts');
      const source = readFileSync(path, 'utf8');
      return { contents: `import ${JSON.stringify(shared)};\n${source}`, loader: 'tsx' };
    });
  },
};

/**
 * Bundles the browser part of the console with all its packages: it loads nothing from other hosts, and the modules of a page are loaded
 * with that page. The manifest names the entry files.
 */
async function bundleConsole() {
  const { build: run } = await import('esbuild');
  const { BROWSER_OPTIONS } = await import('../packages/wallet/src/browser-bundle.ts');
  const { outputFiles, metafile } = await run({
    ...BROWSER_OPTIONS,
    absWorkingDir: join(ROOT, CONSOLE),
    entryPoints: { console: 'main.tsx' },
    outdir: CONSOLE_BUILT,
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    splitting: true,
    plugins: [...BROWSER_OPTIONS.plugins, sharedByPages],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    metafile: true,
    define: { 'process.env.NODE_ENV': '"production"' },
    write: false,
  });
  const files = outputFiles.map(({ path, contents }) => ({ path, contents }));
  const outputName = (pattern) => basename(files.find(({ path }) => pattern.test(path))?.path ?? '');
  const manifest = { script: outputName(/console-[A-Z0-9]{8}\.js$/), style: outputName(/console-[A-Z0-9]{8}\.css$/) };
  files.push({ path: join(CONSOLE_BUILT, 'manifest.json'), contents: JSON.stringify(manifest) });
  files.push({ path: join(CONSOLE_BUILT, 'icon.svg'), contents: readFileSync(join(ROOT, CONSOLE, 'styles/icon.svg')) });
  const inputs = Object.keys(metafile.inputs).map((path) => relative(ROOT, join(ROOT, CONSOLE, path)));
  return { files, inputs };
}

/** Builds only the console, for a service that runs from its sources. */
export async function buildConsole() {
  const { files } = await bundleConsole();
  for (const { path, contents } of files) await put(path, contents);
}

/** @returns the output files, and the names of their input files. */
async function bundle(entryPoints, options) {
  const { build: run } = await import('esbuild');
  const { outputFiles, metafile } = await run({
    absWorkingDir: ROOT,
    entryPoints,
    outdir: DIST,
    outbase: '.',
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    metafile: true,
    legalComments: 'none',
    write: false,
    plugins: [keepPlaces],
    ...options,
  });
  const files = outputFiles.map(({ path, contents }) => ({ path, contents: withAddresses(path, contents) }));
  return { files, inputs: Object.keys(metafile.inputs) };
}

/** @returns the packages that are not bundled, and the patterns for their modules. */
function packagesOf(isExternal) {
  const { packages: locked } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  const names = Object.entries(locked)
    .filter(([, entry]) => isExternal(entry))
    .flatMap(([path]) => path.split('node_modules/').slice(1));
  return [...new Set(names.map((name) => name.replace(/\/$/, '')))]
    .filter((name) => !BUNDLED_PACKAGES.some((taken) => name === taken || name.startsWith(`${taken}/`)))
    .flatMap((name) => [name, `${name}/*`]);
}

function packagesIn(inputs) {
  return [...new Set(inputs.flatMap((path) => /^node_modules\/((@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []))].sort();
}

/** The licences of the bundled packages require these notices. */
function noticesOf(inputs) {
  return packagesIn(inputs)
    .map((name) => `${name}\n\n${licenceOf(join(ROOT, 'node_modules', name))}`)
    .join(`\n${'-'.repeat(80)}\n\n`);
}

function licenceOf(folder) {
  const file = globSync('LICEN[CS]E*', { cwd: folder })[0];
  if (file !== undefined) return readFileSync(join(folder, file), 'utf8');
  const { license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  // The licence is that of this package, and its text is in the package.
  if (license === 'Apache-2.0') return 'Apache-2.0; the text is in the file LICENSE of this package\n';
  throw new Error(`${folder} has no licence that could be shipped with it`);
}

const keepPlaces = {
  name: 'keep-places',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, 'utf8');
      if (!text.includes('import.meta.url')) return undefined;
      const built = relative(ROOT, path).replace(/\.ts$/, '.js');
      const place = `new URL(${JSON.stringify(built)}, ${DIST_PLACEHOLDER}).href`;
      return { contents: text.replaceAll('import.meta.url', place), loader: 'ts' };
    });
  },
};

/** A line that is a comment or a part of a comment. */
const IN_COMMENT = /^\s*(\/\/|\/?\*)/;
const BEYOND_ASCII = /[^\0-\x7f]/;

function withAddresses(path, contents) {
  if (!path.endsWith('.js')) return contents;
  const text = inAscii(path, Buffer.from(contents).toString());
  const pathToDist = relative(dirname(path), DIST);
  return text.replaceAll(DIST_PLACEHOLDER, `new URL(${JSON.stringify(`./${pathToDist}/`)}, import.meta.url)`);
}

/** One character beyond ASCII doubles the memory of the whole text in Node. String literals are escaped, so only comments are changed. */
function inAscii(path, text) {
  if (!BEYOND_ASCII.test(text)) return text;
  const lines = text.split('\n').map((line) => {
    if (!BEYOND_ASCII.test(line)) return line;
    if (!IN_COMMENT.test(line)) throw new Error(`${path} has characters beyond ASCII outside of comments: ${line}`);
    return line.replaceAll(new RegExp(BEYOND_ASCII, 'g'), '?');
  });
  return lines.join('\n');
}

/** Writes a file atomically: a process that starts meanwhile reads the old or the new file. */
async function put(path, contents) {
  await mkdir(dirname(path), { recursive: true });
  const temporaryFile = `${path}.${process.pid}`;
  await writeFile(temporaryFile, contents);
  await rename(temporaryFile, path);
}

/** Removes old files. A part is kept for some time after the first build without it. */
async function removeOld(present) {
  const [now, before, left] = [Date.now(), readDropped(), {}];
  for (const entry of await readdir(DIST, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || path === STAMP || path === DROPPED || present.has(path)) continue;
    const since = before[entry.name] ?? now;
    const isKept = entry.parentPath === join(DIST, 'parts') && since > now - KEEP_PARTS_MS;
    if (isKept) left[entry.name] = since;
    else await rm(path, { force: true });
  }
  await put(DROPPED, JSON.stringify(left));
}

function readDropped() {
  try {
    return JSON.parse(readFileSync(DROPPED, 'utf8'));
  } catch {
    return {};
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await (process.argv.includes('--console') ? buildConsole() : build());
