import { expect } from 'chai';
import { AuthorizationServerError } from '../../application/ports/authorization-servers.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { type Answer, type BentProvider, makeKey, unsigned } from '../support/bent-provider.ts';
import { ForeignWorld } from '../support/foreign-world.ts';

const TENANT = 'acme' as TenantId;
const JWT = { 'content-type': 'application/jwt' };

describe('AuthorizationServers and userinfo', () => {
  let world: ForeignWorld;
  let provider: BentProvider;
  beforeEach(async () => {
    world = await ForeignWorld.start();
    ({ provider } = world);
    announce({ userinfo_endpoint: `${provider.issuer}/me` });
  });
  afterEach(() => world.close());

  const announce = (more: object) =>
    provider.on('/.well-known/openid-configuration', { json: provider.metadata(more) });
  const ask = (accessToken = 'opaque') =>
    world.servers.readUserinfo(provider.issuer, {
      tenantId: TENANT,
      clientId: 'client',
      subject: 'u-1',
      accessToken,
      now: world.clock.now(),
    });
  /** @returns `fault error`, or what came. */
  const told = async (accessToken?: string) => {
    try {
      return await ask(accessToken);
    } catch (error) {
      if (!(error instanceof AuthorizationServerError)) throw error;
      return `${error.fault} ${error.error}`;
    }
  };
  const signed = (claims: object = {}, more: object = {}): Answer => {
    const token = provider.token({ claims: { exp: undefined, nonce: undefined, ...claims }, ...more });
    return (response) => response.writeHead(200, JWT).end(token);
  };
  const text =
    (body: string, headers: Record<string, string> = { 'content-type': 'application/json' }): Answer =>
    (response) =>
      response.writeHead(200, headers).end(body);

  it('gives every claim of a JSON answer, and shows the access token alone', async () => {
    provider.on('/me', { json: { sub: 'u-1', name: 'Ada', address: { country: 'GB' } } });
    expect(await ask()).to.deep.equal({ sub: 'u-1', name: 'Ada', address: { country: 'GB' } });
    const [request] = provider.requests.filter(({ path }) => path === '/me');
    expect(request).to.include({ method: 'GET', body: '' });
    expect(request?.headers.authorization).to.equal('Bearer opaque');
  });

  it('gives every claim of a JWT that the issuer signed, with an end or without', async () => {
    provider.on('/me', signed({ name: 'Ada' }));
    expect(await ask()).to.deep.include({ sub: 'u-1', name: 'Ada' });
    provider.on('/me', signed({ aud: ['others', 'client'], exp: Math.floor(Date.now() / 1000) + 60 }));
    expect(await ask()).to.deep.include({ sub: 'u-1' });
  });

  it('gives nothing of an issuer that has no such endpoint', async () => {
    announce({});
    expect(await ask()).to.equal(undefined);
    expect(provider.hits('/me')).to.equal(0);
  });

  const bad: readonly [what: string, answer: () => Answer, told: string][] = [
    ['another subject', () => ({ json: { sub: 'u-2' } }), 'bad_answer userinfo_subject'],
    ['no subject', () => ({ json: { name: 'Ada' } }), 'bad_answer userinfo_subject'],
    ['a subject that is no text', () => ({ json: { sub: ['u-1'] } }), 'bad_answer userinfo_subject'],
    ['a list', () => ({ json: [{ sub: 'u-1' }] }), 'bad_answer userinfo_malformed'],
    ['a page', () => text('<html>', { 'content-type': 'text/html' }), 'bad_answer userinfo_malformed'],
    ['a member twice', () => text('{"sub":"u-1","sub":"u-1"}'), 'bad_answer userinfo_malformed'],
    [
      'deep nesting',
      () => text(`{"sub":"u-1","a":${'['.repeat(500)}${']'.repeat(500)}}`),
      'bad_answer userinfo_malformed',
    ],
    ['more than fits', () => ({ json: { sub: 'u-1', name: 'x'.repeat(70_000) } }), 'too_large userinfo'],
    ['a signed answer about somebody else', () => signed({ sub: 'u-2' }), 'bad_answer userinfo_subject'],
    [
      'a signed answer of another issuer',
      () => signed({ iss: 'https://evil.example' }),
      'bad_answer userinfo_issuer',
    ],
    ['a signed answer for another client', () => signed({ aud: 'others' }), 'bad_answer userinfo_audience'],
    ['a signed answer that has ended', () => signed({ exp: 1 }), 'bad_answer userinfo_expired'],
    [
      'an answer that somebody else signed',
      () => signed({}, { key: makeKey('key-1', 'ES256') }),
      'bad_answer userinfo_signature',
    ],
    ['an answer that nobody signed', () => text(unsigned(provider), JWT), 'bad_answer userinfo_algorithm'],
    ['JSON in place of a JWT', () => text('{"sub":"u-1"}', JWT), 'bad_answer userinfo_malformed'],
    ['a refusal', () => ({ json: { error: 'invalid_token' }, status: 401 }), 'refused userinfo'],
    ['a failure', () => ({ json: {}, status: 503 }), 'bad_status userinfo'],
    [
      'a redirect',
      () => (response) => response.writeHead(302, { location: '/other' }).end(),
      'redirected userinfo',
    ],
  ];
  for (const [what, answer, end] of bad) {
    it(`is refused with ${what}`, async () => {
      provider.on('/me', answer());
      expect(await told()).to.equal(end);
    });
  }

  it('is not asked where nothing may be called, nor with what is no token', async () => {
    announce({ userinfo_endpoint: 'http://127.0.0.2:1/me' });
    expect(await told()).to.equal('refused_address userinfo');
    expect(await told('a\r\nb')).to.equal('bad_answer userinfo');
  });

  it('makes metadata useless when its address may not be used', async () => {
    for (const userinfo_endpoint of ['ftp://127.0.0.1/me', 'http://a:b@127.0.0.1/me', 7]) {
      const other = await ForeignWorld.start();
      other.provider.on('/.well-known/openid-configuration', {
        json: other.provider.metadata({ userinfo_endpoint }),
      });
      expect(await other.discovery()).to.equal('bad_metadata');
      await other.close();
    }
  });
});
