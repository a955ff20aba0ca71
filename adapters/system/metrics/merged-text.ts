import { AggregatorRegistry } from 'prom-client';

/** @param processes what each of several workers measured. @returns one text for all, as Prometheus reads it. */
export function mergedText(processes: readonly object[][]): Promise<string> {
  return AggregatorRegistry.aggregate([...processes]).metrics();
}
