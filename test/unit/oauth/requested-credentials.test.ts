import { expect } from 'chai';
import { readAuthorizationRequest } from '../../../domain/oauth/authorization-request.ts';
import { PRE_AUTHORIZED_CODE_GRANT, readTokenRequest } from '../../../domain/oauth/token-request.ts';
import { codeOf } from '../../support/failure-code.ts';
import { AUTHORIZATION_REQUEST } from '../../support/raw-wallet.ts';

const ISSUER = 'https://issuer.example/acme';
const configurations = [
  { id: 'card', scope: 'card' },
  { id: 'pass', scope: 'pass' },
  { id: 'pass-mdoc', scope: 'pass' },
];
type Entry = { readonly [name: string]: unknown };
const CARD = { type: 'openid_credential', credential_configuration_id: 'card' };

const details = (entries: readonly Entry[]) => ({ authorization_details: JSON.stringify(entries) });
const asked = (form: Record<string, string>) =>
  readAuthorizationRequest({ ...AUTHORIZATION_REQUEST, ...form }, { issuer: ISSUER, configurations });
const token = (entries: readonly Entry[]) =>
  readTokenRequest(
    { grant_type: PRE_AUTHORIZED_CODE_GRANT, 'pre-authorized_code': 'x', ...details(entries) },
    'built-in',
    ISSUER,
  );

describe('What a wallet asks for by details and by scope', () => {
  it('is all of it: each is read for itself', () => {
    const request = asked({ ...details([CARD]), scope: 'pass unknown' });
    expect(request.credentialConfigurationIds).to.deep.equal(['card', 'pass', 'pass-mdoc']);
    expect([request.byDetails, request.scope]).to.deep.equal([true, 'pass']);
  });

  it('stands there once where both name it', () => {
    expect(asked({ ...details([CARD]), scope: 'card' }).credentialConfigurationIds).to.deep.equal(['card']);
  });

  it('is refused by scope when there is nothing else, and only then', () => {
    expect(codeOf(() => asked({ scope: 'unknown' }))).to.equal('invalid_scope');
    expect(codeOf(() => asked({ ...details([CARD]), scope: 'unknown' }))).to.equal('taken');
  });

  it('accepts more scopes than a session has configurations when the offer contains few of them', () => {
    const many = Array.from({ length: 40 }, (_, index) => ({ id: `c${index}`, scope: `s${index}` }));
    const scope = many.map((configuration) => configuration.scope).join(' ');
    const context = { issuer: ISSUER, configurations: many, offered: ['c39', 'c3'] };
    const request = readAuthorizationRequest({ ...AUTHORIZATION_REQUEST, scope }, context);
    expect(request.credentialConfigurationIds).to.deep.equal(['c3', 'c39']);
    expect(request.scope).to.equal('s3 s39');
  });

  const path = (...steps: unknown[]) => ({ path: steps });
  const refused: readonly (readonly [string, Entry])[] = [
    ['another issuer in locations', { locations: ['https://else.example'] }],
    ['locations that are a text', { locations: ISSUER }],
    ['a path twice', { claims: [path('a', 'b'), path('a', 'b')] }],
    ['an empty path', { claims: [path()] }],
    ['a path of something else', { claims: [path('a', true)] }],
    ['a fraction in a path', { claims: [path('a', 0.5)] }],
    ['no path', { claims: [{ mandatory: true }] }],
    ['no claims', { claims: [] }],
    ['claims that are an object', { claims: path('a') }],
    ['a path without end', { claims: [path(...Array(33).fill('a'))] }],
    ['an endless name', { claims: [path('a'.repeat(201))] }],
    ['an object that is an array elsewhere', { claims: [path('a', 'b'), path('a', null)] }],
  ];
  for (const [what, change] of refused) {
    it(`is refused with ${what}, when it authorizes and when it redeems`, () => {
      const entry = { ...CARD, ...change };
      expect(codeOf(() => asked(details([entry])))).to.equal('invalid_authorization_details');
      expect(codeOf(() => token([entry]))).to.equal('invalid_authorization_details');
    });
  }

  for (const [what, change] of [
    ['this issuer in locations', { locations: [ISSUER, 'https://else.example'] }],
    ['claims in an array', { claims: [path('a'), path('a', null), path('a', 0), path('b', 'c')] }],
    ['a long path', { claims: [path(...Array(32).fill('a'.repeat(200)))] }],
    ['names like numbers', { claims: [path('a', '0'), path('b', 0), path('a', '1', '0')] }],
    ['a key of an mdoc that is negative', { claims: [path('org.iso', 'a', -1)] }],
    ['members that nobody knows', { else: 1 }],
  ] as const) {
    it(`is taken with ${what}`, () => {
      const entry = { ...CARD, ...change };
      expect(codeOf(() => asked(details([entry])))).to.equal('taken');
      expect(codeOf(() => token([entry]))).to.equal('taken');
    });
  }

  it('is refused with another type at the token endpoint', () => {
    // RFC 9396 section 5
    expect(codeOf(() => token([{ ...CARD, type: 'payment' }]))).to.equal('invalid_authorization_details');
    expect(codeOf(() => token([CARD, { ...CARD, type: 'payment' }]))).to.equal(
      'invalid_authorization_details',
    );
  });
});
