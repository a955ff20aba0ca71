import { expect } from 'chai';
import { DpopProofs } from '../../../application/oauth/dpop-proofs.ts';
import { accessTokenPayload, parseAccessTokenPayload, type WalletTokenClaims } from '../../../domain/oauth/access-token.ts';
import { parseAuthorizationRequest } from '../../../domain/oauth/authorization-request.ts';
import { authorizationSummary, withoutRequestData } from '../../../domain/oauth/authorization-summary.ts';
import { type ConsumedValue, sortConsumedValues } from '../../../domain/oauth/consumed-value.ts';
import {
  type Grant,
  type GrantHolder,
  isRedemptionRetry,
  MAX_TX_CODE_ATTEMPTS,
  type Redeemer,
  redeem,
  redeemableSession,
} from '../../../domain/oauth/grant.ts';
import { isReplayedGeneration } from '../../../domain/oauth/refresh-token.ts';
import { PRE_AUTHORIZED_CODE_GRANT, parseTokenRequest, REFRESH_TOKEN_GRANT } from '../../../domain/oauth/token-request.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { PublicId, SessionId } from '../../../domain/shared/ids.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { failureCode } from '../../support/failures.ts';
import { AUTHORIZATION_REQUEST, dpopProof, newKey } from '../../support/raw-wallet.ts';
import { ClientWorld, SERVER, type Sent } from './kit.ts';

const NOW = new Date('2026-06-01T12:00:00Z');
const at = (seconds: number) => new Date(NOW.getTime() + seconds * 1000);
const CALLER: GrantHolder = { clientId: 'wallet', keyThumbprint: 'thumb' };

const FRESH: Grant = {
  ...{ id: 'g', kind: 'pre_authorized_code', server: 'built-in', codeHash: 'h', txCodeHash: null },
  ...{ sessionId: 's' as SessionId, publicId: 'p' as PublicId, credentialConfigurationIds: ['card'] },
  ...{ expiresAt: at(1), attempts: 0, consumedAt: null, authorization: null, holder: null },
  ...{ generation: 0, revokedAt: null },
};
const holder = { ...CALLER, identifiers: false, refreshableUntil: 0 };
const SPENT: Grant = { ...FRESH, consumedAt: NOW, holder };

const outcome = (work: () => unknown) => {
  try {
    return work();
  } catch (error) {
    if (error instanceof Failure) return error.code;
    throw error;
  }
};

describe('A pre-authorized code', () => {
  const changes: readonly [string, Partial<Grant>, string | null, string][] = [
    ['that is fresh is redeemed', {}, null, 'redeem'],
    ['that has expired brings nothing', { expiresAt: NOW }, null, 'invalid_grant'],
    ['that is spent brings nothing', { consumedAt: NOW }, null, 'invalid_grant'],
    ['of another kind brings nothing', { kind: 'authorization_code' }, null, 'invalid_grant'],
    ['for which too much was guessed brings nothing', { attempts: MAX_TX_CODE_ATTEMPTS, txCodeHash: 't' }, 't', 'invalid_grant'],
    ['that was guessed for but once is redeemed', { attempts: MAX_TX_CODE_ATTEMPTS - 1, txCodeHash: 't' }, 't', 'redeem'],
    ['with a wrong transaction code counts it', { txCodeHash: 't' }, 'u', 'attempt'],
    ['without its transaction code says so', { txCodeHash: 't' }, null, 'invalid_request'],
    ['with one that it does not need says so', {}, 't', 'invalid_request'],
  ];
  for (const [what, change, txCode, expected] of changes) {
    it(what, () => expect(outcome(() => redeem({ ...FRESH, ...change }, txCode, NOW).act)).to.equal(expected));
  }

  it('is answered again for the wallet that redeemed it just before', () => {
    const asked = { identifiers: false, configurationIds: undefined };
    const again = (change: Partial<Grant> = {}, caller = CALLER, wanted = asked, seconds = 59) =>
      isRedemptionRetry({ ...SPENT, ...change }, null, caller, wanted, at(seconds));
    expect(again()).to.equal(true);
    expect(isRedemptionRetry(undefined, null, CALLER, asked, NOW)).to.equal(false);
    const { keyThumbprint: _, ...unbound } = CALLER;
    const refused: readonly [string, boolean][] = [
      ['an authorization code', again({ kind: 'authorization_code' })],
      ['one that nobody redeemed', again({ consumedAt: null })],
      ['one of which nobody knows who redeemed it', again({ holder: null })],
      ['one that was revoked', again({ revokedAt: NOW })],
      ['one whose refresh token was received', again({ generation: 1 })],
      ['another transaction code', again({ txCodeHash: 't' })],
      ['after a minute', again({}, CALLER, asked, 60)],
      ['another wallet', again({}, { ...CALLER, clientId: 'else' })],
      ['another key', again({}, { ...CALLER, keyThumbprint: 'else' })],
      ['no key', again({ holder: { ...unbound, identifiers: false, refreshableUntil: 0 } }, unbound)],
      ['a token that names identifiers', again({}, CALLER, { ...asked, identifiers: true })],
    ];
    for (const [what, isAgain] of refused) expect(isAgain, what).to.equal(false);
  });
});

describe('grant', () => {
  it('shows its code once it is consumed, and the requested credentials always', () => {
    const authorization = { holder: CALLER, byDetails: false, queries: { state: 's' }, code: 'c' };
    const open = authorizationSummary({ authorization, consumedAt: null, holder: null });
    expect(open).to.include({ queries: authorization.queries, code: undefined });
    const spent = authorizationSummary({ authorization, consumedAt: NOW, holder: null });
    expect(spent).to.include({ queries: authorization.queries, code: 'c' });
  });

  it('shows the time of the authorization and of the token', () => {
    const authorization = { holder: CALLER, byDetails: false, authorizedAtMs: NOW.getTime() };
    const before = authorizationSummary({ authorization, consumedAt: null, holder: null });
    expect(before).to.deep.include({ authorizedAt: NOW, tokenAt: undefined });
    expect(authorizationSummary({ authorization: null, consumedAt: NOW, holder: null })).to.deep.include({
      ...{ authorizedAt: undefined, tokenAt: NOW, code: undefined },
    });
    expect(withoutRequestData({ ...authorization, queries: {}, code: 'c' })).to.deep.equal({ ...{ holder: CALLER, byDetails: false } });
  });

  const proofs: [string, Partial<Redeemer>, string][] = [
    ['an attestation', { instance: 'i', authenticated: true }, 'attestation'],
    ['a key that is registered', { authenticated: true }, 'key'],
    ['nothing', {}, 'none'],
    ['nothing but the key of its token', { keyThumbprint: 'k', authenticated: false }, 'none'],
  ];
  for (const [what, change, expected] of proofs)
    it(`shows after the redemption that its wallet was authenticated with ${what}`, () => {
      const holder: Redeemer = { identifiers: false, refreshableUntil: 0, ...change };
      const of = (consumedAt: Date | null) => authorizationSummary({ authorization: null, consumedAt, holder }).walletAuthentication;
      expect([of(null), of(NOW)]).to.deep.equal([undefined, expected]);
    });

  it('is redeemed for a completed session by an authorization code only', () => {
    expect(redeemableSession(FRESH)).to.not.have.property('anytime');
    expect(redeemableSession({ ...FRESH, kind: 'authorization_code' }).anytime).to.deep.equal(['completed']);
  });

  it('is treated as stolen if a refresh token was replaced twice, or never issued', () => {
    expect([3, 4, 5, 6].map((generation) => isReplayedGeneration(generation, 5))).to.deep.equal([true, false, false, true]);
  });
});

describe('token request', () => {
  const ISSUER = 'https://issuer.example/acme';
  const read = (form: Record<string, string>) => outcome(() => parseTokenRequest(form, 'built-in', ISSUER).requestedIds ?? 'read');
  const code = { grant_type: PRE_AUTHORIZED_CODE_GRANT, 'pre-authorized_code': 'c' };
  const details = (...entries: object[]) => ({ ...code, authorization_details: JSON.stringify(entries) });
  const card = { type: 'openid_credential', credential_configuration_id: 'card' };

  it('uses a transaction code only for its own grant', () => {
    expect(read({ ...code, tx_code: '1' })).to.equal('read');
    const refresh = { grant_type: REFRESH_TOKEN_GRANT, refresh_token: 'r' };
    expect([read(refresh), read({ ...refresh, tx_code: '1' })]).to.deep.equal(['read', 'invalid_request']);
  });

  it('names configurations in its details, each by its id', () => {
    expect(read(details(card, { ...card, credential_configuration_id: 'pass' }))).to.deep.equal(['card', 'pass']);
    for (const wrong of [details(), details({ type: 'openid_credential' }), details({ ...card, type: 'x' })]) {
      expect(read(wrong)).to.equal('invalid_authorization_details');
    }
  });
});

describe('single-use values', () => {
  it('are sorted in one order, identity before proofs', () => {
    const used = (kind: ConsumedValue['kind'], hash: string) => ({ kind, hash, expiresAt: NOW });
    const sorted = [used('client_jti', 'z'), used('dpop_jti', 'b'), used('c_nonce', 'a'), used('c_nonce', 'c')];
    for (const order of [sorted, sorted.toReversed()]) expect(sortConsumedValues(order)).to.deep.equal(sorted);
  });
});

const ISSUER = 'https://issuer.example/acme';
const SECONDS = NOW.getTime() / 1000;

/** What every token of a wallet says. */
const BEARER: WalletTokenClaims = {
  issuer: ISSUER,
  audience: ISSUER,
  subject: 'public',
  publicId: 'public' as PublicId,
  grantId: 'grant',
  tokenId: 'token',
  issuedAtSeconds: SECONDS,
  expiresAtSeconds: SECONDS + 300,
  credentialConfigurationIds: ['card', 'pass'],
  identifiers: false,
};
const WHOLE: WalletTokenClaims = {
  ...BEARER,
  issuer: `${ISSUER}/chained-as`,
  scope: 'card pass',
  clientId: 'https://wallet.example',
  identifiers: true,
  actionsDone: ['mark'],
  keyThumbprint: 'thumb',
};

const read = (payload: JsonObject, now = NOW) => parseAccessTokenPayload(payload, ISSUER, now);

describe('access token of a wallet', () => {
  for (const [what, claims] of Object.entries({ 'with all there is': WHOLE, 'of a bearer': BEARER })) {
    it(`contains its claims, ${what}, and nothing else`, () => {
      expect(read(accessTokenPayload(claims))).to.deep.equal(claims);
    });
  }

  it('omits unknown values', () => {
    const { grantId: _, ...foreign } = BEARER;
    expect(accessTokenPayload(foreign)).to.have.all.keys(
      ...['iss', 'aud', 'sub', 'jti', 'issuer_state', 'iat', 'exp', 'credential_configuration_ids'],
    );
  });

  it('is valid until its expiry', () => {
    const payload = accessTokenPayload(BEARER);
    expect(read(payload, new Date(NOW.getTime() + 299_999))).to.not.equal(undefined);
    expect(read(payload, new Date(NOW.getTime() + 300_000))).to.equal(undefined);
  });

  it('is parsed with unknown properties', () => {
    const odd = { scope: 7, client_id: null, actions_done: ['a', 1] };
    expect(read({ ...accessTokenPayload(BEARER), ...odd })).to.deep.equal(BEARER);
  });

  const refused: readonly [string, JsonObject][] = [
    ['another issuer', { iss: 'https://else.example' }],
    ['an issuer that is no text', { iss: [ISSUER] }],
    ['another audience', { aud: 'https://issuer.example/beta' }],
    ['a session that is no text', { issuer_state: 7 }],
    ['a grant that is no text', { grant_id: null }],
    ['a subject that is no text', { sub: 7 }],
    ['an identifier that is no text', { jti: 7 }],
    ['a time that is no number', { iat: 'now' }],
    ['an end that is no number', { exp: `${SECONDS + 300}` }],
    ['no configurations', { credential_configuration_ids: 'card' }],
    ['configurations that are no texts', { credential_configuration_ids: [7] }],
    ['details that are no objects', { authorization_details: ['card'] }],
    ['details of nothing', { authorization_details: [{}] }],
    ['a binding that is no key', { cnf: { jkt: 7 } }],
    ['a binding that is no object', { cnf: 'thumb' }],
  ];
  for (const [what, bend] of refused) {
    it(`is rejected with ${what}`, () => {
      expect(read({ ...accessTokenPayload(BEARER), ...bend })).to.equal(undefined);
    });
  }
});

const configurations = [
  { id: 'card', scope: 'card' },
  { id: 'pass', scope: 'pass' },
  { id: 'pass-mdoc', scope: 'pass' },
];
type Entry = { readonly [name: string]: unknown };
const CARD = { type: 'openid_credential', credential_configuration_id: 'card' };

const details = (entries: readonly Entry[]) => ({ authorization_details: JSON.stringify(entries) });
const asked = (form: Record<string, string>) =>
  parseAuthorizationRequest({ ...AUTHORIZATION_REQUEST, ...form }, { issuer: ISSUER, configurations });
const token = (entries: readonly Entry[]) =>
  parseTokenRequest({ grant_type: PRE_AUTHORIZED_CODE_GRANT, 'pre-authorized_code': 'x', ...details(entries) }, 'built-in', ISSUER);

describe('request with authorization_details and scope', () => {
  it('covers the credentials of both, which are evaluated separately', () => {
    const request = asked({ ...details([CARD]), scope: 'pass unknown' });
    expect(request.credentialConfigurationIds).to.deep.equal(['card', 'pass', 'pass-mdoc']);
    expect([request.byDetails, request.scope]).to.deep.equal([true, 'pass']);
  });

  it('is listed once if both name it', () => {
    expect(asked({ ...details([CARD]), scope: 'card' }).credentialConfigurationIds).to.deep.equal(['card']);
  });

  it('is rejected for an unknown scope only without other credentials', () => {
    expect(failureCode(() => asked({ scope: 'unknown' }))).to.equal('invalid_scope');
    expect(failureCode(() => asked({ ...details([CARD]), scope: 'unknown' }))).to.equal('taken');
  });

  it('accepts more scopes than a session has configurations when the offer contains few of them', () => {
    const many = Array.from({ length: 40 }, (_, index) => ({ id: `c${index}`, scope: `s${index}` }));
    const scope = many.map((configuration) => configuration.scope).join(' ');
    const context = { issuer: ISSUER, configurations: many, offered: ['c39', 'c3'] };
    const request = parseAuthorizationRequest({ ...AUTHORIZATION_REQUEST, scope }, context);
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
    it(`is rejected with ${what}, in the authorization and in the redemption`, () => {
      const entry = { ...CARD, ...change };
      expect(failureCode(() => asked(details([entry])))).to.equal('invalid_authorization_details');
      expect(failureCode(() => token([entry]))).to.equal('invalid_authorization_details');
    });
  }

  for (const [what, change] of [
    ['this issuer in locations', { locations: [ISSUER, 'https://else.example'] }],
    ['claims in an array', { claims: [path('a'), path('a', null), path('a', 0), path('b', 'c')] }],
    ['a long path', { claims: [path(...Array(32).fill('a'.repeat(200)))] }],
    ['names like numbers', { claims: [path('a', '0'), path('b', 0), path('a', '1', '0')] }],
    ['a key of an mdoc that is negative', { claims: [path('org.iso', 'a', -1)] }],
    ['unknown properties', { else: 1 }],
  ] as const) {
    it(`is accepted with ${what}`, () => {
      const entry = { ...CARD, ...change };
      expect(failureCode(() => asked(details([entry])))).to.equal('taken');
      expect(failureCode(() => token([entry]))).to.equal('taken');
    });
  }

  it('is rejected with another type at the token endpoint', () => {
    // RFC 9396 section 5
    expect(failureCode(() => token([{ ...CARD, type: 'payment' }]))).to.equal('invalid_authorization_details');
    expect(failureCode(() => token([CARD, { ...CARD, type: 'payment' }]))).to.equal('invalid_authorization_details');
  });
});

describe('wallet profile', () => {
  let client: ClientWorld;

  before(async () => {
    client = await ClientWorld.make();
  });

  const following = (profile: 'haip' | null) => client.configure({}, profile);

  const unnamed = { payload: { iss: undefined } };
  const tokens: readonly (readonly [string, Sent, string])[] = [
    ['whose tokens say who made them', {}, 'attested'],
    ['whose attestation does not say who made it', { attestation: unnamed }, 'invalid_client_attestation'],
    ['whose proof does not say who made it', { pop: unnamed }, 'invalid_client_attestation'],
    ['with an empty iss', { attestation: { payload: { iss: '' } } }, 'invalid_client_attestation'],
  ];
  for (const [what, sent, outcome] of tokens) {
    it(`of HAIP requires of a wallet ${what}`, async () => {
      following('haip');
      expect(await client.outcome(sent)).to.equal(outcome);
      following(null);
      expect(await client.outcome(sent)).to.equal('attested');
    });
  }

  it('of HAIP requires a nonce in DPoP proofs, regardless of the configuration', async () => {
    const proofs = new DpopProofs({ ...client.world, settings: client.settings });
    const expected = { method: 'POST', url: `${SERVER}/token`, issuer: SERVER, now: client.now };
    const iat = Math.floor(client.now.getTime() / 1000);
    const check = async (profile: 'haip' | null) => {
      try {
        await proofs.verify(following(profile), [dpopProof(newKey(), expected.url, { payload: { iat } })], expected);
      } catch (error) {
        if (error instanceof Failure) return error.code;
        throw error;
      }
      return 'taken';
    };
    expect([await check(null), await check('haip')]).to.deep.equal(['taken', 'use_dpop_nonce']);
  });
});
