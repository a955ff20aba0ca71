import type { Cast } from './cast.ts';
import { lookAtBackend } from './preload.ts';
import { machineMs, memoryMegabytes, PostgresTime, resetPeak, spentMs } from './processor-time.ts';
import type { ScenarioName } from './scenarios.ts';
import type { Measured } from './world.ts';

export type Times = {
  readonly warmUpMs: number;
  readonly measuredMs: number;
  /** Equal parts of the measured time. */
  readonly windows: number;
};

export const totalMs = ({ warmUpMs, measuredMs }: Times) => warmUpMs + measuredMs;

/** What one flow costs. */
export type Cost = Measured & {
  /** CPU milliseconds per flow. */
  readonly serverMs: number;
  readonly databaseMs: number;
  /** The sum of both in each window. */
  readonly windowsMs: readonly number[];
  readonly peakMegabytes: number;
  /** CPU that strangers used meanwhile, in cores; much of it makes the other numbers worse than they are. */
  readonly strangersCores: number;
};

/** Several measurements as if they were one. */
export function together(all: readonly Cost[]): Cost {
  const flows = total(all, (cost) => cost.flows);
  const perFlow = (of: (cost: Cost) => number) => total(all, (cost) => of(cost) * cost.flows) / flows;
  const most = (of: (cost: Cost) => number) => Math.max(...all.map(of));
  return {
    flows,
    seconds: total(all, ({ seconds }) => seconds),
    p50: perFlow(({ p50 }) => p50),
    p95: perFlow(({ p95 }) => p95),
    p99: perFlow(({ p99 }) => p99),
    errors: total(all, ({ errors }) => errors),
    messages: all.flatMap(({ messages }) => messages),
    serverMs: perFlow(({ serverMs }) => serverMs),
    databaseMs: perFlow(({ databaseMs }) => databaseMs),
    windowsMs: all.flatMap(({ windowsMs }) => windowsMs),
    peakMegabytes: most(({ peakMegabytes }) => peakMegabytes),
    strangersCores: most(({ strangersCores }) => strangersCores),
  };
}

function total(all: readonly Cost[], of: (cost: Cost) => number): number {
  return all.reduce((sum, cost) => sum + of(cost), 0);
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
    const time = await lookAtBackend(cast.url, (pid) => PostgresTime.of(pid, databaseName(cast.url)));
    if (time === undefined) console.log('postgres: the server does not run on this machine; its CPU is not counted');
    return new Meter(cast, time);
  }

  async measure(scenario: ScenarioName, times: Times): Promise<Cost> {
    const { service, wallets } = this.#cast;
    const samples: Sample[] = [];
    resetPeak(service.pid);
    const measured = await wallets.run(scenario, times, (flows) => {
      samples.push({
        flows,
        server: service.cpuMs(),
        database: this.#databaseTime?.read() ?? new Map(),
        wallets: wallets.cpuMs(),
        machine: machineMs(),
      });
    });
    const [first] = samples;
    const last = samples.at(-1);
    if (first === undefined || last === undefined || samples.length !== times.windows + 1)
      throw new Error('the wallets did not say when they measured');
    const { serverMs, databaseMs } = between(first, last);
    const oursMs = serverMs + databaseMs + last.wallets - first.wallets;
    return {
      ...measured,
      serverMs: serverMs / measured.flows,
      databaseMs: databaseMs / measured.flows,
      windowsMs: samples.slice(1).map((end, index) => {
        const used = between(samples[index] ?? first, end);
        return (used.serverMs + used.databaseMs) / used.flows;
      }),
      peakMegabytes: memoryMegabytes(service.pid, 'VmHWM'),
      strangersCores: Math.max(0, last.machine - first.machine - oursMs) / times.measuredMs,
    };
  }
}

function between(begin: Sample, end: Sample) {
  return { flows: end.flows - begin.flows, serverMs: end.server - begin.server, databaseMs: spentMs(begin.database, end.database) };
}

export function databaseName(url: string): string {
  return new URL(url).pathname.slice(1);
}
