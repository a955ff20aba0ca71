import { expect } from 'chai';
import sinon from 'sinon';
import { Cipher } from '../../application/ports/cipher.ts';
import { createResource, credentialBody } from '../support/populated.ts';
import { issue, QUERY } from '../support/present.ts';
import { newKey } from '../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const CARD = {
  id: 'card',
  config: { format: 'dc+sd-jwt', scope: 'card', display: [{ name: 'Card', locale: 'en', background_color: '#12355b' }] },
  vct: 'urn:card:1',
  claims: { name: 'Ada' },
  disclosureFrame: { _sd: ['name'] },
};
const SHARED = { ...CARD.config, scope: 'shared' };
const CHAINED = { upstream: { issuer: 'https://login.example', clientId: 'vidimus' } };
const AUTH = { type: 'apiKey', config: { headerName: 'X-Key', value: 'a-key' } };

/** What is read of what was written: all but the warnings. */
function read({ body: { warnings: _warnings, ...shown } }: Answer) {
  return shown;
}

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

  describe('of the issuer', () => {
    it('exist by default, and are replaced as a whole', async () => {
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
      expect((await call('GET', '/issuer/config')).body).to.deep.equal(read(written));
      const replaced = await call('POST', '/issuer/config', { display: [{ name: 'New', locale: 'en' }] });
      expect(replaced.body).to.include({ batchSize: 1, dPopRequired: true });
      const metadata = await service.call('GET', '/acme/.well-known/openid-credential-issuer');
      expect(metadata.body.display[0].name).to.equal('New');
    });

    it('name other servers, with the preferred one first', async () => {
      const display = [{ name: 'Acme', locale: 'en' }];
      const chained = `${service.address}/acme/chained-as`;
      const body = { display, authServers: ['https://as.example'], chainedAs: CHAINED };
      for (const [preferred, first] of [
        ['built-in', `${service.address}/acme`],
        [chained, chained],
        ['https://as.example', 'https://as.example'],
      ]) {
        const written = await call('POST', '/issuer/config', { ...body, preferredAuthServer: preferred });
        expect(written.status, written.text).to.equal(201);
        const metadata = await service.call('GET', '/acme/.well-known/openid-credential-issuer');
        expect(metadata.body.authorization_servers).to.have.length(3).and.include(chained);
        expect(metadata.body.authorization_servers[0]).to.equal(first);
      }
      await call('POST', '/issuer/config', { display });
      const alone = await service.call('GET', '/acme/.well-known/openid-credential-issuer');
      expect(alone.body).to.not.have.property('authorization_servers');
    });

    it('set the trust in attested wallets, their providers, and wallets with unattested keys', async () => {
      const certificate = (await call('GET', '/certs')).body[0].crt[0];
      const body = {
        display: [{ name: 'Acme', locale: 'en' }],
        walletAttestationRequired: true,
        walletProviderTrustLists: ['https://lists.example/wallets'],
        walletProviderTrustListCertificates: [certificate],
        walletClients: [{ client_id: 'w', jwks: { keys: [{ ...newKey().jwk, kid: 'k', alg: 'ES256', use: 'sig' }] } }],
      };
      const written = await call('POST', '/issuer/config', body);
      expect(written.status, written.text).to.equal(201);
      expect(written.body).to.deep.include(body);
      await call('POST', '/issuer/config', { display: body.display });
    });

    it('never show the upstream secret, and keep it for the same client of the same server', async () => {
      const display = [{ name: 'Acme', locale: 'en' }];
      const upstream = { ...CHAINED.upstream, clientSecret: 'the-secret-at-the-upstream' };
      const written = await call('POST', '/issuer/config', { display, chainedAs: { upstream } });
      const shown = await call('GET', '/issuer/config');
      for (const answer of [written, shown]) {
        expect(answer.text).to.not.include(upstream.clientSecret);
        expect(answer.body.chainedAs.upstream.clientSecret).to.equal('***');
      }
      const { tenant: _tenant, createdAt: _created, updatedAt: _updated, ...body } = shown.body;
      const again = await call('POST', '/issuer/config', { ...body, batchSize: 2 });
      expect([again.status, again.body.chainedAs], again.text).to.deep.equal([201, shown.body.chainedAs]);
      for (const moved of [{ issuer: 'https://evil.example' }, { clientId: 'other' }]) {
        const chainedAs = { upstream: { ...body.chainedAs.upstream, ...moved } };
        const path = 'chainedAs.upstream.clientSecret';
        expectInvalid(await call('POST', '/issuer/config', { ...body, chainedAs }), path);
      }
      await call('POST', '/issuer/config', { display });
    });

    it('are rejected at the path of the fault, and stay unchanged', async () => {
      const before = await call('GET', '/issuer/config');
      expectInvalid(await call('POST', '/issuer/config', {}), 'display');
      const unknown = { chainedAs: { ...CHAINED, token: { signingKeyId: 'nothing' } } };
      const body = { display: [{ name: 'Bad', locale: 'en' }], ...unknown };
      expectInvalid(await call('POST', '/issuer/config', body), 'chainedAs.token.signingKeyId');
      expect((await call('GET', '/issuer/config')).body).to.deep.equal(before.body);
    });
  });

  describe('of credentials', () => {
    it('are created, read, listed, changed, replaced and deleted', async () => {
      const written = await call('POST', '/issuer/credentials', CARD);
      expect(written.status, written.text).to.equal(201);
      expect(written.body).to.deep.include({ ...CARD, keyBinding: true, statusManagement: false });
      expect(written.body.tenant).to.include({ id: 'acme', name: 'Tenant acme', status: 'active' });
      expect((await call('GET', '/issuer/credentials/card')).body).to.deep.equal(read(written));
      expect((await call('GET', '/issuer/credentials')).body).to.deep.equal([read(written)]);

      const change = { description: 'Members', lifeTime: 3600 };
      const changed = await call('PATCH', '/issuer/credentials/card', change);
      expect(changed.status, changed.text).to.equal(200);
      expect(changed.body).to.deep.include({ ...CARD, ...change });
      const reset = await call('PATCH', '/issuer/credentials/card', { lifeTime: null, disclosureFrame: null });
      expect(reset.body).to.include({ lifeTime: null, disclosureFrame: null, description: 'Members' });
      const replaced = await call('POST', '/issuer/credentials', CARD);
      expect(replaced.body).to.deep.include({ ...CARD, description: null });
      expect(replaced.body.createdAt).to.equal(written.body.createdAt);

      const metadata = async () =>
        (await service.call('GET', '/acme/.well-known/openid-credential-issuer')).body.credential_configurations_supported;
      expect((await metadata()).card).to.include({ format: 'dc+sd-jwt', vct: 'urn:card:1', scope: 'card' });
      const deleted = await call('DELETE', '/issuer/credentials/card');
      expect([deleted.status, deleted.body]).to.deep.equal([200, { id: 'card' }]);
      for (const method of ['GET', 'PATCH', 'DELETE'])
        expect((await call(method, '/issuer/credentials/card', method === 'PATCH' ? {} : undefined)).status).to // biome-ignore format: one line
          .equal(404);
      expect(await metadata()).to.deep.equal({});
    });

    it('are rejected at the path, on creation and on change', async () => {
      const bad = { disclosureFrame: { _sd: ['vct'] } };
      const path = 'disclosureFrame._sd';
      expectInvalid(await call('POST', '/issuer/credentials', { ...CARD, id: 'bad', ...bad }), path);
      expect((await call('GET', '/issuer/credentials/bad')).status).to.equal(404);
      expect((await call('POST', '/issuer/credentials', { ...CARD, id: 'good' })).status).to.equal(201);
      expectInvalid(await call('PATCH', '/issuer/credentials/good', bad), path);
      expect((await call('GET', '/issuer/credentials/good')).body).to.deep.include({ ...CARD, id: 'good' });
    });

    it('show the tenant and the signing key chain, complete and without its private key', async () => {
      const made = await call('POST', '/issuer/credentials', { ...CARD, id: 'signed', keyChainId: 'signing' });
      expect(made.status, made.text).to.equal(201);
      const { body, text } = await call('GET', '/issuer/credentials/signed');
      const [chain, cert] = await Promise.all(['/key-chain/signing', '/certs/signing'].map(async (path) => (await call('GET', path)).body));
      expect(body.keyChain).to.deep.equal(chain);
      expect(body.cert).to.deep.equal(cert);
      const { usages: _usages, key: _key, ...plain } = cert;
      expect(cert.usages[0].cert, 'of a usage').to.deep.equal(plain);
      expect(body.tenant).to.include({ id: 'acme', name: 'Tenant acme', status: 'active' });
      expect((await call('GET', '/issuer/config')).body.tenant).to.deep.equal(body.tenant);
      expect(text).to.not.match(/PRIVATE KEY|"d":|sealedKey/);
      expect((await call('DELETE', '/issuer/credentials/signed')).status).to.equal(200);
    });

    it('share a scope only if they have the same type', async () => {
      await call('POST', '/issuer/credentials', { ...CARD, id: 'one', config: SHARED });
      const two = await call('POST', '/issuer/credentials', { ...CARD, id: 'two', config: SHARED });
      expect(two.status, two.text).to.equal(201);
      expectInvalid(await call('PATCH', '/issuer/credentials/two', { vct: 'urn:card:2' }), 'config.scope');
      const named = { ...CARD, id: 'shared', vct: 'urn:card:3', config: { ...CARD.config, scope: undefined } };
      expectInvalid(await call('POST', '/issuer/credentials', named), 'config.scope');
    });

    it('are not listed with an unknown query parameter', async () => {
      expectInvalid(await call('GET', '/issuer/deferred?sesion=x'), 'query.sesion');
      expectInvalid(await call('GET', '/issuer/credentials?limt=3'), 'query.limt');
    });

    it('have no unknown property, at any depth', async () => {
      const { disclosureFrame, ...rest } = CARD;
      const misspelt = { ...rest, id: 'misspelt', disclosureframe: disclosureFrame };
      const refused = await call('POST', '/issuer/credentials', misspelt);
      expectInvalid(refused, 'disclosureframe');
      expect(refused.body.detail).to.include('did you mean disclosureFrame?');
      expect((await call('GET', '/issuer/credentials/misspelt')).status).to.equal(404);
      const dreamt = { iae_actions: [], config: { ...CARD.config, Scope: 'x' } };
      await call('POST', '/issuer/credentials', { ...CARD, id: 'dreaming' });
      const changed = await call('PATCH', '/issuer/credentials/dreaming', dreamt);
      expectInvalid(changed, 'iae_actions');
      expectInvalid(changed, 'config.Scope');
      await call('DELETE', '/issuer/credentials/dreaming');
      const deep = { ...rest, config: { ...CARD.config, display: [{ name: 'Card', textColor: '#fff' }] } };
      expectInvalid(await call('POST', '/issuer/credentials', deep), 'config.display.0.textColor');
      const issuer = { display: [{ name: 'Acme', locale: 'en' }], walletattestationrequired: true };
      expectInvalid(await call('POST', '/issuer/config', issuer), 'walletattestationrequired');
      expectInvalid(
        await call('POST', '/issuer/offer', {
          response_type: 'uri',
          flow: 'pre_authorized_code',
          credentialConfigurationIds: ['x'],
          txCode: '1234',
        }),
        'txCode',
      );
    });

    it('can be sent back as they were read', async () => {
      await call('POST', '/issuer/credentials', { ...CARD, id: 'again' });
      const read = await call('GET', '/issuer/credentials/again');
      const written = await call('POST', '/issuer/credentials', read.body);
      expect(written.status, written.text).to.equal(201);
      const patched = await call('PATCH', '/issuer/credentials/again', read.body);
      expect(patched.status, patched.text).to.equal(200);
      await call('DELETE', '/issuer/credentials/again');
    });

    it('are not changed with an unsupported condition', async () => {
      for (const [name, value] of [
        ['If-Unmodified-Since', new Date().toUTCString()],
        ['If-None-Match', '*'],
      ] as const) {
        const options = { token: tenant.token, json: { description: 'x' }, headers: { [name]: value } };
        const answer = await service.call('PATCH', '/issuer/credentials/card', options);
        expect([answer.status, answer.body.detail]).to.deep.equal([400, `${name} is not supported here; If-Match with an ETag is`]);
      }
      const cached = { token: tenant.token, headers: { 'If-None-Match': '"x"' } };
      expect((await service.call('GET', '/issuer/credentials', cached)).status).to.equal(200);
    });

    it('may require a presentation and send notifications, whose key is never shown', async () => {
      await call('POST', '/verifier/config', { id: 'asked', dcql_query: QUERY });
      const webhook = { url: 'https://backend.example/notify', auth: AUTH };
      const body = {
        ...CARD,
        id: 'asking',
        iaeActions: [{ type: 'openid4vp_presentation', presentationConfigId: 'asked' }],
        notificationWebhook: webhook,
      };
      const written = await call('POST', '/issuer/credentials', body);
      expect([written.status, written.body.iaeActions], written.text).to.deep.equal([201, body.iaeActions]);
      expect(written.text).to.not.include('a-key');
      expect(written.body.notificationWebhook.auth.config).to.deep.equal({ headerName: 'X-Key', value: '***' });
      const { notificationWebhook } = written.body;
      const kept = await call('PATCH', '/issuer/credentials/asking', { notificationWebhook });
      expect([kept.status, kept.body.notificationWebhook]).to.deep.equal([200, notificationWebhook]);
      const moved = { notificationWebhook: { ...notificationWebhook, url: 'https://evil.example' } };
      const refused = await call('PATCH', '/issuer/credentials/asking', moved);
      expectInvalid(refused, 'notificationWebhook.auth.config.value');
      const server = await service.call('GET', '/acme/.well-known/oauth-authorization-server');
      expect(server.body).to.have.property('authorization_challenge_endpoint');
      const needed = await call('DELETE', '/verifier/config/asked');
      expect([needed.status, needed.body.code], needed.text).to.deep.equal([409, 'conflict']);
      expect(needed.text).to.include('configuration asking');
      expect((await call('DELETE', '/issuer/credentials/asking')).status).to.equal(200);
      expect((await call('DELETE', '/verifier/config/asked')).status).to.equal(200);
    });

    it('apply to later offers', async () => {
      await call('POST', '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }] });
      const config = { ...CARD.config, scope: 'live' };
      await call('POST', '/issuer/credentials', { ...CARD, id: 'live', config });
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

    it('are created, read, listed, changed, replaced and deleted', async () => {
      const body = { ...CHECK, description: 'At the door', lifeTime: 60, redirectUri: 'https://shop.example/{sessionId}' };
      const written = await call('POST', '/verifier/config', body);
      expect(written.status, written.text).to.equal(201);
      expect(written.body).to.deep.include({ ...body, responseMode: 'direct_post.jwt', trustAnchors: [{ ownAuthorities: true }] });
      expect(written.body.tenant).to.include({ id: 'acme' });
      expect((await call('GET', '/verifier/config/check')).body).to.deep.equal(read(written));
      expect((await call('GET', '/verifier/config')).body).to.deep.equal([read(written)]);
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
    it('are rejected at the path', async () => {
      expectInvalid(await call('POST', '/verifier/config', { ...CHECK, id: 'bad', lifeTime: 0 }), 'lifeTime');
      expect((await call('GET', '/verifier/config/bad')).status).to.equal(404);
    });

    it('accept requests as in the contract, or reject them at the path', async () => {
      await call('POST', '/verifier/config', CHECK);
      const ask = (more: object) => call('POST', '/verifier/offer', { response_type: 'uri', requestId: 'check', ...more });
      const members = Object.keys((await ask({})).body);
      expect(members).to.have.members(['crossDeviceUri', 'pageUrl', 'session', 'uri']);
      expect((await ask({ requestId: 'unknown' })).status).to.equal(404);
      expectInvalid(await ask({ requestId: undefined }), 'requestId');
      expect((await ask({ response_type: 'dc-api' })).body).to.have.property('dcApi');
      expectInvalid(await ask({ redirectUri: 'nowhere' }), 'redirectUri');
      const foreign = [{ ...data, credential_ids: ['other'] }];
      expectInvalid(await ask({ transaction_data: foreign }), 'transaction_data.0.credential_ids');
      const seen = await ask({ transaction_data: [{ ...data, amount: 5 }] });
      const session = (await call('GET', `/session/${seen.body.session}`)).body;
      expect(session.transaction_data).to.deep.equal([{ ...data, amount: 5 }]);
    });
  });
});

const COUNT = 80;
/** Documents that a request may open: its own, and those that the tenant has one of. */
const MOST_OPENED = 20;

describe(`A tenant with ${COUNT} credential configurations`, () => {
  let service: TestService;
  let token: string;
  const opened = sinon.spy();

  /** With claims, so that all of them together take a large part of the memory of configurations. */
  const claims = Object.fromEntries([['given_name', 'Ada'], ...Array.from({ length: 120 }, (_, at) => [`claim_${at}`, 'x'.repeat(240)])]);
  const body = (index: number) => ({ ...credentialBody(`c${index}`, 'signing'), claims, disclosureFrame: { _sd: Object.keys(claims) } });

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    for (let index = 0; index < COUNT; index++) await createResource(service, token, '/issuer/credentials', body(index));
    const cipher = service.service.container.get(Cipher);
    const open = cipher.open.bind(cipher);
    sinon.stub(cipher, 'open').callsFake((...given) => {
      opened();
      return open(...given);
    });
  });
  after(async () => {
    sinon.restore();
    await service.close();
  });

  const openedBy = async (work: () => Promise<unknown>) => {
    opened.resetHistory();
    await work();
    return opened.callCount;
  };
  const change = (index: number) =>
    service.call('PATCH', `/issuer/credentials/c${index}`, { token, json: { description: `change ${index}` } });
  const metadata = () => service.call('GET', '/.well-known/openid-credential-issuer/acme');

  it('changes one of them without reading the others again', async () => {
    await change(0);
    await metadata();
    for (const index of [1, 2, 3]) {
      expect(await openedBy(() => change(index)), 'change').to.be.below(MOST_OPENED);
      expect(await openedBy(metadata), 'metadata').to.be.below(MOST_OPENED);
    }
  });

  it('creates offers without reading them again', async () => {
    await metadata();
    const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['c5'] };
    for (let at = 0; at < 3; at++) {
      const count = await openedBy(() => createResource(service, token, '/issuer/offer', offer));
      expect(count, 'offer').to.be.below(MOST_OPENED);
      expect(await openedBy(metadata), 'metadata').to.be.below(MOST_OPENED);
    }
  });

  it('shows the change of one of them at once', async () => {
    expect((await change(7)).status).to.equal(200);
    const { body: shown } = await service.call('GET', '/issuer/credentials/c7', { token });
    expect(shown.description).to.equal('change 7');
    const { body: deleted } = await service.call('DELETE', '/issuer/credentials/c7', { token });
    expect(deleted).to.deep.equal({ id: 'c7' });
    expect((await service.call('GET', '/issuer/credentials/c7', { token })).status).to.equal(404);
  });
});
