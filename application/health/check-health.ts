import type { Log } from '../ports/log.ts';
import type { Metrics } from '../ports/metrics.ts';
import type { Probe } from '../ports/probe.ts';
import type { Draining } from './draining.ts';

const TIMEOUT_MS = 2_000;

type Ports = { readonly probes: readonly Probe[]; readonly draining: Draining; readonly log: Log; readonly metrics?: Metrics | undefined };

export type Health = {
  /** True if everything that all requests need is up. */
  readonly healthy: boolean;
  readonly probes: readonly { readonly name: string; readonly up: boolean }[];
  /** True if an optional dependency is down. */
  readonly degraded: boolean;
};

/** Only reported in the last seconds of a process. */
const DRAINING = { name: 'accepting', up: false };

type Outcome = { readonly name: string; readonly up: boolean };

/**
 * Runs all probes. Concurrent calls share one run, and results of expensive probes are cached, so that callers cannot
 * load the dependencies.
 */
export class CheckHealth {
  readonly #ports: Ports;
  #running: Promise<Health> | undefined;
  readonly #cachedOutcomes = new Map<Probe, { readonly outcome: Outcome; readonly until: number }>();

  readonly #currentRuns = new Map<Probe, symbol>();

  constructor(ports: Ports) {
    this.#ports = ports;
    for (const probe of ports.probes)
      probe.onChange?.(() => {
        this.#cachedOutcomes.delete(probe);
        this.#currentRuns.delete(probe);
      });
  }

  async execute(): Promise<Health> {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #run(): Promise<Health> {
    const { probes: allProbes } = this.#ports;
    const probes = await Promise.all(allProbes.map((probe) => this.#latest(probe)));
    for (const { name, up } of probes) this.#ports.metrics?.health(name, up);
    const areUp = (partial: boolean) => probes.every(({ up }, index) => up || (allProbes[index]?.isPartial === true) !== partial);
    const result = { healthy: areUp(false), degraded: !areUp(true), probes };
    return this.#ports.draining.isDraining ? { ...result, healthy: false, probes: [...probes, DRAINING] } : result;
  }

  async #latest(probe: Probe): Promise<Outcome> {
    const { restMs } = probe;
    if (restMs === undefined) return this.#check(probe);
    const cached = this.#cachedOutcomes.get(probe);
    if (cached !== undefined && performance.now() < cached.until) return cached.outcome;
    const run = Symbol(probe.name);
    this.#currentRuns.set(probe, run);
    const outcome = await this.#check(probe);
    // A result of a check that began before a change is not cached.
    if (this.#currentRuns.get(probe) === run) this.#cachedOutcomes.set(probe, { outcome, until: performance.now() + restMs });
    return outcome;
  }

  async #check(probe: Probe): Promise<Outcome> {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${TIMEOUT_MS} ms`)), TIMEOUT_MS);
    });
    try {
      await Promise.race([probe.check(), timeout]);
      return { name: probe.name, up: true };
    } catch (error) {
      // The reason is only logged: the health answer is public.
      this.#ports.log.error('a dependency is down', { dependency: probe.name }, error);
      return { name: probe.name, up: false };
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Readiness to receive requests: only the probes of the process itself. */
export class CheckReadiness extends CheckHealth {}
