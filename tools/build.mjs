import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, readFileSync, statSync } from 'node:fs';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * `npm run build`: writes `dist`. Reading six hundred small files takes a start longer than running them, so what is
 * loaded together is one file there; packages stay where they are. In plain JavaScript, since every `npm start` asks
 * whether `dist` is up to date, and a compiler is more than that is worth.
 */
export const ROOT = fileURLToPath(new URL('..', import.meta.url));
export const DIST = join(ROOT, 'dist');
const SOURCES = ['domain', 'application', 'adapters', 'bootstrap', 'config', 'packages/{attack,client,console,wallet}/src'];
/** What is started or found by its address, so it has a file of its own in the place of its source. */
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
 * One file of its own: it looks at parts of everything, so what the service has in one file would come apart for it, and each
 * start would read more files.
 */
const APART = 'bootstrap/commands/doctor.ts';
/** Two hundred files of a few lines each. */
const TAKEN_IN = ['inversify', '@inversifyjs'];
const CONSOLE = 'packages/console/src';
const CONSOLE_BUILT = join(DIST, 'adapters/http/console/built');
/** What brings packages of developers along. */
const WITH_WALLETS = ['test/demo/demo.ts', 'packages/wallet/src/main.ts'];
const STAMP = join(DIST, 'sources.txt');
/** Since when each part is in no build. */
const DROPPED = join(DIST, 'dropped.json');
const NOTICES = join(DIST, 'third-party-notices.txt');
/** The commit that was built; `bootstrap/wiring/release.ts` reads it. Empty if it is unknown. */
const COMMIT = join(DIST, 'commit.txt');
/** The part of cbor-x that is only JavaScript. */
const WITHOUT_NATIVE = { 'cbor-x': 'cbor-x/index-no-eval' };
/** A process that runs may still load parts of the build before. */
const KEPT_MS = 7 * 24 * 3_600_000;
/** Where a module was before it came together with others; `import.meta.url` would say where it is now. */
const PLACE = '__place_of_dist__';

/** Changes with everything that `dist` is made of. */
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

/** VIDIMUS_COMMIT names the commit where there is no clone, as in the build of an image. */
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

/** Whether `dist` was made of the sources as they are. */
export function isBuilt() {
  try {
    return readFileSync(STAMP, 'utf8') === stateOfSources();
  } catch {
    return false;
  }
}

/** @throws Error when the bundler is not installed, or `dist` cannot be written. */
export async function build() {
  // Before it reads them: what changes meanwhile is built the next time.
  const state = stateOfSources();
  const common = { sourcemap: 'linked', sourcesContent: false, external: packagesOf(() => true) };
  const programs = globSync(PROGRAMS, { cwd: ROOT }).filter((file) => file !== APART);
  const split = await bundle(programs, { ...common, chunkNames: 'parts/[name]-[hash]', splitting: true });
  const alone = await bundle(globSync(APART, { cwd: ROOT }), common);
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
 * The demo and the simulated wallet, with the packages of others that they bring: in `dist` nothing may need a package of developers.
 * @returns the files and the notices of all that were taken in.
 */
export async function bundleDemo() {
  const options = {
    external: packagesOf(({ dev }) => dev !== true),
    minifySyntax: true,
    alias: WITHOUT_NATIVE,
  };
  const { files, inputs } = await bundle(WITH_WALLETS, options);
  return { files, notices: noticesOf(inputs), packages: packagesIn(inputs) };
}

/** @returns the names of packages that are in a release as parts of its own files, such as those of the console and the wallet. */
export async function bundledPackages() {
  const [page, demo] = [await bundleConsole(), await bundleDemo()];
  return [...new Set([...packagesIn(page.inputs), ...demo.packages])];
}

/** Each page begins with what pages share, which makes one file of that. */
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
 * The browser's part of the console, with everything that it is made of: nothing comes from elsewhere when it runs, and what a
 * page needs is loaded with that page. The manifest names the files that it begins with.
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
  const named = (pattern) => basename(files.find(({ path }) => pattern.test(path))?.path ?? '');
  const manifest = { script: named(/console-[A-Z0-9]{8}\.js$/), style: named(/console-[A-Z0-9]{8}\.css$/) };
  files.push({ path: join(CONSOLE_BUILT, 'manifest.json'), contents: JSON.stringify(manifest) });
  files.push({
    path: join(CONSOLE_BUILT, 'icon.svg'),
    contents: readFileSync(join(ROOT, CONSOLE, 'styles/icon.svg')),
  });
  const inputs = Object.keys(metafile.inputs).map((path) => relative(ROOT, join(ROOT, CONSOLE, path)));
  return { files, inputs };
}

/** The console alone, for sources that run as they are. */
export async function buildConsole() {
  const { files } = await bundleConsole();
  for (const { path, contents } of files) await put(path, contents);
}

/** @returns files as they are to be written, and the names of those that they are made of. */
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
  const files = outputFiles.map(({ path, contents }) => ({ path, contents: placed(path, contents) }));
  return { files, inputs: Object.keys(metafile.inputs) };
}

/** Packages that stay where they are, and what is within them. */
function packagesOf(isMeant) {
  const { packages: locked } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  const names = Object.entries(locked)
    .filter(([, entry]) => isMeant(entry))
    .flatMap(([path]) => path.split('node_modules/').slice(1));
  return [...new Set(names.map((name) => name.replace(/\/$/, '')))]
    .filter((name) => !TAKEN_IN.some((taken) => name === taken || name.startsWith(`${taken}/`)))
    .flatMap((name) => [name, `${name}/*`]);
}

function packagesIn(inputs) {
  return [...new Set(inputs.flatMap((path) => /^node_modules\/((@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []))].sort();
}

/** Their licences ask for it. */
function noticesOf(inputs) {
  return packagesIn(inputs)
    .map((name) => `${name}\n\n${licenceOf(join(ROOT, 'node_modules', name))}`)
    .join(`\n${'-'.repeat(80)}\n\n`);
}

function licenceOf(folder) {
  const file = globSync('LICEN[CS]E*', { cwd: folder })[0];
  if (file !== undefined) return readFileSync(join(folder, file), 'utf8');
  const { license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  // It has our own licence, whose text stands beside ours.
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
      const place = `new URL(${JSON.stringify(built)}, ${PLACE}).href`;
      return { contents: text.replaceAll('import.meta.url', place), loader: 'ts' };
    });
  },
};

/** A line that is a comment, or part of one. */
const IN_COMMENT = /^\s*(\/\/|\/?\*)/;
const BEYOND_ASCII = /[^\0-\x7f]/;

function placed(path, contents) {
  if (!path.endsWith('.js')) return contents;
  const text = inAscii(path, Buffer.from(contents).toString());
  const up = relative(dirname(path), DIST);
  return text.replaceAll(PLACE, `new URL(${JSON.stringify(`./${up}/`)}, import.meta.url)`);
}

/** One character beyond ASCII makes Node keep the whole text in twice the memory. Texts have them escaped, which leaves comments. */
function inAscii(path, text) {
  if (!BEYOND_ASCII.test(text)) return text;
  const lines = text.split('\n').map((line) => {
    if (!BEYOND_ASCII.test(line)) return line;
    if (!IN_COMMENT.test(line)) throw new Error(`${path} has characters beyond ASCII outside of comments: ${line}`);
    return line.replaceAll(new RegExp(BEYOND_ASCII, 'g'), '?');
  });
  return lines.join('\n');
}

/** In one step: a process that starts meanwhile reads the old or the new one. */
async function put(path, contents) {
  await mkdir(dirname(path), { recursive: true });
  const fresh = `${path}.${process.pid}`;
  await writeFile(fresh, contents);
  await rename(fresh, path);
}

/** Parts are kept from when no build had them any more, however long ago they were made. */
async function removeOld(present) {
  const [now, before, left] = [Date.now(), readDropped(), {}];
  for (const entry of await readdir(DIST, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || path === STAMP || path === DROPPED || present.has(path)) continue;
    const since = before[entry.name] ?? now;
    const isKept = entry.parentPath === join(DIST, 'parts') && since > now - KEPT_MS;
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
