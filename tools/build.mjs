import { createHash } from 'node:crypto';
import { globSync, readFileSync, statSync } from 'node:fs';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * `npm run build`: writes `dist`. Reading six hundred small files takes a start longer than running them, so what is
 * loaded together is one file there; packages stay where they are. In plain JavaScript, since every `npm start` asks
 * whether `dist` is up to date, and a compiler is more than that is worth.
 */
export const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DIST = join(ROOT, 'dist');
const SOURCES = ['domain', 'application', 'adapters', 'bootstrap', 'config', 'tools/attack'];
/** What is started or found by its address, so it has a file of its own in the place of its source. */
const PROGRAMS = [
  'bootstrap/main.ts',
  'bootstrap/workers/worker.ts',
  'bootstrap/commands/*.ts',
  'tools/attack/main.ts',
  'adapters/kms/pkcs11/session-worker.ts',
  'adapters/xml/xml-worker.ts',
  'adapters/persistence/migrations/{postgres,sqlite}/*.ts',
];
/** Two hundred files of a few lines each. */
const TAKEN_IN = ['inversify', '@inversifyjs'];
const STAMP = join(DIST, 'sources.txt');
/** Since when each part is in no build. */
const DROPPED = join(DIST, 'dropped.json');
const NOTICES = join(DIST, 'third-party-notices.txt');
/** A process that runs may still load parts of the build before. */
const KEPT_MS = 7 * 24 * 3_600_000;
/** Where a module was before it came together with others; `import.meta.url` would say where it is now. */
const PLACE = '__place_of_dist__';

/** Changes with everything that `dist` is made of. */
export function stateOfSources() {
  const files = globSync(
    [...SOURCES.map((folder) => `${folder}/**/*.{ts,json}`), 'package-lock.json', 'tools/build.mjs'],
    {
      cwd: ROOT,
    },
  );
  const hash = createHash('sha256');
  for (const file of files.sort()) {
    const { size, mtimeMs } = statSync(join(ROOT, file));
    hash.update(`${file} ${size} ${mtimeMs}\n`);
  }
  return hash.digest('hex');
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
  const { build: bundle } = await import('esbuild');
  const { outputFiles, metafile } = await bundle({
    absWorkingDir: ROOT,
    entryPoints: globSync(PROGRAMS, { cwd: ROOT }),
    outdir: DIST,
    outbase: '.',
    chunkNames: 'parts/[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    external: packages().flatMap((name) => [name, `${name}/*`]),
    metafile: true,
    sourcemap: 'linked',
    sourcesContent: false,
    legalComments: 'none',
    write: false,
    plugins: [keepPlaces],
  });
  for (const { path, contents } of outputFiles) await put(path, placed(path, contents));
  await put(NOTICES, noticesOf(Object.keys(metafile.inputs)));
  await removeOld(new Set([NOTICES, ...outputFiles.map(({ path }) => path)]));
  await put(STAMP, state);
}

/** All that stay where they are. */
function packages() {
  const { packages: locked } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  const names = Object.keys(locked).flatMap((path) => path.split('node_modules/').slice(1));
  return [...new Set(names.map((name) => name.replace(/\/$/, '')))].filter(
    (name) => !TAKEN_IN.some((taken) => name === taken || name.startsWith(`${taken}/`)),
  );
}

/** Their licences ask for it. */
function noticesOf(inputs) {
  const taken = inputs.flatMap((path) => /^node_modules\/((@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []);
  return [...new Set(taken)]
    .sort()
    .map((name) => `${name}\n\n${readFileSync(join(ROOT, 'node_modules', name, 'LICENSE'), 'utf8')}`)
    .join(`\n${'-'.repeat(80)}\n\n`);
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

function placed(path, contents) {
  if (!path.endsWith('.js')) return contents;
  const text = Buffer.from(contents).toString();
  const up = relative(dirname(path), DIST);
  return text.replaceAll(PLACE, `new URL(${JSON.stringify(`./${up}/`)}, import.meta.url)`);
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

if (process.argv[1] === fileURLToPath(import.meta.url)) await build();
