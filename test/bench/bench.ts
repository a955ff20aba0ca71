import 'reflect-metadata';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runDatabase } from './database-run.ts';
import { describeMemory, runMemory } from './memory-run.ts';
import { type BenchOptions, readOptions, USAGE } from './options.ts';
import { reportOn } from './report.ts';

/** Measures the built service from outside; see `options.ts` for the arguments. */
const RESULTS = new URL('../../data/bench/', import.meta.url);

/** What was measured, for the file and for the reader, and the limits that were missed. */
type Outcome = { readonly runs: unknown[]; readonly texts: string[]; readonly faults: string[] };

async function runScenarios(options: BenchOptions): Promise<Outcome> {
  const outcome: Outcome = { runs: [], texts: [], faults: [] };
  for (const kind of options.databases) {
    const run = await runDatabase(kind, options);
    if (run === undefined) continue;
    const report = reportOn(run);
    outcome.runs.push({ ...run, judgements: report.judgements, faults: report.faults });
    outcome.texts.push(report.text);
    outcome.faults.push(...report.faults.map((fault) => `${kind}: ${fault}`));
  }
  return outcome;
}

async function runMemories(options: BenchOptions): Promise<Outcome> {
  const outcome: Outcome = { runs: [], texts: [], faults: [] };
  for (const kind of options.databases) {
    const run = await runMemory(kind, options);
    if (run === undefined) continue;
    outcome.runs.push(run);
    outcome.texts.push(describeMemory(run));
    if (!run.met) outcome.faults.push(`${kind}: ${run.growth.toFixed(1)} MB stay behind`);
  }
  return outcome;
}

function understood(): BenchOptions {
  try {
    return readOptions(process.argv.slice(2));
  } catch (error) {
    const { message } = error as Error;
    console.error(message.includes(USAGE) ? message : `${message}\n\n${USAGE}`);
    process.exit(2);
  }
}

const options = understood();
const began = performance.now();
const { runs, texts, faults } = options.memory ? await runMemories(options) : await runScenarios(options);
console.log(texts.join('\n'));
console.log(
  faults.length === 0
    ? '\nall limits are met'
    : `\nmissed:\n${faults.map((fault) => `  ${fault}`).join('\n')}`,
);
const machine = { node: process.version, processor: cpus()[0]?.model ?? '', cores: cpus().length };
const file = fileURLToPath(new URL(options.memory ? 'memory.json' : 'latest.json', RESULTS));
mkdirSync(dirname(file), { recursive: true });
writeFileSync(file, `${JSON.stringify({ at: new Date(), machine, runs }, null, 2)}\n`);
console.log(`\n${((performance.now() - began) / 1000).toFixed(0)} s; the numbers are in ${file}`);
// At once: the package that starts PostgreSQL ends a process that runs out of work with 0, whatever its exitCode says.
process.exit((options.strict || options.memory) && faults.length > 0 ? 1 : 0);
