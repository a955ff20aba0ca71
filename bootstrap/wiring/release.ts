import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Release } from '../../application/ports/settings.ts';

let cached: Release | undefined;

/** @returns the release that runs. It does not change while the process lives. */
export function currentRelease(): Release {
  cached ??= { version: readVersion(), commit: readCommit() };
  return cached;
}

/** Built code is one folder deeper than its sources. */
function readVersion(): string {
  const text = readIfPresent('../../package.json') ?? readIfPresent('../../../package.json');
  return text === undefined ? 'unknown' : (JSON.parse(text) as { version: string }).version;
}

/** The build writes `dist/commit.txt`. A clone that runs its sources calls git. */
function readCommit(): string | null {
  const writtenCommit = readIfPresent('../../commit.txt');
  if (writtenCommit !== undefined) return writtenCommit.trim() === '' ? null : writtenCommit.trim();
  try {
    const cwd = fileURLToPath(new URL('../..', import.meta.url));
    return execFileSync('git', ['rev-parse', 'HEAD'], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    // Git is not installed, or the folder is not a clone.
    return null;
  }
}

function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(new URL(path, import.meta.url), 'utf8');
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ENOENT') throw error;
    return undefined;
  }
}
