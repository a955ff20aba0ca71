import { expect } from 'chai';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const DISPLAY = [{ name: 'Card', locale: 'en' }];
const CARD = {
  id: 'card',
  config: { format: 'dc+sd-jwt', display: DISPLAY, claims: [{ path: ['name'], mandatory: true }] },
  vct: 'urn:card:1',
};
const LICENCE = {
  id: 'mdl',
  config: {
    format: 'mso_mdoc',
    docType: 'org.iso.18013.5.1.mDL',
    display: DISPLAY,
    claimsByNamespace: { 'org.iso.18013.5.1': {}, 'org.iso.18013.5.1.DE': {} },
  },
};
const NAMED = { type: 'inline', claims: { name: 'Ada' } };
const WEBHOOK = { url: 'https://backend.example/claims' };

describe('an offer of what cannot be issued', () => {
  let service: TestService;
  let tenant: { id: string; token: string };

  before(async () => {
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
    await call('POST', '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }] });
    const key = { id: 'licences', usages: ['signing'], country: 'DE', organization: 'A', subjectName: 'A' };
    await call('POST', '/key-chain', key);
  });
  after(() => service.close());

  const call = (method: string, path: string, json: unknown) =>
    service.call(method, path, { token: tenant.token, json });
  const write = async (...configurations: object[]) => {
    for (const configuration of configurations) {
      const answer = await call('POST', '/issuer/credentials', configuration);
      expect(answer.status, answer.text).to.equal(201);
    }
  };
  const offer = (ids: string[], more: object = {}) =>
    call('POST', '/issuer/offer', {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: ids,
      ...more,
    });
  const refused = async (ids: string[], more?: object) => {
    const answer = await offer(ids, more);
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
    expect(answer.body.errors).to.have.length(1);
    return answer.body.errors[0] as { path: string; message: string };
  };

  it('is refused with the claim that is missing, its configuration and where it could come from', async () => {
    await write(CARD, { ...CARD, id: 'full', claims: { name: 'Ada' } });
    for (const flow of ['pre_authorized_code', 'authorization_code']) {
      expect(await refused(['full', 'card'], { flow })).to.deep.equal({
        path: 'credentialConfigurationIds.1',
        message:
          'card cannot be issued: claims.name is mandatory, but missing; claims come from credentialClaims.card of ' +
          'the offer, or from claimsWebhook, claims of its configuration',
      });
    }
  });

  it('is refused for static claims without what is promised or what the schema asks for', async () => {
    await write({ ...CARD, claims: { surname: 'Lovelace' } });
    expect((await refused(['card'])).message).to.include('claims.name is mandatory');
    const schema = { type: 'object', required: ['name'] };
    await write({ ...CARD, config: { format: 'dc+sd-jwt', display: DISPLAY }, schema });
    expect((await refused(['card'])).message).to.match(/^card cannot be issued: .*name.*; claims come from/);
  });

  it('is refused for an mdoc without any element', async () => {
    await write({ ...LICENCE, keyChainId: 'licences' });
    const { path, message } = await refused(['mdl']);
    expect(path).to.equal('credentialConfigurationIds.0');
    expect(message).to.include('mdl cannot be issued: an mdoc needs at least one element');
    expect(message).to.include('config.claimsByNamespace of its configuration');
  });

  it('is possible wherever claims can still come from', async () => {
    await write(CARD, { ...CARD, id: 'hooked', claimsWebhook: WEBHOOK });
    const sources: [string, object][] = [
      ['hooked', {}],
      ['card', { credentialClaims: { card: NAMED } }],
      ['card', { credentialClaims: { card: { type: 'webhook', webhook: WEBHOOK } } }],
    ];
    for (const [id, more] of sources) {
      const answer = await offer([id], more);
      expect(answer.status, answer.text).to.equal(201);
    }
  });

  it('is possible as soon as the configuration has claims', async () => {
    await write(CARD);
    await refused(['card']);
    await call('PATCH', '/issuer/credentials/card', { claims: { name: 'Ada' } });
    expect((await offer(['card'])).status).to.equal(201);
  });

  it('is possible for a credential that promises nothing', async () => {
    await write({ ...CARD, id: 'empty', config: { format: 'dc+sd-jwt', display: DISPLAY } });
    expect((await offer(['empty'])).status).to.equal(201);
  });
});
