import type { DatabaseRun, Result } from './database-run.ts';
import { limitHere, REFERENCE, SCENARIOS, type Scenario } from './scenarios.ts';

/** What the service must start within, and be content with. */
const START_LIMIT_MS = 800;
const IDLE_LIMIT_MB = 130;
/** How much dearer a flow may be with full tables; less is within the noise of the measurement. */
const GROWTH_LIMIT = 1.15;

export type Judgement = {
  readonly scenario: string;
  readonly sumMs: number;
  readonly floorMs: number;
  readonly ratio: number | null;
  /** Null for a scenario without a limit. */
  readonly limitMs: number | null;
  readonly met: boolean;
};

export type DatabaseReport = {
  readonly judgements: readonly Judgement[];
  readonly faults: readonly string[];
  readonly text: string;
};

/** Compares a run with the limits and renders it. */
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
      'limit here',
      'peak MB',
      'strangers',
      '',
    ],
  ];
  const judgements: Judgement[] = [];
  const faults: string[] = [];
  for (const scenario of SCENARIOS) {
    const result = resultOf(run, scenario, 'many');
    if (result === undefined) continue;
    const judgement = judge(run, scenario, result);
    judgements.push(judgement);
    if (!judgement.met)
      faults.push(`${scenario.title}: ${ms(judgement.sumMs)} ms, limit ${ms(judgement.limitMs ?? 0)}`);
    if (result.flows === 0) faults.push(`${scenario.title}: nothing came of it`);
    if (result.errors > 0) faults.push(`${scenario.title}: ${result.errors} errors`);
    rows.push(cells(scenario, result, judgement));
  }
  const growth = growthLines(run, faults);
  const start = startLines(run, faults);
  const { signMs, verifyMs, importMs } = run.costs;
  const text = [
    `\n${run.database}, ${run.preloaded.sessions} sessions in the tables, CPU and latencies in milliseconds, strangers in cores`,
    table(rows),
    `cryptography here: sign ${us(signMs)}, verify ${us(verifyMs)}, import of a key ${us(importMs)}` +
      ` (reference: ${us(REFERENCE.signMs)} and ${us(REFERENCE.verifyMs)})`,
    ...growth,
    ...start,
  ].join('\n');
  return { judgements, faults, text };
}

function judge(run: DatabaseRun, scenario: Scenario, result: Result): Judgement {
  const sumMs = result.serverMs + result.databaseMs;
  const floorMs = scenario.floorMs(run.costs);
  const limitMs = limitHere(scenario, run.costs) ?? null;
  const ratio = floorMs === 0 ? null : sumMs / floorMs;
  return {
    scenario: scenario.name,
    sumMs,
    floorMs,
    ratio,
    limitMs,
    met: limitMs === null || sumMs < limitMs,
  };
}

function cells(scenario: Scenario, result: Result, judgement: Judgement): string[] {
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
    judgement.ratio === null ? '-' : judgement.ratio.toFixed(1),
    judgement.limitMs === null ? '-' : ms(judgement.limitMs),
    result.peakMegabytes.toFixed(0),
    result.strangersCores.toFixed(2),
    judgement.limitMs === null ? '' : judgement.met ? 'ok' : 'MISSED',
  ];
}

function growthLines(run: DatabaseRun, faults: string[]): string[] {
  return SCENARIOS.flatMap((scenario) => {
    const few = resultOf(run, scenario, 'few');
    const many = resultOf(run, scenario, 'many');
    if (few === undefined || many === undefined) return [];
    const before = few.serverMs + few.databaseMs;
    const after = many.serverMs + many.databaseMs;
    const growth = after / before;
    if (growth > GROWTH_LIMIT) faults.push(`${scenario.title}: grows with the tables, ×${growth.toFixed(2)}`);
    return [
      `growth: ${scenario.title}: ${ms(before)} with few rows, ${ms(after)} with many, ×${growth.toFixed(2)}`,
    ];
  });
}

function startLines(run: DatabaseRun, faults: string[]): string[] {
  return run.starts.map(({ startMs, idleMegabytes }, index) => {
    const what = index === 0 ? 'first start, with the schema' : 'start';
    if (startMs >= START_LIMIT_MS) faults.push(`${what}: ${startMs.toFixed(0)} ms, limit ${START_LIMIT_MS}`);
    if (idleMegabytes >= IDLE_LIMIT_MB)
      faults.push(`${what}: ${idleMegabytes.toFixed(0)} MB idle, limit ${IDLE_LIMIT_MB}`);
    return `${what}: healthy after ${startMs.toFixed(0)} ms, ${idleMegabytes.toFixed(0)} MB idle`;
  });
}

function resultOf(run: DatabaseRun, scenario: Scenario, tables: 'few' | 'many'): Result | undefined {
  return run.results.find((result) => result.scenario === scenario.name && result.tables === tables);
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
        )
        .join('  '),
    )
    .join('\n');
}

function ms(value: number): string {
  return value.toFixed(3);
}

function us(value: number): string {
  return `${(value * 1000).toFixed(0)} µs`;
}
