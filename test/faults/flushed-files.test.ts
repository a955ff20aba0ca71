import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect } from 'chai';
import { canFollowFlushes, FlushedFiles } from './flushed-files.ts';

const ROWS = 25;
const WRITER = `
  const { DatabaseSync } = require('node:sqlite');
  const database = new DatabaseSync(process.argv[1]);
  database.exec('pragma journal_mode = wal; pragma synchronous = ' + process.argv[2]);
  for (let i = 0; i < ${ROWS}; i++) database.exec('insert into kept values (1)');
  process.stdout.write('written');
  setInterval(() => {}, 1000);`;

describe('simulated power cut', () => {
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-flushed-'));
  before(function () {
    if (!canFollowFlushes()) this.skip();
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  /** @returns the rows that are there after the cut. */
  async function countKeptRows(synchronous: 'full' | 'normal'): Promise<number> {
    const file = join(folder, `${synchronous}.sqlite`);
    const made = new DatabaseSync(file);
    made.exec('pragma journal_mode = wal; create table kept (one integer)');
    made.close();
    const files = new FlushedFiles(file, join(folder, `${synchronous}-copies`));
    files.waitForFlush();
    const child = spawn(process.execPath, ['-e', WRITER, file, synchronous], {
      env: { ...process.env, ...files.environment },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await once(child, 'exit');
    files.cutPower();
    const database = new DatabaseSync(file);
    const { count } = database.prepare('select count(*) as count from kept').get() as { count: number };
    database.close();
    return count;
  }

  it('keeps flushed bytes', async () => {
    expect(await countKeptRows('full')).to.equal(ROWS);
  });

  it('discards bytes that were not flushed', async () => {
    expect(await countKeptRows('normal')).to.equal(0);
  });
});
