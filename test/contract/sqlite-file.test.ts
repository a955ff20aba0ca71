import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { openDatabase } from '../../adapters/persistence/database.ts';

const LOCK = new URL('../../adapters/persistence/sqlite/lock.ts', import.meta.url).href;
const DATABASE = new URL('../../adapters/persistence/database.ts', import.meta.url).href;
/** Opens the file, asks for the lock when it is told to, and keeps what it gets until it is ended. */
const ASKER = `
  const [file] = process.argv.slice(1);
  const { openDatabase } = await import('${DATABASE}');
  const { lockSqlite } = await import('${LOCK}');
  const database = await openDatabase({ url: 'sqlite:' + file, poolSize: 2 });
  process.stdin.once('data', () => {
    try {
      lockSqlite(file, database.native);
      process.stdout.write('held');
    } catch (error) {
      process.stdout.write(error.message.split(' ').slice(0, 2).join(' '));
    }
  });
  process.stdout.write('ready');`;

type Asker = { answer(): Promise<string>; ask(): void; end(): void };

function askerOf(file: string): Asker {
  const child = spawn(process.execPath, ['--input-type=module', '-e', ASKER, file], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  return {
    answer: async () => String((await once(child.stdout, 'data'))[0]),
    ask: () => void child.stdin.write('now'),
    end: () => void child.kill('SIGKILL'),
  };
}

describe('the file of a SQLite database', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const modes = () =>
    Object.fromEntries(readdirSync(folder).map((name) => [name, statSync(join(folder, name)).mode & 0o777]));
  const opened = async () => {
    const opened = await openDatabase({ url: `sqlite:${join(folder, 'vidimus.sqlite')}`, poolSize: 2 });
    const seen = modes();
    const native = await opened.all('pragma synchronous');
    await opened.close();
    return { seen, synchronous: Object.values(native[0] ?? {})[0] };
  };

  it('and what stands beside it is for its owner alone', async () => {
    const before = process.umask(0);
    try {
      const { seen } = await opened();
      expect(Object.keys(seen)).to.include('vidimus.sqlite');
      for (const [name, mode] of Object.entries(seen)) expect(mode, name).to.equal(0o600);
    } finally {
      process.umask(before);
    }
  });

  it('of an earlier release becomes so', async () => {
    writeFileSync(join(folder, 'vidimus.sqlite'), '');
    chmodSync(join(folder, 'vidimus.sqlite'), 0o644);
    const { seen } = await opened();
    for (const [name, mode] of Object.entries(seen)) expect(mode, name).to.equal(0o600);
  });

  it('goes to one of several services that ask for it at the same moment', async () => {
    const file = join(folder, 'vidimus.sqlite');
    for (let round = 0; round < 6; round++) {
      const askers = [1, 2, 3].map(() => askerOf(file));
      try {
        await Promise.all(askers.map((asker) => asker.answer()));
        const answering = askers.map((asker) => asker.answer());
        for (const asker of askers) asker.ask();
        const answers = await Promise.all(answering);
        expect(answers.toSorted()).to.deep.equal(['another service', 'another service', 'held']);
      } finally {
        for (const asker of askers) asker.end();
      }
    }
  });

  it('stays locked for as long as it is open, so that no other program takes itself for the last one', async function () {
    // Programs with an older SQLite remove the log then, and what is written from then on is lost.
    if (!existsSync('/proc/locks')) return this.skip();
    const file = join(folder, 'vidimus.sqlite');
    const first = await openDatabase({ url: `sqlite:${file}`, poolSize: 2 });
    const isLocked = () => readFileSync('/proc/locks', 'utf8').includes(`:${statSync(file).ino} `);
    expect(isLocked(), 'once it was made and brought up to date').to.equal(true);
    const second = await openDatabase({ url: `sqlite:${file}`, poolSize: 2 });
    await second.close();
    expect(isLocked(), 'after another connection of the same process').to.equal(true);
    await first.close();
    expect(isLocked()).to.equal(false);
  });

  it('is written through to the disk before a change counts as made', async () => {
    expect((await opened()).synchronous).to.equal(2);
  });
});
