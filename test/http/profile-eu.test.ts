import { expect } from 'chai';
import { created, credentialBody } from '../support/populated.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const display = [{ name: 'Acme', locale: 'en' }];
const QUERY = { credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid'] } }] };

describe('The profile of the European wallet', () => {
  let service: TestService;
  let root: string;
  let token: string;

  before(async () => {
    service = await startTestService();
    root = await service.rootToken();
    ({ token } = await createTenant(service, 'acme', { profile: 'eu' }));
  });
  after(() => service.close());

  const call = (method: string, path: string, json?: object, by = token) =>
    service.call(method, path, { token: by, ...(json && { json }) });
  /** The members that were refused, once the rule is named. */
  const refused = async (path: string, json: object, method = 'POST') => {
    const answer = await call(method, path, json);
    expect(answer.status, answer.text).to.equal(400);
    const errors = answer.body.errors as { path: string; message: string }[];
    for (const { message } of errors) expect(message).to.match(/^profile eu \((ARF|EUDI|HAIP|ETSI) .+\): /);
    return errors.map(({ path: member }) => member);
  };

  it('refuses what contradicts HAIP, and what contradicts the ARF, when it is written', async () => {
    const issuer = { display, dPopRequired: false, algorithms: ['EdDSA'] };
    expect(await refused('/issuer/config', issuer)).to.include.members(['dPopRequired', 'algorithms']);
    const credential = { ...credentialBody('pid', 'signing'), proofTypes: ['jwt'] };
    expect(await refused('/issuer/credentials', credential)).to.include('proofTypes');
    const request = { id: 'age', dcql_query: QUERY };
    expect(await refused('/verifier/config', request)).to.deep.equal(['registrationCert']);
    const keys = { id: 'edwards', usages: ['signing'], algorithm: 'EdDSA' };
    expect(await refused('/key-chain', keys)).to.deep.equal(['algorithm']);
  });

  it('is not taken on while something contradicts it, and all of that is named', async () => {
    const { token: loose } = await createTenant(service, 'loose');
    await created(service, loose, '/issuer/config', { display, algorithms: ['EdDSA'] });
    await created(service, loose, '/verifier/config', { id: 'age', dcql_query: QUERY });
    const answer = await call('PATCH', '/tenant/loose', { profile: 'eu' }, root);
    expect(answer.status, answer.text).to.equal(409);
    const paths = answer.body.errors.map(({ path }: { path: string }) => path);
    expect(paths).to.include.members([
      'issuance-configuration/default.algorithms',
      'presentation-configuration/age.registrationCert',
    ]);
    expect((await call('GET', '/tenant/loose', undefined, root)).body.profile).to.equal(null);
  });
});
