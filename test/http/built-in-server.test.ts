import { expect } from 'chai';
import { createResource, credentialBody, offerBody } from '../support/populated.ts';
import { AUTHORIZATION_REQUEST, CLIENT_ID, dpopProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const display = [{ name: 'Acme', locale: 'en' }];
const EXTERNAL = 'https://login.acme.example';
const OFFER = { ...offerBody('card'), flow: 'authorization_code' };

describe('An issuer with its own and other authorization servers', () => {
  let service: TestService;
  let token: string;
  let issuer: string;
  let chained: string;
  let wallet: RawWallet;

  before(async () => {
    service = await startTestService({ OUTBOUND_ALLOW: '127.0.0.1/32' });
    ({ token } = await createTenant(service, 'acme'));
    issuer = `${service.address}/acme`;
    chained = `${issuer}/chained-as`;
    wallet = new RawWallet(service, 'acme');
    await createResource(service, token, '/issuer/credentials', credentialBody('card', 'signing'));
  });
  after(() => service.close());

  const chainedAs = { upstream: { issuer: 'http://127.0.0.1:9', clientId: 'client' } };
  const write = (more: object) => service.call('POST', '/issuer/config', { token, json: { display, ...more } });
  const configure = async (more: object) => {
    const answer = await write(more);
    expect(answer.status, answer.text).to.equal(201);
  };
  const grantOf = async (more: object = {}): Promise<Record<string, string>> => {
    const { uri } = await createResource(service, token, '/issuer/offer', { ...OFFER, ...more });
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
    ['the chained server, once it is there', { chainedAs }, () => chained],
    ['the built-in server where that is preferred', { chainedAs, preferredAuthServer: 'built-in' }, () => issuer],
    ['the external server that is listed first', { chainedAs, authServers: [EXTERNAL] }, () => EXTERNAL],
  ];
  for (const [what, configuration, server] of CASES) {
    it(`has offers that name no server for ${what}`, async () => {
      await configure(configuration);
      const { issuer_state, authorization_server } = await grantOf();
      expect(authorization_server).to.equal(server());
      for (const asked of [issuer, chained]) {
        const { status, body } = await par(asked, issuer_state);
        const expected = asked === server() ? [201, undefined] : [400, 'invalid_request'];
        expect([status, body.error], asked).to.deep.equal(expected);
      }
      const named = await grantOf({ authorization_server: issuer });
      expect((await par(issuer, named['issuer_state'])).status).to.equal(201);
    });
  }

  it('uses the presently preferred server for an older offer', async () => {
    await configure({});
    const { issuer_state } = await grantOf();
    await configure({ chainedAs });
    expect((await par(issuer, issuer_state)).status).to.equal(400);
    expect((await par(chained, issuer_state)).status).to.equal(201);
  });

  it('requires the interaction at the built-in server, regardless of the preferred server', async () => {
    await configure({ chainedAs });
    const iaeActions = [{ type: 'redirect_to_web', url: 'http://127.0.0.1:9/{auth_session}' }];
    const card = { ...credentialBody('asked', 'signing'), iaeActions };
    await createResource(service, token, '/issuer/credentials', card);
    const grant = await grantOf({ credentialConfigurationIds: ['asked', 'card'] });
    expect(grant['authorization_server']).to.equal(issuer);
    await service.call('DELETE', '/issuer/credentials/asked', { token });
  });

  describe('with the built-in server switched off', () => {
    const off = { builtInAs: { enabled: false } };
    let accessToken: string;
    before(async () => {
      await configure({});
      const { uri } = await createResource(service, token, '/issuer/offer', offerBody('card'));
      accessToken = await wallet.accessToken(uri);
      await configure({ ...off, chainedAs });
    });

    it('publishes no built-in server, and its addresses return 404', async () => {
      const well = (name: string) => service.call('GET', `/.well-known/${name}/acme`);
      expect((await well('openid-credential-issuer')).body.authorization_servers).to.deep.equal([chained]);
      expect((await well('oauth-authorization-server')).status).to.equal(404);
      expect((await service.call('GET', '/acme/.well-known/oauth-authorization-server')).status).to.equal(404);
      const form = { client_id: CLIENT_ID, grant_type: 'refresh_token', refresh_token: 'x', response_type: 'code' };
      const posts = ['par', 'token', 'challenge', 'interactive-authorization'];
      for (const path of posts) {
        const answer = await service.call('POST', `/acme/${path}`, { form });
        expect(answer.status, `${path} ${answer.text}`).to.equal(404);
      }
      const query = new URLSearchParams({ client_id: CLIENT_ID, request_uri: 'urn:ietf:params:oauth:request_uri:a.b' });
      expect((await service.call('GET', `/acme/authorize?${query}`)).status).to.be.oneOf([400, 404]);
      const served = await service.call('GET', '/.well-known/oauth-authorization-server/acme/chained-as');
      expect(served.status).to.equal(200);
    });

    it('rejects tokens that the built-in server issued before', async () => {
      const answer = await wallet.request(accessToken, 'card', { key: newKey() });
      expect([answer.status, answer.body.error], answer.text).to.deep.equal([401, 'invalid_token']);
    });

    it('creates no offers that need the built-in server, and all others for other servers', async () => {
      const refused = async (json: object, path: string) => {
        const { status, body, text } = await service.call('POST', '/issuer/offer', { token, json });
        expect([status, body.errors?.[0]?.path], text).to.deep.equal([400, path]);
      };
      await refused(offerBody('card'), 'flow');
      await refused({ ...OFFER, authorization_server: issuer }, 'authorization_server');
      expect((await par(chained, (await grantOf())['issuer_state'])).status).to.equal(201);
      await configure({ ...off, authServers: [EXTERNAL] });
      expect((await par(issuer, (await grantOf())['issuer_state'])).status).to.equal(404);
      const metadata = await service.call('GET', '/.well-known/openid-credential-issuer/acme');
      expect(metadata.body.authorization_servers).to.deep.equal([EXTERNAL]);
    });

    it('cannot have the built-in server as the only or the preferred server', async () => {
      for (const [more, path] of [
        [off, 'builtInAs'],
        [{ ...off, chainedAs: { ...chainedAs, enabled: false } }, 'builtInAs'],
        [{ ...off, chainedAs, preferredAuthServer: 'built-in' }, 'preferredAuthServer'],
      ] as const) {
        const { status, body, text } = await write(more);
        expect([status, body.errors?.[0]?.path], text).to.deep.equal([400, path]);
      }
    });
  });
});
