import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import sinon from 'sinon';
import { parse } from 'yaml';
import { EndingDays } from '../../../adapters/system/metrics/ending-days.ts';
import { PrometheusMetrics } from '../../../adapters/system/metrics/prometheus-metrics.ts';
import { TenantLabels } from '../../../adapters/system/metrics/tenant-labels.ts';
import { MeasureStored } from '../../../application/health/measure-stored.ts';
import type { ExpiryDate } from '../../../application/ports/metrics.ts';
import { CreateTenant } from '../../../application/tenants/tenants.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { TenantCreation } from '../../../domain/tenants/tenant.ts';
import { describeMetrics, ownMetrics } from '../../../tools/describe-metrics.ts';
import { sumSamples } from '../../support/metrics.ts';
import { aWorld, ROOT } from '../administrators.ts';

const DAY_MS = 86_400_000;
const ending = (kind: ExpiryDate['kind'], tenantId: string, days: number): ExpiryDate => ({
  kind,
  tenantId,
  id: 'signing',
  endsAt: new Date(Date.now() + days * DAY_MS),
});

describe('expiry metrics from the database', () => {
  it('are read tenant by tenant, in batches, and reported when all tenants were read', async () => {
    const world = aWorld();
    const create = new CreateTenant(world as never);
    for (const id of ['acme', 'bank', 'city']) await create.execute(ROOT, TenantCreation.parse({ id, name: id }));
    const metrics = new PrometheusMetrics({ version: '1', commit: null, tenants: 10 });
    const endings = sinon.spy(metrics, 'endings');
    const step = new MeasureStored(world as never).begin(metrics, 2);
    expect(await step()).to.equal(true);
    expect(endings.callCount).to.equal(0);
    expect(await step()).to.equal(false);
    const [told = []] = endings.firstCall.args;
    expect(new Set(told.map(({ tenantId }) => tenantId))).to.deep.equal(new Set(['acme', 'bank', 'city']));
    expect(new Set(told.map(({ kind }) => kind))).to.deep.equal(new Set(['certificate', 'authority']));
  });

  it('are read again for a tenant only after its configuration changed, and reported from the previous value before', async () => {
    const world = aWorld();
    const create = new CreateTenant(world as never);
    for (const id of ['acme', 'bank', 'city']) await create.execute(ROOT, TenantCreation.parse({ id, name: id }));
    const metrics = new PrometheusMetrics({ version: '1', commit: null, tenants: 10 });
    const endings = sinon.spy(metrics, 'endings');
    const measureStored = new MeasureStored(world as never);
    const run = async () => {
      const step = measureStored.begin(metrics, 2);
      while (await step());
      const [reported = []] = endings.lastCall.args;
      return new Set(reported.map(({ tenantId }) => tenantId));
    };
    expect([...(await run())]).to.have.members(['acme', 'bank', 'city']);
    const read = sinon.spy(world.store, 'forTenant');
    expect([...(await run())]).to.have.members(['acme', 'bank', 'city']);
    expect(read.callCount).to.equal(0);
    await world.store.forTenant('bank' as TenantId, ({ keyChains }) => keyChains.remove('signing'), { by: 'system' });
    await world.store.forService(({ tenants }) => tenants.remove('city' as TenantId), { by: 'system' });
    read.resetHistory();
    expect([...(await run())]).to.have.members(['acme', 'bank']);
    expect(read.args.map(([tenantId]) => tenantId)).to.deep.equal(['bank']);
    expect(endings.lastCall.args[0].some(({ tenantId, id }) => tenantId === 'bank' && id === 'signing')).to.equal(false);
    read.restore();
  });

  it('are reported for other tenants if one tenant cannot be read', async () => {
    const world = aWorld();
    const create = new CreateTenant(world as never);
    for (const id of ['acme', 'bank']) await create.execute(ROOT, TenantCreation.parse({ id, name: id }));
    const forTenant = world.store.forTenant.bind(world.store) as (...asked: unknown[]) => Promise<never>;
    const stub = sinon.stub(world.store, 'forTenant').callsFake((...asked: unknown[]) => {
      if (asked[0] === 'acme') return Promise.reject(new Error('sealed under another secret'));
      return forTenant(...asked);
    });
    const metrics = new PrometheusMetrics({ version: '1', commit: null, tenants: 10 });
    const endings = sinon.spy(metrics, 'endings');
    await new MeasureStored(world as never).begin(metrics, 10)();
    stub.restore();
    const [told = []] = endings.firstCall.args;
    expect(new Set(told.map(({ tenantId }) => tenantId))).to.deep.equal(new Set(['bank']));
  });

  it('are reported for other tenants if one tenant has an invalid time', async () => {
    const world = aWorld();
    const create = new CreateTenant(world as never);
    for (const id of ['acme', 'bank']) await create.execute(ROOT, TenantCreation.parse({ id, name: id }));
    const jwtOf = (exp: number) =>
      ['{"alg":"ES256"}', `{"exp":${exp}}`, 'x'].map((part) => Buffer.from(part).toString('base64url')).join('.');
    const soon = Math.floor(Date.now() / 1000) + 86_400;
    const forTenant = world.store.forTenant.bind(world.store) as (...asked: unknown[]) => Promise<never>;
    const stub = sinon
      .stub(world.store, 'forTenant')
      .callsFake(((id: string, work: (own: object) => unknown) =>
        forTenant(id, async (own: object) =>
          work({
            ...own,
            keyChains: { list: async () => [] },
            issuanceConfiguration: { list: async () => [] },
            presentationConfigurations: { list: async () => [{ id: 'p', registrationCert: { jwt: jwtOf(id === 'acme' ? 1e300 : soon) } }] },
          }),
        )) as never);
    const metrics = new PrometheusMetrics({ version: '1', commit: null, tenants: 0 });
    await new MeasureStored(world as never).begin(metrics, 10)();
    stub.restore();
    const days = sumSamples(await metrics.registry.metrics(), 'vidimus_days_until_end', { kind: 'registration' });
    expect(Math.round(days)).to.equal(1);
  });
});

describe('metrics of the days until an expiry', () => {
  const days = async (most: number, all: readonly ExpiryDate[]) => {
    const { registry } = new PrometheusMetrics({ version: '1', commit: null, tenants: 0 });
    registry.clear();
    new EndingDays(registry, 'days', new TenantLabels(most)).keep(all);
    return registry.metrics();
  };
  const all = [ending('certificate', 'acme', 40), ending('certificate', 'bank', 3), ending('authority', 'acme', 900)];

  it('report the first expiry of each kind, without a name', async () => {
    const text = await days(0, all);
    expect(text).to.not.match(/acme|bank/);
    expect(Math.round(sumSamples(text, 'days', { kind: 'certificate' }))).to.equal(3);
    expect(Math.round(sumSamples(text, 'days', { kind: 'authority' }))).to.equal(900);
  });

  it('are reported by name for labelled tenants, and for at most a thousand of a kind', async () => {
    const text = await days(1_000, all);
    expect(Math.round(sumSamples(text, 'days', { kind: 'certificate', tenant: 'acme', id: 'signing' }))).to.equal(40);
    const many = Array.from({ length: 3_000 }, (_, index) => ending('trust-list', `t${index}`, index));
    expect((await days(1_000, many)).split('\n').filter((line) => line.startsWith('days{')).length).to.be.at.most(1_000);
  });

  it('are removed when they were not measured for a long time', async () => {
    const clock = sinon.useFakeTimers({ toFake: ['performance'] });
    try {
      const { registry } = new PrometheusMetrics({ version: '1', commit: null, tenants: 0 });
      registry.clear();
      const told = new EndingDays(registry, 'days', new TenantLabels(0));
      told.keep(all);
      expect(await registry.metrics()).to.include('days{');
      clock.tick(1_000_000);
      expect(await registry.metrics()).to.not.include('days{');
    } finally {
      clock.restore();
    }
  });
});

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
  [...expr.matchAll(/\b((?:vidimus|process|nodejs)_[a-z0-9_]+|up)\b(?=[{[)\s]|$)/g)].map(([, name = '']) => name);
const known = new Set([
  ...COMMON,
  ...ownMetrics().flatMap(({ name, type }) => (type === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name])),
]);
const labelsOf = (name: string) =>
  ownMetrics().find((metric) => metric.name === name.replace(/_(bucket|sum|count)$/, ''))?.labelNames ?? [];

describe('monitoring files for operators', () => {
  it('have alerts with existing metrics and labels, and a section with a remedy for each', () => {
    const page = read('docs/reference/alerts.md');
    const sections = [...page.matchAll(/^## (.+)$/gm)].map(([, title = '']) => title);
    expect(rules.length).to.be.greaterThan(20);
    for (const { alert, expr, labels, annotations } of rules) {
      expect(metricsIn(expr), alert).to.not.deep.equal([]);
      for (const name of metricsIn(expr)) expect(known, `${alert} looks at ${name}`).to.include(name);
      for (const [, name = '', selectors = ''] of expr.matchAll(/(vidimus_[a-z0-9_]+)\{([^}]*)\}/g))
        for (const [, label = ''] of selectors.matchAll(/(\w+)(?:=|!=|=~|!~)"/g))
          expect(['job', ...labelsOf(name)], `${alert}: ${name}`).to.include(label);
      expect(['critical', 'warning']).to.include(labels.severity);
      expect(annotations.runbook).to.equal(`docs/reference/alerts.md#${alert.toLowerCase()}`);
    }
    expect(sections.toSorted(), 'one section for each').to.deep.equal(rules.map(({ alert }) => alert).toSorted());
    for (const section of page.split(/^## /m).slice(1))
      expect(section, section.split('\n')[0]).to.match(/\*\*Meaning\*\*: [\s\S]+\n\*\*Cause\*\*: [\s\S]+\n1\. /);
  });

  it('have a dashboard whose panels use existing metrics and do not overlap', () => {
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

  it('have a documentation page whose table matches the registry', () => {
    const table = read('docs/reference/metrics.md').split('<!-- metrics -->\n')[1]?.split('\n<!-- /metrics -->')[0];
    expect(table).to.equal(describeMetrics());
  });
});
