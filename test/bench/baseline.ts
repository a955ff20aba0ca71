import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import type { DatabaseRun, Result } from './database-run.ts';
import { sumMs } from './meter.ts';
import type { ScenarioName } from './scenarios.ts';
import { relativeSpread, spreadOf } from './statistics.ts';

/** What makes figures comparable. */
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

export type Baseline = {
  readonly at: string;
  readonly machine: Machine;
  readonly databases: readonly BaselineDatabase[];
};

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
  const all = cpus();
  return { processor: all[0]?.model ?? '', cores: all.length, node: process.version };
}

export function baselineOf(runs: readonly DatabaseRun[], machine = thisMachine(), at = new Date()): Baseline {
  return { at: at.toISOString(), machine, databases: runs.map(databaseOf) };
}

function databaseOf({ database, server, results }: DatabaseRun): BaselineDatabase {
  const flows = results.filter(({ tables }) => tables === 'many');
  const again = results.find(({ tables }) => tables === 'again');
  const first = flows.find(({ scenario }) => scenario === again?.scenario);
  const control =
    again === undefined || first === undefined ? 0 : Math.abs(scaledMs(again) / scaledMs(first) - 1);
  return {
    database,
    server,
    control,
    flows: flows.map((result) => ({
      scenario: result.scenario,
      costMs: scaledMs(result),
      spread: relativeSpread(spreadOf(result.windowsMs)),
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
export function changesSince(then: Baseline, now: Baseline, mayDiffer = false): readonly Change[] {
  const differing = differences(then, now);
  if (differing.length > 0 && !mayDiffer)
    throw new Error(
      `the baseline was measured elsewhere: ${differing.join('; ')}. ` +
        'Save one here with --save, or compare all the same with --other-machine.',
    );
  return now.databases.flatMap(({ database, control, flows }) => {
    const earlier = then.databases.find((one) => one.database === database);
    return flows.flatMap(({ scenario, costMs, spread }): Change[] => {
      const before = earlier?.flows.find((flow) => flow.scenario === scenario);
      if (earlier === undefined || before === undefined) return [];
      const noise = spread + before.spread + Math.max(control, earlier.control);
      const ratio = costMs / before.costMs;
      return [{ database, scenario, ratio, noise, isRegression: ratio > 1 + noise }];
    });
  });
}

/** @returns the flows that were measured now and are not in the baseline: nothing is known of them. */
export function notIn(then: Baseline, now: Baseline): readonly string[] {
  return now.databases.flatMap(({ database, flows }) => {
    const known = then.databases.find((one) => one.database === database)?.flows ?? [];
    const unknown = flows.filter(({ scenario }) => !known.some((flow) => flow.scenario === scenario));
    return unknown.map(
      ({ scenario }) => `${database}: ${scenario}: not in the baseline, nothing was compared`,
    );
  });
}

function differences(then: Baseline, now: Baseline): readonly string[] {
  const pairs = [
    ['processor', then.machine.processor, now.machine.processor],
    ['cores', then.machine.cores, now.machine.cores],
    ['Node', then.machine.node, now.machine.node],
    ...now.databases.map(({ database, server }) => [
      database,
      then.databases.find((one) => one.database === database)?.server ?? server,
      server,
    ]),
  ];
  return pairs.flatMap(([what, there, here]) => (there === here ? [] : [`${what} ${there}, here ${here}`]));
}

export function describeChange({ database, scenario, ratio, noise, isRegression }: Change): string {
  const verdict = isRegression ? 'DEARER' : ratio < 1 - noise ? 'cheaper' : 'within the noise';
  return `${database}: ${scenario.padEnd(12)} ×${ratio.toFixed(3)} of the baseline, noise ±${(noise * 100).toFixed(1)} %: ${verdict}`;
}

/** @throws Error when it is none. */
export function readBaseline(file: string): Baseline {
  if (!existsSync(file)) throw new Error(`there is no ${file}; --save writes one`);
  const baseline = JSON.parse(readFileSync(file, 'utf8')) as Partial<Baseline>;
  if (baseline.machine === undefined || baseline.databases === undefined)
    throw new Error(`${file} is no baseline; --save writes one`);
  return baseline as Baseline;
}

export function writeBaseline(file: string, baseline: Baseline): void {
  writeFileSync(file, `${JSON.stringify(baseline, null, 2)}\n`);
}
