import type { Metrics } from '../../../application/ports/metrics.ts';
import type { SpanAttributes, Traces } from '../../../application/ports/traces.ts';

type Tell = (metrics: Metrics, seconds: number, error: unknown) => void;

/** Tells of calls of ports: how long they took, how they ended, and to which trace they belong. */
export class Observer {
  readonly metrics: Metrics | undefined;
  readonly traces: Traces | undefined;

  constructor(metrics: Metrics | undefined, traces: Traces | undefined) {
    this.metrics = metrics;
    this.traces = traces;
  }

  /** @param tell is told once the work has ended. @returns what `work` returns, in the way in which it does. */
  run<T>(name: string, attributes: SpanAttributes, work: () => T, tell?: Tell): T {
    const { metrics, traces } = this;
    const timed = metrics === undefined || tell === undefined ? work : () => measured(work, metrics, tell);
    return traces === undefined ? timed() : traces.span(name, attributes, timed);
  }
}

function measured<T>(work: () => T, metrics: Metrics, tell: Tell): T {
  const began = performance.now();
  const end = (error?: unknown) => tell(metrics, (performance.now() - began) / 1000, error);
  try {
    const result = work();
    if (result instanceof Promise) result.then(() => end(), end);
    else end();
    return result;
  } catch (error) {
    end(error);
    throw error;
  }
}
