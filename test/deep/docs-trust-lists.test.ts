import { expect } from 'chai';
import { expectNamed, readPage, withCertificate } from '../support/docs-page.ts';
import { loteFaults } from '../support/lote-schema.ts';
import { certify, pem } from '../support/test-certificates.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const PAGE = readPage('trust-lists.md');

describe('the page about trust lists', () => {
  let service: TestService;

  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  it('shows requests that are taken, in their order', async () => {
    const { token } = await createTenant(service, 'acme');
    const certificate = pem(await certify({ name: 'University', ca: true }));
    for (const { method, path, text } of PAGE.requests) {
      const json = JSON.parse(withCertificate(text, certificate));
      const answer = await service.call(method, path, { token, json });
      expect(answer.status, `${path}: ${answer.text}`).to.equal(method === 'POST' ? 201 : 200);
      if (path.startsWith('/trust-list')) expect(loteFaults(answer.body.data), path).to.deep.equal([]);
    }
    const published = await service.call('GET', '/acme/trust-list/universities');
    expect(published.status).to.equal(200);
    const chain = await service.call('GET', '/key-chain/trust-list', { token });
    expect(chain.body.rootCertificate).to.match(/BEGIN CERTIFICATE/);
  });

  it('names every member of the scheme that can be set', async () => {
    const { components } = (await service.call('GET', '/openapi.json')).body;
    const members = Object.keys(components.schemas.SchemeInformation.properties);
    expect(members).to.have.length.greaterThan(10);
    expectNamed(PAGE, members);
  });
});
