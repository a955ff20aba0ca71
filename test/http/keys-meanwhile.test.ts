import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { CertificateAuthority } from '../../application/ports/certificate-authority.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

describe('While a certificate is made', () => {
  let service: TestService;
  let token: string;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
  });
  afterEach(() => sinon.restore());
  after(() => service.close());

  const call = (method: string, path: string, json?: unknown) =>
    service.call(method, path, { token, ...(json === undefined ? {} : { json }) });
  const created = async (path: string, json: unknown) => {
    const answer = await call('POST', path, json);
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const outcome = ({ status, body }: Answer) => [status, body.errors?.[0].path ?? body.code];

  /** Somebody else sends this when the next certificate has been made, and before it is stored. */
  const meanwhile = (method: string, path: string, json?: unknown): void => {
    const authority = service.service.container.get(CertificateAuthority);
    const issue = authority.issue.bind(authority);
    const stub = sinon.stub(authority, 'issue').callsFake(async (...contents) => {
      const certificate = await issue(...contents);
      stub.restore();
      const answer = await call(method, path, json);
      expect(answer.status, answer.text).to.equal(200);
      return certificate;
    });
  };

  const another = (keyId: string) =>
    call('POST', '/certs', { id: 'late', keyId, certUsageTypes: ['signing'] });
  const isAbsent = async (id: string) => expect((await call('GET', `/key-chain/${id}`)).status).to.equal(404);

  it('its key can go, and does not come back', async () => {
    const { key } = await created('/key', { id: 'gone' });
    meanwhile('DELETE', '/key/gone');
    expect(outcome(await another('gone'))).to.deep.equal([404, 'not_found']);
    await isAbsent('late');
    const { keys } = (await service.call('GET', '/acme/.well-known/jwks.json')).body;
    expect(keys.map(({ kid }: { kid: string }) => kid)).to.not.include(key.kid);
  });

  it('its key can be rotated away, and signs nothing more', async () => {
    await created('/key-chain', { id: 'turned', usageType: 'signing' });
    meanwhile('POST', '/key-chain/turned/rotate');
    expect(outcome(await another('turned'))).to.deep.equal([409, 'conflict']);
    await isAbsent('late');
    expect((await another('turned')).status, 'for the new key').to.equal(201);
    const { body } = await call('GET', '/certs/late');
    expect(body.key.key).to.deep.equal((await call('GET', '/key-chain/turned')).body.activeKey);
  });

  for (const what of ['made', 'brought']) {
    it(`its authority can go, and nothing that is ${what} comes under it`, async () => {
      await created('/key-chain', { id: 'above', usageType: 'signing' });
      meanwhile('DELETE', '/key-chain/above');
      const { privateKey } = generateKeyPairSync('ed25519');
      const body = { id: `below-${what}`, usageType: 'statusList', rootKeyChainId: 'above' };
      const answer =
        what === 'made'
          ? await call('POST', '/key-chain', body)
          : await call('POST', '/key-chain/import', { ...body, key: privateKey.export({ format: 'jwk' }) });
      expect(outcome(answer)).to.deep.equal([400, 'rootKeyChainId']);
      await isAbsent(`below-${what}`);
    });
  }

  it('its key chain can get another key, and has a certificate for mdocs all the same', async () => {
    await created('/key-chain', { id: 'mdocs', usageType: 'trustList' });
    meanwhile('POST', '/key-chain/mdocs/rotate');
    const usages = { usages: ['trustList', 'signing'] };
    expect(outcome(await call('PATCH', '/key-chain/mdocs', usages))).to.deep.equal([409, 'conflict']);
    expect((await call('GET', '/key-chain/mdocs')).body.usages).to.deep.equal(['trustList']);
    expect((await call('PATCH', '/key-chain/mdocs', usages)).status).to.equal(200);
  });
});
