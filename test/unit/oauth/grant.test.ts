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
import { type ClientRequest, ClientWorld, SERVER } from './kit.ts';

const NOW = new Date('2026-06-01T12:00:00Z');
const nowPlus = (seconds: number) => new Date(NOW.getTime() + seconds * 1000);
const HOLDER: GrantHolder = { clientId: 'wallet', keyThumbprint: 'thumb' };

const NEW_GRANT: Grant = {
  ...{ id: 'g', kind: 'pre_authorized_code', server: 'built-in', codeHash: 'h', txCodeHash: null },
  ...{ sessionId: 's' as SessionId, publicId: 'p' as PublicId, credentialConfigurationIds: ['card'] },
  ...{ expiresAt: nowPlus(1), attempts: 0, consumedAt: null, authorization: null, holder: null },
  ...{ generation: 0, revokedAt: null },
};
const holder = { ...HOLDER, identifiers: false, refreshableUntil: 0 };
const CONSUMED_GRANT: Grant = { ...NEW_GRANT, consumedAt: NOW, holder };

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
    ['that is new is redeemed', {}, null, 'redeem'],
    ['that has expired is rejected', { expiresAt: NOW }, null, 'invalid_grant'],
    ['that was redeemed is rejected', { consumedAt: NOW }, null, 'invalid_grant'],
    ['of another kind is rejected', { kind: 'authorization_code' }, null, 'invalid_grant'],
    ['with too many guesses is rejected', { attempts: MAX_TX_CODE_ATTEMPTS, txCodeHash: 't' }, 't', 'invalid_grant'],
    ['with one guess is redeemed', { attempts: MAX_TX_CODE_ATTEMPTS - 1, txCodeHash: 't' }, 't', 'redeem'],
    ['with a wrong transaction code counts the guess', { txCodeHash: 't' }, 'u', 'attempt'],
    ['without its transaction code is rejected', { txCodeHash: 't' }, null, 'invalid_request'],
    ['with an unnecessary transaction code is rejected', {}, 't', 'invalid_request'],
  ];
  for (const [description, change, txCode, expected] of changes) {
    it(description, () => expect(outcome(() => redeem({ ...NEW_GRANT, ...change }, txCode, NOW).act)).to.equal(expected));
  }

  it('is answered again for the wallet that redeemed it just before', () => {
    const requested = { identifiers: false, configurationIds: undefined };
    const isRetry = (change: Partial<Grant> = {}, caller = HOLDER, parameters = requested, seconds = 59) =>
      isRedemptionRetry({ ...CONSUMED_GRANT, ...change }, null, caller, parameters, nowPlus(seconds));
    expect(isRetry()).to.equal(true);
    expect(isRedemptionRetry(undefined, null, HOLDER, requested, NOW)).to.equal(false);
    const { keyThumbprint: _, ...unbound } = HOLDER;
    const otherGrants: readonly [string, boolean][] = [
      ['an authorization code', isRetry({ kind: 'authorization_code' })],
      ['an unredeemed grant', isRetry({ consumedAt: null })],
      ['a grant without a recorded holder', isRetry({ holder: null })],
      ['a revoked grant', isRetry({ revokedAt: NOW })],
      ['a grant with a used refresh token', isRetry({ generation: 1 })],
      ['another transaction code', isRetry({ txCodeHash: 't' })],
      ['after a minute', isRetry({}, HOLDER, requested, 60)],
      ['another wallet', isRetry({}, { ...HOLDER, clientId: 'else' })],
      ['another key', isRetry({}, { ...HOLDER, keyThumbprint: 'else' })],
      ['no key', isRetry({ holder: { ...unbound, identifiers: false, refreshableUntil: 0 } }, unbound)],
      ['a token with identifiers', isRetry({}, HOLDER, { ...requested, identifiers: true })],
    ];
    for (const [description, isRetried] of otherGrants) expect(isRetried, description).to.equal(false);
  });
});

describe('grant', () => {
  it('shows its code once it is consumed, and the requested credentials always', () => {
    const authorization = { holder: HOLDER, byDetails: false, queries: { state: 's' }, code: 'c' };
    const openSummary = authorizationSummary({ authorization, consumedAt: null, holder: null });
    expect(openSummary).to.include({ queries: authorization.queries, code: undefined });
    const consumedSummary = authorizationSummary({ authorization, consumedAt: NOW, holder: null });
    expect(consumedSummary).to.include({ queries: authorization.queries, code: 'c' });
  });

  it('shows the time of the authorization and of the token', () => {
    const authorization = { holder: HOLDER, byDetails: false, authorizedAtMs: NOW.getTime() };
    const before = authorizationSummary({ authorization, consumedAt: null, holder: null });
    expect(before).to.deep.include({ authorizedAt: NOW, tokenAt: undefined });
    expect(authorizationSummary({ authorization: null, consumedAt: NOW, holder: null })).to.deep.include({
      ...{ authorizedAt: undefined, tokenAt: NOW, code: undefined },
    });
    expect(withoutRequestData({ ...authorization, queries: {}, code: 'c' })).to.deep.equal({ ...{ holder: HOLDER, byDetails: false } });
  });

  const proofs: [string, Partial<Redeemer>, string][] = [
    ['an attestation', { instance: 'i', authenticated: true }, 'attestation'],
    ['a registered key', { authenticated: true }, 'key'],
    ['nothing', {}, 'none'],
    ['only the key of its token', { keyThumbprint: 'k', authenticated: false }, 'none'],
  ];
  for (const [description, change, expected] of proofs)
    it(`shows after the redemption that its wallet was authenticated with ${description}`, () => {
      const holder: Redeemer = { identifiers: false, refreshableUntil: 0, ...change };
      const walletAuthentication = (consumedAt: Date | null) =>
        authorizationSummary({ authorization: null, consumedAt, holder }).walletAuthentication;
      expect([walletAuthentication(null), walletAuthentication(NOW)]).to.deep.equal([undefined, expected]);
    });

  it('is redeemed for a completed session by an authorization code only', () => {
    expect(redeemableSession(NEW_GRANT)).to.not.have.property('anytime');
    expect(redeemableSession({ ...NEW_GRANT, kind: 'authorization_code' }).anytime).to.deep.equal(['completed']);
  });

  it('is treated as stolen if a refresh token was replaced twice, or never issued', () => {
    expect([3, 4, 5, 6].map((generation) => isReplayedGeneration(generation, 5))).to.deep.equal([true, false, false, true]);
  });
});

describe('token request', () => {
  const ISSUER = 'https://issuer.example/acme';
  const parse = (form: Record<string, string>) => outcome(() => parseTokenRequest(form, 'built-in', ISSUER).requestedIds ?? 'read');
  const code = { grant_type: PRE_AUTHORIZED_CODE_GRANT, 'pre-authorized_code': 'c' };
  const details = (...entries: object[]) => ({ ...code, authorization_details: JSON.stringify(entries) });
  const card = { type: 'openid_credential', credential_configuration_id: 'card' };

  it('uses a transaction code only for its own grant', () => {
    expect(parse({ ...code, tx_code: '1' })).to.equal('read');
    const refresh = { grant_type: REFRESH_TOKEN_GRANT, refresh_token: 'r' };
    expect([parse(refresh), parse({ ...refresh, tx_code: '1' })]).to.deep.equal(['read', 'invalid_request']);
  });

  it('names configurations in its details, each by its id', () => {
    expect(parse(details(card, { ...card, credential_configuration_id: 'pass' }))).to.deep.equal(['card', 'pass']);
    for (const invalid of [details(), details({ type: 'openid_credential' }), details({ ...card, type: 'x' })]) {
      expect(parse(invalid)).to.equal('invalid_authorization_details');
    }
  });
});

describe('single-use values', () => {
  it('are sorted in one order, identity before proofs', () => {
    const consumed = (kind: ConsumedValue['kind'], hash: string) => ({ kind, hash, expiresAt: NOW });
    const sorted = [consumed('client_jti', 'z'), consumed('dpop_jti', 'b'), consumed('c_nonce', 'a'), consumed('c_nonce', 'c')];
    for (const order of [sorted, sorted.toReversed()]) expect(sortConsumedValues(order)).to.deep.equal(sorted);
  });
});

const ISSUER = 'https://issuer.example/acme';
const SECONDS = NOW.getTime() / 1000;

/** Claims of every access token. */
const BEARER_CLAIMS: WalletTokenClaims = {
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
const FULL_CLAIMS: WalletTokenClaims = {
  ...BEARER_CLAIMS,
  issuer: `${ISSUER}/chained-as`,
  scope: 'card pass',
  clientId: 'https://wallet.example',
  identifiers: true,
  actionsDone: ['mark'],
  keyThumbprint: 'thumb',
};

const parse = (payload: JsonObject, now = NOW) => parseAccessTokenPayload(payload, ISSUER, now);

describe('access token of a wallet', () => {
  for (const [description, claims] of Object.entries({ 'with all claims': FULL_CLAIMS, 'of a bearer': BEARER_CLAIMS })) {
    it(`contains its claims, ${description}, and nothing else`, () => {
      expect(parse(accessTokenPayload(claims))).to.deep.equal(claims);
    });
  }

  it('omits unknown values', () => {
    const { grantId: _, ...foreign } = BEARER_CLAIMS;
    expect(accessTokenPayload(foreign)).to.have.all.keys(
      ...['iss', 'aud', 'sub', 'jti', 'issuer_state', 'iat', 'exp', 'credential_configuration_ids'],
    );
  });

  it('is valid until its expiry', () => {
    const payload = accessTokenPayload(BEARER_CLAIMS);
    expect(parse(payload, new Date(NOW.getTime() + 299_999))).to.not.equal(undefined);
    expect(parse(payload, new Date(NOW.getTime() + 300_000))).to.equal(undefined);
  });

  it('is parsed with unknown properties', () => {
    const wrongTypes = { scope: 7, client_id: null, actions_done: ['a', 1] };
    expect(parse({ ...accessTokenPayload(BEARER_CLAIMS), ...wrongTypes })).to.deep.equal(BEARER_CLAIMS);
  });

  const rejectedPayloads: readonly [string, JsonObject][] = [
    ['another issuer', { iss: 'https://else.example' }],
    ['an issuer that is not a string', { iss: [ISSUER] }],
    ['another audience', { aud: 'https://issuer.example/beta' }],
    ['a session that is not a string', { issuer_state: 7 }],
    ['a grant that is not a string', { grant_id: null }],
    ['a subject that is not a string', { sub: 7 }],
    ['an identifier that is not a string', { jti: 7 }],
    ['a time that is not a number', { iat: 'now' }],
    ['an exp that is not a number', { exp: `${SECONDS + 300}` }],
    ['no configurations', { credential_configuration_ids: 'card' }],
    ['configurations that are not strings', { credential_configuration_ids: [7] }],
    ['details that are not objects', { authorization_details: ['card'] }],
    ['empty details', { authorization_details: [{}] }],
    ['a binding that is not a key', { cnf: { jkt: 7 } }],
    ['a binding that is not an object', { cnf: 'thumb' }],
  ];
  for (const [description, change] of rejectedPayloads) {
    it(`is rejected with ${description}`, () => {
      expect(parse({ ...accessTokenPayload(BEARER_CLAIMS), ...change })).to.equal(undefined);
    });
  }
});

const configurations = [
  { id: 'card', scope: 'card' },
  { id: 'pass', scope: 'pass' },
  { id: 'pass-mdoc', scope: 'pass' },
];
type DetailEntry = { readonly [name: string]: unknown };
const CARD = { type: 'openid_credential', credential_configuration_id: 'card' };

const details = (entries: readonly DetailEntry[]) => ({ authorization_details: JSON.stringify(entries) });
const requested = (form: Record<string, string>) =>
  parseAuthorizationRequest({ ...AUTHORIZATION_REQUEST, ...form }, { issuer: ISSUER, configurations });
const token = (entries: readonly DetailEntry[]) =>
  parseTokenRequest({ grant_type: PRE_AUTHORIZED_CODE_GRANT, 'pre-authorized_code': 'x', ...details(entries) }, 'built-in', ISSUER);

describe('request with authorization_details and scope', () => {
  it('covers the credentials of both, which are evaluated separately', () => {
    const request = requested({ ...details([CARD]), scope: 'pass unknown' });
    expect(request.credentialConfigurationIds).to.deep.equal(['card', 'pass', 'pass-mdoc']);
    expect([request.byDetails, request.scope]).to.deep.equal([true, 'pass']);
  });

  it('is listed once if both name it', () => {
    expect(requested({ ...details([CARD]), scope: 'card' }).credentialConfigurationIds).to.deep.equal(['card']);
  });

  it('is rejected for an unknown scope only without other credentials', () => {
    expect(failureCode(() => requested({ scope: 'unknown' }))).to.equal('invalid_scope');
    expect(failureCode(() => requested({ ...details([CARD]), scope: 'unknown' }))).to.equal('accepted');
  });

  it('accepts more scopes than a session has configurations when the offer contains few of them', () => {
    const configurations = Array.from({ length: 40 }, (_, index) => ({ id: `c${index}`, scope: `s${index}` }));
    const scope = configurations.map((configuration) => configuration.scope).join(' ');
    const context = { issuer: ISSUER, configurations: configurations, offered: ['c39', 'c3'] };
    const request = parseAuthorizationRequest({ ...AUTHORIZATION_REQUEST, scope }, context);
    expect(request.credentialConfigurationIds).to.deep.equal(['c3', 'c39']);
    expect(request.scope).to.equal('s3 s39');
  });

  const path = (...steps: unknown[]) => ({ path: steps });
  const rejectedDetails: readonly (readonly [string, DetailEntry])[] = [
    ['another issuer in locations', { locations: ['https://else.example'] }],
    ['locations that are a text', { locations: ISSUER }],
    ['a path twice', { claims: [path('a', 'b'), path('a', 'b')] }],
    ['an empty path', { claims: [path()] }],
    ['a path of another claim', { claims: [path('a', true)] }],
    ['a fraction in a path', { claims: [path('a', 0.5)] }],
    ['no path', { claims: [{ mandatory: true }] }],
    ['no claims', { claims: [] }],
    ['claims that are an object', { claims: path('a') }],
    ['an overlong path', { claims: [path(...Array(33).fill('a'))] }],
    ['an endless name', { claims: [path('a'.repeat(201))] }],
    ['an object in place of an array', { claims: [path('a', 'b'), path('a', null)] }],
  ];
  for (const [description, change] of rejectedDetails) {
    it(`is rejected with ${description}, in the authorization and in the redemption`, () => {
      const entry = { ...CARD, ...change };
      expect(failureCode(() => requested(details([entry])))).to.equal('invalid_authorization_details');
      expect(failureCode(() => token([entry]))).to.equal('invalid_authorization_details');
    });
  }

  for (const [description, change] of [
    ['this issuer in locations', { locations: [ISSUER, 'https://else.example'] }],
    ['claims in an array', { claims: [path('a'), path('a', null), path('a', 0), path('b', 'c')] }],
    ['a long path', { claims: [path(...Array(32).fill('a'.repeat(200)))] }],
    ['names like numbers', { claims: [path('a', '0'), path('b', 0), path('a', '1', '0')] }],
    ['a key of an mdoc that is negative', { claims: [path('org.iso', 'a', -1)] }],
    ['unknown properties', { else: 1 }],
  ] as const) {
    it(`is accepted with ${description}`, () => {
      const entry = { ...CARD, ...change };
      expect(failureCode(() => requested(details([entry])))).to.equal('accepted');
      expect(failureCode(() => token([entry]))).to.equal('accepted');
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

  const profileEu = (profile: 'haip' | null) => client.configure({}, profile);

  const withoutIssuer = { payload: { iss: undefined } };
  const tokens: readonly (readonly [string, ClientRequest, string])[] = [
    ['with an iss in its tokens', {}, 'attested'],
    ['with an attestation without iss', { attestation: withoutIssuer }, 'invalid_client_attestation'],
    ['with a proof without iss', { pop: withoutIssuer }, 'invalid_client_attestation'],
    ['with an empty iss', { attestation: { payload: { iss: '' } } }, 'invalid_client_attestation'],
  ];
  for (const [description, payload, outcome] of tokens) {
    it(`of HAIP requires of a wallet ${description}`, async () => {
      profileEu('haip');
      expect(await client.outcome(payload)).to.equal(outcome);
      profileEu(null);
      expect(await client.outcome(payload)).to.equal('attested');
    });
  }

  it('of HAIP requires a nonce in DPoP proofs, regardless of the configuration', async () => {
    const proofs = new DpopProofs({ ...client.world, settings: client.settings });
    const expected = { method: 'POST', url: `${SERVER}/token`, issuer: SERVER, now: client.now };
    const iat = Math.floor(client.now.getTime() / 1000);
    const check = async (profile: 'haip' | null) => {
      try {
        await proofs.verify(profileEu(profile), [dpopProof(newKey(), expected.url, { payload: { iat } })], expected);
      } catch (error) {
        if (error instanceof Failure) return error.code;
        throw error;
      }
      return 'accepted';
    };
    expect([await check(null), await check('haip')]).to.deep.equal(['accepted', 'use_dpop_nonce']);
  });
});
