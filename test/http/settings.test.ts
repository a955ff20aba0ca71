import { expect } from 'chai';
import { createTenant, ROOT, startTestService, type TestService } from '../support/test-service.ts';

const CANARY = 'Canary-of-the-settings-0123456789-abcdef';

describe('the settings of a running service', () => {
  let service: TestService;
  let root: string;

  before(async () => {
    service = await startTestService({
      MASTER_SECRET: `${CANARY} master`,
      METRICS_TOKEN: `${CANARY} metrics`,
      KMS_CONFIG: JSON.stringify({ default: 'local', providers: { local: { type: 'local' } } }),
      SESSION_TTL: '7200',
    });
    root = await service.rootToken();
  });
  after(() => service.close());

  const list = (query = '', token = root) => service.call('GET', `/settings${query}`, { token });
  const one = async (name: string) =>
    (await list('?limit=500')).body.find((setting: { name: string }) => setting.name === name);

  it('are told with where they come from, and without secrets', async () => {
    const { status, text } = await list();
    expect(status).to.equal(200);
    expect(text).not.to.include(CANARY).and.not.include(ROOT.secret);
    expect(await one('SESSION_TTL')).to.include({ value: '7200', isSet: true, source: 'environment' });
    expect(await one('STATUS_TTL')).to.include({ value: '3600', isSet: false, source: 'default' });
    for (const name of ['MASTER_SECRET', 'METRICS_TOKEN', 'AUTH_CLIENT_SECRET'])
      expect(await one(name), name).to.include({ value: null, isSet: true, isSecret: true });
    expect(await one('KMS_CONFIG'), 'a text may hold secrets').to.include({ value: null, isSet: true });
    expect(await one('OIDC_CLIENT_SECRET')).to.include({ value: null, isSet: false, isSecret: true });
  });

  it('are not found by what a secret is', async () => {
    expect((await list(`?q=${encodeURIComponent(CANARY)}`)).body).to.deep.equal([]);
    expect(
      (await list('?q=master_SECRET&source=environment')).body.map(({ name }: { name: string }) => name),
    ).to.include('MASTER_SECRET');
  });

  it('are nothing to clients of tenants, whatever their roles', async () => {
    const { token } = await createTenant(service, 'acme');
    expect((await list('', token)).status).to.equal(403);
  });

  for (const query of ['?source=registry', '?q=', `?q=${'x'.repeat(201)}`])
    it(`are not asked for by ${query.slice(0, 20)}`, async () => {
      expect((await list(query)).status).to.equal(400);
    });
});
