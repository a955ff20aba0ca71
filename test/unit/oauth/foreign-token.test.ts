import { createHash, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { expect } from 'chai';
import { type ForeignKey, pickForeignKey, readForeignKeys } from '../../../domain/oauth/foreign-keys.ts';
import {
  acceptForeignClaims,
  type ForeignAlgorithm,
  ForeignTokenError,
  type ForeignTokenReason,
  openForeignToken,
} from '../../../domain/oauth/foreign-token.ts';
import { acceptIdToken } from '../../../domain/oauth/id-token.ts';
import type { Json, JsonObject } from '../../../domain/shared/json.ts';

const ISSUER = 'https://idp.example.org';
const NOW = new Date('2026-01-02T03:04:05Z');
const SECONDS = NOW.getTime() / 1000;

function reasonOf(work: () => unknown): ForeignTokenReason | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    if (error instanceof ForeignTokenError) return error.reason;
    throw error;
  }
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const tokenOf = (header: object, payload: object = {}) => `${encode(header)}.${encode(payload)}.AAAA`;

/** A change, for the name of a test. */
const named = (bend: object) =>
  Object.entries(bend)
    .map(([name, value]) => `${name} ${value === undefined ? 'absent' : JSON.stringify(value).slice(0, 50)}`)
    .join(', ');

describe('the keys of another server', () => {
  const jwkOf = (pair: { publicKey: KeyObject }) => pair.publicKey.export({ format: 'jwk' }) as JsonObject;
  const rsa = jwkOf(generateKeyPairSync('rsa', { modulusLength: 2048 }));
  const p256 = jwkOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }));
  const ed = jwkOf(generateKeyPairSync('ed25519'));
  const read = (...keys: Json[]) => readForeignKeys({ keys }) ?? [];

  it('say what they may be used with by their type', () => {
    const [first, second, third] = read(rsa, p256, ed);
    expect(first?.algorithms).to.have.members(['PS256', 'PS384', 'PS512', 'RS256', 'RS384', 'RS512']);
    expect(second?.algorithms).to.deep.equal(['ES256']);
    expect(third?.algorithms).to.have.members(['EdDSA', 'Ed25519']);
  });

  it('say it more narrowly by their alg', () => {
    expect(read({ ...rsa, alg: 'PS256' })[0]?.algorithms).to.deep.equal(['PS256']);
    expect(read({ ...ed, alg: 'EdDSA' })[0]?.algorithms).to.have.members(['EdDSA', 'Ed25519']);
    const verifying = { ...p256, use: 'sig', key_ops: ['verify', 'sign'] };
    expect(read(verifying)[0]?.algorithms, 'or not at all').to.deep.equal(['ES256']);
  });

  it('lose every member that does not make the key', () => {
    const [key] = read({ ...p256, d: 'secret', x5u: 'https://evil.example', kid: 'k' });
    expect(Object.keys(key?.jwk ?? {})).to.have.members(['kty', 'crv', 'x', 'y']);
    expect(key?.id).to.equal('k');
  });

  const unusable: readonly [string, Json][] = [
    ['a secret', { kty: 'oct', k: 'c2VjcmV0', alg: 'HS256' }],
    ['an encryption key', { ...rsa, use: 'enc' }],
    ['a key for signing only', { ...rsa, key_ops: ['sign'] }],
    ['an algorithm of another type', { ...p256, alg: 'RS256' }],
    ['HS256 written on a public key', { ...rsa, alg: 'HS256' }],
    ['none written on a public key', { ...rsa, alg: 'none' }],
    ['a curve we do not know', { ...p256, crv: 'secp256k1' }],
    ['a short modulus', jwkOf(generateKeyPairSync('rsa', { modulusLength: 1024 }))],
    ['an algorithm of another type on Ed25519', { ...ed, alg: 'ES256' }],
    ['a curve of another type', { ...ed, crv: 'P-256' }],
    ['a curve of another type than EC', { ...p256, crv: 'Ed25519' }],
    ['no curve and no type', { x: String(p256['x']), y: String(p256['y']) }],
    ['a coordinate that is no base64url', { ...ed, x: '!' }],
    ['a coordinate that is no text', { ...ed, x: 7 }],
    ['a point with one coordinate', { kty: 'EC', crv: 'P-256', x: String(p256['x']) }],
    ['an endless modulus', { ...rsa, n: 'A'.repeat(1368) }],
    ['a modulus that is no text', { ...rsa, n: 7 }],
    ['an endless exponent', { ...rsa, e: 'A'.repeat(344) }],
    ['an exponent that is no text', { ...rsa, e: 65_537 }],
    ['a name that is no text', { ...p256, kid: 7 }],
    ['no object', 'key'],
    ['null', null],
  ];
  for (const [name, key] of unusable) {
    it(`are passed over: ${name}`, () => {
      const keys = read(key, { ...p256, kid: 'good' });
      expect(keys.map(({ id }) => id)).to.deep.equal(['good']);
    });
  }

  it('are no key set when they are too many or no list', () => {
    expect(readForeignKeys({ keys: Array.from({ length: 101 }, () => p256) })).to.equal(undefined);
    expect(readForeignKeys({ keys: {} })).to.equal(undefined);
    expect(readForeignKeys({})).to.equal(undefined);
  });

  const pick = (keys: readonly ForeignKey[], algorithm: 'ES256' | 'RS256', keyId?: string) =>
    pickForeignKey(keys, { algorithm, keyId });

  it('are chosen by kid and algorithm together', () => {
    const keys = read({ ...p256, kid: 'a' }, { ...rsa, kid: 'b' });
    expect(pick(keys, 'ES256', 'a')?.id).to.equal('a');
    expect(pick(keys, 'RS256', 'a')).to.equal(undefined);
    expect(pick(keys, 'ES256', 'c')).to.equal(undefined);
  });

  it('are chosen without kid only when one alone comes into question', () => {
    const keys = read({ ...p256, kid: 'a' }, rsa);
    expect(pick(keys, 'ES256')?.id).to.equal('a');
    expect(pick(read(p256, { ...p256, kid: 'b' }), 'ES256')).to.equal(undefined);
  });
});

describe('the header of a foreign token', () => {
  const reason = (header: object, types: (string | undefined)[] = [undefined]) =>
    reasonOf(() => openForeignToken(tokenOf(header), types));

  it('is read', () => {
    const opened = openForeignToken(tokenOf({ alg: 'PS256', kid: 'k', typ: 'application/AT+JWT' }), [
      'at+jwt',
    ]);
    expect(opened).to.include({ algorithm: 'PS256', keyId: 'k', type: 'at+jwt' });
    expect(reason({ alg: 'ES256' }), 'without a kid').to.equal(undefined);
  });

  for (const alg of ['none', 'None', 'HS256', 'HS512', 'RS1', 'ES256K', '', 7, null, undefined]) {
    it(`is refused with alg ${JSON.stringify(alg)}`, () => {
      expect(reason({ alg })).to.equal('algorithm');
    });
  }

  it('is refused with an extension', () => {
    expect(reason({ alg: 'ES256', crit: ['exp'], exp: 1 })).to.equal('critical_header');
    expect(reason({ alg: 'ES256', crit: [] })).to.equal('critical_header');
    expect(reason({ alg: 'ES256', b64: false })).to.equal('critical_header');
  });

  it('is refused with another type', () => {
    expect(reason({ alg: 'ES256', typ: 'at+jwt' })).to.equal('type');
    expect(reason({ alg: 'ES256' }, ['at+jwt'])).to.equal('type');
    expect(reason({ alg: 'ES256', typ: 7 })).to.equal('type');
    expect(reason({ alg: 'ES256', typ: 'dpop+jwt' }, ['at+jwt', 'jwt', undefined])).to.equal('type');
  });

  it('is refused with a kid that is no text or endless', () => {
    expect(reason({ alg: 'ES256', kid: 7 })).to.equal('malformed');
    expect(reason({ alg: 'ES256', kid: 'k'.repeat(1025) })).to.equal('malformed');
  });

  it('is not looked at in a text that is too long or no JWS', () => {
    const long = tokenOf({ alg: 'ES256' }, { filler: 'x'.repeat(65_536) });
    for (const token of ['', 'a.b', 'opaque', '....', long, `${tokenOf({ alg: 'ES256' })}.AAAA`]) {
      expect(reasonOf(() => openForeignToken(token, [undefined]))).to.equal('malformed');
    }
  });
});

describe('the claims of a foreign token', () => {
  const good: JsonObject = { iss: ISSUER, aud: 'us', exp: SECONDS + 300, iat: SECONDS, nbf: SECONDS };
  const reason = (bend: object, audience: string | undefined = 'us') =>
    reasonOf(() =>
      acceptForeignClaims({ ...good, ...bend } as JsonObject, { issuer: ISSUER, audience, now: NOW }),
    );

  it('are accepted', () => {
    expect(reason({})).to.equal(undefined);
    expect(reason({ aud: ['others', 'us'] })).to.equal(undefined);
    expect(reason({ iat: undefined, nbf: undefined })).to.equal(undefined);
  });

  it('are accepted whoever they are for, where that is not ours to judge', () => {
    const expected = { issuer: ISSUER, audience: undefined, now: NOW };
    expect(reasonOf(() => acceptForeignClaims({ ...good, aud: 'others' }, expected))).to.equal(undefined);
  });

  it('may be off by a minute, not more', () => {
    expect(reason({ exp: SECONDS - 59 })).to.equal(undefined);
    expect(reason({ exp: SECONDS - 60 })).to.equal('expired');
    expect(reason({ nbf: SECONDS + 60, iat: SECONDS + 60 })).to.equal(undefined);
    expect(reason({ nbf: SECONDS + 61 })).to.equal('not_yet_valid');
    expect(reason({ iat: SECONDS + 61 })).to.equal('not_yet_valid');
  });

  const table: readonly [object, ForeignTokenReason][] = [
    [{ iss: `${ISSUER}/` }, 'issuer'],
    [{ iss: undefined }, 'issuer'],
    [{ iss: [ISSUER] }, 'issuer'],
    [{ aud: 'usual' }, 'audience'],
    [{ aud: undefined }, 'audience'],
    [{ aud: ['others'] }, 'audience'],
    [{ aud: { us: true } }, 'audience'],
    [{ aud: ['us', 7] }, 'audience'],
    [{ aud: [...Array.from({ length: 100 }, () => 'x'), 'us'] }, 'audience'],
    [{ exp: undefined }, 'expired'],
    [{ exp: String(SECONDS + 300) }, 'expired'],
    [{ exp: Number.POSITIVE_INFINITY }, 'expired'],
    [{ nbf: '0' }, 'not_yet_valid'],
    [{ iat: null }, 'not_yet_valid'],
  ];
  for (const [bend, expected] of table) {
    it(`are refused with ${named(bend)}`, () => {
      expect(reason(bend)).to.equal(expected);
    });
  }
});

describe('the claims of an ID token', () => {
  const good: JsonObject = { sub: 'u-1', aud: 'client', iat: SECONDS, nonce: 'n-1' };
  const reason = (bend: object, accessToken: string | undefined = 'dNZX1hEZ9wBCzNL40Upu646bdzQA') =>
    reasonOf(() =>
      acceptIdToken(
        { algorithm: 'RS256', claims: { ...good, ...bend } as JsonObject },
        { clientId: 'client', nonce: 'n-1', accessToken },
      ),
    );

  it('are accepted, with and without the members that may be there', () => {
    expect(reason({})).to.equal(undefined);
    expect(reason({ azp: 'client', aud: ['client', 'other'] })).to.equal(undefined);
    expect(reason({ at_hash: 'wfgvmE9VxjAudsl9lc6TqA' })).to.equal(undefined);
  });

  const table: readonly [object, ForeignTokenReason][] = [
    [{ nonce: 'n-2' }, 'nonce'],
    [{ nonce: 'n-1 ' }, 'nonce'],
    [{ nonce: undefined }, 'nonce'],
    [{ nonce: ['n-1'] }, 'nonce'],
    [{ aud: ['client', 'other'] }, 'authorized_party'],
    [{ azp: 'other' }, 'authorized_party'],
    [{ aud: ['client', 'other'], azp: 'other' }, 'authorized_party'],
    [{ iat: undefined }, 'not_yet_valid'],
    [{ sub: undefined }, 'subject'],
    [{ sub: '' }, 'subject'],
    [{ sub: 7 }, 'subject'],
    [{ sub: 's'.repeat(256) }, 'subject'],
    [{ at_hash: 'AAAAAAAAAAAAAAAAAAAAAA' }, 'access_token_hash'],
    [{ at_hash: '' }, 'access_token_hash'],
    [{ at_hash: 7 }, 'access_token_hash'],
  ];
  for (const [bend, expected] of table) {
    it(`are refused with ${named(bend)}`, () => {
      expect(reason(bend)).to.equal(expected);
    });
  }

  // OpenID Connect Core 1.0 section 3.1.3.6: the hash of the algorithm that signed
  const hashes: readonly [ForeignAlgorithm, string][] = [
    ['ES256', 'sha256'],
    ['PS384', 'sha384'],
    ['ES512', 'sha512'],
    ['EdDSA', 'sha512'],
    ['Ed25519', 'sha512'],
  ];
  for (const [algorithm, hash] of hashes) {
    it(`vouch for the access token by ${hash} when signed with ${algorithm}`, () => {
      const digest = createHash(hash).update('token').digest();
      const claims = { ...good, at_hash: digest.subarray(0, digest.length / 2).toString('base64url') };
      const check = (accessToken: string) => () =>
        acceptIdToken({ algorithm, claims }, { clientId: 'client', nonce: 'n-1', accessToken });
      expect(reasonOf(check('token'))).to.equal(undefined);
      expect(reasonOf(check('tokem'))).to.equal('access_token_hash');
    });
  }

  it('are refused when they vouch for an access token that did not come', () => {
    const expected = { clientId: 'client', nonce: 'n-1', accessToken: undefined };
    const claims = { ...good, at_hash: 'wfgvmE9VxjAudsl9lc6TqA' };
    expect(reasonOf(() => acceptIdToken({ algorithm: 'RS256', claims }, expected))).to.equal(
      'access_token_hash',
    );
  });
});
