import { expect } from 'chai';
import type { RemoteAuthorizationServers } from '../../adapters/remote/authorization-servers.ts';
import type {
  AuthorizationServerError,
  AuthorizationServerFault,
} from '../../application/ports/authorization-servers.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Answer, BentProvider } from '../support/bent-provider.ts';
import { ForeignWorld, outcome } from '../support/foreign-world.ts';

const EXCHANGE = {
  tenantId: 'acme' as TenantId,
  code: 'c-1',
  redirectUri: 'https://issuer.example.net/acme/chained-as/callback',
  codeVerifier: 'v'.repeat(43),
  clientId: 'client',
} as const;

describe('AuthorizationServers and codes', () => {
  let world: ForeignWorld;
  let provider: BentProvider;
  let servers: RemoteAuthorizationServers;

  beforeEach(async () => {
    world = await ForeignWorld.start();
    ({ provider, servers } = world);
  });
  afterEach(() => world.close());

  describe('the exchange of a code', () => {
    const exchange = (more: object = {}) => servers.exchangeCode(provider.issuer, { ...EXCHANGE, ...more });
    const sent = () => provider.requests.find(({ path }) => path === '/token');
    const offer = (...methods: string[]) =>
      provider.on('/.well-known/openid-configuration', {
        json: provider.metadata({ token_endpoint_auth_methods_supported: methods }),
      });

    it('sends code, address and verifier once, and returns both tokens', async () => {
      const answer = await exchange();
      expect(answer.accessToken).to.equal('opaque');
      expect(answer.idToken).to.match(/^eyJ/);
      expect(provider.hits('/token')).to.equal(1);
      expect(Object.fromEntries(new URLSearchParams(sent()?.body))).to.deep.equal({
        grant_type: 'authorization_code',
        code: EXCHANGE.code,
        redirect_uri: EXCHANGE.redirectUri,
        code_verifier: EXCHANGE.codeVerifier,
        client_id: 'client',
      });
      expect(sent()?.headers).to.include({ 'content-type': 'application/x-www-form-urlencoded' });
      expect(sent()?.headers).not.to.have.property('authorization');
    });

    it('form-encodes name and secret in the Basic header, and sends them nowhere else', async () => {
      await exchange({ clientId: 'https://a:1', clientSecret: 'p w:%é+' });
      const header = sent()?.headers.authorization ?? '';
      expect(Buffer.from(header.replace('Basic ', ''), 'base64').toString()).to.equal(
        'https%3A%2F%2Fa%3A1:p+w%3A%25%C3%A9%2B',
      );
      expect(sent()?.body).not.to.contain('client');
    });

    it('sends the secret in the body when the server takes it only there', async () => {
      offer('private_key_jwt', 'client_secret_post');
      await exchange({ clientSecret: 'a+b' });
      expect(sent()?.headers).not.to.have.property('authorization');
      expect(new URLSearchParams(sent()?.body).get('client_secret')).to.equal('a+b');
    });

    it('sends nothing to a server that takes no secret', async () => {
      offer('private_key_jwt');
      expect(await outcome(exchange({ clientSecret: 's' }))).to.equal('client_authentication');
      expect(provider.hits('/token')).to.equal(0);
    });

    const bad: readonly [string, Answer, AuthorizationServerFault][] = [
      ['an OAuth error', { json: { error: 'invalid_grant' }, status: 400 }, 'refused'],
      ['an OAuth error with status 200', { json: { error: 'invalid_grant', id_token: 'x' } }, 'refused'],
      ['an error without a code', { json: { message: 'no' }, status: 500 }, 'bad_status'],
      ['no ID token', { json: { access_token: 'opaque' } }, 'bad_answer'],
      ['an ID token that is no text', { json: { id_token: {} } }, 'bad_answer'],
      ['an access token that is no text', { json: { id_token: 'x', access_token: 7 } }, 'bad_answer'],
      ['no JSON', (response) => response.end('id_token=x'), 'bad_answer'],
      ['a huge document', (response) => response.end(' '.repeat(257 * 1024)), 'too_large'],
      ['a redirect', (response) => response.writeHead(307, { location: '/other' }).end(), 'redirected'],
      ['a broken connection', (response) => response.destroy(), 'unreachable'],
    ];
    for (const [what, answer, fault] of bad) {
      it(`fails with ${fault} when the answer is ${what}, and is not tried again`, async () => {
        provider.on('/token', answer);
        expect(await outcome(exchange())).to.equal(fault);
        expect(provider.hits('/token')).to.equal(1);
      });
    }

    it('tells the error of the server and nothing else that it wrote', async () => {
      const json = { error: 'invalid_grant', error_description: 'Alice already used c-1' };
      provider.on('/token', { json, status: 400 });
      const error = (await exchange({ clientSecret: 'hush' }).catch(
        (thrown) => thrown,
      )) as AuthorizationServerError;
      expect(error.error).to.equal('invalid_grant');
      expect(error.message).not.to.match(/Alice|c-1|hush/);
    });

    it('does not take just anything for the name of an error', async () => {
      provider.on('/token', { json: { error: 'x'.repeat(200) }, status: 400 });
      expect(await outcome(exchange())).to.equal('bad_status');
    });

    it('needs a server that names its token endpoint', async () => {
      provider.on('/.well-known/openid-configuration', {
        json: provider.metadata({ token_endpoint: undefined }),
      });
      expect(await outcome(exchange())).to.equal('bad_metadata');
    });
  });
});
