import { accessSync, chmodSync, constants, mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Memory file system of Linux. */
const MEMORY_FOLDER = '/dev/shm';
const PREFIX = 'vidimus-run-';
/** The tests take a quarter of it; containers often have far less. */
const MIN_FREE_BYTES = 1024 ** 3;
const ABANDONED_MS = 3_600_000;
const VARIABLE = 'TEST_RUN_FOLDER';

/**
 * Sets one temporary folder for this process and its children, in memory if there is enough space, since tests create and
 * drop many databases. It is removed when this process exits.
 */
export function useRunFolder(): void {
  if (process.env[VARIABLE] !== undefined) return;
  const parent = hasEnoughSpace() ? MEMORY_FOLDER : tmpdir();
  removeAbandoned(parent);
  const folder = mkdtempSync(join(parent, `${PREFIX}${process.pid}-`));
  // PostgreSQL, which may run as another user, has its own folder inside.
  chmodSync(folder, 0o711);
  process.env[VARIABLE] = folder;
  process.env['TMPDIR'] = folder;
  process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }));
}

/** @returns a new folder within the folder of the run. */
export function createRunFolder(): string {
  return mkdtempSync(join(tmpdir(), 'cwd-'));
}

function hasEnoughSpace(): boolean {
  try {
    accessSync(MEMORY_FOLDER, constants.W_OK);
    const { bavail, bsize } = statfsSync(MEMORY_FOLDER);
    return bavail * bsize >= MIN_FREE_BYTES;
  } catch {
    return false;
  }
}

/** Removes folders of killed processes. */
function removeAbandoned(parent: string): void {
  for (const name of readdirSync(parent)) {
    const [, pid] = new RegExp(`^${PREFIX}(\\d+)-`).exec(name) ?? [];
    if (pid === undefined || isRunning(Number(pid))) continue;
    const folder = join(parent, name);
    // A container sees folders of processes outside of it.
    if (statSync(folder).mtimeMs > Date.now() - ABANDONED_MS) continue;
    rmSync(folder, { recursive: true, force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
