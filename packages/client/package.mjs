import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const PACKAGE = fileURLToPath(new URL('.', import.meta.url));
const COMPILER = join(PACKAGE, '../../node_modules/.bin/tsc');

/**
 * Writes the client as JavaScript with its types into a folder. It runs on Node 20.3 and newer and in browsers, so it is
 * compiled for ES2022.
 */
export async function buildClient(target) {
  const { build } = await import('esbuild');
  await build({
    absWorkingDir: PACKAGE,
    entryPoints: ['src/index.ts'],
    outfile: join(target, 'index.js'),
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    target: 'es2022',
    legalComments: 'none',
  });
  execFileSync(COMPILER, ['-p', PACKAGE, '--outDir', target], { stdio: 'inherit' });
  for (const file of globSync('*.d.ts', { cwd: target })) {
    const text = readFileSync(join(target, file), 'utf8');
    writeFileSync(join(target, file), text.replaceAll(/(from '\.\/[\w-]+)(?:\.d)?\.ts'/g, "$1.js'"));
  }
  cpSync(join(PACKAGE, 'src/api.d.ts'), join(target, 'api.d.ts'));
}

/** Writes the package that a backend installs. @returns the path of the file. */
export async function makeClientPackage(target) {
  const stage = mkdtempSync(join(tmpdir(), 'vidimus-client-'));
  try {
    await buildClient(join(stage, 'dist'));
    mkdirSync(resolve(target), { recursive: true });
    cpSync(join(PACKAGE, 'README.md'), join(stage, 'README.md'));
    cpSync(join(PACKAGE, '../../LICENSE'), join(stage, 'LICENSE'));
    const { scripts: _scripts, ...manifest } = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8'));
    const exports = { '.': { types: './dist/index.d.ts', default: './dist/index.js' } };
    writeFileSync(join(stage, 'package.json'), `${JSON.stringify({ ...manifest, exports }, null, 2)}\n`);
    const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', resolve(target)];
    const options = { cwd: stage, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] };
    const [packed] = Object.values(JSON.parse(execFileSync('npm', args, options)));
    return join(resolve(target), packed.filename);
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(await makeClientPackage(process.argv[2] ?? process.cwd()));
