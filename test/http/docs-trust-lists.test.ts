import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { certify, pem } from '../support/test-certificates.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const TEXT = readFileSync(new URL('../../docs/trust-lists.md', import.meta.url), 'utf8');
const ALL = [...TEXT.matchAll(/^```json$/gm)].length;
const REQUESTS = [...TEXT.matchAll(/^`(POST|PATCH|PUT) (\/\S+)`\n```json\n([\s\S]*?)\n```$/gm)];
const CERTIFICATE = /-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\\n/g;

describe('the page about trust lists', () => {
  let service: TestService;

  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  it('shows requests that are taken, in their order', async () => {
    expect(REQUESTS, 'requests among all JSON').to.have.length(ALL).and.length.greaterThan(2);
    const { token } = await createTenant(service, 'acme');
    const certificate = JSON.stringify(pem(await certify({ name: 'University', ca: true }))).slice(1, -1);
    for (const [, method = '', path = '', text = ''] of REQUESTS) {
      const json = JSON.parse(text.replace(CERTIFICATE, certificate));
      const answer = await service.call(method, path, { token, json });
      expect(answer.status, `${path}: ${answer.text}`).to.equal(method === 'POST' ? 201 : 200);
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
    for (const member of members) expect(TEXT, member).to.match(new RegExp(`["\`]${member}["\`]`));
  });
});
