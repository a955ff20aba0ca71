import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { withCertificate } from '../support/docs-page.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const PAGE = readFileSync(new URL('../../docs/certification.md', import.meta.url), 'utf8');
const REQUESTS = [...PAGE.matchAll(/^`(POST) (\/\S+)`\n```json\n([\s\S]*?)\n```$/gm)].map(
  ([, method = '', path = '', text = '']) => ({ method, path, text }),
);

describe('the page about certification', () => {
  let service: TestService;

  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  const tenantOf = async (body: Readonly<Record<string, unknown>>) => {
    const { token } = await createTenant(service, String(body['id']), body);
    const { body: chains } = await service.call('GET', '/key-chain', { token });
    return { token, chains: chains as { id: string; rootCertificate: string; activeCertificate: string }[] };
  };
  type Tenant = Awaited<ReturnType<typeof tenantOf>>;
  const send = (
    { token, chains }: Tenant,
    { method, path, text }: (typeof REQUESTS)[number],
    pinned = false,
  ) => {
    const { rootCertificate = '', activeCertificate = '' } = chains[0] ?? {};
    const json = JSON.parse(withCertificate(text, pinned ? activeCertificate : rootCertificate));
    return service.call(method, path, { token, json });
  };

  it('shows requests that the service accepts, by tenants with the profiles that it names', async () => {
    const [first, ...others] = REQUESTS;
    if (first === undefined) throw new Error('the page shows no request');
    expect(first.path).to.equal('/tenant');
    const withProfile = await tenantOf(JSON.parse(first.text));
    const without = await tenantOf({ id: 'no-profile', profile: null });
    let isFirstConfig = true;
    for (const request of others) {
      const isPlain = request.path === '/issuer/config' && !isFirstConfig;
      if (request.path === '/issuer/config') isFirstConfig = false;
      const isMdoc = request.text.includes('mdl');
      const answer = await send(isPlain || isMdoc ? without : withProfile, request, isMdoc);
      expect(answer.status, `${request.path}: ${answer.text}`).to.equal(201);
      if (request.path.endsWith('/offer')) expect(answer.body.uri).to.be.a('string');
    }
    expect(others).to.have.length(8);
  });

  it('says which profiles, key chains and combinations of encryption there are', async () => {
    const token = await service.rootToken();
    const json = { id: 'none', name: 'None', profile: 'none' };
    expect((await service.call('POST', '/tenant', { token, json })).status).to.equal(400);
    const tenant = await tenantOf({ id: 'chains' });
    expect(tenant.chains.map(({ id }) => id)).to.deep.equal([
      'access',
      'signing',
      'status-list',
      'trust-list',
    ]);
    for (const { id, rootCertificate, activeCertificate } of tenant.chains) {
      expect(PAGE).to.include(`\`${id}\``);
      expect(rootCertificate).to.not.equal(activeCertificate);
    }
    const display = [{ name: 'Conformance' }];
    const statusOf = async (body: object) =>
      (await service.call('POST', '/issuer/config', { token: tenant.token, json: body })).status;
    expect(await statusOf({ batchSize: 10 })).to.equal(400);
    expect(await statusOf({ display, responseEncryption: 'required' })).to.equal(400);
    const both = { requestEncryption: 'required', responseEncryption: 'required' };
    expect(await statusOf({ display, ...both })).to.equal(201);
  });
});
