import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { describeMetrics, ownMetrics } from '../../../adapters/system/metrics/describe-metrics.ts';

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

type Rule = {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
};
const rules: readonly Rule[] = parse(read('deploy/alerts.yaml')).groups.flatMap(
  (group: { readonly rules: readonly Rule[] }) => group.rules,
);

/** What every program of this kind has, and what Prometheus says itself. */
const COMMON = [
  'up',
  'process_cpu_seconds_total',
  'process_resident_memory_bytes',
  'process_start_time_seconds',
  'nodejs_heap_size_used_bytes',
  'nodejs_eventloop_lag_p99_seconds',
];

/** Names that an expression has where a metric stands. */
const metricsIn = (expr: string): readonly string[] =>
  [...expr.matchAll(/\b((?:vidimus|process|nodejs)_[a-z0-9_]+|up)\b(?=[{[)\s]|$)/g)].map(
    ([, name = '']) => name,
  );
const known = new Set([
  ...COMMON,
  ...ownMetrics().flatMap(({ name, type }) =>
    type === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name],
  ),
]);
const labelsOf = (name: string) =>
  ownMetrics().find((metric) => metric.name === name.replace(/_(bucket|sum|count)$/, ''))?.labelNames ?? [];

describe('what operators are given', () => {
  it('alerts: each names metrics and labels that there are, and a section that says what to do', () => {
    const [, page = ''] = read('docs/operating.md').split(/^## Alerts$/m);
    const sections = [...page.matchAll(/^### (.+)$/gm)].map(([, title = '']) => title);
    expect(rules.length).to.be.greaterThan(20);
    for (const { alert, expr, labels, annotations } of rules) {
      expect(metricsIn(expr), alert).to.not.deep.equal([]);
      for (const name of metricsIn(expr)) expect(known, `${alert} looks at ${name}`).to.include(name);
      for (const [, name = '', selectors = ''] of expr.matchAll(/(vidimus_[a-z0-9_]+)\{([^}]*)\}/g))
        for (const [, label = ''] of selectors.matchAll(/(\w+)(?:=|!=|=~|!~)"/g))
          expect(['job', ...labelsOf(name)], `${alert}: ${name}`).to.include(label);
      expect(['critical', 'warning']).to.include(labels.severity);
      expect(annotations.runbook).to.equal(`docs/operating.md#${alert.toLowerCase()}`);
    }
    expect(sections.toSorted(), 'one section for each').to.deep.equal(
      rules.map(({ alert }) => alert).toSorted(),
    );
    for (const section of page.split(/^### /m).slice(1))
      expect(section, section.split('\n')[0]).to.match(/\*\*Means\*\*: [\s\S]+\n1\. /);
  });

  it('a dashboard, whose every panel names metrics that there are, and has its place', () => {
    const { panels, title } = JSON.parse(read('deploy/grafana/vidimus.json'));
    expect(title).to.equal('Vidimus');
    const shown = new Set<string>();
    const places = new Set<string>();
    for (const { id, type, gridPos, targets } of panels) {
      places.add(`${gridPos.x} ${gridPos.y}`);
      if (type === 'row') continue;
      for (const { expr } of targets) {
        expect(metricsIn(expr), expr).to.not.deep.equal([]);
        for (const name of metricsIn(expr)) {
          expect(known, `panel ${id}: ${name}`).to.include(name);
          shown.add(name.replace(/_(bucket|sum|count)$/, ''));
        }
      }
    }
    expect(places.size, 'none over another').to.equal(panels.length);
    const own = ownMetrics().map(({ name }) => name);
    expect(
      own.filter((name) => !shown.has(name)),
      'all of our own are shown',
    ).to.deep.equal([]);
  });

  it('the page on monitoring, whose table is that of the registry', () => {
    const table = read('docs/monitoring.md').split('<!-- metrics -->\n')[1]?.split('\n<!-- /metrics -->')[0];
    expect(table).to.equal(describeMetrics());
  });
});
