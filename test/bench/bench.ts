import 'reflect-metadata';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runDatabase } from './database-run.ts';
import { readOptions } from './options.ts';
import { reportOn } from './report.ts';

/** Measures the built service from outside; see `options.ts` for the arguments. */
const RESULTS = fileURLToPath(new URL('../../data/bench/latest.json', import.meta.url));

const options = readOptions(process.argv.slice(2));
const began = performance.now();
const all = [];
const faults: string[] = [];
const tables: string[] = [];
for (const kind of options.databases) {
  const run = await runDatabase(kind, options);
  if (run === undefined) continue;
  const report = reportOn(run);
  all.push({ ...run, judgements: report.judgements, faults: report.faults });
  tables.push(report.text);
  faults.push(...report.faults.map((fault) => `${kind}: ${fault}`));
}
console.log(tables.join('\n'));
console.log(
  faults.length === 0
    ? '\nall limits are met'
    : `\nmissed:\n${faults.map((fault) => `  ${fault}`).join('\n')}`,
);
const machine = { node: process.version, processor: cpus()[0]?.model ?? '', cores: cpus().length };
mkdirSync(dirname(RESULTS), { recursive: true });
writeFileSync(RESULTS, `${JSON.stringify({ at: new Date(), machine, runs: all }, null, 2)}\n`);
console.log(`\n${((performance.now() - began) / 1000).toFixed(0)} s; the numbers are in ${RESULTS}`);
process.exitCode = options.strict && faults.length > 0 ? 1 : 0;
