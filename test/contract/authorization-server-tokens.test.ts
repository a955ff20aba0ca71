import { expect } from 'chai';
import type { RemoteAuthorizationServers } from '../../adapters/remote/authorization-servers.ts';
import type { ForeignTokenReason } from '../../domain/oauth/foreign-token.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { BentProvider, makeKey, signWithPublicKey, unsigned } from '../support/bent-provider.ts';
import { ForeignWorld } from '../support/foreign-world.ts';

/** Signs under the name of the provider's key. */
const STRANGER = makeKey('key-1', 'ES256');

const ACME = 'acme' as TenantId;

describe('AuthorizationServers and tokens', () => {
  let world: ForeignWorld;
  let provider: BentProvider;
  let servers: RemoteAuthorizationServers;
  let clock: ForeignWorld['clock'];
  beforeEach(async () => {
    world = await ForeignWorld.start();
    ({ clock, provider, servers } = world);
  });
  afterEach(() => world.close());
  const accessToken = (token: string) => world.accessToken(token);
  const idToken = (token: string, access?: string) => world.idToken(token, access);

  describe('a token', () => {
    for (const alg of [
      'RS256',
      'RS384',
      'RS512',
      'PS256',
      'PS384',
      'PS512',
      'ES256',
      'ES384',
      'ES512',
      'EdDSA',
      'Ed25519',
    ]) {
      it(`signed with ${alg} is good`, async () => {
        provider.keys = [makeKey('key-1', alg)];
        expect(await accessToken(provider.token())).to.equal('good');
      });
    }

    it('gives every claim', async () => {
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

    const bent: readonly [string, object, ForeignTokenReason][] = [
      ['another issuer', { claims: { iss: 'https://evil.example' } }, 'issuer'],
      ['another audience', { claims: { aud: 'others' } }, 'audience'],
      ['a time that is over', { claims: { exp: Math.floor(Date.now() / 1000) - 120 } }, 'expired'],
      ['no end', { claims: { exp: undefined } }, 'expired'],
      ['a start in the future', { claims: { nbf: Math.floor(Date.now() / 1000) + 120 } }, 'not_yet_valid'],
      ['an extension', { header: { crit: ['x'], x: 1 } }, 'critical_header'],
      ['another type', { header: { typ: 'logout+jwt' } }, 'type'],
      ['an unknown key', { header: { kid: 'key-2' } }, 'unknown_key'],
      ['a key of its own', { header: { jwk: STRANGER.jwk }, key: STRANGER }, 'signature'],
      ['an algorithm that its key does not have', { header: { alg: 'ES384' } }, 'unknown_key'],
    ];
    for (const [what, bend, reason] of bent) {
      it(`with ${what} is refused`, async () => {
        expect(await accessToken(provider.token(bend))).to.equal(reason);
      });
    }

    it('without signature is refused, and nothing is fetched for it', async () => {
      expect(await accessToken(unsigned(provider))).to.equal('algorithm');
      expect(provider.requests).to.have.length(0);
    });

    for (const form of ['pem', 'jwk'] as const) {
      it(`with a MAC made from the public key (${form}) is refused`, async () => {
        provider.keys = [makeKey('key-1', 'RS256')];
        expect(await accessToken(signWithPublicKey(provider, form))).to.equal('algorithm');
      });
    }

    it('with a claim changed after signing is refused', async () => {
      const [header, , signature] = provider.token().split('.');
      const [, claims] = provider.token({ claims: { sub: 'somebody else' } }).split('.');
      expect(await accessToken(`${header}.${claims}.${signature}`)).to.equal('signature');
    });

    it('of another issuer with the same kid is refused', async () => {
      const other = await BentProvider.start();
      expect(await accessToken(other.token({ claims: { iss: provider.issuer } }))).to.equal('signature');
      await other.close();
    });

    it('that is too long is refused, and nothing is fetched for it', async () => {
      expect(await accessToken(provider.token({ claims: { filler: 'x'.repeat(65_536) } }))).to.equal(
        'malformed',
      );
      expect(provider.requests).to.have.length(0);
    });

    it('does not say in an error what stood in it', async () => {
      const token = provider.token({ claims: { iss: 'https://evil.example', sub: 'Alice' } });
      const expected = { tenantId: ACME, audience: 'client', types: [undefined], now: clock.now() };
      const error = await servers
        .verifyToken(provider.issuer, token, expected)
        .catch((thrown: Error) => thrown);
      expect(String((error as Error).stack)).not.to.match(/Alice|evil\.example|eyJ/);
    });
  });

  describe('an ID token', () => {
    it('is good, and gives every claim', async () => {
      expect(await idToken(provider.token({ header: { typ: 'JWT' } }))).to.equal('good');
    });

    const bent: readonly [string, object, ForeignTokenReason][] = [
      ['another nonce', { claims: { nonce: 'n-2' } }, 'nonce'],
      ['no nonce', { claims: { nonce: undefined } }, 'nonce'],
      ['another audience', { claims: { aud: 'others' } }, 'audience'],
      ['several audiences and no authorized party', { claims: { aud: ['client', 'x'] } }, 'authorized_party'],
      ['another issuer', { claims: { iss: 'https://evil.example' } }, 'issuer'],
      ['no subject', { claims: { sub: undefined } }, 'subject'],
      ['the type of an access token', { header: { typ: 'at+jwt' } }, 'type'],
      [
        'the hash of another access token',
        { claims: { at_hash: 'AAAAAAAAAAAAAAAAAAAAAA' } },
        'access_token_hash',
      ],
    ];
    for (const [what, bend, reason] of bent) {
      it(`with ${what} is refused`, async () => {
        expect(await idToken(provider.token(bend), 'opaque')).to.equal(reason);
      });
    }

    it('is told to be forged before anything else is told', async () => {
      const token = provider.token({
        claims: { nonce: 'n-2', aud: 'others' },
        key: makeKey('key-1', 'ES256'),
      });
      expect(await idToken(token)).to.equal('signature');
    });
  });

  describe('the access token of a login', () => {
    const read = (token: string) =>
      servers.readOwnAccessToken(provider.issuer, token, { tenantId: ACME, now: clock.now() });

    it('gives every claim when the issuer signed it, whoever it is for', async () => {
      const token = provider.token({ header: { typ: 'at+jwt' }, claims: { aud: 'somebody', scope: 'x' } });
      expect(await read(token)).to.deep.include({ aud: 'somebody', scope: 'x' });
    });

    it('gives none when it is opaque, forged, expired or of somebody else', async () => {
      const tokens = [
        'opaque',
        unsigned(provider),
        provider.token({ key: makeKey('key-1', 'ES256') }),
        provider.token({ claims: { exp: 1 } }),
        provider.token({ claims: { iss: 'https://evil.example' } }),
      ];
      for (const token of tokens) expect(await read(token)).to.equal(undefined);
    });
  });
});
