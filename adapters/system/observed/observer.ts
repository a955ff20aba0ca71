import type { Metrics } from '../../../application/ports/metrics.ts';
import type { SpanAttributes, Traces } from '../../../application/ports/traces.ts';

type Report = (metrics: Metrics, seconds: number, error: unknown) => void;

/** Observes calls of ports: their duration, their outcome, and the trace that they belong to. */
export class Observer {
  readonly metrics: Metrics | undefined;
  readonly traces: Traces | undefined;

  constructor(metrics: Metrics | undefined, traces: Traces | undefined) {
    this.metrics = metrics;
    this.traces = traces;
  }

  /** @param report called when the work has ended. @returns the result of `work`, synchronously or as a promise like `work`. */
  run<T>(name: string, attributes: SpanAttributes, work: () => T, report?: Report): T {
    const { metrics, traces } = this;
    const timed = metrics === undefined || report === undefined ? work : () => measured(work, metrics, report);
    return traces === undefined ? timed() : traces.span(name, attributes, timed);
  }
}

function measured<T>(work: () => T, metrics: Metrics, report: Report): T {
  const startedAt = performance.now();
  const end = (error?: unknown) => report(metrics, (performance.now() - startedAt) / 1000, error);
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
