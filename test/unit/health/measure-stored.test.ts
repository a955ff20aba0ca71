import { expect } from 'chai';
import sinon from 'sinon';
import { EndingDays } from '../../../adapters/system/metrics/ending-days.ts';
import { PrometheusMetrics } from '../../../adapters/system/metrics/prometheus-metrics.ts';
import { TenantLabels } from '../../../adapters/system/metrics/tenant-labels.ts';
import { MeasureStored } from '../../../application/health/measure-stored.ts';
import type { Ending } from '../../../application/ports/metrics.ts';
import { CreateTenant } from '../../../application/tenants/tenants.ts';
import { TenantCreation } from '../../../domain/tenants/tenant.ts';
import { sumOf } from '../../support/scraped.ts';
import { aWorld, ROOT } from '../administration/world.ts';

const DAY_MS = 86_400_000;
const ending = (kind: Ending['kind'], tenantId: string, days: number): Ending => ({
  kind,
  tenantId,
  id: 'signing',
  endsAt: new Date(Date.now() + days * DAY_MS),
});

describe('What stands in the database alone', () => {
  it('is found tenant by tenant, in batches, and told at the end of the walk', async () => {
    const world = aWorld();
    const create = new CreateTenant(world as never);
    for (const id of ['acme', 'bank', 'city'])
      await create.execute(ROOT, TenantCreation.parse({ id, name: id }));
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

  it('of a tenant that cannot be read keeps nobody else’s from being told', async () => {
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

  it('of a tenant that names no time that there is keeps nobody else’s from being told', async () => {
    const world = aWorld();
    const create = new CreateTenant(world as never);
    for (const id of ['acme', 'bank']) await create.execute(ROOT, TenantCreation.parse({ id, name: id }));
    const jwtOf = (exp: number) =>
      ['{"alg":"ES256"}', `{"exp":${exp}}`, 'x']
        .map((part) => Buffer.from(part).toString('base64url'))
        .join('.');
    const soon = Math.floor(Date.now() / 1000) + 86_400;
    const forTenant = world.store.forTenant.bind(world.store) as (...asked: unknown[]) => Promise<never>;
    const stub = sinon.stub(world.store, 'forTenant').callsFake(((
      id: string,
      work: (own: object) => unknown,
    ) =>
      forTenant(id, async (own: object) =>
        work({
          ...own,
          keyChains: { list: async () => [] },
          issuanceConfiguration: { list: async () => [] },
          presentationConfigurations: {
            list: async () => [{ id: 'p', registrationCert: { jwt: jwtOf(id === 'acme' ? 1e300 : soon) } }],
          },
        }),
      )) as never);
    const metrics = new PrometheusMetrics({ version: '1', commit: null, tenants: 0 });
    await new MeasureStored(world as never).begin(metrics, 10)();
    stub.restore();
    const days = sumOf(await metrics.registry.metrics(), 'vidimus_days_until_end', { kind: 'registration' });
    expect(Math.round(days)).to.equal(1);
  });
});

describe('Days until something ends', () => {
  const days = async (most: number, all: readonly Ending[]) => {
    const { registry } = new PrometheusMetrics({ version: '1', commit: null, tenants: 0 });
    registry.clear();
    new EndingDays(registry, 'days', new TenantLabels(most)).keep(all);
    return registry.metrics();
  };
  const all = [
    ending('certificate', 'acme', 40),
    ending('certificate', 'bank', 3),
    ending('authority', 'acme', 900),
  ];

  it('are those of the first of each kind, without a name', async () => {
    const text = await days(0, all);
    expect(text).to.not.match(/acme|bank/);
    expect(Math.round(sumOf(text, 'days', { kind: 'certificate' }))).to.equal(3);
    expect(Math.round(sumOf(text, 'days', { kind: 'authority' }))).to.equal(900);
  });

  it('are told by name where tenants are, and of a thousand of a kind at most', async () => {
    const text = await days(1_000, all);
    expect(Math.round(sumOf(text, 'days', { kind: 'certificate', tenant: 'acme', id: 'signing' }))).to.equal(
      40,
    );
    const many = Array.from({ length: 3_000 }, (_, index) => ending('trust-list', `t${index}`, index));
    expect(
      (await days(1_000, many)).split('\n').filter((line) => line.startsWith('days{')).length,
    ).to.be.at.most(1_000);
  });

  it('are told no more where nobody found them out for long', async () => {
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
