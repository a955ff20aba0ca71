import type { Cast } from './cast.ts';
import { withBackendPid } from './preload.ts';
import { machineMs, memoryMegabytes, PostgresTime, resetPeak, spentMs } from './processor-time.ts';
import type { ScenarioName } from './scenarios.ts';
import type { Measured } from './world.ts';

export type MeasuringTimes = {
  readonly warmUpMs: number;
  readonly measuredMs: number;
  /** Equal parts of the measured time. */
  readonly windows: number;
};

export const totalMs = ({ warmUpMs, measuredMs }: MeasuringTimes) => warmUpMs + measuredMs;

/** Costs of one flow. */
export type Cost = Measured & {
  /** CPU milliseconds per flow. */
  readonly serverMs: number;
  readonly databaseMs: number;
  /** The sum of both in each window. */
  readonly windowsMs: readonly number[];
  readonly peakMegabytes: number;
  /** CPU of other processes during the measurement, in cores; a high value worsens the other numbers. */
  readonly strangersCores: number;
};

/** Several measurements as if they were one. */
export function combineCosts(costs: readonly Cost[]): Cost {
  const flows = sumOf(costs, (cost) => cost.flows);
  const perFlow = (metric: (cost: Cost) => number) => sumOf(costs, (cost) => metric(cost) * cost.flows) / flows;
  const maxOf = (of: (cost: Cost) => number) => Math.max(...costs.map(of));
  return {
    flows,
    seconds: sumOf(costs, ({ seconds }) => seconds),
    p50: perFlow(({ p50 }) => p50),
    p95: perFlow(({ p95 }) => p95),
    p99: perFlow(({ p99 }) => p99),
    errors: sumOf(costs, ({ errors }) => errors),
    messages: costs.flatMap(({ messages }) => messages),
    serverMs: perFlow(({ serverMs }) => serverMs),
    databaseMs: perFlow(({ databaseMs }) => databaseMs),
    windowsMs: costs.flatMap(({ windowsMs }) => windowsMs),
    peakMegabytes: maxOf(({ peakMegabytes }) => peakMegabytes),
    strangersCores: maxOf(({ strangersCores }) => strangersCores),
  };
}

function sumOf(costs: readonly Cost[], of: (cost: Cost) => number): number {
  return costs.reduce((sum, cost) => sum + of(cost), 0);
}

/** Readings in CPU milliseconds. */
type Sample = {
  /** That were over then. */
  readonly flows: number;
  readonly server: number;
  readonly database: ReadonlyMap<number, number>;
  readonly wallets: number;
  readonly machine: number;
};

export const sumMs = ({ serverMs, databaseMs }: Cost) => serverMs + databaseMs;

/** Reads what the processes of a cast use while its wallets run a scenario. */
export class Meter {
  readonly #cast: Cast;
  readonly #databaseTime: PostgresTime | undefined;

  private constructor(cast: Cast, databaseTime: PostgresTime | undefined) {
    this.#cast = cast;
    this.#databaseTime = databaseTime;
  }

  static async of(cast: Cast): Promise<Meter> {
    if (cast.url.startsWith('sqlite:')) return new Meter(cast, undefined);
    const time = await withBackendPid(cast.url, (pid) => PostgresTime.forBackend(pid, databaseName(cast.url)));
    if (time === undefined) console.log('postgres: the server does not run on this machine; its CPU is not counted');
    return new Meter(cast, time);
  }

  async measure(scenario: ScenarioName, times: MeasuringTimes): Promise<Cost> {
    const { service, wallets } = this.#cast;
    const samples: Sample[] = [];
    resetPeak(service.pid);
    const measured = await wallets.run(scenario, times, (flows) => {
      samples.push({
        flows,
        server: service.cpuMs(),
        database: this.#databaseTime?.readTimes() ?? new Map(),
        wallets: wallets.cpuMs(),
        machine: machineMs(),
      });
    });
    const [firstSample] = samples;
    const lastSample = samples.at(-1);
    if (firstSample === undefined || lastSample === undefined || samples.length !== times.windows + 1)
      throw new Error('the wallets did not say when they measured');
    const { serverMs, databaseMs } = between(firstSample, lastSample);
    const oursMs = serverMs + databaseMs + lastSample.wallets - firstSample.wallets;
    return {
      ...measured,
      serverMs: serverMs / measured.flows,
      databaseMs: databaseMs / measured.flows,
      windowsMs: samples.slice(1).map((end, index) => {
        const usage = between(samples[index] ?? firstSample, end);
        return (usage.serverMs + usage.databaseMs) / usage.flows;
      }),
      peakMegabytes: memoryMegabytes(service.pid, 'VmHWM'),
      strangersCores: Math.max(0, lastSample.machine - firstSample.machine - oursMs) / times.measuredMs,
    };
  }
}

function between(start: Sample, end: Sample) {
  return { flows: end.flows - start.flows, serverMs: end.server - start.server, databaseMs: spentMs(start.database, end.database) };
}

export function databaseName(url: string): string {
  return new URL(url).pathname.slice(1);
}
