import { createHash } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { decode, issue, verifyWithLeaf } from '../support/present.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const ADDRESS = '/.well-known/openid-credential-issuer/acme';
const CARD = {
  id: 'card',
  config: {
    format: 'dc+sd-jwt',
    display: [
      { name: 'Card', locale: 'en', background_color: '#12355b' },
      { name: 'Karte', locale: 'de' },
    ],
    claims: [{ path: ['name'], mandatory: true, display: [{ name: 'Name', locale: 'en' }] }],
  },
  claims: { name: 'Ada' },
  disclosureFrame: { _sd: ['name'] },
  schema: { type: 'object', properties: { name: { type: 'string' } } },
};

describe('The metadata of an issuer', () => {
  let service: TestService;
  let tenant: { id: string; token: string };

  before(async () => {
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
    await write('/issuer/credentials', CARD);
    await write('/issuer/credentials', { ...CARD, id: 'named', vct: 'urn:card:1', schema: null });
    const display = [
      { name: 'Acme', locale: 'en' },
      { name: 'Acme GmbH', locale: 'de' },
    ];
    await write('/issuer/config', { display });
  });
  after(() => service.close());

  const call = (method: string, path: string, json?: unknown) =>
    service.call(method, path, { token: tenant.token, ...(json === undefined ? {} : { json }) });
  async function write(path: string, json: object) {
    const answer = await call('POST', path, json);
    expect(answer.status, answer.text).to.equal(201);
  }
  const read = (headers: Record<string, string> = {}) => service.call('GET', ADDRESS, { headers });

  describe('signed', () => {
    const signed = () => read({ Accept: 'application/jwt' });

    it('have the same content, signed with a certificate of the tenant', async () => {
      const answer = await signed();
      expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([200, 'application/jwt']);
      expect(answer.headers.get('vary')).to.equal('Accept, Accept-Language, Accept-Encoding');
      const leaf = verifyWithLeaf(answer.text);
      const { header, payload } = decode(answer.text);
      expect(header).to.include({ typ: 'openidvci-issuer-metadata+jwt', alg: 'ES256' });
      expect(header['x5c'], 'the anchor stays out').to.have.length(1);
      expect(leaf.checkIssued(leaf), 'no certificate that signs itself').to.equal(false);
      const { sub, iat, exp, ...members } = payload;
      expect(sub).to.equal(`${service.address}/acme`);
      expect(exp - iat).to.equal(86_400);
      expect(members).to.deep.equal((await read()).body);
    });

    it('are cached and renewed long before they expire', async () => {
      const first = (await signed()).text;
      expect((await signed()).text).to.equal(first);
      const clock = sinon.useFakeTimers({ now: Date.now() + 13 * 3_600_000, toFake: ['Date'] });
      try {
        const second = (await signed()).text;
        expect(second).to.not.equal(first);
        expect(decode(second).payload['iat']).to.be.greaterThan(decode(first).payload['iat']);
      } finally {
        clock.restore();
      }
    });

    it('change with the configuration at once', async () => {
      await write('/issuer/credentials', { ...CARD, id: 'fresh' });
      const { payload } = decode((await signed()).text);
      expect(payload['credential_configurations_supported']).to.have.property('fresh');
      await call('DELETE', '/issuer/credentials/fresh');
    });

    it('are sent only to clients that accept them', async () => {
      const type = async (Accept: string) => (await read({ Accept })).headers.get('content-type');
      expect(await type('application/jwt;q=0.9, application/json;q=0.8')).to.equal('application/jwt');
      for (const accept of [
        '*/*',
        'application/xml',
        'application/jwt;q=0',
        'application/json, application/jwt;q=0.5',
        'application/jwt;q=0, */*;q=0.1',
      ]) {
        // biome-ignore format: one list
        expect(await type(accept), accept).to.equal('application/json');
      }
    });

    it('are served at the other address as well', async () => {
      const headers = { Accept: 'application/jwt' };
      const other = await service.call('GET', '/acme/.well-known/openid-credential-issuer', { headers });
      expect(other.text).to.equal((await signed()).text);
    });
  });

  describe('in one language', () => {
    it('contain the texts of it, without Content-Language when one list has only another language', async () => {
      const answer = await read({ 'Accept-Language': 'de-CH, en;q=0.5' });
      expect(answer.headers.get('content-language')).to.equal(null);
      expect(answer.body.display).to.deep.equal([{ name: 'Acme GmbH', locale: 'de' }]);
      const { card } = answer.body.credential_configurations_supported;
      expect(card.credential_metadata.display).to.deep.equal([{ name: 'Karte', locale: 'de' }]);
      expect(card.credential_metadata.claims).to.deep.equal(CARD.config.claims);
    });

    it('are signed as well', async () => {
      const answer = await read({ 'Accept-Language': 'de', Accept: 'application/jwt' });
      expect(answer.headers.get('content-language')).to.equal(null);
      verifyWithLeaf(answer.text);
      expect(decode(answer.text).payload['display']).to.deep.equal([{ name: 'Acme GmbH', locale: 'de' }]);
    });

    it('name the language when all lists have it', async () => {
      const answer = await read({ 'Accept-Language': 'en-GB, de;q=0.5' });
      expect(answer.headers.get('content-language')).to.equal('en');
      expect(answer.body.display).to.deep.equal([{ name: 'Acme', locale: 'en' }]);
    });

    it('are complete for clients that accept none of the languages', async () => {
      for (const wanted of ['fr', '*', 'xx-invented, *;q=0.1']) {
        const answer = await read({ 'Accept-Language': wanted });
        expect(answer.headers.get('content-language')).to.equal(null);
        expect(answer.body.display).to.have.length(2);
      }
    });
  });

  describe('about types', () => {
    it('are served at the URL of the type and describe the credential', async () => {
      const credential = (await issue(service, tenant, 'card')).text;
      const { payload } = decode(credential);
      const answer = await service.call('GET', payload['vct']);
      expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([200, 'application/json']);
      expect(answer.headers.get('cache-control')).to.match(/max-age=\d+/);
      expect(answer.headers.get('x-content-type-options')).to.equal('nosniff');
      expect(payload).to.not.have.property('vct#integrity');
      expect(answer.body).to.deep.equal({
        name: 'Card',
        display: [
          { locale: 'en', name: 'Card', rendering: { simple: { background_color: '#12355b' } } },
          { locale: 'de', name: 'Karte' },
        ],
        claims: [
          { path: ['name'], display: [{ locale: 'en', label: 'Name' }], mandatory: true, sd: 'always' },
          { path: ['iat'], sd: 'never' },
        ],
        vct: `${service.address}/acme/vct/card`,
      });
      expect(payload).to.not.have.property('name');
    });

    it('stay byte for byte as referenced by the integrity of credentials, where that is configured', async () => {
      const frozen = { ...CARD, id: 'frozen', vctIntegrity: true };
      await write('/issuer/credentials', frozen);
      const { payload } = decode((await issue(service, tenant, 'frozen')).text);
      const served = async () => (await service.call('GET', payload['vct'])).text;
      const text = await served();
      // The very bytes: a release that wrote them in another order would break every credential that is out.
      expect(text).to.equal(
        `{"name":"Card","display":[{"locale":"en","name":"Card","rendering":{"simple":{"background_color":"#12355b"}}},` +
          `{"locale":"de","name":"Karte"}],"claims":[{"path":["name"],"display":[{"locale":"en","label":"Name"}],` +
          `"mandatory":true,"sd":"always"},{"path":["iat"],"sd":"never"}],"vct":"${service.address}/acme/vct/frozen"}`,
      );
      const digest = createHash('sha256').update(text).digest('base64');
      expect(payload['vct#integrity']).to.equal(`sha256-${digest}`);

      const patch = (json: object) => call('PATCH', '/issuer/credentials/frozen', json);
      for (const change of [{ description: 'Other' }, { disclosureFrame: null }, { vct: { name: 'Other' } }]) {
        const answer = await patch(change);
        expect([answer.status, answer.body.code], answer.text).to.deep.equal([409, 'conflict']);
      }
      expect((await patch({ lifeTime: 86_400, statusManagement: true })).status).to.equal(200);
      expect((await call('DELETE', '/issuer/credentials/frozen')).status).to.equal(409);
      expect(await served()).to.equal(text);
      expect((await call('GET', '/issuer/credentials/frozen')).body).to.not.have.property('frozenType');

      // A program that knows nothing of the promise does not take it back.
      for (const unsaid of [{}, { vctIntegrity: null }]) {
        const body = { ...frozen, vctIntegrity: undefined, ...unsaid };
        expect((await call('POST', '/issuer/credentials', body)).status).to.equal(201);
        const other = await call('POST', '/issuer/credentials', { ...body, vct: { name: 'Other' } });
        expect([other.status, other.body.code], other.text).to.deep.equal([409, 'conflict']);
        const elsewhere = await call('POST', '/issuer/credentials', { ...body, vct: 'urn:card:1' });
        expect([elsewhere.status, elsewhere.body.code], elsewhere.text).to.deep.equal([409, 'conflict']);
        expect((await call('GET', '/issuer/credentials/frozen')).body.vctIntegrity).to.equal(true);
      }

      expect((await patch({ vctIntegrity: false })).status).to.equal(200);
      expect((await patch({ description: 'Other' })).status).to.equal(200);
      expect(await served()).to.include('Other');
      expect((await call('DELETE', '/issuer/credentials/frozen')).status).to.equal(200);
    });

    it('cannot be referenced by integrity where the service has none', async () => {
      for (const body of [{ vct: 'urn:card:1' }, { vct: { vct: 'urn:card:1' } }]) {
        const answer = await call('POST', '/issuer/credentials', { ...CARD, id: 'none', ...body, vctIntegrity: true });
        expect([answer.status, answer.body.errors?.[0].path]).to.deep.equal([400, 'vctIntegrity']);
      }
    });

    it('match every credential', async () => {
      const claims = [{ path: ['age'], mandatory: true }];
      await write('/issuer/credentials', { ...CARD, id: 'ruled', claims: null, schema: null, vct: { claims } });
      const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['ruled'] };
      const given = (inline: object) =>
        call('POST', '/issuer/offer', { ...offer, credentialClaims: { ruled: { type: 'inline', claims: inline } } });
      const refused = await given({ name: 'Ada' });
      expect(refused.status, refused.text).to.equal(400);
      expect((await given({ name: 'Ada', age: 36 })).status).to.equal(201);
    });

    it('do not exist for types that are described elsewhere', async () => {
      expect((await service.call('GET', '/acme/vct/named')).status).to.equal(404);
      const { payload } = decode((await issue(service, tenant, 'named')).text);
      expect(payload).to.include({ vct: 'urn:card:1' }).and.not.have.property('vct#integrity');
    });

    it('contain the schema of their claims if there is one', async () => {
      const answer = await service.call('GET', '/acme/schema/card');
      expect([answer.status, answer.body]).to.deep.equal([200, CARD.schema]);
      for (const path of ['/acme/schema/named', '/acme/schema/nothing', '/nobody/schema/card']) {
        expect((await service.call('GET', path)).status, path).to.equal(404);
      }
    });
  });

  it('of an offer reject claims without the promised ones', async () => {
    const json = {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: ['card'],
      credentialClaims: { card: { type: 'inline', claims: { other: 'x' } } },
    };
    const answer = await call('POST', '/issuer/offer', json);
    expect([answer.status, answer.body.errors?.[0].path], answer.text).to.deep.equal([400, 'credentialClaims.card.claims.name']);
  });

  it('of the authorization server list what it supports', async () => {
    const server = await service.call('GET', '/.well-known/oauth-authorization-server/acme');
    expect(server.headers.get('content-type')).to.equal('application/json');
    const base = `${service.address}/acme`;
    expect(server.body).to.deep.include({
      issuer: base,
      pushed_authorization_request_endpoint: `${base}/par`,
      authorization_endpoint: `${base}/authorize`,
      token_endpoint: `${base}/token`,
      challenge_endpoint: `${base}/challenge`,
      scopes_supported: ['card', 'named'],
    });
  });
});
