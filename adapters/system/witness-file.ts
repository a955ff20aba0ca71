import { randomUUID } from 'node:crypto';
import { chown, mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { z } from 'zod';
import { type Sighting, Witness } from '../../application/ports/witness.ts';
import { newerPosition } from '../../domain/rewinds/term.ts';

/** Limit of databases per folder; the one that was seen longest ago is evicted. */
const MAX_SIGHTINGS = 20;
const MAX_BYTES = 64 * 1024;
const LOCK_POLL_MS = 20;
/** A write takes milliseconds, so a process that holds the lock for this long has ended or is stalled. */
const ABANDONED_LOCK_MS = 2_000;
const Sightings = z.array(
  z.object({
    address: z.string(),
    lineage: z.string(),
    term: z.int().nonnegative(),
    termId: z.string(),
    counter: z.int().nonnegative(),
    idleChecks: z.int().nonnegative().optional(),
  }),
);

/**
 * Small file that is written as a whole or not at all. Processes of one machine, and containers with one volume, may share it: a lock file
 * prevents a process from replacing a later position by an earlier one. The lock contains a token of its holder, so a process that was
 * stalled notices before it writes that another one has taken the lock.
 */
export class WitnessFile extends Witness {
  readonly #file: string;
  readonly #lock: string;

  constructor(file: string) {
    super();
    // Absolute: if the current folder was removed, a relative path makes Node create folders endlessly.
    this.#file = resolve(file);
    this.#lock = `${this.#file}.lock`;
  }

  override get location(): string {
    return this.#file;
  }

  override get qualifiedLocation(): string {
    return `${hostname()}:${this.#file}`;
  }

  override async sightings(): Promise<readonly Sighting[]> {
    const text = await readFile(this.#file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return '[]';
      throw error;
    });
    try {
      if (text.length > MAX_BYTES) throw new Error('it is too large');
      return Sightings.parse(JSON.parse(text));
    } catch (cause) {
      throw new Error(
        `${this.#file}: is not a valid record of the database position. Check whether the database was restored ` +
          '(docs/guides/backup-and-restore.md), then remove the file',
        { cause },
      );
    }
  }

  override note(sighting: Sighting): Promise<void> {
    return this.#replace((sightings) => {
      const storedSighting = sightings.find(({ lineage }) => lineage === sighting.lineage);
      const latest = storedSighting === undefined || newerPosition(storedSighting, sighting) === sighting ? sighting : storedSighting;
      return [latest, ...sightings.filter(({ lineage }) => lineage !== sighting.lineage)];
    });
  }

  override begin(sighting: Sighting): Promise<void> {
    return this.#replace((sightings) => {
      const otherSightings = sightings.filter(({ lineage, address }) => lineage !== sighting.lineage && address !== sighting.address);
      return [sighting, ...otherSightings];
    });
  }

  /** Replaces the sightings under the lock, and retries if the lock was lost before that. */
  async #replace(change: (sightings: readonly Sighting[]) => readonly Sighting[]): Promise<void> {
    await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 });
    // The patience grows: on a slow disk, two processes would otherwise take the lock from each other endlessly.
    for (let patienceMs = ABANDONED_LOCK_MS; ; patienceMs *= 2) {
      const token = await this.#acquireLock(patienceMs);
      try {
        if (await this.#write(change(await this.sightings()), token)) return;
      } finally {
        if (await this.#isHeld(token)) await rm(this.#lock, { force: true });
      }
    }
  }

  /** Removes a lock that another process left behind, once the same lock has existed for long enough. @returns the token of the lock. */
  async #acquireLock(patienceMs: number): Promise<string> {
    // Process ids are not unique: the first process of every container has the same one.
    const token = randomUUID();
    let holder: string | undefined;
    let heldSince = 0;
    while (!(await this.#isCreated(token))) {
      const { ino, birthtimeMs } = await stat(this.#lock).catch(() => ({ ino: 0, birthtimeMs: 0 }));
      const current = `${ino} ${birthtimeMs}`;
      if (current !== holder) {
        holder = current;
        heldSince = performance.now();
      } else if (performance.now() - heldSince >= patienceMs) await rm(this.#lock, { force: true });
      await setTimeout(LOCK_POLL_MS);
    }
    return token;
  }

  async #isCreated(token: string): Promise<boolean> {
    try {
      const handle = await open(this.#lock, 'wx', 0o600);
      try {
        await handle.writeFile(token);
      } catch (error) {
        // A full disk leaves no lock behind.
        await rm(this.#lock, { force: true });
        throw error;
      } finally {
        await handle.close();
      }
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
      throw error;
    }
  }

  async #isHeld(token: string): Promise<boolean> {
    return (await readFile(this.#lock, 'utf8').catch(() => undefined)) === token;
  }

  /** @returns false if the lock was lost; then nothing was written. */
  async #write(sightings: readonly Sighting[], token: string): Promise<boolean> {
    // The name is new, and `wx` follows no link at it.
    const newFile = `${this.#file}.${token}.new`;
    try {
      await writeFile(newFile, JSON.stringify(sightings.slice(0, MAX_SIGHTINGS), undefined, 2), { mode: 0o600, flag: 'wx', flush: true });
      await this.#keepOwner(newFile);
      if (!(await this.#isHeld(token))) {
        await rm(newFile, { force: true });
        return false;
      }
      await rename(newFile, this.#file);
      // The database records this write next. Without the sync, the previous file could be back after a power failure.
      await syncFolder(dirname(this.#file));
      return true;
    } catch (error) {
      await rm(newFile, { force: true }).catch(() => {});
      throw error;
    }
  }

  /** An operator who fences as root leaves a file that the account of the service can write. */
  async #keepOwner(newFile: string): Promise<void> {
    if (process.getuid?.() !== 0) return;
    const { uid, gid } = await stat(this.#file).catch(() => stat(dirname(this.#file)));
    await chown(newFile, uid, gid);
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
