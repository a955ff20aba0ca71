import { randomUUID } from 'node:crypto';
import { chown, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { type Sighting, Witness } from '../../application/ports/witness.ts';
import { later } from '../../domain/rewinds/term.ts';

/** Databases that one folder has served; the one that was seen least lately goes first. */
const MOST_SIGHTINGS = 20;
const MAX_BYTES = 64 * 1024;
const Sightings = z.array(
  z.object({
    address: z.string(),
    lineage: z.string(),
    term: z.int().nonnegative(),
    termId: z.string(),
    counter: z.int().nonnegative(),
  }),
);

/**
 * A small file, which is written as a whole or not at all. Processes of one machine, and containers with one volume, may share it: of
 * several that write at once one is late by seconds.
 */
export class WitnessFile extends Witness {
  readonly #file: string;
  /** Process ids are no names: the first process of every container has the same one. */
  readonly #temporaryFile: string;

  constructor(file: string) {
    super();
    // Absolute: where the current folder was removed, a relative path lets Node create folders without end.
    this.#file = resolve(file);
    this.#temporaryFile = `${this.#file}.${randomUUID()}.new`;
  }

  override get place(): string {
    return this.#file;
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
        `${this.#file}: is not what the service keeps there of how far its database is. Look whether the database was put ` +
          'back (docs/backup-and-restore.md), then remove the file',
        { cause },
      );
    }
  }

  override async note(sighting: Sighting): Promise<void> {
    const all = await this.sightings();
    const known = all.find(({ lineage }) => lineage === sighting.lineage);
    const latest = known === undefined || later(known, sighting) === sighting ? sighting : known;
    await this.#write([latest, ...all.filter(({ lineage }) => lineage !== sighting.lineage)]);
  }

  override async begin(sighting: Sighting): Promise<void> {
    const others = (await this.sightings()).filter(
      ({ lineage, address }) => lineage !== sighting.lineage && address !== sighting.address,
    );
    await this.#write([sighting, ...others]);
  }

  async #write(sightings: readonly Sighting[]): Promise<void> {
    await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 });
    const fresh = this.#temporaryFile;
    try {
      // Nothing that lies there, such as a link to another file, is written to.
      await rm(fresh, { force: true });
      await writeFile(fresh, JSON.stringify(sightings.slice(0, MOST_SIGHTINGS), undefined, 2), {
        mode: 0o600,
        flag: 'wx',
        flush: true,
      });
      await this.#keepOwner(fresh);
      await rename(fresh, this.#file);
    } catch (error) {
      await rm(fresh, { force: true }).catch(() => {});
      throw error;
    }
  }

  /** An operator who fences as root leaves behind what the account of the service can go on with. */
  async #keepOwner(fresh: string): Promise<void> {
    if (process.getuid?.() !== 0) return;
    const { uid, gid } = await stat(this.#file).catch(() => stat(dirname(this.#file)));
    await chown(fresh, uid, gid);
  }
}
