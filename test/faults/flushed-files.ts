import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SOURCE = fileURLToPath(new URL('flushed.c', import.meta.url));

/** Needs a C compiler, and a system whose loader takes `LD_PRELOAD`. Without it, `CI=true` is an error. */
export function canFollowFlushes(): boolean {
  try {
    execFileSync('gcc', ['--version'], { stdio: 'ignore' });
    return process.platform === 'linux';
  } catch {
    if (process.env['CI'] === 'true') throw new Error('CI needs a C compiler: install gcc');
    return false;
  }
}

/** The files of one SQLite database, and what of each is on the disk. */
export class FlushedFiles {
  readonly environment: Readonly<Record<string, string>>;
  readonly #file: string;
  readonly #folder: string;

  /** @param folder of its own, for the copies. */
  constructor(file: string, folder: string) {
    mkdirSync(folder, { recursive: true });
    const library = join(folder, 'flushed.so');
    execFileSync('gcc', ['-shared', '-fPIC', '-O2', '-pthread', '-o', library, SOURCE, '-ldl']);
    this.#file = file;
    this.#folder = folder;
    this.environment = { LD_PRELOAD: library, FLUSHED_FILES: file, FLUSHED_FOLDER: folder };
  }

  /** Marks the present contents as flushed. No process may have the files open. */
  waitForFlush(): void {
    for (const end of ['', '-wal']) {
      const copy = this.#copyOf(end);
      rmSync(copy, { force: true });
      if (existsSync(this.#file + end)) copyFileSync(this.#file + end, copy);
    }
  }

  /**
   * Simulates a power cut: each file keeps its flushed contents, or also the unflushed ones, which a system may have
   * written. Shared memory is lost. All processes must have been killed.
   * @param keepsUnflushed decides for each file whether it stays unchanged.
   */
  cutPower(keepsUnflushed: () => boolean = () => false): void {
    for (const end of ['', '-wal']) {
      if (keepsUnflushed()) continue;
      const copy = this.#copyOf(end);
      if (existsSync(copy)) copyFileSync(copy, this.#file + end);
      else rmSync(this.#file + end, { force: true });
    }
    rmSync(`${this.#file}-shm`, { force: true });
  }

  #copyOf(end: string): string {
    return join(this.#folder, basename(this.#file) + end);
  }
}
