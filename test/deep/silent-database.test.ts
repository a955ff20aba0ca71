import { expect } from 'chai';
import { databases, type TestDatabase } from '../support/databases.ts';
import { type HangingProxy, hangingProxy } from '../support/hanging-proxy.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const [postgres] = databases().filter(({ name }) => name === 'postgres');

describe('A service whose database is silent', () => {
  let database: TestDatabase | undefined;
  let proxy: HangingProxy;
  let service: TestService;
  let tenant: { id: string; token: string };
  before(async function () {
    database = await postgres?.open();
    if (database === undefined) return this.skip();
    proxy = await hangingProxy(database.url);
    service = await startTestService({
      DATABASE_URL: proxy.url,
      DATABASE_POOL: '2',
      DATABASE_TIMEOUT: '1',
    });
    tenant = await createTenant(service, 'acme');
  });
  after(async () => {
    await service?.close();
    await proxy?.end();
    await database?.drop();
  });

  const change = (description: string) =>
    service.call('PATCH', '/client/acme-admin', {
      token: tenant.token,
      json: { roles: ['clients:manage'], description },
    });

  it('answers 503 in time, and goes on without a new start once it speaks', async () => {
    expect((await change('one')).status).to.equal(200);
    proxy.hang();
    const start = performance.now();
    const answers = await Promise.all([
      ...['two', 'three', 'four', 'five', 'six'].map(change),
      service.call('GET', '/acme/request/unknown'),
    ]);
    expect(performance.now() - start).to.be.below(5_000);
    for (const { status, headers, text } of answers) {
      expect(status, text).to.equal(503);
      expect(headers.get('retry-after')).to.match(/^\d+$/);
    }
    proxy.forward();
    const after = await change('seven');
    expect(after.status, after.text).to.equal(200);
  });
});
