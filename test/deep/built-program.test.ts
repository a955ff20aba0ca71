import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const SOURCES = ['domain', 'application', 'adapters', 'bootstrap', 'config', 'tools'];
const FILES = ['package.json', 'package-lock.json'];

describe('the program that npm start runs', () => {
  let tree: string;

  beforeEach(() => {
    tree = realpathSync(mkdtempSync(join(tmpdir(), 'vidimus-build-')));
    for (const name of [...SOURCES, ...FILES])
      cpSync(join(ROOT, name), join(tree, name), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
  });
  afterEach(() => rmSync(tree, { recursive: true, force: true }));

  const program = () =>
    execFileSync(process.execPath, [join(tree, 'tools/program.mjs')], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  const stamp = () => readFileSync(join(tree, 'dist/sources.txt'), 'utf8');
  /** It takes no arguments, and says so before anything else. */
  const refuse = (file: string): string => {
    try {
      return execFileSync(process.execPath, [file, 'argument'], { encoding: 'utf8', stdio: 'pipe' });
    } catch (error) {
      return (error as { stderr: string }).stderr;
    }
  };

  it('is built of the sources, and anew when one of them has changed, came or went', () => {
    const built = join(tree, 'dist/bootstrap/main.js');
    expect(program()).to.equal(built);
    expect(refuse(built)).to.include('takes no arguments');
    const source = join(tree, 'bootstrap/run.ts');
    for (const [word, change] of [
      ['changed', () => appendFileSync(source, "\nconsole.error('changed');\n")],
      ['came', () => cpSync(join(tree, 'bootstrap/batches.ts'), join(tree, 'bootstrap/further.ts'))],
      ['went', () => rmSync(join(tree, 'bootstrap/further.ts'))],
    ] as const) {
      const before = stamp();
      change();
      expect(program(), word).to.equal(built);
      const after = stamp();
      expect(after, word).to.not.equal(before);
      expect(refuse(built), word).to.include('changed');
      expect(program(), word).to.equal(built);
      expect(stamp()).to.equal(after);
    }
  });

  it('is the sources as they are, where they cannot be built', () => {
    const source = join(tree, 'bootstrap/main.ts');
    writeFileSync(join(tree, 'bootstrap/run.ts'), 'this is no program');
    expect(program()).to.equal(source);
    // Without the packages of developers.
    rmSync(join(tree, 'node_modules'));
    expect(program()).to.equal(source);
  });

  it('finds its parts where their sources were', () => {
    program();
    const migrations = (folder: string) =>
      readdirSync(join(folder, 'adapters/persistence/migrations/postgres'))
        .filter((file) => /^Migration.*\.[jt]s$/.test(file))
        .map((file) => file.slice(0, -3));
    expect(migrations(join(tree, 'dist'))).to.deep.equal(migrations(tree));
    for (const file of [
      'bootstrap/workers/worker.js',
      'adapters/kms/pkcs11/session-worker.js',
      'bootstrap/workers/trust-list-thread.js',
    ])
      expect(existsSync(join(tree, 'dist', file)), file).to.equal(true);
    const parts = readdirSync(join(tree, 'dist/parts'));
    expect(parts.filter((name) => /^service-.*\.js$/.test(name))).to.have.length(1);
    const beyondAscii = parts.filter(
      (name) =>
        name.endsWith('.js') && /[^\0-\x7f]/.test(readFileSync(join(tree, 'dist/parts', name), 'utf8')),
    );
    expect(beyondAscii, 'kept in twice the memory').to.deep.equal([]);
  });
});
