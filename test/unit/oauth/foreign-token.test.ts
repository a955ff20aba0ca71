import { createHash, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { expect } from 'chai';
import { assertBearer, parseExternalToken, unverifiedIssuer } from '../../../domain/oauth/external-token.ts';
import { type ForeignKey, parseForeignKeys, pickForeignKey } from '../../../domain/oauth/foreign-keys.ts';
import {
  assertForeignClaims,
  type ForeignAlgorithm,
  ForeignTokenError,
  type ForeignTokenReason,
  parseForeignToken,
} from '../../../domain/oauth/foreign-token.ts';
import { assertIdTokenClaims } from '../../../domain/oauth/id-token.ts';
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

/** Describes a change for a test title. */
const describeChange = (change: object) =>
  Object.entries(change)
    .map(([name, value]) => `${name} ${value === undefined ? 'absent' : JSON.stringify(value).slice(0, 50)}`)
    .join(', ');

describe('keys of an external server', () => {
  const jwkOf = (pair: { publicKey: KeyObject }) => pair.publicKey.export({ format: 'jwk' }) as JsonObject;
  const rsa = jwkOf(generateKeyPairSync('rsa', { modulusLength: 2048 }));
  const p256 = jwkOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }));
  const ed = jwkOf(generateKeyPairSync('ed25519'));
  const parse = (...keys: Json[]) => parseForeignKeys({ keys }) ?? [];

  it('define the algorithms that they can be used with by their type', () => {
    const [first, second, third] = parse(rsa, p256, ed);
    expect(first?.algorithms).to.have.members(['PS256', 'PS384', 'PS512', 'RS256', 'RS384', 'RS512']);
    expect(second?.algorithms).to.deep.equal(['ES256']);
    expect(third?.algorithms).to.have.members(['EdDSA', 'Ed25519']);
  });

  it('restrict the algorithm by their alg', () => {
    expect(parse({ ...rsa, alg: 'PS256' })[0]?.algorithms).to.deep.equal(['PS256']);
    expect(parse({ ...ed, alg: 'EdDSA' })[0]?.algorithms).to.have.members(['EdDSA', 'Ed25519']);
    const verifying = { ...p256, use: 'sig', key_ops: ['verify', 'sign'] };
    expect(parse(verifying)[0]?.algorithms, 'or not at all').to.deep.equal(['ES256']);
  });

  it('lose all properties that are not part of the key', () => {
    const [key] = parse({ ...p256, d: 'secret', x5u: 'https://evil.example', kid: 'k' });
    expect(Object.keys(key?.jwk ?? {})).to.have.members(['kty', 'crv', 'x', 'y']);
    expect(key?.id).to.equal('k');
  });

  const unusableKeys: readonly [string, Json][] = [
    ['a secret', { kty: 'oct', k: 'c2VjcmV0', alg: 'HS256' }],
    ['an encryption key', { ...rsa, use: 'enc' }],
    ['a key for signing only', { ...rsa, key_ops: ['sign'] }],
    ['an algorithm of another type', { ...p256, alg: 'RS256' }],
    ['HS256 written on a public key', { ...rsa, alg: 'HS256' }],
    ['none written on a public key', { ...rsa, alg: 'none' }],
    ['an unknown curve', { ...p256, crv: 'secp256k1' }],
    ['a short modulus', jwkOf(generateKeyPairSync('rsa', { modulusLength: 1024 }))],
    ['an algorithm of another type on Ed25519', { ...ed, alg: 'ES256' }],
    ['a curve of another type', { ...ed, crv: 'P-256' }],
    ['a curve of another type than EC', { ...p256, crv: 'Ed25519' }],
    ['no curve and no type', { x: String(p256['x']), y: String(p256['y']) }],
    ['a coordinate that is not base64url', { ...ed, x: '!' }],
    ['a coordinate that is not a string', { ...ed, x: 7 }],
    ['a point with one coordinate', { kty: 'EC', crv: 'P-256', x: String(p256['x']) }],
    ['an endless modulus', { ...rsa, n: 'A'.repeat(1368) }],
    ['a modulus that is not a string', { ...rsa, n: 7 }],
    ['an endless exponent', { ...rsa, e: 'A'.repeat(344) }],
    ['an exponent that is not a string', { ...rsa, e: 65_537 }],
    ['a name that is not a string', { ...p256, kid: 7 }],
    ['not an object', 'key'],
    ['null', null],
  ];
  for (const [name, key] of unusableKeys) {
    it(`are ignored: ${name}`, () => {
      const keys = parse(key, { ...p256, kid: 'good' });
      expect(keys.map(({ id }) => id)).to.deep.equal(['good']);
    });
  }

  it('are rejected when they are too many or not a list', () => {
    expect(parseForeignKeys({ keys: Array.from({ length: 101 }, () => p256) })).to.equal(undefined);
    expect(parseForeignKeys({ keys: {} })).to.equal(undefined);
    expect(parseForeignKeys({})).to.equal(undefined);
  });

  const pick = (keys: readonly ForeignKey[], algorithm: 'ES256' | 'RS256', keyId?: string) => pickForeignKey(keys, { algorithm, keyId });

  it('are selected by kid and algorithm together', () => {
    const keys = parse({ ...p256, kid: 'a' }, { ...rsa, kid: 'b' });
    expect(pick(keys, 'ES256', 'a')?.id).to.equal('a');
    expect(pick(keys, 'RS256', 'a')).to.equal(undefined);
    expect(pick(keys, 'ES256', 'c')).to.equal(undefined);
  });

  it('are selected without kid only if exactly one matches', () => {
    const keys = parse({ ...p256, kid: 'a' }, rsa);
    expect(pick(keys, 'ES256')?.id).to.equal('a');
    expect(pick(parse(p256, { ...p256, kid: 'b' }), 'ES256')).to.equal(undefined);
  });
});

describe('header of an external token', () => {
  const reason = (header: object, types: (string | undefined)[] = [undefined]) => reasonOf(() => parseForeignToken(tokenOf(header), types));

  it('is parsed', () => {
    const parsed = parseForeignToken(tokenOf({ alg: 'PS256', kid: 'k', typ: 'application/AT+JWT' }), ['at+jwt']);
    expect(parsed).to.include({ algorithm: 'PS256', keyId: 'k', type: 'at+jwt' });
    expect(reason({ alg: 'ES256' }), 'without a kid').to.equal(undefined);
  });

  for (const alg of ['none', 'None', 'HS256', 'HS512', 'RS1', 'ES256K', '', 7, null, undefined]) {
    it(`is rejected with alg ${JSON.stringify(alg)}`, () => {
      expect(reason({ alg })).to.equal('algorithm');
    });
  }

  it('is rejected with a critical extension', () => {
    expect(reason({ alg: 'ES256', crit: ['exp'], exp: 1 })).to.equal('critical_header');
    expect(reason({ alg: 'ES256', crit: [] })).to.equal('critical_header');
    expect(reason({ alg: 'ES256', b64: false })).to.equal('critical_header');
  });

  it('is rejected with another type', () => {
    expect(reason({ alg: 'ES256', typ: 'at+jwt' })).to.equal('type');
    expect(reason({ alg: 'ES256' }, ['at+jwt'])).to.equal('type');
    expect(reason({ alg: 'ES256', typ: 7 })).to.equal('type');
    expect(reason({ alg: 'ES256', typ: 'dpop+jwt' }, ['at+jwt', 'jwt', undefined])).to.equal('type');
  });

  it('is rejected with a kid that is not a string or too long', () => {
    expect(reason({ alg: 'ES256', kid: 7 })).to.equal('malformed');
    expect(reason({ alg: 'ES256', kid: 'k'.repeat(1025) })).to.equal('malformed');
  });

  it('is undefined for a text that is too long or not a JWS', () => {
    const longToken = tokenOf({ alg: 'ES256' }, { filler: 'x'.repeat(65_536) });
    for (const token of ['', 'a.b', 'opaque', '....', longToken, `${tokenOf({ alg: 'ES256' })}.AAAA`]) {
      expect(reasonOf(() => parseForeignToken(token, [undefined]))).to.equal('malformed');
    }
  });
});

describe('claims of an external token', () => {
  const valid: JsonObject = { iss: ISSUER, aud: 'us', exp: SECONDS + 300, iat: SECONDS, nbf: SECONDS };
  const reason = (change: object, audience: string | undefined = 'us') =>
    reasonOf(() => assertForeignClaims({ ...valid, ...change } as JsonObject, { issuer: ISSUER, audience, now: NOW }));

  it('are accepted', () => {
    expect(reason({})).to.equal(undefined);
    expect(reason({ aud: ['others', 'us'] })).to.equal(undefined);
    expect(reason({ iat: undefined, nbf: undefined })).to.equal(undefined);
  });

  it('are accepted for any audience if the caller does not check it', () => {
    const expected = { issuer: ISSUER, audience: undefined, now: NOW };
    expect(reasonOf(() => assertForeignClaims({ ...valid, aud: 'others' }, expected))).to.equal(undefined);
  });

  it('may differ by a minute, not more', () => {
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
  for (const [change, expected] of table) {
    it(`are rejected with ${describeChange(change)}`, () => {
      expect(reason(change)).to.equal(expected);
    });
  }
});

describe('claims of an ID token', () => {
  const valid: JsonObject = { sub: 'u-1', aud: 'client', iat: SECONDS, nonce: 'n-1' };
  const reason = (change: object, accessToken: string | undefined = 'dNZX1hEZ9wBCzNL40Upu646bdzQA') =>
    reasonOf(() =>
      assertIdTokenClaims(
        { algorithm: 'RS256', claims: { ...valid, ...change } as JsonObject },
        { clientId: 'client', nonce: 'n-1', accessToken },
      ),
    );

  it('are accepted, with and without optional properties', () => {
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
  for (const [change, expected] of table) {
    it(`are rejected with ${describeChange(change)}`, () => {
      expect(reason(change)).to.equal(expected);
    });
  }

  // OpenID Connect Core 1.0 section 3.1.3.6: the hash of the signature algorithm
  const hashes: readonly [ForeignAlgorithm, string][] = [
    ['ES256', 'sha256'],
    ['PS384', 'sha384'],
    ['ES512', 'sha512'],
    ['EdDSA', 'sha512'],
    ['Ed25519', 'sha512'],
  ];
  for (const [algorithm, hash] of hashes) {
    it(`bind the access token by ${hash} when signed with ${algorithm}`, () => {
      const digest = createHash(hash).update('token').digest();
      const claims = { ...valid, at_hash: digest.subarray(0, digest.length / 2).toString('base64url') };
      const check = (accessToken: string) => () =>
        assertIdTokenClaims({ algorithm, claims }, { clientId: 'client', nonce: 'n-1', accessToken });
      expect(reasonOf(check('token'))).to.equal(undefined);
      expect(reasonOf(check('tokem'))).to.equal('access_token_hash');
    });
  }

  it('are rejected when they bind an access token that was not received', () => {
    const expected = { clientId: 'client', nonce: 'n-1', accessToken: undefined };
    const claims = { ...valid, at_hash: 'wfgvmE9VxjAudsl9lc6TqA' };
    expect(reasonOf(() => assertIdTokenClaims({ algorithm: 'RS256', claims }, expected))).to.equal('access_token_hash');
  });
});

const US = 'https://issuer.example.net/acme';
const CONFIGURATIONS = [
  { id: 'pid', scope: 'eu.pid' },
  { id: 'badge', scope: 'acme.badge' },
  { id: 'badge-mdoc', scope: 'acme.badge' },
];

const GOOD: JsonObject = {
  iss: 'https://as.example.org',
  sub: 'u-1',
  aud: US,
  exp: 1_767_323_345,
  iat: 1_767_323_045,
  jti: 't-1',
  client_id: 'https://wallet.example.com',
  scope: 'openid eu.pid',
  issuer_state: 'is_9c',
  cnf: { jkt: 'nbctQrRezqflYMWMG3qy0ltedaZTA3ejDxvYTjdb-OE' },
  department: 'R&D',
};

function parse(change: object = {}, type: string | undefined = 'at+jwt') {
  const context = { credentialIssuer: US, configurations: CONFIGURATIONS };
  return parseExternalToken({ type, claims: { ...GOOD, ...change } as JsonObject }, context);
}

const detail = (extra: object): Json => ({ type: 'openid_credential', ...extra }) as Json;

describe('access token of an external authorization server', () => {
  it('is parsed with all its claims', () => {
    expect(parse()).to.deep.equal({
      issuer: 'https://as.example.org',
      subject: 'u-1',
      clientId: 'https://wallet.example.com',
      issuerState: 'is_9c',
      keyThumbprint: 'nbctQrRezqflYMWMG3qy0ltedaZTA3ejDxvYTjdb-OE',
      credentialConfigurationIds: ['pid'],
      identifiers: false,
      configurationOfIdentifier: new Map(),
      expiresAtSeconds: 1_767_323_345,
      tokenId: 't-1',
      claims: GOOD,
    });
  });

  it('is parsed without optional claims', () => {
    const withoutOptional = { jti: undefined, client_id: undefined, issuer_state: undefined, cnf: undefined };
    expect(parse(withoutOptional)).not.to.have.any.keys('tokenId', 'clientId', 'issuerState', 'keyThumbprint');
  });

  it('is bound to jkt beside unknown confirmation members (RFC 7800 section 3.1)', () => {
    for (const extra of [{ 'kc-jkt-type': 'DPoP' }, { future: { jwk: {} } }, { constructor: 1 }])
      expect(parse({ cnf: { jkt: 'abc', ...extra } }).keyThumbprint).to.equal('abc');
  });

  for (const method of ['jwk', 'jwe', 'jku', 'kid', 'x5t#S256']) {
    it(`is rejected with the confirmation method ${method} beside jkt, which would not be enforced`, () => {
      expect(reasonOf(() => parse({ cnf: { jkt: 'abc', [method]: 'abc' } }))).to.equal('key_binding');
    });
  }

  it('covers every configuration of a scope, in the order of the configurations', () => {
    expect(parse({ scope: 'acme.badge eu.pid' }).credentialConfigurationIds).to.deep.equal(['pid', 'badge', 'badge-mdoc']);
  });

  for (const scope of ['', 'other', 'eu.pidx', 'EU.PID', ['eu.pid'], undefined, 7]) {
    it(`covers nothing by the scope ${JSON.stringify(scope)}`, () => {
      expect(parse({ scope }).credentialConfigurationIds).to.deep.equal([]);
    });
  }

  describe('with authorization_details', () => {
    it('covers the credentials that they name, and ignores the scope', () => {
      const token = parse({ authorization_details: [detail({ credential_configuration_id: 'badge' })] });
      expect(token).to.deep.include({ credentialConfigurationIds: ['badge'], identifiers: false });
    });

    it('maps an identifier of the server to its configuration', () => {
      const token = parse({
        authorization_details: [detail({ credential_configuration_id: 'badge', credential_identifiers: ['badge-2025', 'badge-2026'] })],
      });
      expect(token).to.deep.include({ credentialConfigurationIds: ['badge'], identifiers: true });
      expect([...token.configurationOfIdentifier]).to.deep.equal([
        ['badge-2025', 'badge'],
        ['badge-2026', 'badge'],
      ]);
    });

    it('uses identifiers without a configuration id as ids of configurations', () => {
      const token = parse({ authorization_details: [detail({ credential_identifiers: ['pid', 'unknown'] })] });
      expect(token).to.deep.include({ credentialConfigurationIds: ['pid'], identifiers: true });
      expect([...token.configurationOfIdentifier]).to.deep.equal([['pid', 'pid']]);
    });

    it('ignores identifiers that are not strings', () => {
      const detailEntry = detail({ credential_configuration_id: 'pid', credential_identifiers: [7, 'p', null] });
      const { configurationOfIdentifier } = parse({ authorization_details: [detailEntry] });
      expect([...configurationOfIdentifier]).to.deep.equal([['p', 'pid']]);
    });

    const uncovered: readonly [string, Json][] = [
      ['an unknown configuration', detail({ credential_configuration_id: 'other' })],
      ['identifiers of an unknown configuration', detail({ credential_configuration_id: 'x', credential_identifiers: ['pid'] })],
      ['an id that is not a string', detail({ credential_configuration_id: ['pid'] })],
      ['an empty entry', detail({})],
    ];
    for (const [name, detailEntry] of uncovered) {
      it(`covers nothing by ${name}`, () => {
        const token = parse({ authorization_details: [detailEntry] });
        expect(token).to.deep.include({ credentialConfigurationIds: [], identifiers: false });
      });
    }

    it('uses the scope if they have another type', () => {
      const otherLocation = detail({ credential_configuration_id: 'badge', locations: ['https://other.example'] });
      const payment: Json = { type: 'payment', credential_configuration_id: 'badge' };
      const token = parse({ authorization_details: [otherLocation, payment, 'text', null] });
      expect(token.credentialConfigurationIds).to.deep.equal(['pid']);
    });

    it('accepts an entry with this issuer among its locations', () => {
      const thisLocation = detail({ credential_configuration_id: 'badge', locations: ['https://x.example', US] });
      expect(parse({ authorization_details: [thisLocation] }).credentialConfigurationIds).to.deep.equal(['badge']);
    });

    it('is rejected when there are too many', () => {
      const detailEntry = detail({ credential_configuration_id: 'pid' });
      const hundred = Array.from({ length: 101 }, () => detailEntry);
      expect(reasonOf(() => parse({ authorization_details: hundred }))).to.equal('too_many_details');
      const identifiers = Array.from({ length: 1001 }, (_, index) => `i${index}`);
      for (const credential_configuration_id of ['pid', 'unknown']) {
        const longToken = detail({ credential_configuration_id, credential_identifiers: identifiers });
        expect(reasonOf(() => parse({ authorization_details: [longToken] }))).to.equal('too_many_details');
      }
      const halves = [identifiers.slice(0, 600), identifiers.slice(600)].map((credential_identifiers) =>
        detail({ credential_configuration_id: 'pid', credential_identifiers }),
      );
      expect(reasonOf(() => parse({ authorization_details: halves }))).to.equal('too_many_details');
    });
  });

  const table: readonly [string, object, string][] = [
    ['no issuer', { iss: undefined }, 'issuer'],
    ['no subject', { sub: undefined }, 'subject'],
    ['an empty subject', { sub: '' }, 'subject'],
    ['a subject that is not a string', { sub: 7 }, 'subject'],
    ['an endless subject', { sub: 's'.repeat(1025) }, 'subject'],
    ['no expiry', { exp: undefined }, 'expired'],
    ['a binding to a certificate', { cnf: { 'x5t#S256': 'abc' } }, 'key_binding'],
    ['a binding to a certificate beside a key', { cnf: { jkt: 'abc', 'x5t#S256': 'abc' } }, 'key_binding'],
    ['only an unknown confirmation property', { cnf: { 'kc-jkt-type': 'DPoP' } }, 'key_binding'],
    ['a binding that is not an object', { cnf: 'abc' }, 'key_binding'],
    ['a thumbprint that is not a string', { cnf: { jkt: 7 } }, 'key_binding'],
    ['an empty binding', { cnf: null }, 'key_binding'],
  ];
  for (const [name, change, expected] of table) {
    it(`is rejected with ${name}`, () => {
      expect(reasonOf(() => parse(change))).to.equal(expected);
    });
  }

  it('is recognized by its type, regardless of its other claims, or by its claims', () => {
    expect(reasonOf(() => parse({ nonce: 'x' }, 'at+jwt'))).to.equal(undefined);
    expect(reasonOf(() => parse({ typ: 'Bearer' }, 'jwt'))).to.equal(undefined);
    for (const typ of ['ID', 'Refresh', 'Offline', 'Logout']) {
      expect(
        reasonOf(() => parse({ typ }, 'jwt')),
        typ,
      ).to.equal('id_token');
    }
  });

  for (const type of [undefined, 'jwt']) {
    for (const keyThumbprint of ['nonce', 'at_hash']) {
      it(`is rejected as an ID token with ${keyThumbprint} when its type is ${type ?? 'absent'}`, () => {
        const context = { credentialIssuer: US, configurations: CONFIGURATIONS };
        const claims = { ...GOOD, [keyThumbprint]: 'x' };
        expect(reasonOf(() => parseExternalToken({ type, claims }, context))).to.equal('id_token');
        expect(reasonOf(() => parseExternalToken({ type, claims: GOOD }, context))).to.equal(undefined);
      });
    }
  }
});

describe('token of a Bearer header', () => {
  it('has no key binding', () => {
    expect(reasonOf(() => assertBearer({}))).to.equal(undefined);
    for (const cnf of [{ jkt: 'abc' }, null]) {
      expect(reasonOf(() => assertBearer({ cnf }))).to.equal('key_binding');
    }
  });
});

describe('unverified issuer of a token', () => {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

  it('is parsed without a verification', () => {
    expect(unverifiedIssuer(`${encode({ alg: 'none' })}.${encode({ iss: 'https://as' })}.`)).to.equal('https://as');
  });

  it('is undefined for an opaque token or one that is too long', () => {
    expect(unverifiedIssuer('b3BhcXVl')).to.equal(undefined);
    expect(unverifiedIssuer(`${encode({})}.${encode({ iss: 7 })}.`)).to.equal(undefined);
    expect(unverifiedIssuer(`${encode({})}.${encode({ iss: 'https://as', x: 'x'.repeat(65_536) })}.`)).to.equal(undefined);
  });
});
