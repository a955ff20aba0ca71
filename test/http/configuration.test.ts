import { expect } from 'chai';
import { issue, QUERY } from '../support/present.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const CARD = {
  id: 'card',
  config: {
    format: 'dc+sd-jwt',
    scope: 'card',
    display: [{ name: 'Card', locale: 'en', background_color: '#12355b' }],
  },
  vct: 'urn:card:1',
  claims: { name: 'Ada' },
  disclosureFrame: { _sd: ['name'] },
};
const AUTH = { type: 'apiKey', config: { headerName: 'X-Key', value: 'a-key' } };

describe('configurations through HTTP', () => {
  let service: TestService;
  let tenant: { id: string; token: string };

  before(async () => {
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
  });
  after(() => service.close());

  const call = (method: string, path: string, json?: unknown) =>
    service.call(method, path, { token: tenant.token, ...(json === undefined ? {} : { json }) });
  const expectInvalid = (answer: Answer, path: string) => {
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
    const paths: string[] = answer.body.errors.map((error: { path: string }) => error.path);
    expect(
      paths.some((found) => found === path || found.startsWith(`${path}.`)),
      paths.join(),
    ).to.equal(true);
  };

  describe('of how a tenant issues', () => {
    it('exist before anybody wrote them, and are replaced whole', async () => {
      const first = await call('GET', '/issuer/config');
      expect(first.status).to.equal(200);
      expect(first.body).to.include({ batchSize: 1, dPopRequired: true, walletAttestationRequired: false });
      expect(first.body.display).to.have.length.greaterThan(0);
      const body = {
        display: [{ name: 'Acme', locale: 'en', logo: { uri: 'https://acme.example/l.png', alt_text: 'A' } }],
        batchSize: 5,
        dPopRequired: false,
      };
      const written = await call('POST', '/issuer/config', body);
      expect(written.status, written.text).to.equal(201);
      expect(written.body).to.deep.include(body);
      expect((await call('GET', '/issuer/config')).body).to.deep.equal(written.body);
      const replaced = await call('POST', '/issuer/config', { display: [{ name: 'New', locale: 'en' }] });
      expect(replaced.body).to.include({ batchSize: 1, dPopRequired: true });
      const metadata = await service.call('GET', '/acme/.well-known/openid-credential-issuer');
      expect(metadata.body.display[0].name).to.equal('New');
    });

    const invalid: [string, object, string][] = [
      ['without display', { display: undefined }, 'display'],
      ['with an empty display', { display: [] }, 'display'],
      ['with a language twice', { display: [CARD.config.display[0], CARD.config.display[0]] }, 'display'],
      ['with a batch of a thousand', { batchSize: 1000 }, 'batchSize'],
      [
        'with a foreign preferred server',
        { preferredAuthServer: 'https://x.example' },
        'preferredAuthServer',
      ],
      ['with what is not there yet', { chainedAs: { enabled: true } }, 'chainedAs'],
      ['with another server', { authServers: ['https://as.example'] }, 'authServers'],
      ['with attestation', { walletAttestationRequired: true }, 'walletAttestationRequired'],
    ];
    for (const [what, change, path] of invalid) {
      it(`are refused ${what}`, async () => {
        const body = { display: [{ name: 'Bad', locale: 'en' }], ...change };
        expectInvalid(await call('POST', '/issuer/config', body), path);
        expect((await call('GET', '/issuer/config')).text).to.not.include('Bad');
      });
    }
  });

  describe('of credentials', () => {
    it('are written, read, listed, changed, replaced and deleted', async () => {
      const written = await call('POST', '/issuer/credentials', CARD);
      expect(written.status, written.text).to.equal(201);
      expect(written.body).to.deep.include({ ...CARD, keyBinding: true, statusManagement: false });
      expect(written.body.tenant).to.deep.equal({ id: 'acme' });
      expect((await call('GET', '/issuer/credentials/card')).body).to.deep.equal(written.body);
      expect((await call('GET', '/issuer/credentials')).body).to.deep.equal([written.body]);

      const change = { description: 'Members', lifeTime: 3600 };
      const changed = await call('PATCH', '/issuer/credentials/card', change);
      expect(changed.status, changed.text).to.equal(200);
      expect(changed.body).to.deep.include({ ...CARD, ...change });
      const reset = await call('PATCH', '/issuer/credentials/card', {
        lifeTime: null,
        disclosureFrame: null,
      });
      expect(reset.body).to.include({ lifeTime: null, disclosureFrame: null, description: 'Members' });
      const replaced = await call('POST', '/issuer/credentials', CARD);
      expect(replaced.body).to.deep.include({ ...CARD, description: null });
      expect(replaced.body.createdAt).to.equal(written.body.createdAt);

      const metadata = async () =>
        (await service.call('GET', '/acme/.well-known/openid-credential-issuer')).body
          .credential_configurations_supported;
      expect((await metadata()).card).to.include({ format: 'dc+sd-jwt', vct: 'urn:card:1', scope: 'card' });
      const deleted = await call('DELETE', '/issuer/credentials/card');
      expect([deleted.status, deleted.body]).to.deep.equal([200, { id: 'card' }]);
      for (const method of ['GET', 'PATCH', 'DELETE'])
        expect((await call(method, '/issuer/credentials/card', method === 'PATCH' ? {} : undefined)).status).to // biome-ignore format: one line
          .equal(404);
      expect(await metadata()).to.deep.equal({});
    });

    const invalid: [string, object, string][] = [
      ['without id', { id: undefined }, 'id'],
      ['with an id that needs escaping', { id: 'a b' }, 'id'],
      ['without config', { config: undefined }, 'config'],
      [
        'of a format that is not there yet',
        { config: { ...CARD.config, format: 'mso_mdoc' } },
        'config.format',
      ],
      [
        'with a colour that is none',
        { config: { ...CARD.config, display: [{ name: 'x', text_color: 'blue' }] } },
        'config.display.0.text_color',
      ],
      ['that live for a moment', { lifeTime: 59 }, 'lifeTime'],
      ['with claims of the protocol', { claims: { cnf: {} } }, 'claims.cnf'],
      ['with a schema that is none', { schema: { type: 'nonsense' } }, 'schema'],
      ['with a frame that is none', { disclosureFrame: { _sd: 'name' } }, 'disclosureFrame'],
      ['with a webhook nowhere', { claimsWebhook: { url: 'nowhere' } }, 'claimsWebhook.url'],
      [
        'with a key in a header of ours',
        {
          claimsWebhook: {
            url: 'https://x.example',
            auth: { type: 'apiKey', config: { headerName: 'Host', value: 'x' } },
          },
        },
        'claimsWebhook.auth.config.headerName',
      ],
      [
        'with a mask for a key that nobody knows',
        {
          claimsWebhook: {
            url: 'https://x.example',
            auth: { ...AUTH, config: { ...AUTH.config, value: '***' } },
          },
        },
        'claimsWebhook.auth.config.value',
      ],
      ['with actions, which are not there yet', { iaeActions: [{ type: 'redirect_to_web' }] }, 'iaeActions'],
    ];
    for (const [what, change, path] of invalid) {
      it(`are refused ${what}, when written and when changed`, async () => {
        expectInvalid(await call('POST', '/issuer/credentials', { ...CARD, id: 'bad', ...change }), path);
        expect((await call('GET', '/issuer/credentials/bad')).status).to.equal(404);
        if (path === 'id' || path === 'config') return;
        expect((await call('POST', '/issuer/credentials', { ...CARD, id: 'good' })).status).to.equal(201);
        expectInvalid(await call('PATCH', '/issuer/credentials/good', change), path);
        expect((await call('GET', '/issuer/credentials/good')).body).to.deep.include({ ...CARD, id: 'good' });
      });
    }

    it('take effect for what is offered afterwards', async () => {
      await call('POST', '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }] });
      await call('POST', '/issuer/credentials', { ...CARD, id: 'live' });
      const vctOf = async () => {
        const { text } = await issue(service, tenant, 'live');
        return JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString()).vct;
      };
      expect(await vctOf()).to.equal('urn:card:1');
      await call('PATCH', '/issuer/credentials/live', { vct: 'urn:card:2' });
      expect(await vctOf()).to.equal('urn:card:2');
    });
  });

  describe('of presentations', () => {
    const CHECK = { id: 'check', dcql_query: QUERY };

    it('are written, read, listed, changed, replaced and deleted', async () => {
      const body = {
        ...CHECK,
        description: 'At the door',
        lifeTime: 60,
        redirectUri: 'https://shop.example/{sessionId}',
      };
      const written = await call('POST', '/verifier/config', body);
      expect(written.status, written.text).to.equal(201);
      expect(written.body).to.deep.include({ ...body, responseMode: 'direct_post.jwt', trustAnchors: [] });
      expect(written.body.tenant).to.include({ id: 'acme' });
      expect((await call('GET', '/verifier/config/check')).body).to.deep.equal(written.body);
      expect((await call('GET', '/verifier/config')).body).to.deep.equal([written.body]);
      const changed = await call('PATCH', '/verifier/config/check', { lifeTime: null, redirectUri: null });
      expect(changed.body).to.deep.include({ ...CHECK, lifeTime: 300, redirectUri: null });
      expect(changed.body.description).to.equal('At the door');
      const replaced = await call('POST', '/verifier/config', CHECK);
      expect([replaced.status, replaced.body.description]).to.deep.equal([201, null]);
      expect((await call('DELETE', '/verifier/config/check')).body).to.deep.equal({ id: 'check' });
      expect((await call('GET', '/verifier/config/check')).status).to.equal(404);
      expect((await call('DELETE', '/verifier/config/check')).status).to.equal(404);
      const offer = { response_type: 'uri', requestId: 'check' };
      expect((await call('POST', '/verifier/offer', offer)).status).to.equal(404);
    });

    const data = { type: 'payment', credential_ids: ['card'] };
    const invalid: [string, object, string][] = [
      ['without a query', { dcql_query: undefined }, 'dcql_query'],
      ['with an empty query', { dcql_query: { credentials: [] } }, 'dcql_query.credentials'],
      [
        'for a format that is not there yet',
        { dcql_query: { credentials: [{ id: 'x', format: 'mso_mdoc', meta: { doctype_value: 'x' } }] } },
        'dcql_query.credentials.0.format',
      ],
      ['that last half a minute less a second', { lifeTime: 29 }, 'lifeTime'],
      ['that last more than a day', { lifeTime: 86_401 }, 'lifeTime'],
      ['with a way back to nowhere', { redirectUri: '/done' }, 'redirectUri'],
      ['with a way back into a script', { redirectUri: 'javascript:alert(1)' }, 'redirectUri'],
      [
        'with data for an unknown query',
        { transaction_data: [{ ...data, credential_ids: ['other'] }] },
        'transaction_data.0.credential_ids',
      ],
      [
        'with anchors that are none',
        { trustAnchors: [{ certificate: 'PEM' }] },
        'trustAnchors.0.certificate',
      ],
      ['with a mode of another flow', { responseMode: 'fragment' }, 'responseMode'],
      ['with a webhook of another kind', { webhook: { url: 'ftp://x.example' } }, 'webhook.url'],
      ['with an access key that signs credentials', { accessKeyChainId: 'signing' }, 'accessKeyChainId'],
    ];
    for (const [what, change, path] of invalid) {
      it(`are refused ${what}`, async () => {
        expectInvalid(await call('POST', '/verifier/config', { ...CHECK, id: 'bad', ...change }), path);
        expect((await call('GET', '/verifier/config/bad')).status).to.equal(404);
      });
    }

    it('are asked for as the contract says, or refused at the path', async () => {
      await call('POST', '/verifier/config', CHECK);
      const ask = (more: object) =>
        call('POST', '/verifier/offer', { response_type: 'uri', requestId: 'check', ...more });
      expect(Object.keys((await ask({})).body).sort()).to.deep.equal(['crossDeviceUri', 'session', 'uri']);
      expect((await ask({ requestId: 'unknown' })).status).to.equal(404);
      expectInvalid(await ask({ requestId: undefined }), 'requestId');
      expectInvalid(await ask({ response_type: 'dc-api' }), 'response_type');
      expectInvalid(await ask({ redirectUri: 'nowhere' }), 'redirectUri');
      const foreign = [{ ...data, credential_ids: ['other'] }];
      expectInvalid(await ask({ transaction_data: foreign }), 'transaction_data.0.credential_ids');
      const seen = await ask({ transaction_data: [{ ...data, amount: 5 }] });
      const session = (await call('GET', `/session/${seen.body.session}`)).body;
      expect(session.transaction_data).to.deep.equal([{ ...data, amount: 5 }]);
    });
  });
});
