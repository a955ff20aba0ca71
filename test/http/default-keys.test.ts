import { expect } from 'chai';
import { QUERY } from '../support/present.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const CARD = {
  id: 'card',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
  vct: 'urn:card:1',
  claims: { name: 'Ada' },
  statusManagement: true,
};

describe('The last key chain of a usage', () => {
  let service: TestService;
  let token: string;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
  });
  after(() => service.close());

  const status = async (method: string, path: string, json?: object) =>
    (await service.call(method, path, { token, ...(json === undefined ? {} : { json }) })).status;

  const usages: [string, string, string, object][] = [
    ['signing', 'signing', '/issuer/credentials', { ...CARD, statusManagement: false }],
    ['status-list', 'statusList', '/issuer/credentials', CARD],
    ['access', 'access', '/verifier/config', { id: 'card', dcql_query: QUERY }],
  ];
  for (const [id, usage, path, body] of usages) {
    it(`stays while something is signed with it by default: ${usage}`, async () => {
      expect(await status('POST', path, body)).to.equal(201);
      expect(await status('PATCH', `/key-chain/${id}`, { usages: ['trustList'] })).to.equal(409);
      expect(await status('DELETE', `/key-chain/${id}`)).to.equal(409);
      const other = { id: `other-${id}`, usages: [usage] };
      expect(await status('POST', '/key-chain', other)).to.equal(201);
      expect(await status('PATCH', `/key-chain/${id}`, { usages: ['trustList'] })).to.equal(200);
      expect(await status('DELETE', `/key-chain/${id}`)).to.equal(200);
      expect(await status('DELETE', `/key-chain/${other.id}`)).to.equal(409);
      expect(await status('DELETE', `${path}/card`)).to.equal(200);
      expect(await status('DELETE', `/key-chain/${other.id}`)).to.equal(200);
      expect(await status('POST', '/key-chain', { id: `new-${id}`, usages: [usage] })).to.equal(201);
    });
  }
});
