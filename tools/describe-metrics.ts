import { WORKER_RESTARTS } from '../adapters/system/metrics/merged-text.ts';
import { METRIC_PREFIX, PrometheusMetrics } from '../adapters/system/metrics/prometheus-metrics.ts';
import { GAUGES, type Watched } from '../application/ports/metrics.ts';

type DescribedMetric = { readonly name: string; readonly help: string; readonly type: string; readonly labelNames: readonly string[] };

/** @returns all metrics of the service, as a registry contains them. */
export function ownMetrics(): readonly DescribedMetric[] {
  const metrics = new PrometheusMetrics({ version: '', commit: null, tenants: 1 });
  for (const name of Object.keys(GAUGES) as Watched[]) metrics.observeGauge(name, () => ({}));
  const allMetrics = metrics.registry.getMetricsAsArray() as unknown as DescribedMetric[];
  const serviceMetrics = allMetrics.filter(({ name }) => name.startsWith(METRIC_PREFIX));
  return [...serviceMetrics, { ...WORKER_RESTARTS, type: 'counter', labelNames: [] }];
}

/** @returns the list of docs/reference/metrics.md. */
export function describeMetrics(): string {
  const rows = ownMetrics().map(
    ({ name, type, labelNames, help }) => `- \`${name}\` (${[type, ...labelNames.map((label) => `\`${label}\``)].join(', ')}): ${help}`,
  );
  return rows.join('\n');
}
