import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { openDatabase } from '../../adapters/persistence/database.ts';

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

  it('is written through to the disk before a change counts as made', async () => {
    expect((await opened()).synchronous).to.equal(2);
  });
});
