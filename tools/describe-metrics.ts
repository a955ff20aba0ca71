import { WORKER_RESTARTS } from '../adapters/system/metrics/merged-text.ts';
import { PREFIX, PrometheusMetrics } from '../adapters/system/metrics/prometheus-metrics.ts';
import { WATCHED, type Watched } from '../application/ports/metrics.ts';

type Described = { readonly name: string; readonly help: string; readonly type: string; readonly labelNames: readonly string[] };

/** All metrics of our own, as a registry has them. */
export function ownMetrics(): readonly Described[] {
  const metrics = new PrometheusMetrics({ version: '', commit: null, tenants: 1 });
  for (const name of Object.keys(WATCHED) as Watched[]) metrics.watch(name, () => ({}));
  const all = metrics.registry.getMetricsAsArray() as unknown as Described[];
  const own = all.filter(({ name }) => name.startsWith(PREFIX));
  return [...own, { ...WORKER_RESTARTS, type: 'counter', labelNames: [] }];
}

/** The table of docs/monitoring.md. */
export function describeMetrics(): string {
  const rows = ownMetrics().map(
    ({ name, type, labelNames, help }) => `| \`${name}\` | ${type} | ${labelNames.map((label) => `\`${label}\``).join(', ')} | ${help} |`,
  );
  return ['| Metric | Type | Labels | What |', '|---|---|---|---|', ...rows].join('\n');
}
