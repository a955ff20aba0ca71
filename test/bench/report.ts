import type { DatabaseRun, Result } from './database-run.ts';
import { REFERENCE, relativeSlowness } from './floor.ts';
import { sumMs } from './meter.ts';
import { SCENARIOS, type Scenario } from './scenarios.ts';

/** Goals of the start, the first with the schema to make, on the machine of reference. */
const START_GOALS_MS = { first: 500, again: 350 } as const;
const IDLE_GOAL_MB = 80;
const PEAK_GOAL_MB = 200;
/** The peak while credentials are issued. */
const ISSUING: readonly string[] = ['issue', 'issue-status', 'issue-mdoc', 'batch', 'code'];
/** Maximum additional cost of a flow with full tables; smaller differences are noise. */
const GROWTH_LIMIT = 1.15;

export type ScenarioResult = {
  readonly scenario: string;
  readonly sumMs: number;
  readonly floorMs: number;
  /** Null for a flow without cryptography. */
  readonly ratio: number | null;
  /** The estimated minimum on this machine; null without an estimate. */
  readonly practicalMs: number | null;
  readonly practicalRatio: number | null;
  /** On this machine; null for a scenario without one. */
  readonly goalMs: number | null;
  readonly met: boolean;
};

export type DatabaseReport = { readonly judgements: readonly ScenarioResult[]; readonly faults: readonly string[]; readonly text: string };

/** Compares a run with the goals and renders it. */
export function reportOn(run: DatabaseRun): DatabaseReport {
  const rows: string[][] = [
    [
      'scenario',
      'flows/s',
      'p50',
      'p95',
      'p99',
      'errors',
      'server',
      'db',
      'sum',
      'floor',
      'ratio',
      'at best',
      'ratio',
      'goal',
      'peak MB',
      'strangers',
      '',
    ],
  ];
  const judgements: ScenarioResult[] = [];
  const faults: string[] = [];
  for (const scenario of SCENARIOS) {
    const result = findResult(run, scenario, 'many');
    if (result === undefined) continue;
    const judgement = evaluateScenario(run, scenario, result);
    judgements.push(judgement);
    if (!judgement.met) faults.push(`${scenario.title}: ${ms(judgement.sumMs)} ms, goal ${ms(judgement.goalMs ?? 0)}`);
    if (result.flows === 0) faults.push(`${scenario.title}: nothing came of it`);
    if (result.errors > 0) faults.push(`${scenario.title}: ${result.errors} errors`);
    if (ISSUING.includes(scenario.name) && result.peakMegabytes > PEAK_GOAL_MB)
      faults.push(`${scenario.title}: peak ${result.peakMegabytes.toFixed(0)} MB, goal ${PEAK_GOAL_MB}`);
    rows.push(cells(scenario, result, judgement));
  }
  const growth = growthLines(run, faults);
  const start = startLines(run, faults);
  const text = [
    `\n${run.database} (${run.server}), ${run.preloaded.sessions} sessions in the tables, CPU and latencies in milliseconds, other processes in cores`,
    table(rows),
    ...machineLines(run),
    ...growth,
    ...start,
  ].join('\n');
  return { judgements, faults, text };
}

function machineLines({ costs }: DatabaseRun): string[] {
  const { reference, signMs, verifyMs, importMs } = costs;
  return [
    `this machine takes ×${relativeSlowness(costs).toFixed(2)} of the reference: signs in ${us(reference.signMs)}, verifies in` +
      ` ${us(reference.verifyMs)} (reference: ${us(REFERENCE.signMs)} and ${us(REFERENCE.verifyMs)}); goals are scaled by that`,
    `floor: sign ${us(signMs)}, verify ${us(verifyMs)}, import of a key ${us(importMs)}, in the quickest form of Node`,
  ];
}

function evaluateScenario(run: DatabaseRun, scenario: Scenario, result: Result): ScenarioResult {
  const cost = sumMs(result);
  const floorMs = scenario.floorMs(run.costs);
  const slowness = relativeSlowness(run.costs);
  const goalMs = scenario.goalMs === undefined ? null : scenario.goalMs * slowness;
  const practicalMs = scenario.practicalMs === undefined ? null : scenario.practicalMs * slowness;
  return {
    scenario: scenario.name,
    sumMs: cost,
    floorMs,
    ratio: floorMs === 0 ? null : cost / floorMs,
    practicalMs,
    practicalRatio: practicalMs === null ? null : cost / practicalMs,
    goalMs,
    met: goalMs === null || cost <= goalMs,
  };
}

function cells(scenario: Scenario, result: Result, judgement: ScenarioResult): string[] {
  return [
    scenario.title,
    (result.flows / result.seconds).toFixed(0),
    result.p50.toFixed(1),
    result.p95.toFixed(1),
    result.p99.toFixed(1),
    String(result.errors),
    ms(result.serverMs),
    ms(result.databaseMs),
    ms(judgement.sumMs),
    judgement.floorMs === 0 ? '-' : ms(judgement.floorMs),
    optional(judgement.ratio, (ratio) => ratio.toFixed(1)),
    optional(judgement.practicalMs, ms),
    optional(judgement.practicalRatio, (ratio) => ratio.toFixed(1)),
    optional(judgement.goalMs, ms),
    result.peakMegabytes.toFixed(0),
    result.strangersCores.toFixed(2),
    judgement.goalMs === null ? '' : judgement.met ? 'ok' : 'MISSED',
  ];
}

function growthLines(run: DatabaseRun, faults: string[]): string[] {
  return SCENARIOS.flatMap((scenario) => {
    const fewResult = findResult(run, scenario, 'few');
    const manyResult = findResult(run, scenario, 'many');
    if (fewResult === undefined || manyResult === undefined) return [];
    const costBefore = sumMs(fewResult);
    const costAfter = sumMs(manyResult);
    const growth = costAfter / costBefore;
    if (growth > GROWTH_LIMIT) faults.push(`${scenario.title}: grows with the tables, ×${growth.toFixed(2)}`);
    return [`growth: ${scenario.title}: ${ms(costBefore)} with few rows, ${ms(costAfter)} with many, ×${growth.toFixed(2)}`];
  });
}

function startLines(run: DatabaseRun, faults: string[]): string[] {
  const slowness = relativeSlowness(run.costs);
  return run.starts.map(({ startMs, idleMegabytes }, index) => {
    const label = index === 0 ? 'first start, with the schema' : 'start';
    const goalMs = (index === 0 ? START_GOALS_MS.first : START_GOALS_MS.again) * slowness;
    if (startMs > goalMs) faults.push(`${label}: ${startMs.toFixed(0)} ms, goal ${goalMs.toFixed(0)}`);
    if (idleMegabytes > IDLE_GOAL_MB) faults.push(`${label}: ${idleMegabytes.toFixed(0)} MB idle, goal ${IDLE_GOAL_MB}`);
    return `${label}: healthy after ${startMs.toFixed(0)} ms (goal ${goalMs.toFixed(0)}), ${idleMegabytes.toFixed(0)} MB idle (goal ${IDLE_GOAL_MB})`;
  });
}

function findResult(run: DatabaseRun, scenario: Scenario, tables: 'few' | 'many'): Result | undefined {
  return run.results.find((result) => result.scenario === scenario.name && result.tables === tables);
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) => row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join('  '))
    .join('\n');
}

function optional(value: number | null, render: (value: number) => string): string {
  return value === null ? '-' : render(value);
}

function ms(value: number): string {
  return value.toFixed(3);
}

function us(value: number): string {
  return `${(value * 1000).toFixed(0)} µs`;
}
