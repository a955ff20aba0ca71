import { execFileSync } from 'node:child_process';
import { chmodSync, closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createSqliteFile } from '../support/databases.ts';
import { rawSql } from '../support/postgres-server.ts';
import { Cluster, canMakeClusters } from '../support/standby.ts';
import { Checker } from './checker.ts';
import { waitForRecovery } from './database-faults.ts';
import { Load } from './load.ts';
import { type Group, runRounds } from './rounds.ts';
import { World } from './world.ts';

const DISK = '96m';
const CHUNK = Buffer.alloc(65_536);

/** A file system of its own, so small that it can be filled. */
class SmallDisk {
  readonly folder = mkdtempSync(join(tmpdir(), 'vidimus-disk-'));
  readonly #ballast = join(this.folder, 'ballast');

  /** @returns undefined without the right to mount. */
  static mount(): SmallDisk | undefined {
    const disk = new SmallDisk();
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK}`, 'vidimus', disk.folder], { stdio: 'ignore' });
      return disk;
    } catch {
      rmSync(disk.folder, { recursive: true, force: true });
      return undefined;
    }
  }

  /** Fills the disk completely. */
  fill(): void {
    const file = openSync(this.#ballast, 'a');
    for (const size of [CHUNK.length, 512, 1]) {
      try {
        for (;;) writeSync(file, CHUNK, 0, size);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      }
    }
    closeSync(file);
  }

  freeSpace(): void {
    rmSync(this.#ballast, { force: true });
  }

  unmount(): void {
    execFileSync('umount', ['-l', this.folder], { stdio: 'ignore' });
    rmSync(this.folder, { recursive: true, force: true });
  }
}

async function fillRepeatedly(group: Group, world: World, disk: SmallDisk): Promise<void> {
  const checker = new Checker(world);
  await runRounds(group, world, checker, async () => {
    const load = new Load(world).start();
    await pause(300 + Math.random() * 500);
    disk.fill();
    await pause(500 + Math.random() * 1_500);
    disk.freeSpace();
    await waitForRecovery(world);
    await pause(500);
    await load.stop();
  });
}

/** The disk of the database is full, and then it is not any more; nothing is started anew. */
export async function fillDiskOfSqlite(group: Group): Promise<void> {
  const disk = SmallDisk.mount();
  if (disk === undefined) return group.skip('nothing can be mounted here');
  try {
    const file = join(disk.folder, 'vidimus.sqlite');
    await createSqliteFile(file);
    const world = await World.open({ processes: 1, databaseUrl: `sqlite:${file}` });
    try {
      await fillRepeatedly(group, world, disk);
    } finally {
      await world.end();
    }
  } finally {
    disk.unmount();
  }
}

/** The same of PostgreSQL, whose log of what is written has a disk of its own: without room there it ends by itself. */
export async function fillDiskOfPostgres(group: Group): Promise<void> {
  const disk = canMakeClusters() ? SmallDisk.mount() : undefined;
  if (disk === undefined) return group.skip('nothing can be mounted here, or there is no server of PostgreSQL');
  try {
    const tablespaceFolder = join(disk.folder, 'tables');
    mkdirSync(tablespaceFolder);
    for (const folder of [disk.folder, tablespaceFolder]) chmodSync(folder, 0o755);
    if (process.getuid?.() === 0) execFileSync('chown', ['postgres', tablespaceFolder]);
    const cluster = await Cluster.make();
    await cluster.start();
    await rawSql(cluster.urlOf('postgres'), async (run) => {
      await run(`create tablespace small location '${tablespaceFolder}'`);
      await run('create database vidimus tablespace small');
    });
    const world = await World.open({ processes: 2, databaseUrl: cluster.urlOf('vidimus') });
    try {
      await fillRepeatedly(group, world, disk);
    } finally {
      await world.end();
      await cluster.remove();
    }
  } finally {
    disk.unmount();
  }
}
