import { expect } from 'chai';
import { createResource, credentialBody, offerBody } from '../support/populated.ts';
import { AUTHORIZATION_REQUEST, CLIENT_ID, dpopProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const display = [{ name: 'Acme', locale: 'en' }];
const EXTERNAL = 'https://login.acme.example';
const OFFER = { ...offerBody('card'), flow: 'authorization_code' };

describe('An issuer with the built-in and other authorization servers', () => {
  let service: TestService;
  let token: string;
  let issuer: string;
  let chainedIssuer: string;
  let wallet: RawWallet;

  before(async () => {
    service = await startTestService({ OUTBOUND_ALLOW: '127.0.0.1/32' });
    ({ token } = await createTenant(service, 'acme'));
    issuer = `${service.address}/acme`;
    chainedIssuer = `${issuer}/chained-as`;
    wallet = new RawWallet(service, 'acme');
    await createResource(service, token, '/issuer/credentials', credentialBody('card', 'signing'));
  });
  after(() => service.close());

  const chainedAs = { upstream: { issuer: 'http://127.0.0.1:9', clientId: 'client' } };
  const write = (overrides: object) => service.call('POST', '/issuer/config', { token, json: { display, ...overrides } });
  const configure = async (overrides: object) => {
    const answer = await write(overrides);
    expect(answer.status, answer.text).to.equal(201);
  };
  const createGrant = async (overrides: object = {}): Promise<Record<string, string>> => {
    const { uri } = await createResource(service, token, '/issuer/offer', { ...OFFER, ...overrides });
    const { grants } = (await wallet.offer(uri)) as { grants: { authorization_code: Record<string, string> } };
    return grants.authorization_code;
  };
  const par = async (server: string, issuer_state = '') => {
    const proof = { DPoP: dpopProof(newKey(), `${server}/par`) };
    const form = { issuer_state, scope: 'card' };
    if (server === issuer) return wallet.par(form, proof);
    const all = { ...AUTHORIZATION_REQUEST, client_id: CLIENT_ID, ...form };
    return service.call('POST', '/acme/chained-as/par', { form: all, headers: proof });
  };

  const CASES: readonly [string, object, () => string][] = [
    ['the chained server when it is configured', { chainedAs }, () => chainedIssuer],
    ['the built-in server when it is preferred', { chainedAs, preferredAuthServer: 'built-in' }, () => issuer],
    ['the external server that is listed first', { chainedAs, authServers: [EXTERNAL] }, () => EXTERNAL],
  ];
  for (const [description, configuration, server] of CASES) {
    it(`creates offers without a named server for ${description}`, async () => {
      await configure(configuration);
      const { issuer_state, authorization_server } = await createGrant();
      expect(authorization_server).to.equal(server());
      for (const address of [issuer, chainedIssuer]) {
        const { status, body } = await par(address, issuer_state);
        const expected = address === server() ? [201, undefined] : [400, 'invalid_request'];
        expect([status, body.error], address).to.deep.equal(expected);
      }
      const grantOfNamedServer = await createGrant({ authorization_server: issuer });
      expect((await par(issuer, grantOfNamedServer['issuer_state'])).status).to.equal(201);
    });
  }

  it('uses the presently preferred server for an older offer', async () => {
    await configure({});
    const { issuer_state } = await createGrant();
    await configure({ chainedAs });
    expect((await par(issuer, issuer_state)).status).to.equal(400);
    expect((await par(chainedIssuer, issuer_state)).status).to.equal(201);
  });

  it('requires the interaction at the built-in server, regardless of the preferred server', async () => {
    await configure({ chainedAs });
    const iaeActions = [{ type: 'redirect_to_web', url: 'http://127.0.0.1:9/{auth_session}' }];
    const card = { ...credentialBody('asked', 'signing'), iaeActions };
    await createResource(service, token, '/issuer/credentials', card);
    const grant = await createGrant({ credentialConfigurationIds: ['asked', 'card'] });
    expect(grant['authorization_server']).to.equal(issuer);
    await service.call('DELETE', '/issuer/credentials/asked', { token });
  });

  describe('with the built-in server switched off', () => {
    const disabled = { builtInAs: { enabled: false } };
    let accessToken: string;
    before(async () => {
      await configure({});
      const { uri } = await createResource(service, token, '/issuer/offer', offerBody('card'));
      accessToken = await wallet.accessToken(uri);
      await configure({ ...disabled, chainedAs });
    });

    it('publishes no built-in server, and its addresses return 404', async () => {
      const readMetadata = (name: string) => service.call('GET', `/.well-known/${name}/acme`);
      expect((await readMetadata('openid-credential-issuer')).body.authorization_servers).to.deep.equal([chainedIssuer]);
      expect((await readMetadata('oauth-authorization-server')).status).to.equal(404);
      expect((await service.call('GET', '/acme/.well-known/oauth-authorization-server')).status).to.equal(404);
      const form = { client_id: CLIENT_ID, grant_type: 'refresh_token', refresh_token: 'x', response_type: 'code' };
      const posts = ['par', 'token', 'challenge', 'interactive-authorization'];
      for (const path of posts) {
        const answer = await service.call('POST', `/acme/${path}`, { form });
        expect(answer.status, `${path} ${answer.text}`).to.equal(404);
      }
      const query = new URLSearchParams({ client_id: CLIENT_ID, request_uri: 'urn:ietf:params:oauth:request_uri:a.b' });
      expect((await service.call('GET', `/acme/authorize?${query}`)).status).to.be.oneOf([400, 404]);
      const metadata = await service.call('GET', '/.well-known/oauth-authorization-server/acme/chained-as');
      expect(metadata.status).to.equal(200);
    });

    it('rejects tokens that the built-in server issued before', async () => {
      const answer = await wallet.request(accessToken, 'card', { key: newKey() });
      expect([answer.status, answer.body.error], answer.text).to.deep.equal([401, 'invalid_token']);
    });

    it('creates no offers that need the built-in server, and all others for other servers', async () => {
      const expectRejected = async (json: object, path: string) => {
        const { status, body, text } = await service.call('POST', '/issuer/offer', { token, json });
        expect([status, body.errors?.[0]?.path], text).to.deep.equal([400, path]);
      };
      await expectRejected(offerBody('card'), 'flow');
      await expectRejected({ ...OFFER, authorization_server: issuer }, 'authorization_server');
      expect((await par(chainedIssuer, (await createGrant())['issuer_state'])).status).to.equal(201);
      await configure({ ...disabled, authServers: [EXTERNAL] });
      expect((await par(issuer, (await createGrant())['issuer_state'])).status).to.equal(404);
      const metadata = await service.call('GET', '/.well-known/openid-credential-issuer/acme');
      expect(metadata.body.authorization_servers).to.deep.equal([EXTERNAL]);
    });

    it('cannot have the built-in server as the only or the preferred server', async () => {
      for (const [offerProperties, path] of [
        [disabled, 'builtInAs'],
        [{ ...disabled, chainedAs: { ...chainedAs, enabled: false } }, 'builtInAs'],
        [{ ...disabled, chainedAs, preferredAuthServer: 'built-in' }, 'preferredAuthServer'],
      ] as const) {
        const { status, body, text } = await write(offerProperties);
        expect([status, body.errors?.[0]?.path], text).to.deep.equal([400, path]);
      }
    });
  });
});
