import { expect } from 'chai';
import { RemoteAuthorizationServers } from '../../adapters/remote/authorization-servers.ts';
import { GuardedHttpClient } from '../../adapters/remote/http-client.ts';
import type { AuthorizationServerFault } from '../../application/ports/authorization-servers.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { ForeignWorld, outcome } from '../support/foreign-world.ts';
import { MisbehavingProvider, makeKey, type ProviderAnswer } from '../support/misbehaving-provider.ts';

const ACME = 'acme' as TenantId;

describe('AuthorizationServers', () => {
  let world: ForeignWorld;
  let provider: MisbehavingProvider;
  let servers: RemoteAuthorizationServers;
  let clock: ForeignWorld['clock'];
  beforeEach(async () => {
    world = await ForeignWorld.start();
    ({ clock, provider, servers } = world);
  });
  afterEach(() => world.close());
  const discovery = (issuer?: string) => world.discovery(issuer);
  const accessToken = (token: string) => world.accessToken(token);

  describe('metadata discovery', () => {
    it('reads the OpenID metadata, also of an issuer with a path', async () => {
      const otherProvider = await MisbehavingProvider.start('/realms/acme');
      const metadata = await servers.discover(otherProvider.issuer, ACME);
      expect(metadata.tokenEndpoint).to.equal(`${otherProvider.issuer}/token`);
      expect(otherProvider.requests.map(({ path }) => path)).to.deep.equal(['/realms/acme/.well-known/openid-configuration']);
      await otherProvider.close();
    });

    const failures: readonly [string, ProviderAnswer][] = [
      ['is not found', { json: {}, status: 404 }],
      ['is a page', (response) => response.writeHead(200).end('<html></html>')],
      ['leads to a login page', (response) => response.writeHead(302, { location: '/login' }).end()],
    ];
    for (const [description, answer] of failures) {
      it(`reads the OAuth metadata when the OpenID address ${description}`, async () => {
        provider.respondAt('/.well-known/openid-configuration', answer);
        provider.respondAt('/.well-known/oauth-authorization-server', { json: provider.metadata() });
        expect(await servers.discover(provider.issuer, ACME)).to.include({ issuer: provider.issuer });
      });
    }

    it('rejects metadata of another issuer, and tries no further address', async () => {
      provider.respondAt('/.well-known/openid-configuration', { json: provider.metadata({ issuer: 'https://evil.example' }) });
      provider.respondAt('/.well-known/oauth-authorization-server', { json: provider.metadata() });
      expect(await discovery()).to.equal('wrong_issuer');
      expect(provider.countRequests('oauth-authorization-server')).to.equal(0);
    });

    const broken: readonly [string, ProviderAnswer, AuthorizationServerFault][] = [
      ['status 500', { json: { issuer: 'x' }, status: 500 }, 'bad_status'],
      ['no JSON', (response) => response.end('<html>'), 'not_json'],
      ['a list', { json: [] }, 'not_json'],
      ['a property twice', (response) => response.end('{"issuer":"https://a","issuer":"https://b"}'), 'not_json'],
      ['bytes that are not text', (response) => response.end(Buffer.from([0x7b, 0xff, 0x7d])), 'not_json'],
      ['a huge document', (response) => response.end(' '.repeat(129 * 1024)), 'too_large'],
      ['a redirect', (response) => response.writeHead(301, { location: '/' }).end(), 'redirected'],
      ['a broken connection', (response) => response.destroy(), 'unreachable'],
    ];
    for (const [description, answer, fault] of broken) {
      it(`fails with ${fault} when the response is ${description}`, async () => {
        provider.respondAt('/.well-known/openid-configuration', answer);
        expect(await discovery()).to.equal(fault);
      });
    }

    it('times out after five seconds', async () => {
      provider.respondAt('/.well-known/openid-configuration', () => {});
      expect(await discovery()).to.equal('timeout');
      expect(provider.countRequests('oauth-authorization-server')).to.equal(0);
    });

    it('calls no address that is blocked for outgoing calls', async () => {
      const guardedClient = new GuardedHttpClient({ allow: [] });
      const guardedServers = new RemoteAuthorizationServers({ remote: guardedClient, clock });
      for (const issuer of [provider.issuer, 'https://169.254.169.254', 'https://[::1]:8443']) {
        expect(await outcome(guardedServers.discover(issuer, ACME))).to.equal('refused_address');
      }
      expect(provider.requests).to.have.length(0);
      await guardedClient.close();
    });

    it('fails for an invalid issuer without a network call', async () => {
      expect(await discovery(`${provider.issuer}?x=1`)).to.equal('bad_issuer');
      expect(provider.requests).to.have.length(0);
    });

    it('fetches metadata once for all callers, and again after ten minutes', async () => {
      await Promise.all(Array.from({ length: 20 }, () => servers.discover(provider.issuer, ACME)));
      await servers.discover(provider.issuer, ACME);
      expect(provider.countRequests('openid-configuration')).to.equal(1);
      clock.time += 600_000;
      await servers.discover(provider.issuer, ACME);
      expect(provider.countRequests('openid-configuration')).to.equal(2);
    });

    it('uses no expired metadata when a fetch fails', async () => {
      await servers.discover(provider.issuer, ACME);
      provider.respondAt('/.well-known/openid-configuration', { json: {}, status: 503 });
      clock.time += 599_999;
      expect(await discovery()).to.equal('good');
      clock.time += 1;
      expect(await discovery()).to.equal('bad_status');
    });

    it('caches a failure for 15 seconds', async () => {
      provider.respondAt('/.well-known/openid-configuration', { json: {}, status: 503 });
      expect(await discovery()).to.equal('bad_status');
      provider.respondAt('/.well-known/openid-configuration', { json: provider.metadata() });
      clock.time += 14_999;
      expect(await discovery()).to.equal('bad_status');
      expect(provider.countRequests('openid-configuration')).to.equal(1);
      clock.time += 1;
      expect(await discovery()).to.equal('good');
    });

    it('does not cache metadata for longer when the clock is set back', async () => {
      await servers.discover(provider.issuer, ACME);
      clock.time -= 3_600_000;
      await servers.discover(provider.issuer, ACME);
      expect(provider.countRequests('openid-configuration')).to.equal(2);
    });
  });

  describe('key sets', () => {
    it('are fetched once for all waiting callers, and again after ten minutes', async () => {
      await Promise.all(Array.from({ length: 20 }, () => accessToken(provider.token())));
      expect(provider.countRequests('/jwks')).to.equal(1);
      clock.time += 600_000;
      const exp = Math.floor(clock.time / 1000) + 300;
      expect(await accessToken(provider.token({ claims: { exp } }))).to.equal('good');
      expect(provider.countRequests('/jwks')).to.equal(2);
    });

    it('are not used after their lifetime when a new fetch fails', async () => {
      expect(await accessToken(provider.token())).to.equal('good');
      provider.respondAt('/jwks', { json: {}, status: 503 });
      clock.time += 600_000;
      const exp = Math.floor(clock.time / 1000) + 300;
      expect(await accessToken(provider.token({ claims: { exp } }))).to.equal('bad_status');
    });

    it('are fetched again when a token names an unknown kid', async () => {
      expect(await accessToken(provider.token())).to.equal('good');
      provider.keys = [makeKey('key-2', 'ES256')];
      expect(await accessToken(provider.token())).to.equal('good');
      expect(provider.countRequests('/jwks')).to.equal(2);
    });

    it('lose withdrawn keys with that fetch', async () => {
      const oldToken = provider.token();
      expect(await accessToken(oldToken)).to.equal('good');
      provider.keys = [makeKey('key-2', 'ES256')];
      await accessToken(provider.token());
      expect(await accessToken(oldToken)).to.equal('unknown_key');
    });

    it('without kid are replaced by that fetch as well', async () => {
      provider.keys = [makeKey(undefined, 'ES256')];
      expect(await accessToken(provider.token())).to.equal('good');
      provider.keys = [makeKey(undefined, 'ES256')];
      expect(await accessToken(provider.token())).to.equal('good');
    });

    it('are fetched at most every 30 seconds during a flood of invalid tokens', async () => {
      await accessToken(provider.token());
      const readWithUnknownKey = () => accessToken(provider.token({ header: { kid: `key-${Math.random()}` } }));
      const reasons = await Promise.all(Array.from({ length: 30 }, readWithUnknownKey));
      for (let i = 0; i < 10; i++) reasons.push(await readWithUnknownKey());
      expect([...new Set(reasons)]).to.deep.equal(['unknown_key']);
      expect(provider.countRequests('/jwks')).to.equal(2);
      clock.time += 30_000;
      await readWithUnknownKey();
      expect(provider.countRequests('/jwks')).to.equal(3);
    });

    it('are not fetched again for an invalid token whose kid is cached', async () => {
      const foreignKey = makeKey('key-1', 'ES256');
      for (let i = 0; i < 3; i++) {
        expect(await accessToken(provider.token({ key: foreignKey }))).to.equal('signature');
      }
      expect(provider.countRequests('/jwks')).to.equal(1);
    });

    it('stay in use when that fetch fails', async () => {
      expect(await accessToken(provider.token())).to.equal('good');
      provider.respondAt('/jwks', { json: {}, status: 503 });
      expect(await accessToken(provider.token({ header: { kid: 'key-2' } }))).to.equal('unknown_key');
      expect(await accessToken(provider.token())).to.equal('good');
    });

    const failures: readonly [string, ProviderAnswer, AuthorizationServerFault][] = [
      ['no key set', { json: { keys: 'none' } }, 'bad_keys'],
      ['too many keys', { json: { keys: Array.from({ length: 101 }, () => ({})) } }, 'bad_keys'],
      ['a huge document', (response) => response.end(' '.repeat(129 * 1024)), 'too_large'],
      ['no JSON', (response) => response.end('-----BEGIN PUBLIC KEY-----'), 'not_json'],
      ['an error', { json: { keys: [] }, status: 500 }, 'bad_status'],
      ['a redirect', (response) => response.writeHead(302, { location: '/keys' }).end(), 'redirected'],
    ];
    for (const [description, answer, fault] of failures) {
      it(`make the token unverifiable when the address answers with ${description}`, async () => {
        provider.respondAt('/jwks', answer);
        expect(await accessToken(provider.token())).to.equal(fault);
      });
    }

    it('make the token unverifiable when the metadata has no jwks_uri', async () => {
      provider.respondAt('/.well-known/openid-configuration', { json: provider.metadata({ jwks_uri: undefined }) });
      expect(await accessToken(provider.token())).to.equal('bad_metadata');
    });

    it('are never fetched from a blocked address', async () => {
      provider.respondAt('/.well-known/openid-configuration', { json: provider.metadata({ jwks_uri: 'https://169.254.169.254/jwks' }) });
      expect(await accessToken(provider.token())).to.equal('refused_address');
    });
  });
});
