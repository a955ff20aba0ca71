import 'reflect-metadata';
import { parseArgs } from 'node:util';
import { addInput, distil, minimise, readInputs, replaceInputs } from './engine/corpus.ts';
import { Coverage } from './engine/coverage.ts';
import { fuzzTarget, type Run } from './engine/fuzz-target.ts';
import type { Target } from './engine/target.ts';

/** `npm run fuzz -- [target…] [--seconds n] [--seed n]`; see `docs/reference/fuzzing.md`. */
const USAGE = `npm run fuzz -- [target…] [--seconds <for each target, 30>] [--seed <number>] [--report]
Without a target all run. New inputs replace those of test/fuzz/corpus/<target>.json (the most telling 40), and crashes are kept in
test/fuzz/crashes/<target>.json; --report leaves the files as they are. Ends with 1 when something crashed.`;

function end(text: string, code = 2): never {
  (code === 0 ? console.log : console.error)(text);
  process.exit(code);
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        /** For each target. */
        seconds: { type: 'string', default: '30' },
        seed: { type: 'string', default: String(Date.now() % 1_000_000) },
        /** Stops a target after so many, if that is sooner. */
        executions: { type: 'string', default: 'Infinity' },
        /** The module with the targets. */
        table: { type: 'string', default: './targets.ts' },
        /** Leaves the files as they are and prints what happened as JSON. */
        report: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    return end(`${(error as Error).message}\n\n${USAGE}`);
  }
}
const { values, positionals } = readArguments();
const invalidOptions = (['seconds', 'seed', 'executions'] as const).filter((name) => !(Number(values[name]) >= 0));
if (invalidOptions.length > 0) end(`--${invalidOptions[0]} takes a number`);
if (values.help) end(USAGE, 0);

const KEPT = { count: 40, bytes: 8 * 1024 };
const seed = Number(values.seed);

// Before the code is loaded that it counts.
const coverage = new Coverage();
const { TARGETS } = (await import(values.table)) as { TARGETS: readonly Target[] };
const chosen = TARGETS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
const unknownTargets = positionals.filter((name) => !TARGETS.some((target) => target.name === name));
if (unknownTargets.length > 0) end(`no such target: ${unknownTargets.join(', ')}; there are ${TARGETS.map(({ name }) => name).join(' ')}`);

const targetFile = (kind: 'corpus' | 'crashes', { name }: Target) => new URL(`${kind}/${name}.json`, import.meta.url);
const print = (text: string) => (values.report ? undefined : console.log(text));

function describe(target: Target, run: Run, seconds: number): string {
  const { executions, covered, found, crashes } = run;
  const speed = Math.round(executions / seconds);
  return `${target.name}: ${executions} executions (${speed}/s), ${covered} characters of code, ${found} new inputs, ${crashes.length} crashes`;
}

const reports = chosen.map((target) => {
  const start = performance.now();
  const seconds = () => (performance.now() - start) / 1_000;
  const run = fuzzTarget(target, coverage, {
    seed,
    corpus: [...readInputs(targetFile('corpus', target)), ...readInputs(targetFile('crashes', target))],
    isOver: (executions) => seconds() >= Number(values.seconds) || executions >= Number(values.executions),
    ...(!values.report && { onProgress: (run: Run) => print(`  ${describe(target, run, seconds())}`) }),
  });
  print(describe(target, run, seconds()));
  const crashes = run.crashes.map((crash) => {
    const input = minimise(target, crash);
    print(`  CRASH ${crash.outcome.key}\n        ${JSON.stringify(input.toString('latin1').slice(0, 300))}`);
    if (!values.report) addInput(targetFile('crashes', target), input);
    return { kind: crash.outcome.kind, key: crash.outcome.key, input: input.toString('base64') };
  });
  if (!values.report) replaceInputs(targetFile('corpus', target), distil(target, coverage, run.pool, KEPT));
  const { executions, covered, found } = run;
  return { name: target.name, executions, covered, found, crashes };
});
coverage.stop();
if (values.report) console.log(JSON.stringify({ reports, functions: [...coverage.functions] }));
process.exitCode = reports.some(({ crashes }) => crashes.length > 0) ? 1 : 0;
