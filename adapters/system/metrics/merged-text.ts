import { AggregatorRegistry, Counter } from 'prom-client';

/** Of the supervisor itself, beside what its workers measured. */
export const WORKER_RESTARTS = {
  name: 'vidimus_worker_restarts_total',
  help: 'Workers that ended and were followed by another one; only with WORKERS',
} as const;

/** What one process measured, as prom-client adds it up. */
export type MeasuredProcess = object[];

/**
 * @param processes what each of several workers measured.
 * @param restarts how many workers came in place of one that ended.
 * @returns one text for all, as Prometheus reads it.
 */
export function mergedText(processes: readonly MeasuredProcess[], restarts: number): Promise<string> {
  const registry = AggregatorRegistry.aggregate([...processes]);
  new Counter({ ...WORKER_RESTARTS, registers: [registry] }).inc(restarts);
  return registry.metrics();
}

const COUNTED: readonly unknown[] = ['counter', 'histogram'];

/** @returns what several counted together, without what is only so at present. */
export async function mergedCounts(processes: readonly MeasuredProcess[]): Promise<MeasuredProcess> {
  const all = await AggregatorRegistry.aggregate([...processes]).getMetricsAsJSON();
  return all.filter(({ type }) => COUNTED.includes(type));
}
