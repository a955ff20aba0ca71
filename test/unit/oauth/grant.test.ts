import { expect } from 'chai';
import { askedBy, withoutRequest } from '../../../domain/oauth/asked-authorization.ts';
import {
  type Grant,
  type GrantHolder,
  isAnsweredAgain,
  MAX_TX_CODE_ATTEMPTS,
  type Redeemer,
  redeem,
  redeemable,
} from '../../../domain/oauth/grant.ts';
import { isStolen } from '../../../domain/oauth/refresh-token.ts';
import {
  PRE_AUTHORIZED_CODE_GRANT,
  REFRESH_TOKEN_GRANT,
  readTokenRequest,
} from '../../../domain/oauth/token-request.ts';
import { inOrder, type UsedValue } from '../../../domain/oauth/used-value.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { PublicId, SessionId } from '../../../domain/shared/ids.ts';

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
    ['whose time is over brings nothing', { expiresAt: NOW }, null, 'invalid_grant'],
    ['that is spent brings nothing', { consumedAt: NOW }, null, 'invalid_grant'],
    ['of another kind brings nothing', { kind: 'authorization_code' }, null, 'invalid_grant'],
    [
      'for which too much was guessed brings nothing',
      { attempts: MAX_TX_CODE_ATTEMPTS, txCodeHash: 't' },
      't',
      'invalid_grant',
    ],
    [
      'that was guessed for but once is redeemed',
      { attempts: MAX_TX_CODE_ATTEMPTS - 1, txCodeHash: 't' },
      't',
      'redeem',
    ],
    ['with a wrong transaction code counts it', { txCodeHash: 't' }, 'u', 'attempt'],
    ['without its transaction code says so', { txCodeHash: 't' }, null, 'invalid_request'],
    ['with one that it does not need says so', {}, 't', 'invalid_request'],
  ];
  for (const [what, change, txCode, expected] of changes) {
    it(what, () =>
      expect(outcome(() => redeem({ ...FRESH, ...change }, txCode, NOW).act)).to.equal(expected),
    );
  }

  it('is answered again to the wallet that redeemed it a moment ago', () => {
    const asked = { identifiers: false, configurationIds: undefined };
    const again = (change: Partial<Grant> = {}, caller = CALLER, wanted = asked, seconds = 59) =>
      isAnsweredAgain({ ...SPENT, ...change }, null, caller, wanted, at(seconds));
    expect(again()).to.equal(true);
    expect(isAnsweredAgain(undefined, null, CALLER, asked, NOW)).to.equal(false);
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

describe('A grant', () => {
  it('shows its code once it was spent, and what was asked for always', () => {
    const authorization = { holder: CALLER, byDetails: false, queries: { state: 's' }, code: 'c' };
    const open = askedBy({ authorization, consumedAt: null, holder: null });
    expect(open).to.include({ queries: authorization.queries, code: undefined });
    const spent = askedBy({ authorization, consumedAt: NOW, holder: null });
    expect(spent).to.include({ queries: authorization.queries, code: 'c' });
  });

  it('tells when the user had authorized, and when a token was had for it', () => {
    const authorization = { holder: CALLER, byDetails: false, authorizedAtMs: NOW.getTime() };
    const before = askedBy({ authorization, consumedAt: null, holder: null });
    expect(before).to.deep.include({ authorizedAt: NOW, tokenAt: undefined });
    expect(askedBy({ authorization: null, consumedAt: NOW, holder: null })).to.deep.include({
      ...{ authorizedAt: undefined, tokenAt: NOW, code: undefined },
    });
    expect(withoutRequest({ ...authorization, queries: {}, code: 'c' })).to.deep.equal({
      ...{ holder: CALLER, byDetails: false },
    });
  });

  const proofs: [string, Partial<Redeemer>, string][] = [
    ['an attestation', { instance: 'i', authenticated: true }, 'attestation'],
    ['a key that is registered', { authenticated: true }, 'key'],
    ['nothing', {}, 'none'],
    ['nothing but the key of its token', { keyThumbprint: 'k', authenticated: false }, 'none'],
  ];
  for (const [what, change, expected] of proofs)
    it(`tells that its wallet proved with ${what} which product it is, once it came`, () => {
      const holder: Redeemer = { identifiers: false, refreshableUntil: 0, ...change };
      const of = (consumedAt: Date | null) =>
        askedBy({ authorization: null, consumedAt, holder }).walletAuthentication;
      expect([of(null), of(NOW)]).to.deep.equal([undefined, expected]);
    });

  it('is redeemed for a session that has completed by an authorization code alone', () => {
    expect(redeemable(FRESH)).to.not.have.property('anytime');
    expect(redeemable({ ...FRESH, kind: 'authorization_code' }).anytime).to.deep.equal(['completed']);
  });

  it('was robbed where a refresh token comes that was replaced twice, or was never made', () => {
    expect([3, 4, 5, 6].map((generation) => isStolen(generation, 5))).to.deep.equal([
      true,
      false,
      false,
      true,
    ]);
  });
});

describe('A token request', () => {
  const ISSUER = 'https://issuer.example/acme';
  const read = (form: Record<string, string>) =>
    outcome(() => readTokenRequest(form, 'built-in', ISSUER).wanted ?? 'read');
  const code = { grant_type: PRE_AUTHORIZED_CODE_GRANT, 'pre-authorized_code': 'c' };
  const details = (...entries: object[]) => ({ ...code, authorization_details: JSON.stringify(entries) });
  const card = { type: 'openid_credential', credential_configuration_id: 'card' };

  it('has a transaction code with its own grant alone', () => {
    expect(read({ ...code, tx_code: '1' })).to.equal('read');
    const refresh = { grant_type: REFRESH_TOKEN_GRANT, refresh_token: 'r' };
    expect([read(refresh), read({ ...refresh, tx_code: '1' })]).to.deep.equal(['read', 'invalid_request']);
  });

  it('names configurations in its details, each by its id', () => {
    expect(read(details(card, { ...card, credential_configuration_id: 'pass' }))).to.deep.equal([
      'card',
      'pass',
    ]);
    for (const wrong of [
      details(),
      details({ type: 'openid_credential' }),
      details({ ...card, type: 'x' }),
    ]) {
      expect(read(wrong)).to.equal('invalid_authorization_details');
    }
  });
});

describe('Values that are used once', () => {
  it('are put down in one order, who it is before what it asks for', () => {
    const used = (kind: UsedValue['kind'], hash: string) => ({ kind, hash, expiresAt: NOW });
    const sorted = [
      used('client_jti', 'z'),
      used('dpop_jti', 'b'),
      used('c_nonce', 'a'),
      used('c_nonce', 'c'),
    ];
    for (const order of [sorted, sorted.toReversed()]) expect(inOrder(order)).to.deep.equal(sorted);
  });
});
