import { spawnSync } from 'node:child_process';

/** Says in one line what the commands of a page want that is not here; with `CI=true` that is a failure. */
export function hasPrograms(page: string, names: readonly string[]): boolean {
  const missing = names.filter((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0);
  if (missing.length === 0) return true;
  if (process.env['CI'] === 'true') throw new Error(`install what ${page} uses: ${missing.join(' ')}`);
  console.log(`    skipped: commands of ${page} (needs ${missing.join(' ')})`);
  return false;
}
