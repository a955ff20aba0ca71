import { readFileSync } from 'node:fs';

/** Seconds that files took when `npm run test:durations` measured them. */
const SECONDS = JSON.parse(readFileSync(new URL('../durations.json', import.meta.url), 'utf8'));

/** Puts the files that take longest first, so that none of them runs alone at the end. */
export function longestFirst(files) {
  const seconds = (file) => SECONDS[file] ?? 0;
  return files.toSorted((one, other) => seconds(other) - seconds(one) || one.localeCompare(other));
}
