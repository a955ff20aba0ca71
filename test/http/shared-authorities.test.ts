import { expect } from 'chai';
import { databases, rawSql } from '../support/databases.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const ALL = ['access', 'signing', 'trustList', 'statusList'];

describe('One authority for access and for issuing', () => {
  let service: TestService;
  let token: string;
  let european: string;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    ({ token: european } = await createTenant(service, 'european', { profile: 'eu' }));
  });
  after(() => service.close());

  const KEY = {
    ...{ kty: 'EC', crv: 'P-256', x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU' },
    ...{ y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0', d: 'jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI' },
  };
  const CALLS: [string, string, string, object, string][] = [
    [
      'POST /certs with another usage',
      'POST',
      '/certs',
      { keyId: 'signing', certUsageTypes: ['access'] },
      'certUsageTypes',
    ],
    [
      'POST /certs with all usages',
      'POST',
      '/certs',
      { keyId: 'signing', certUsageTypes: ALL },
      'certUsageTypes',
    ],
    [
      'POST /certs of an access key',
      'POST',
      '/certs',
      { keyId: 'access', certUsageTypes: ['signing'] },
      'certUsageTypes',
    ],
    ['PATCH /certs', 'PATCH', '/certs/trust-list', { certUsageTypes: ALL }, 'certUsageTypes'],
    ['PATCH /key-chain', 'PATCH', '/key-chain/access', { usages: ALL }, 'usages'],
    ['POST /key-chain with all usages', 'POST', '/key-chain', { usages: ALL }, 'usages'],
    [
      'POST /key-chain under another root',
      'POST',
      '/key-chain',
      { usages: ['access'], rootKeyChainId: 'signing' },
      'rootKeyChainId',
    ],
    ['POST /key-chain/import', 'POST', '/key-chain/import', { usages: ALL, key: KEY }, 'usages'],
  ];
  for (const [what, method, path, json, member] of CALLS) {
    it(`is accepted by ${what}, with a warning`, async () => {
      const answer = await service.call(method, path, { token, json });
      expect(answer.status, answer.text).to.equal(method === 'POST' ? 201 : 200);
      const [warning] = answer.body.warnings.filter(({ rule }: { rule: string }) =>
        rule.startsWith('ETSI TS 119 602'),
      );
      expect(warning?.message, answer.text).to.include(
        'one authority certifies keys for access and keys for',
      );
    });

    it(`is rejected by ${what} under the profile eu`, async () => {
      const answer = await service.call(method, path, { token: european, json });
      expect(answer.status, answer.text).to.equal(400);
      const [error] = answer.body.errors;
      expect(error.path).to.equal(member);
      expect(error.message).to.match(
        /^profile eu .*one authority certifies keys for access.*POST \/key-chain/,
      );
    });
  }

  it('stays where a tenant with the profile eu has it from an earlier release, also when its key is rotated', async () => {
    const database = await databases()[0]?.open();
    const url = database?.url ?? '';
    const other = await startTestService({ DATABASE_URL: url });
    const { token: older } = await createTenant(other, 'older');
    const json = { id: 'all', usages: ALL };
    expect((await other.call('POST', '/key-chain', { token: older, json })).status).to.equal(201);
    await rawSql(url, (run) =>
      run("update tenants set profile = 'eu', version = version + 1 where id = 'older'"),
    );
    await other.close();
    const service = await startTestService({ DATABASE_URL: url });
    const call = (method: string, path: string, body: object) =>
      service.call(method, path, { token: older, json: body });
    const renamed = await call('PATCH', '/key-chain/all', { description: 'For all' });
    expect(renamed.status, renamed.text).to.equal(200);
    const rotated = await call('POST', '/key-chain/all/rotate', {});
    expect(rotated.status, rotated.text).to.equal(200);
    const changed = await call('PATCH', '/key-chain/all', { usages: ['access', 'signing'] });
    expect(changed.status, changed.text).to.equal(400);
    await service.close();
    await database?.drop();
  });

  it('gets no warning while both have authorities of their own', async () => {
    const json = { usages: ['access'] };
    const { body } = await service.call('POST', '/key-chain', { token, json });
    expect(body.warnings).to.deep.equal([]);
  });
});
