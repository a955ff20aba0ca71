import { AggregatorRegistry, Counter } from 'prom-client';

/** Metric of the supervisor itself, beside those of its workers. */
export const WORKER_RESTARTS = { name: 'vidimus_worker_restarts_total', help: 'Restarted workers, only with WORKERS' } as const;

/** Metrics of one process in the form that prom-client aggregates. */
export type MeasuredProcess = object[];

/**
 * @param processes metrics of each worker.
 * @param restarts number of workers that replaced one that ended.
 * @returns one text in the format of Prometheus.
 */
export function mergedText(processes: readonly MeasuredProcess[], restarts: number): Promise<string> {
  const registry = AggregatorRegistry.aggregate([...processes]);
  new Counter({ ...WORKER_RESTARTS, registers: [registry] }).inc(restarts);
  return registry.metrics();
}

const COUNTED: readonly unknown[] = ['counter', 'histogram'];

/** @returns the sums of the counters, without gauges. */
export async function mergedCounts(processes: readonly MeasuredProcess[]): Promise<MeasuredProcess> {
  const metrics = await AggregatorRegistry.aggregate([...processes]).getMetricsAsJSON();
  return metrics.filter(({ type }) => COUNTED.includes(type));
}
