import { expect } from 'chai';
import { assertBearer, namedIssuer, readExternalToken } from '../../../domain/oauth/external-token.ts';
import { ForeignTokenError } from '../../../domain/oauth/foreign-token.ts';
import type { Json, JsonObject } from '../../../domain/shared/json.ts';

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

function read(bend: object = {}, type: string | undefined = 'at+jwt') {
  const context = { credentialIssuer: US, configurations: CONFIGURATIONS };
  return readExternalToken({ type, claims: { ...GOOD, ...bend } as JsonObject }, context);
}

function reasonOf(work: () => unknown): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    if (error instanceof ForeignTokenError) return error.reason;
    throw error;
  }
}

const detail = (more: object): Json => ({ type: 'openid_credential', ...more }) as Json;

describe('an access token of an external authorization server', () => {
  it('is read with all that its issuer said', () => {
    expect(read()).to.deep.equal({
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

  it('is read without what is optional', () => {
    const bare = { jti: undefined, client_id: undefined, issuer_state: undefined, cnf: undefined };
    expect(read(bare)).not.to.have.any.keys('tokenId', 'clientId', 'issuerState', 'keyThumbprint');
  });

  it('is bound to jkt beside confirmation members that are not understood (RFC 7800 section 3.1)', () => {
    for (const more of [{ 'kc-jkt-type': 'DPoP' }, { future: { jwk: {} } }, { constructor: 1 }])
      expect(read({ cnf: { jkt: 'abc', ...more } }).keyThumbprint).to.equal('abc');
  });

  for (const method of ['jwk', 'jwe', 'jku', 'kid', 'x5t#S256']) {
    it(`is rejected with the confirmation method ${method} beside jkt, which would not be enforced`, () => {
      expect(reasonOf(() => read({ cnf: { jkt: 'abc', [method]: 'abc' } }))).to.equal('key_binding');
    });
  }

  it('covers every configuration of a scope, in the order of the configurations', () => {
    expect(read({ scope: 'acme.badge eu.pid' }).credentialConfigurationIds).to.deep.equal([
      'pid',
      'badge',
      'badge-mdoc',
    ]);
  });

  for (const scope of ['', 'other', 'eu.pidx', 'EU.PID', ['eu.pid'], undefined, 7]) {
    it(`covers nothing by the scope ${JSON.stringify(scope)}`, () => {
      expect(read({ scope }).credentialConfigurationIds).to.deep.equal([]);
    });
  }

  describe('with authorization_details', () => {
    it('covers what they name, and the scope no more', () => {
      const token = read({ authorization_details: [detail({ credential_configuration_id: 'badge' })] });
      expect(token).to.deep.include({ credentialConfigurationIds: ['badge'], identifiers: false });
    });

    it('knows which configuration an identifier of the server stands for', () => {
      const token = read({
        authorization_details: [
          detail({
            credential_configuration_id: 'badge',
            credential_identifiers: ['badge-2025', 'badge-2026'],
          }),
        ],
      });
      expect(token).to.deep.include({ credentialConfigurationIds: ['badge'], identifiers: true });
      expect([...token.configurationOfIdentifier]).to.deep.equal([
        ['badge-2025', 'badge'],
        ['badge-2026', 'badge'],
      ]);
    });

    it('takes identifiers alone for ids of configurations', () => {
      const token = read({ authorization_details: [detail({ credential_identifiers: ['pid', 'unknown'] })] });
      expect(token).to.deep.include({ credentialConfigurationIds: ['pid'], identifiers: true });
      expect([...token.configurationOfIdentifier]).to.deep.equal([['pid', 'pid']]);
    });

    it('passes over identifiers that are no text', () => {
      const entry = detail({ credential_configuration_id: 'pid', credential_identifiers: [7, 'p', null] });
      const { configurationOfIdentifier } = read({ authorization_details: [entry] });
      expect([...configurationOfIdentifier]).to.deep.equal([['p', 'pid']]);
    });

    const nothing: readonly [string, Json][] = [
      ['an unknown configuration', detail({ credential_configuration_id: 'other' })],
      [
        'identifiers of an unknown configuration',
        detail({ credential_configuration_id: 'x', credential_identifiers: ['pid'] }),
      ],
      ['an id that is no text', detail({ credential_configuration_id: ['pid'] })],
      ['an entry that names nothing', detail({})],
    ];
    for (const [name, entry] of nothing) {
      it(`covers nothing by ${name}`, () => {
        const token = read({ authorization_details: [entry] });
        expect(token).to.deep.include({ credentialConfigurationIds: [], identifiers: false });
      });
    }

    it('leaves the scope in force when they are about something else', () => {
      const elsewhere = detail({
        credential_configuration_id: 'badge',
        locations: ['https://other.example'],
      });
      const payment: Json = { type: 'payment', credential_configuration_id: 'badge' };
      const token = read({ authorization_details: [elsewhere, payment, 'text', null] });
      expect(token.credentialConfigurationIds).to.deep.equal(['pid']);
    });

    it('takes an entry that names this issuer among its locations', () => {
      const here = detail({ credential_configuration_id: 'badge', locations: ['https://x.example', US] });
      expect(read({ authorization_details: [here] }).credentialConfigurationIds).to.deep.equal(['badge']);
    });

    it('is refused when there are too many', () => {
      const entry = detail({ credential_configuration_id: 'pid' });
      const many = Array.from({ length: 101 }, () => entry);
      expect(reasonOf(() => read({ authorization_details: many }))).to.equal('too_many_details');
      const identifiers = Array.from({ length: 1001 }, (_, index) => `i${index}`);
      for (const credential_configuration_id of ['pid', 'unknown']) {
        const long = detail({ credential_configuration_id, credential_identifiers: identifiers });
        expect(reasonOf(() => read({ authorization_details: [long] }))).to.equal('too_many_details');
      }
      const halves = [identifiers.slice(0, 600), identifiers.slice(600)].map((credential_identifiers) =>
        detail({ credential_configuration_id: 'pid', credential_identifiers }),
      );
      expect(reasonOf(() => read({ authorization_details: halves }))).to.equal('too_many_details');
    });
  });

  const table: readonly [string, object, string][] = [
    ['no issuer', { iss: undefined }, 'issuer'],
    ['no subject', { sub: undefined }, 'subject'],
    ['an empty subject', { sub: '' }, 'subject'],
    ['a subject that is no text', { sub: 7 }, 'subject'],
    ['an endless subject', { sub: 's'.repeat(1025) }, 'subject'],
    ['no expiry', { exp: undefined }, 'expired'],
    ['a binding to a certificate', { cnf: { 'x5t#S256': 'abc' } }, 'key_binding'],
    ['a binding to a certificate beside a key', { cnf: { jkt: 'abc', 'x5t#S256': 'abc' } }, 'key_binding'],
    ['only a confirmation member that is not understood', { cnf: { 'kc-jkt-type': 'DPoP' } }, 'key_binding'],
    ['a binding that is no object', { cnf: 'abc' }, 'key_binding'],
    ['a thumbprint that is no text', { cnf: { jkt: 7 } }, 'key_binding'],
    ['a binding to nothing', { cnf: null }, 'key_binding'],
  ];
  for (const [name, bend, expected] of table) {
    it(`is refused with ${name}`, () => {
      expect(reasonOf(() => read(bend))).to.equal(expected);
    });
  }

  it('is told by its type, whatever else it says, or by its claims', () => {
    expect(reasonOf(() => read({ nonce: 'x' }, 'at+jwt'))).to.equal(undefined);
    expect(reasonOf(() => read({ typ: 'Bearer' }, 'jwt'))).to.equal(undefined);
    for (const typ of ['ID', 'Refresh', 'Offline', 'Logout']) {
      expect(
        reasonOf(() => read({ typ }, 'jwt')),
        typ,
      ).to.equal('id_token');
    }
  });

  for (const type of [undefined, 'jwt']) {
    for (const mark of ['nonce', 'at_hash']) {
      it(`is refused as an ID token with ${mark} when its type is ${type ?? 'absent'}`, () => {
        const context = { credentialIssuer: US, configurations: CONFIGURATIONS };
        const claims = { ...GOOD, [mark]: 'x' };
        expect(reasonOf(() => readExternalToken({ type, claims }, context))).to.equal('id_token');
        expect(reasonOf(() => readExternalToken({ type, claims: GOOD }, context))).to.equal(undefined);
      });
    }
  }
});

describe('a token that is taken from its bearer', () => {
  it('is bound to nothing', () => {
    expect(reasonOf(() => assertBearer({}))).to.equal(undefined);
    for (const cnf of [{ jkt: 'abc' }, null]) {
      expect(reasonOf(() => assertBearer({ cnf }))).to.equal('key_binding');
    }
  });
});

describe('the issuer that a token names', () => {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

  it('is read without believing it', () => {
    expect(namedIssuer(`${encode({ alg: 'none' })}.${encode({ iss: 'https://as' })}.`)).to.equal(
      'https://as',
    );
  });

  it('is none in an opaque token or one that is too long', () => {
    expect(namedIssuer('b3BhcXVl')).to.equal(undefined);
    expect(namedIssuer(`${encode({})}.${encode({ iss: 7 })}.`)).to.equal(undefined);
    expect(namedIssuer(`${encode({})}.${encode({ iss: 'https://as', x: 'x'.repeat(65_536) })}.`)).to.equal(
      undefined,
    );
  });
});
