import { expect } from 'chai';
import { createResource, type PopulatedTenant, populate } from '../support/populated.ts';
import { startTestService, type TestService } from '../support/test-service.ts';
import { BlockMeter } from '../support/thread-blocks.ts';

const LIMIT_MS = 100;

describe('configuration with very many properties', () => {
  let service: TestService;
  let tenant: PopulatedTenant;
  const blockMeter = new BlockMeter();

  before(async () => {
    service = await startTestService();
    tenant = await populate(service, 'acme');
    await createResource(service, tenant.token, '/issuer/credentials', {
      id: 'large',
      vct: 'urn:large:1',
      config: { format: 'dc+sd-jwt', display: [{ name: 'Large', locale: 'en' }] },
      claims: Object.fromEntries(Array.from({ length: 4_800 }, (_, index) => [`a${index}`, 1])),
    });
  });
  it('is rejected with the limit when it has 5,000 visible claims, which no verifier could read', async () => {
    const claims = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`a${index}`, 1]));
    const { status, body } = await service.call('PATCH', '/issuer/credentials/large', { token: tenant.token, json: { claims } });
    expect([status, body.code]).to.deep.equal([400, 'invalid_input']);
    expect(body.detail).to.include('at most 4900 in what is always visible');
  });

  after(async () => {
    await blockMeter.close();
    await service.close();
  });

  it('does not delay other tenants with each small change', async () => {
    let count = 0;
    const { status, milliseconds } = await blockMeter.measure(
      () => ({
        address: `${service.address}/issuer/credentials/large`,
        method: 'PATCH',
        headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${tenant.token}` },
        body: JSON.stringify({ description: `change ${++count}` }),
      }),
      LIMIT_MS,
    );
    expect(status).to.equal(200);
    expect(milliseconds).to.be.below(LIMIT_MS);
  });
});
