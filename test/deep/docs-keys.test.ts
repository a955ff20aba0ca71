import { expect } from 'chai';
import { expectNamed, readPage, withCertificate } from '../support/docs-page.ts';
import { newKey } from '../support/raw-wallet.ts';
import { type Certified, certify, certifyKey, pem } from '../support/test-certificates.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const PAGE = readPage('keys.md');
const KEY = /-----BEGIN PRIVATE KEY-----.*?-----END PRIVATE KEY-----\\n/;

describe('the page about keys', () => {
  let service: TestService;
  let root: Certified;

  before(async () => {
    service = await startTestService();
    root = await certify({ name: 'Root', ca: true });
  });
  after(() => service.close());

  it('shows requests that are taken, in their order', async () => {
    const { token } = await createTenant(service, 'acme');
    const own = newKey();
    const key = own.privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
    for (const { method, path, text } of PAGE.requests) {
      const jwk = method === 'PATCH' ? (await service.call('GET', path, { token })).body.activeKey : own.jwk;
      const certificate = await certifyKey(jwk, { name: 'Leaf', by: root });
      const shown = withCertificate(text, pem({ ...root, certificate }));
      const json = JSON.parse(shown.replace(KEY, JSON.stringify(key).slice(1, -1)));
      const answer = await service.call(method, path, { token, json });
      const isNew = path === '/key-chain' || path === '/key-chain/import';
      expect(answer.status, `${path}: ${answer.text}`).to.equal(isNew ? 201 : 200);
    }
    const pid = (await service.call('GET', '/key-chain/pid', { token })).body;
    const status = (await service.call('GET', '/key-chain/pid-status', { token })).body;
    expect(status.rootCertificate).to.equal(pid.rootCertificate);
    expect(pid.previousKeys).to.have.length(2);
  });

  it('names every member that a key chain can be made, brought and certified with', async () => {
    const { components } = (await service.call('GET', '/openapi.json')).body;
    for (const schema of [
      'KeyChainCreation',
      'KeyChainImport',
      'KeyChainRotation',
      'CertificateSigningRequest',
    ]) {
      expectNamed(PAGE, Object.keys(components.schemas[schema].properties));
    }
  });
});
