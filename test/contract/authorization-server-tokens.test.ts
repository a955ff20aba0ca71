import { expect } from 'chai';
import type { RemoteAuthorizationServers } from '../../adapters/remote/authorization-servers.ts';
import { AuthorizationServerError, type AuthorizationServerFault } from '../../application/ports/authorization-servers.ts';
import type { ForeignTokenReason } from '../../domain/oauth/foreign-token.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { ForeignWorld, outcome } from '../support/foreign-world.ts';
import {
  MisbehavingProvider,
  makeKey,
  makeUnsignedToken,
  type ProviderAnswer,
  signWithPublicKeyAsSecret,
} from '../support/misbehaving-provider.ts';

const EXCHANGE = {
  tenantId: 'acme' as TenantId,
  code: 'c-1',
  redirectUri: 'https://issuer.example.net/acme/chained-as/callback',
  codeVerifier: 'v'.repeat(43),
  clientId: 'client',
} as const;

describe('AuthorizationServers: code exchange', () => {
  let world: ForeignWorld;
  let provider: MisbehavingProvider;
  let servers: RemoteAuthorizationServers;

  beforeEach(async () => {
    world = await ForeignWorld.start();
    ({ provider, servers } = world);
  });
  afterEach(() => world.close());

  describe('the exchange of a code', () => {
    const exchange = (overrides: object = {}) => servers.exchangeCode(provider.issuer, { ...EXCHANGE, ...overrides });
    const tokenRequest = () => provider.requests.find(({ path }) => path === '/token');
    const offer = (...methods: string[]) =>
      provider.respondAt('/.well-known/openid-configuration', {
        json: provider.metadata({ token_endpoint_auth_methods_supported: methods }),
      });

    it('sends code, address and verifier once, and returns both tokens', async () => {
      const answer = await exchange();
      expect(answer.accessToken).to.equal('opaque');
      expect(answer.idToken).to.match(/^eyJ/);
      expect(provider.countRequests('/token')).to.equal(1);
      expect(Object.fromEntries(new URLSearchParams(tokenRequest()?.body))).to.deep.equal({
        grant_type: 'authorization_code',
        code: EXCHANGE.code,
        redirect_uri: EXCHANGE.redirectUri,
        code_verifier: EXCHANGE.codeVerifier,
        client_id: 'client',
      });
      expect(tokenRequest()?.headers).to.include({ 'content-type': 'application/x-www-form-urlencoded' });
      expect(tokenRequest()?.headers).not.to.have.property('authorization');
    });

    it('form-encodes name and secret in the Basic header, and sends them nowhere else', async () => {
      await exchange({ clientId: 'https://a:1', clientSecret: 'p w:%é+' });
      const header = tokenRequest()?.headers.authorization ?? '';
      expect(Buffer.from(header.replace('Basic ', ''), 'base64').toString()).to.equal('https%3A%2F%2Fa%3A1:p+w%3A%25%C3%A9%2B');
      expect(tokenRequest()?.body).not.to.contain('client');
    });

    it('sends the secret in the body when the server supports only client_secret_post', async () => {
      offer('private_key_jwt', 'client_secret_post');
      await exchange({ clientSecret: 'a+b' });
      expect(tokenRequest()?.headers).not.to.have.property('authorization');
      expect(new URLSearchParams(tokenRequest()?.body).get('client_secret')).to.equal('a+b');
    });

    it('sends no secret to a server with token_endpoint_auth_method none', async () => {
      offer('private_key_jwt');
      expect(await outcome(exchange({ clientSecret: 's' }))).to.equal('client_authentication');
      expect(provider.countRequests('/token')).to.equal(0);
    });

    const failures: readonly [string, ProviderAnswer, AuthorizationServerFault][] = [
      ['an OAuth error', { json: { error: 'invalid_grant' }, status: 400 }, 'refused'],
      ['an OAuth error with status 200', { json: { error: 'invalid_grant', id_token: 'x' } }, 'refused'],
      ['an error without a code', { json: { message: 'no' }, status: 500 }, 'bad_status'],
      ['no ID token', { json: { access_token: 'opaque' } }, 'bad_answer'],
      ['an ID token that is not a string', { json: { id_token: {} } }, 'bad_answer'],
      ['an access token that is not a string', { json: { id_token: 'x', access_token: 7 } }, 'bad_answer'],
      ['no JSON', (response) => response.end('id_token=x'), 'bad_answer'],
      ['a huge document', (response) => response.end(' '.repeat(257 * 1024)), 'too_large'],
      ['a redirect', (response) => response.writeHead(307, { location: '/other' }).end(), 'redirected'],
      ['a broken connection', (response) => response.destroy(), 'unreachable'],
    ];
    for (const [description, answer, fault] of failures) {
      it(`fails with ${fault} and is not retried when the response is ${description}`, async () => {
        provider.respondAt('/token', answer);
        expect(await outcome(exchange())).to.equal(fault);
        expect(provider.countRequests('/token')).to.equal(1);
      });
    }

    it('reports the error code of the server and no other text of the response', async () => {
      const json = { error: 'invalid_grant', error_description: 'Alice already used c-1' };
      provider.respondAt('/token', { json, status: 400 });
      const error = (await exchange({ clientSecret: 'hush' }).catch((thrown) => thrown)) as AuthorizationServerError;
      expect(error.error).to.equal('invalid_grant');
      expect(error.message).not.to.match(/Alice|c-1|hush/);
    });

    it('rejects an error response with an invalid error code', async () => {
      provider.respondAt('/token', { json: { error: 'x'.repeat(200) }, status: 400 });
      expect(await outcome(exchange())).to.equal('bad_status');
    });

    it('fails for a server without a token endpoint', async () => {
      provider.respondAt('/.well-known/openid-configuration', { json: provider.metadata({ token_endpoint: undefined }) });
      expect(await outcome(exchange())).to.equal('bad_metadata');
    });
  });
});

/** A foreign key under the key identifier of the provider. */
const FOREIGN_KEY = makeKey('key-1', 'ES256');

const ACME = 'acme' as TenantId;

describe('AuthorizationServers: token verification', () => {
  let world: ForeignWorld;
  let provider: MisbehavingProvider;
  let servers: RemoteAuthorizationServers;
  let clock: ForeignWorld['clock'];
  beforeEach(async () => {
    world = await ForeignWorld.start();
    ({ clock, provider, servers } = world);
  });
  afterEach(() => world.close());
  const accessToken = (token: string) => world.accessToken(token);
  const idToken = (token: string, access?: string) => world.idToken(token, access);

  describe('an access token', () => {
    for (const alg of ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']) {
      it(`signed with ${alg} is accepted`, async () => {
        provider.keys = [makeKey('key-1', alg)];
        expect(await accessToken(provider.token())).to.equal('good');
      });
    }

    it('returns every claim', async () => {
      const token = provider.token({ header: { typ: 'AT+JWT' }, claims: { department: { name: 'R&D' } } });
      const verified = await servers.verifyToken(provider.issuer, token, {
        tenantId: ACME,
        audience: 'client',
        types: ['at+jwt'],
        now: clock.now(),
      });
      expect(verified).to.deep.include({ type: 'at+jwt', algorithm: 'ES256' });
      expect(verified.claims).to.deep.include({ sub: 'u-1', department: { name: 'R&D' } });
    });

    const invalidTokens: readonly [string, object, ForeignTokenReason][] = [
      ['another issuer', { claims: { iss: 'https://evil.example' } }, 'issuer'],
      ['another audience', { claims: { aud: 'others' } }, 'audience'],
      ['an expiry in the past', { claims: { exp: Math.floor(Date.now() / 1000) - 120 } }, 'expired'],
      ['no expiry', { claims: { exp: undefined } }, 'expired'],
      ['a start in the future', { claims: { nbf: Math.floor(Date.now() / 1000) + 3600 } }, 'not_yet_valid'],
      ['an extension', { header: { crit: ['x'], x: 1 } }, 'critical_header'],
      ['another type', { header: { typ: 'logout+jwt' } }, 'type'],
      ['an unknown key', { header: { kid: 'key-2' } }, 'unknown_key'],
      ['an embedded key', { header: { jwk: FOREIGN_KEY.jwk }, key: FOREIGN_KEY }, 'signature'],
      ['an algorithm that its key does not have', { header: { alg: 'ES384' } }, 'unknown_key'],
    ];
    for (const [description, changes, reason] of invalidTokens) {
      it(`with ${description} is rejected`, async () => {
        expect(await accessToken(provider.token(changes))).to.equal(reason);
      });
    }

    it('without signature is rejected without a fetch', async () => {
      expect(await accessToken(makeUnsignedToken(provider))).to.equal('algorithm');
      expect(provider.requests).to.have.length(0);
    });

    for (const form of ['pem', 'jwk'] as const) {
      it(`with a MAC computed with the public key (${form}) is rejected`, async () => {
        provider.keys = [makeKey('key-1', 'RS256')];
        expect(await accessToken(signWithPublicKeyAsSecret(provider, form))).to.equal('algorithm');
      });
    }

    it('with a claim changed after signing is rejected', async () => {
      const [header, , signature] = provider.token().split('.');
      const [, claims] = provider.token({ claims: { sub: 'other user' } }).split('.');
      expect(await accessToken(`${header}.${claims}.${signature}`)).to.equal('signature');
    });

    it('of another issuer with the same kid is rejected', async () => {
      const otherProvider = await MisbehavingProvider.start();
      expect(await accessToken(otherProvider.token({ claims: { iss: provider.issuer } }))).to.equal('signature');
      await otherProvider.close();
    });

    it('that exceeds the size limit is rejected without a fetch', async () => {
      expect(await accessToken(provider.token({ claims: { filler: 'x'.repeat(65_536) } }))).to.equal('malformed');
      expect(provider.requests).to.have.length(0);
    });

    it('is not quoted in an error message', async () => {
      const token = provider.token({ claims: { iss: 'https://evil.example', sub: 'Alice' } });
      const expected = { tenantId: ACME, audience: 'client', types: [undefined], now: clock.now() };
      const error = await servers.verifyToken(provider.issuer, token, expected).catch((thrown: Error) => thrown);
      expect(String((error as Error).stack)).not.to.match(/Alice|evil\.example|eyJ/);
    });
  });

  describe('an ID token', () => {
    it('is accepted, and all its claims are returned', async () => {
      expect(await idToken(provider.token({ header: { typ: 'JWT' } }))).to.equal('good');
    });

    const invalidTokens: readonly [string, object, ForeignTokenReason][] = [
      ['another nonce', { claims: { nonce: 'n-2' } }, 'nonce'],
      ['no nonce', { claims: { nonce: undefined } }, 'nonce'],
      ['another audience', { claims: { aud: 'others' } }, 'audience'],
      ['several audiences and no authorized party', { claims: { aud: ['client', 'x'] } }, 'authorized_party'],
      ['another issuer', { claims: { iss: 'https://evil.example' } }, 'issuer'],
      ['no subject', { claims: { sub: undefined } }, 'subject'],
      ['the type of an access token', { header: { typ: 'at+jwt' } }, 'type'],
      ['the hash of another access token', { claims: { at_hash: 'AAAAAAAAAAAAAAAAAAAAAA' } }, 'access_token_hash'],
    ];
    for (const [description, changes, reason] of invalidTokens) {
      it(`with ${description} is rejected`, async () => {
        expect(await idToken(provider.token(changes), 'opaque')).to.equal(reason);
      });
    }

    it('with an invalid signature is reported as forged before any other fault', async () => {
      const token = provider.token({ claims: { nonce: 'n-2', aud: 'others' }, key: makeKey('key-1', 'ES256') });
      expect(await idToken(token)).to.equal('signature');
    });
  });

  describe('the access token of a login', () => {
    const readToken = (token: string) => servers.readReceivedAccessToken(provider.issuer, token, { tenantId: ACME, now: clock.now() });

    it('returns every claim when the issuer signed it, for any audience', async () => {
      const token = provider.token({ header: { typ: 'at+jwt' }, claims: { aud: 'other', scope: 'x' } });
      expect(await readToken(token)).to.deep.include({ aud: 'other', scope: 'x' });
    });

    it('returns no claims when it is opaque, forged, expired or from another issuer', async () => {
      const tokens = [
        'opaque',
        makeUnsignedToken(provider),
        provider.token({ key: makeKey('key-1', 'ES256') }),
        provider.token({ claims: { exp: 1 } }),
        provider.token({ claims: { iss: 'https://evil.example' } }),
      ];
      for (const token of tokens) expect(await readToken(token)).to.equal(undefined);
    });
  });
});

const TENANT = 'acme' as TenantId;
const JWT = { 'content-type': 'application/jwt' };

describe('AuthorizationServers: userinfo', () => {
  let world: ForeignWorld;
  let provider: MisbehavingProvider;
  beforeEach(async () => {
    world = await ForeignWorld.start();
    ({ provider } = world);
    announce({ userinfo_endpoint: `${provider.issuer}/me` });
  });
  afterEach(() => world.close());

  const announce = (overrides: object) => provider.respondAt('/.well-known/openid-configuration', { json: provider.metadata(overrides) });
  const readUserinfo = (accessToken = 'opaque') =>
    world.servers.readUserinfo(provider.issuer, {
      tenantId: TENANT,
      clientId: 'client',
      subject: 'u-1',
      accessToken,
      now: world.clock.now(),
    });
  /** @returns `fault error`, or the claims. */
  const claimsOrFault = async (accessToken?: string) => {
    try {
      return await readUserinfo(accessToken);
    } catch (error) {
      if (!(error instanceof AuthorizationServerError)) throw error;
      return `${error.fault} ${error.error}`;
    }
  };
  const signed = (claims: object = {}, overrides: object = {}): ProviderAnswer => {
    const token = provider.token({ claims: { exp: undefined, nonce: undefined, ...claims }, ...overrides });
    return (response) => response.writeHead(200, JWT).end(token);
  };
  const text =
    (body: string, headers: Record<string, string> = { 'content-type': 'application/json' }): ProviderAnswer =>
    (response) =>
      response.writeHead(200, headers).end(body);

  it('returns every claim of a JSON response, and sends only the access token', async () => {
    provider.respondAt('/me', { json: { sub: 'u-1', name: 'Ada', address: { country: 'GB' } } });
    expect(await readUserinfo()).to.deep.equal({ sub: 'u-1', name: 'Ada', address: { country: 'GB' } });
    const [request] = provider.requests.filter(({ path }) => path === '/me');
    expect(request).to.include({ method: 'GET', body: '' });
    expect(request?.headers.authorization).to.equal('Bearer opaque');
  });

  it('returns every claim of a JWT that the issuer signed, with or without `exp`', async () => {
    provider.respondAt('/me', signed({ name: 'Ada' }));
    expect(await readUserinfo()).to.deep.include({ sub: 'u-1', name: 'Ada' });
    provider.respondAt('/me', signed({ aud: ['others', 'client'], exp: Math.floor(Date.now() / 1000) + 60 }));
    expect(await readUserinfo()).to.deep.include({ sub: 'u-1' });
  });

  it('returns undefined for an issuer without a userinfo endpoint', async () => {
    announce({});
    expect(await readUserinfo()).to.equal(undefined);
    expect(provider.countRequests('/me')).to.equal(0);
  });

  const invalidResponses: readonly [description: string, answer: () => ProviderAnswer, error: string][] = [
    ['another subject', () => ({ json: { sub: 'u-2' } }), 'bad_answer userinfo_subject'],
    ['no subject', () => ({ json: { name: 'Ada' } }), 'bad_answer userinfo_subject'],
    ['a subject that is not a string', () => ({ json: { sub: ['u-1'] } }), 'bad_answer userinfo_subject'],
    ['a list', () => ({ json: [{ sub: 'u-1' }] }), 'bad_answer userinfo_malformed'],
    ['a page', () => text('<html>', { 'content-type': 'text/html' }), 'bad_answer userinfo_malformed'],
    ['a property twice', () => text('{"sub":"u-1","sub":"u-1"}'), 'bad_answer userinfo_malformed'],
    ['deep nesting', () => text(`{"sub":"u-1","a":${'['.repeat(500)}${']'.repeat(500)}}`), 'bad_answer userinfo_malformed'],
    ['more than 64 KiB', () => ({ json: { sub: 'u-1', name: 'x'.repeat(70_000) } }), 'too_large userinfo'],
    ['a signed response about another subject', () => signed({ sub: 'u-2' }), 'bad_answer userinfo_subject'],
    ['a signed response of another issuer', () => signed({ iss: 'https://evil.example' }), 'bad_answer userinfo_issuer'],
    ['a signed response for another client', () => signed({ aud: 'others' }), 'bad_answer userinfo_audience'],
    ['an expired signed response', () => signed({ exp: 1 }), 'bad_answer userinfo_expired'],
    ['a signature of a foreign key', () => signed({}, { key: makeKey('key-1', 'ES256') }), 'bad_answer userinfo_signature'],
    ['an unsigned response', () => text(makeUnsignedToken(provider), JWT), 'bad_answer userinfo_algorithm'],
    ['JSON instead of a JWT', () => text('{"sub":"u-1"}', JWT), 'bad_answer userinfo_malformed'],
    ['an OAuth error', () => ({ json: { error: 'invalid_token' }, status: 401 }), 'refused userinfo'],
    ['status 503', () => ({ json: {}, status: 503 }), 'bad_status userinfo'],
    ['a redirect', () => (response) => response.writeHead(302, { location: '/other' }).end(), 'redirected userinfo'],
  ];
  for (const [description, answer, expectedError] of invalidResponses) {
    it(`rejects a response with ${description}`, async () => {
      provider.respondAt('/me', answer());
      expect(await claimsOrFault()).to.equal(expectedError);
    });
  }

  it('is not called at a blocked address or with an invalid token', async () => {
    announce({ userinfo_endpoint: 'http://127.0.0.2:1/me' });
    expect(await claimsOrFault()).to.equal('refused_address userinfo');
    expect(await claimsOrFault('a\r\nb')).to.equal('bad_answer userinfo');
  });

  it('makes the metadata invalid when its address is blocked', async () => {
    for (const userinfo_endpoint of ['ftp://127.0.0.1/me', 'http://a:b@127.0.0.1/me', 7]) {
      const otherWorld = await ForeignWorld.start();
      otherWorld.provider.respondAt('/.well-known/openid-configuration', { json: otherWorld.provider.metadata({ userinfo_endpoint }) });
      expect(await otherWorld.discovery()).to.equal('bad_metadata');
      await otherWorld.close();
    }
  });
});
