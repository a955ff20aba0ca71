import type { Log } from '../ports/log.ts';
import type { Metrics } from '../ports/metrics.ts';
import type { Probe } from '../ports/probe.ts';
import type { Draining } from './draining.ts';

const TIMEOUT_MS = 2_000;

type Ports = { readonly probes: readonly Probe[]; readonly draining: Draining; readonly log: Log; readonly metrics?: Metrics | undefined };

export type Health = {
  /** Everything is up that all requests need. */
  readonly healthy: boolean;
  readonly probes: readonly { readonly name: string; readonly up: boolean }[];
  /** Something is down without which the rest goes on. */
  readonly degraded: boolean;
};

/** Only there in the last seconds of a process. */
const LEAVING = { name: 'accepting', up: false };

type Outcome = { readonly name: string; readonly up: boolean };

/**
 * Runs all probes. Questions that come at once share one run, and probes that ask others rest between two, so that nobody can
 * load the dependencies with it.
 */
export class CheckHealth {
  readonly #ports: Ports;
  #running: Promise<Health> | undefined;
  readonly #remembered = new Map<Probe, { readonly outcome: Outcome; readonly until: number }>();

  readonly #asked = new Map<Probe, symbol>();

  constructor(ports: Ports) {
    this.#ports = ports;
    for (const probe of ports.probes)
      probe.onChange?.(() => {
        this.#remembered.delete(probe);
        this.#asked.delete(probe);
      });
  }

  async execute(): Promise<Health> {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #run(): Promise<Health> {
    const { probes: all } = this.#ports;
    const probes = await Promise.all(all.map((probe) => this.#latest(probe)));
    for (const { name, up } of probes) this.#ports.metrics?.health(name, up);
    const areUp = (partial: boolean) => probes.every(({ up }, index) => up || (all[index]?.isPartial === true) !== partial);
    const found = { healthy: areUp(false), degraded: !areUp(true), probes };
    return this.#ports.draining.isUnderWay ? { ...found, healthy: false, probes: [...probes, LEAVING] } : found;
  }

  async #latest(probe: Probe): Promise<Outcome> {
    const { restMs } = probe;
    if (restMs === undefined) return this.#check(probe);
    const known = this.#remembered.get(probe);
    if (known !== undefined && performance.now() < known.until) return known.outcome;
    const run = Symbol(probe.name);
    this.#asked.set(probe, run);
    const outcome = await this.#check(probe);
    // An answer that was under way at a change is of before it.
    if (this.#asked.get(probe) === run) this.#remembered.set(probe, { outcome, until: performance.now() + restMs });
    return outcome;
  }

  async #check(probe: Probe): Promise<Outcome> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${TIMEOUT_MS} ms`)), TIMEOUT_MS);
    });
    try {
      await Promise.race([probe.check(), late]);
      return { name: probe.name, up: true };
    } catch (error) {
      // Why it is down is for the log: the answer is public.
      this.#ports.log.error('a dependency is down', { dependency: probe.name }, error);
      return { name: probe.name, up: false };
    } finally {
      clearTimeout(timer);
    }
  }
}

/** The same for what a process needs to be sent requests at all: fewer parts, and no one else's. */
export class CheckReadiness extends CheckHealth {}
