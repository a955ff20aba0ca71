import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import type { DatabaseRun, Result } from './database-run.ts';
import { sumMs } from './meter.ts';
import { computeSpread, relativeSpread } from './pairs.ts';
import { SCENARIOS, type ScenarioName } from './scenarios.ts';

/** Properties that must match for comparable figures. */
export type Machine = { readonly processor: string; readonly cores: number; readonly node: string };

export type BaselineFlow = {
  readonly scenario: ScenarioName;
  /** CPU milliseconds per flow, as if on the machine of reference. */
  readonly costMs: number;
  /** Share of the cost by which the windows of its measurement differed. */
  readonly spread: number;
};

export type BaselineDatabase = {
  readonly database: DatabaseRun['database'];
  readonly server: string;
  /** Share by which the first flow had another cost when it was measured again at the end. */
  readonly control: number;
  readonly flows: readonly BaselineFlow[];
};

export type Baseline = { readonly at: string; readonly machine: Machine; readonly databases: readonly BaselineDatabase[] };

/** A flow now and then. */
export type Change = {
  readonly database: string;
  readonly scenario: ScenarioName;
  readonly ratio: number;
  /** Share below which a difference says nothing. */
  readonly noise: number;
  readonly isRegression: boolean;
};

export function thisMachine(): Machine {
  const cpuList = cpus();
  return { processor: cpuList[0]?.model ?? '', cores: cpuList.length, node: process.version };
}

export function makeBaseline(runs: readonly DatabaseRun[], machine = thisMachine(), at = new Date()): Baseline {
  return { at: at.toISOString(), machine, databases: runs.map(makeDatabaseBaseline) };
}

function makeDatabaseBaseline({ database, server, results }: DatabaseRun): BaselineDatabase {
  const flows = results.filter(({ tables }) => tables === 'many');
  const repeatedResult = results.find(({ tables }) => tables === 'again');
  const firstFlow = flows.find(({ scenario }) => scenario === repeatedResult?.scenario);
  const control =
    repeatedResult === undefined || firstFlow === undefined ? 0 : Math.abs(scaledMs(repeatedResult) / scaledMs(firstFlow) - 1);
  return {
    database,
    server,
    control,
    flows: flows.map((result) => ({
      scenario: result.scenario,
      costMs: scaledMs(result),
      spread: relativeSpread(computeSpread(result.windowsMs)),
    })),
  };
}

function scaledMs(result: Result): number {
  return sumMs(result) / result.slowness;
}

/**
 * Compares with what the same machine measured earlier. The noise of both runs counts: how far the windows of a flow
 * differed, and how far a run was from itself at its end.
 * @throws Error when the baseline is of another machine or another server, unless `mayDiffer`.
 */
export function changesSince(baseline: Baseline, current: Baseline, mayDiffer = false): readonly Change[] {
  const differing = differences(baseline, current);
  if (differing.length > 0 && !mayDiffer)
    throw new Error(
      `the baseline was measured elsewhere: ${differing.join('; ')}. ` +
        'Save one here with --save, or compare all the same with --other-machine.',
    );
  return current.databases.flatMap(({ database, control, flows }) => {
    const earlierDatabase = baseline.databases.find((candidate) => candidate.database === database);
    return flows.flatMap(({ scenario, costMs, spread }): Change[] => {
      const earlierFlow = earlierDatabase?.flows.find((flow) => flow.scenario === scenario);
      if (earlierDatabase === undefined || earlierFlow === undefined) return [];
      const noise = spread + earlierFlow.spread + Math.max(control, earlierDatabase.control);
      const ratio = costMs / earlierFlow.costMs;
      return [{ database, scenario, ratio, noise, isRegression: ratio > 1 + noise }];
    });
  });
}

/** @returns the flows that were measured now and are not in the baseline: nothing is known of them. */
export function findNewFlows(baseline: Baseline, current: Baseline): readonly string[] {
  return current.databases.flatMap(({ database, flows }) => {
    const knownFlows = baseline.databases.find((candidate) => candidate.database === database)?.flows ?? [];
    const newFlows = flows.filter(({ scenario }) => !knownFlows.some((flow) => flow.scenario === scenario));
    return newFlows.map(({ scenario }) => `${database}: ${scenario}: not in the baseline, nothing was compared`);
  });
}

function differences(baseline: Baseline, current: Baseline): readonly string[] {
  const pairs = [
    ['processor', baseline.machine.processor, current.machine.processor],
    ['cores', baseline.machine.cores, current.machine.cores],
    ['Node', baseline.machine.node, current.machine.node],
    ...current.databases.map(({ database, server }) => [
      database,
      baseline.databases.find((candidate) => candidate.database === database)?.server ?? server,
      server,
    ]),
  ];
  return pairs.flatMap(([description, recordedValue, currentValue]) =>
    recordedValue === currentValue ? [] : [`${description} ${recordedValue}, here ${currentValue}`],
  );
}

export function describeChange({ database, scenario, ratio, noise, isRegression }: Change): string {
  const verdict = isRegression ? 'DEARER' : ratio < 1 - noise ? 'cheaper' : 'within the noise';
  return `${database}: ${scenario.padEnd(12)} ×${ratio.toFixed(3)} of the baseline, noise ±${(noise * 100).toFixed(1)} %: ${verdict}`;
}

/** @throws Error when it is none. */
export function readBaseline(file: string): Baseline {
  if (!existsSync(file)) throw new Error(`there is no ${file}; --save writes one`);
  const baseline = JSON.parse(readFileSync(file, 'utf8')) as Partial<Baseline>;
  if (baseline.machine === undefined || baseline.databases === undefined) throw new Error(`${file} is no baseline; --save writes one`);
  return baseline as Baseline;
}

export function writeBaseline(file: string, baseline: Baseline): void {
  writeFileSync(file, `${JSON.stringify(baseline, null, 2)}\n`);
}

type Row = { readonly title: string; readonly costMs: number; readonly goalMs: number; readonly practicalMs: number };

const WIDTH = 760;
const LABELS = 250;
const RIGHT = 30;
const TOP = 62;
const ROW = 40;
/** Colours of both schemes; the chart is embedded as an image, so it contains the media query itself. */
const STYLE = `
    text { font: 12px system-ui, sans-serif; fill: #1f2328 } .small { font-size: 11px; fill: #59636e }
    .cost { fill: #0969da } .goal { stroke: #1a7f37; stroke-width: 2 } .best { stroke: #9a6700; stroke-width: 2 }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc } .small { fill: #9198a1 }
      .cost { fill: #4493f8 } .goal { stroke: #3fb950 } .best { stroke: #d29922 }
    }`;

/** A bar for each flow that has a goal, as a multiple of its goal: flows differ a hundredfold in milliseconds. */
export function drawChart(run: DatabaseRun): string {
  const baseline = makeBaseline([run]);
  const rows = chartRows(baseline);
  const maxRatio = Math.max(1, ...rows.map(({ costMs, goalMs }) => costMs / goalMs));
  const perGoal = (WIDTH - LABELS - RIGHT) / maxRatio;
  const height = TOP + rows.length * ROW + 10;
  const title = `CPU of service and database per flow, ${escapeXml(run.server)}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${title}">
  <style>${STYLE}
  </style>
  <text x="0" y="16">${title}</text>
  <text x="0" y="34" class="small">milliseconds, as on a machine that signs with P-256 in 49 µs and verifies in 91 µs</text>
${legend()}
${rows.map((row, index) => bar(row, TOP + index * ROW, perGoal)).join('\n')}
</svg>
`;
}

function chartRows({ databases: [database] }: Baseline): readonly Row[] {
  return SCENARIOS.flatMap(({ name, title, goalMs, practicalMs }) => {
    const flow = database?.flows.find(({ scenario }) => scenario === name);
    if (flow === undefined || goalMs === undefined || practicalMs === undefined) return [];
    return [{ title: title.replace(/ \(.*/, ''), costMs: flow.costMs, goalMs, practicalMs }];
  });
}

function legend(): string {
  const x = WIDTH - 250;
  return `  <rect x="${x}" y="8" width="12" height="9" class="cost"/><text x="${x + 18}" y="16" class="small">now</text>
  <path d="M${x + 76} 6v13" class="goal"/><text x="${x + 82}" y="16" class="small">goal</text>
  <path d="M${x + 136} 6v13" class="best"/><text x="${x + 142}" y="16" class="small">at best on Node</text>`;
}

function bar({ title, costMs, goalMs, practicalMs }: Row, y: number, perGoal: number): string {
  const xOf = (ms: number) => (LABELS + (ms / goalMs) * perGoal).toFixed(1);
  const values = `${costMs.toPrecision(2)} ms, goal ${goalMs}, at best ${practicalMs}`;
  return `  <text x="0" y="${y + 12}">${escapeXml(title)}</text><text x="0" y="${y + 27}" class="small">${values}</text>
  <rect x="${LABELS}" y="${y + 4}" width="${((costMs / goalMs) * perGoal).toFixed(1)}" height="18" class="cost"/>
  <path d="M${xOf(goalMs)} ${y}v26" class="goal"/><path d="M${xOf(practicalMs)} ${y}v26" class="best"/>`;
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
