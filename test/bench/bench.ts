import 'reflect-metadata';
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { growthFaults, type PairedRun, runAgainst, runGrowth } from './against-run.ts';
import {
  changesSince,
  describeChange,
  drawChart,
  findNewFlows,
  makeBaseline,
  readBaseline,
  thisMachine,
  writeBaseline,
} from './baseline.ts';
import { countFlows, writeCounts } from './counts.ts';
import { type DatabaseRun, runDatabase } from './database-run.ts';
import { describeLists, GAP_LIMIT_MS, MEMORY_LIMIT_MB, runLists } from './lists-run.ts';
import { describeMemory, runMemory } from './memory-run.ts';
import { runNoisy } from './noisy-run.ts';
import { type BenchOptions, readOptions, USAGE } from './options.ts';
import { reportOn } from './report.ts';
import { assertBuilt, type Variant } from './service-process.ts';
import { describeStored, findStoredFaults, runStored } from './stored-run.ts';
import type { DatabaseKind } from './world.ts';

/** Measures the built service from outside; see `options.ts` for the arguments. */
const RESULTS = new URL('../../data/bench/', import.meta.url);

/** The measurement, for the file and for the terminal, and the missed goals. */
type Outcome = {
  readonly runs: unknown[];
  readonly texts: string[];
  readonly faults: string[];
  /** Those of the table. */
  readonly tables: DatabaseRun[];
};

type Mode = {
  /** Name of the results file. */
  readonly name: string;
  /** Whether a missed goal fails the command. */
  readonly isStrict: boolean;
  readonly run: (kind: DatabaseKind, options: BenchOptions, outcome: Outcome) => Promise<void>;
};

function selectMode({ memory, against, grow, noisy, lists, stored, strict }: BenchOptions): Mode {
  if (lists) return { name: 'lists', isStrict: true, run: runManyLists };
  if (grow.length > 0) return { name: 'growth', isStrict: true, run: runGrowing };
  if (stored !== undefined) return { name: 'stored', isStrict: strict, run: runBackground };
  if (noisy) return { name: 'noisy', isStrict: strict, run: runNeighbours };
  if (memory) return { name: 'memory', isStrict: true, run: runMemories };
  if (against !== undefined) return { name: 'against', isStrict: true, run: comparing(against) };
  return { name: 'latest', isStrict: strict, run: runScenarios };
}

async function runScenarios(kind: DatabaseKind, options: BenchOptions, outcome: Outcome): Promise<void> {
  const run = await runDatabase(kind, options);
  if (run === undefined) return;
  const report = reportOn(run);
  outcome.tables.push(run);
  outcome.runs.push({ ...run, judgements: report.judgements, faults: report.faults });
  outcome.texts.push(report.text);
  if (options.quick)
    outcome.texts.push('a quick run looks and does not judge: its processes are young, which is dearer, and its windows short');
  outcome.faults.push(...report.faults.map((fault) => `${kind}: ${fault}`));
}

async function runMemories(kind: DatabaseKind, options: BenchOptions, outcome: Outcome): Promise<void> {
  const run = await runMemory(kind, options);
  if (run === undefined) return;
  outcome.runs.push(run);
  outcome.texts.push(describeMemory(run));
  if (!run.met) outcome.faults.push(`${kind}: ${run.growth.toFixed(1)} MB stay behind`);
}

async function runGrowing(kind: DatabaseKind, options: BenchOptions, outcome: Outcome): Promise<void> {
  const run = await runGrowth(kind, options);
  if (run === undefined) return;
  outcome.runs.push(run);
  outcome.faults.push(...growthFaults(run), ...wrongAnswers(run));
}

/** Results with few and with many stored sessions. */
async function runBackground(kind: DatabaseKind, { stored = 0 }: BenchOptions, outcome: Outcome): Promise<void> {
  const fewRun = stored > FEW_STORED ? await runStored(kind, FEW_STORED) : undefined;
  const manyRun = await runStored(kind, stored);
  if (manyRun === undefined) return;
  for (const run of fewRun === undefined ? [manyRun] : [fewRun, manyRun]) {
    outcome.runs.push(run);
    outcome.texts.push(describeStored(run));
  }
  outcome.faults.push(...findStoredFaults(fewRun, manyRun));
}
const FEW_STORED = 10_000;

async function runNeighbours(kind: DatabaseKind, options: BenchOptions, outcome: Outcome): Promise<void> {
  const run = await runNoisy(kind, options);
  if (run === undefined) return;
  outcome.runs.push(run);
  for (const { scenario, met, overPeer } of run.scenarios) {
    if (!met) outcome.faults.push(`${kind}: ${scenario}: p99 ×${overPeer.median.toFixed(2)} beside a flood`);
  }
}

async function runManyLists(_kind: DatabaseKind, { against, profileFolder }: BenchOptions, outcome: Outcome): Promise<void> {
  if (against !== undefined) {
    const comparedRun = await runLists('compared', profileFolder, against);
    outcome.runs.push(comparedRun);
    outcome.texts.push(describeLists(comparedRun));
  }
  const run = await runLists('this service', profileFolder);
  outcome.runs.push(run);
  outcome.texts.push(describeLists(run));
  if (run.read < run.lists) outcome.faults.push(`${run.lists - run.read} lists were not read`);
  if (run.longestTurnMs > GAP_LIMIT_MS) outcome.faults.push(`the main thread computed for ${run.longestTurnMs.toFixed(0)} ms in one turn`);
  if (run.addedMegabytes > MEMORY_LIMIT_MB) outcome.faults.push(`${run.addedMegabytes.toFixed(0)} MB more than idle`);
}

function wrongAnswers({ database, comparisons }: PairedRun): readonly string[] {
  return comparisons.filter(({ errors }) => errors > 0).map(({ scenario, errors }) => `${database}: ${scenario}: ${errors} errors`);
}

function comparing(variant: Variant): Mode['run'] {
  return async (kind, options, outcome) => {
    const run = await runAgainst(kind, options, variant);
    if (run === undefined) return;
    outcome.runs.push(run);
    outcome.faults.push(...wrongAnswers(run));
  };
}

/** Called with the measured flows of the table. */
function keepProfile({ save, baseline, otherMachine, svg }: BenchOptions, { tables, faults }: Outcome): boolean {
  if (tables.length === 0) return true;
  const current = makeBaseline(tables);
  if (save !== undefined) writeBaseline(save, current);
  const [drawn] = tables;
  if (svg !== undefined && drawn !== undefined) {
    mkdirSync(dirname(svg), { recursive: true });
    writeFileSync(svg, drawChart(drawn));
  }
  if (baseline === undefined) return true;
  const recorded = readBaseline(baseline);
  const changes = changesSince(recorded, current, otherMachine);
  const newFlows = findNewFlows(recorded, current);
  console.log('');
  for (const line of [...changes.map(describeChange), ...newFlows]) console.log(line);
  const regressions = changes.filter(({ isRegression }) => isRegression);
  faults.push(...regressions.map(describeChange), ...newFlows);
  return regressions.length + newFlows.length === 0;
}

async function count(): Promise<never> {
  const counts = await countFlows();
  if (counts === undefined) throw new Error('there is no PostgreSQL here');
  writeCounts(counts);
  console.log('the counts are in test/bench/counts.json; commit them with the change that made them so');
  process.exit(0);
}

function understood(): BenchOptions {
  try {
    const options = readOptions(process.argv.slice(2));
    if (options.help) {
      console.log(USAGE);
      process.exit(0);
    }
    // Before minutes are spent on what could not be compared.
    if (options.baseline !== undefined) changesSince(readBaseline(options.baseline), makeBaseline([]), options.otherMachine);
    // Only what is understood is worth a build.
    const build = fileURLToPath(new URL('../../tools/build.mjs', import.meta.url));
    execFileSync(process.execPath, [build], { stdio: 'inherit' });
    if (options.against?.tree !== undefined) assertBuilt(options.against.tree);
    return options;
  } catch (error) {
    const { message } = error as Error;
    console.error(message);
    process.exit(2);
  }
}

const options = understood();
if (options.count) await count();
const mode = selectMode(options);
const startedAt = performance.now();
const outcome: Outcome = { runs: [], texts: [], faults: [], tables: [] };
for (const kind of options.databases) await mode.run(kind, options, outcome);
const { runs, texts, faults } = outcome;
for (const text of texts) console.log(text);
const wasKept = keepProfile(options, outcome);
if (faults.length > 0) console.log(`\nmissed:\n${faults.map((fault) => `  ${fault}`).join('\n')}`);
const file = fileURLToPath(new URL(`${mode.name}.json`, RESULTS));
mkdirSync(dirname(file), { recursive: true });
writeFileSync(file, `${JSON.stringify({ at: new Date(), machine: thisMachine(), runs }, null, 2)}\n`);
console.log(`\n${((performance.now() - startedAt) / 1000).toFixed(0)} s; the numbers are in ${file}`);
// At once: the package that starts PostgreSQL ends a process that runs out of work with 0, whatever its exitCode says.
process.exit(!wasKept || (mode.isStrict && faults.length > 0) ? 1 : 0);
