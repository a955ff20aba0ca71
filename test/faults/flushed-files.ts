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

  /** What is there now is on the disk. Nobody may have it open. */
  waitForFlush(): void {
    for (const end of ['', '-wal']) {
      const copy = this.#copyOf(end);
      rmSync(copy, { force: true });
      if (existsSync(this.#file + end)) copyFileSync(this.#file + end, copy);
    }
  }

  /**
   * Leaves of each file what was flushed, or also what was not: a system may have written it out by itself. What several
   * processes share in memory is gone. Whoever has it open was killed.
   * @param keepsUnflushed says for each file whether it is left as it is.
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
