import type { KeyObject } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { ASSERTION_TYPE } from '../../../domain/oauth/client-assertion.ts';
import { makeRefreshToken, readRefreshToken } from '../../../domain/oauth/refresh-token.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import type { SessionId } from '../../../domain/shared/ids.ts';
import { decode } from '../../support/present.ts';
import { makeJwt, newKey } from '../../support/raw-wallet.ts';
import { ACME } from '../verification-flow/kit.ts';
import { anOffer, Wallet } from '../wallet.ts';
import { endOf, WalletWorld } from '../wallet-kit.ts';

describe('RefreshAccess', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    await world.offers({ id: 'pass' });
  });
  afterEach(() => sinon.restore());

  const generationOf = (text: string | undefined) =>
    readRefreshToken(world.settings.refreshTokenKeys, ACME, text ?? '');
  const stored = async (refreshToken: string) => {
    const { grantId = '' } = generationOf(refreshToken) ?? {};
    const grant = (await world.store.read(ACME).grant(grantId))?.grant;
    if (grant === undefined) throw new Error('no such grant');
    return grant;
  };
  /** A refresh token of a wallet that got what it wanted of an offer of two. */
  const granted = async (wanted?: string[]): Promise<{ refreshToken: string; session: SessionId }> => {
    const { code, session } = await anOffer(world, { credentialConfigurationIds: ['card', 'pass'] });
    const { body } = await wallet.redeem(code, wanted === undefined ? {} : { wanted });
    return { refreshToken: body.refresh_token ?? '', session: session.id };
  };
  const scopes = (token: string) => decode(token).payload['credential_configuration_ids'] as string[];

  /** As an earlier release did with each use. */
  const replaced = async (refreshToken: string) => {
    const { id, generation } = await stored(refreshToken);
    await world.store.commit(ACME, { grant: { id, act: 'refresh', generation } }, world.clock.now());
    const [key] = world.settings.refreshTokenKeys;
    return makeRefreshToken(key as KeyObject, ACME, { grantId: id, generation: generation + 1 });
  };

  it('answers with an access token and the same refresh token, however often', async () => {
    const { refreshToken } = await granted();
    const { body } = await wallet.refresh(refreshToken);
    expect(body).to.include({ token_type: 'DPoP', expires_in: 1800 });
    expect(scopes(body.access_token)).to.deep.equal(['card', 'pass']);
    expect(body.refresh_token).to.equal(refreshToken);
    expect((await wallet.refresh(refreshToken)).body.refresh_token).to.equal(refreshToken);
    expect(await stored(refreshToken)).to.deep.include({ generation: 0, revokedAt: null });
    expect((await wallet.issue(body.access_token)).credentials).to.have.length(1);
  });

  it('is for no stranger who takes the name of a wallet that is registered no more', async () => {
    const key = newKey();
    const asserted = () => {
      const times = { iat: world.seconds, exp: world.seconds + 300, jti: world.random.token() };
      const client_assertion = makeJwt(
        key,
        { alg: 'ES256' },
        { iss: 'bank', sub: 'bank', aud: wallet.issuer, ...times },
      );
      return { client_id: 'bank', client_assertion, client_assertion_type: ASSERTION_TYPE };
    };
    await world.issues({ walletClients: [{ client_id: 'bank', jwks: { keys: [key.jwk] } }] });
    const { code } = await anOffer(world);
    const { body } = await wallet.redeem(code, { request: wallet.oauth('token', asserted()) });
    const token = body.refresh_token ?? '';
    const stranger = new Wallet(world);
    const asBank = (form: Record<string, string>) =>
      endOf(stranger.refresh(token, { request: stranger.oauth('token', form) }));
    expect(await asBank(asserted())).to.equal('done');
    expect(await asBank({ client_id: 'bank' })).to.equal('invalid_client');
    await world.issues();
    expect(await asBank({ client_id: 'bank' })).to.equal('invalid_grant');
    expect(await stored(token)).to.deep.include({ revokedAt: null });
  });

  it('covers what was granted, or less of it where the wallet asks for less', async () => {
    const narrow = await granted(['pass']);
    const { body } = await wallet.refresh(narrow.refreshToken);
    expect(body.authorization_details).to.have.length(1);
    const { refreshToken } = await granted();
    const byDetails = await wallet.refresh(refreshToken, { wanted: ['card'] });
    expect(scopes(byDetails.body.access_token)).to.deep.equal(['card']);
    const byScope = await wallet.refresh(byDetails.body.refresh_token, { scope: 'pass' });
    expect(scopes(byScope.body.access_token)).to.deep.equal(['pass']);
    const whole = await wallet.refresh(byScope.body.refresh_token);
    expect(scopes(whole.body.access_token)).to.deep.equal(['card', 'pass']);
  });

  type Refused = readonly [what: string, code: FailureCode, ask: (refreshToken: string) => Promise<unknown>];
  const later = (seconds: number) => (refreshToken: string) =>
    world.later(seconds, () => wallet.refresh(refreshToken));
  const sending = (form: Record<string, string>, dpop?: () => string[]) => (refreshToken: string) => {
    const more = dpop === undefined ? {} : { dpop: dpop() };
    return wallet.refresh(refreshToken, { request: wallet.oauth('token', form, more) });
  };
  const refusals: readonly Refused[] = [
    ['a token of nobody', 'invalid_grant', () => wallet.refresh('unknown')],
    ['a token that was bent', 'invalid_grant', (token) => wallet.refresh(`${token.slice(0, -4)}AAAA`)],
    ['a token whose time is over', 'invalid_grant', later(2_592_000)],
    ['another client', 'invalid_grant', sending({ client_id: 'https://else.example' })],
    [
      'the key of another wallet',
      'invalid_grant',
      sending({}, () => [wallet.dpop('token', { key: newKey() })]),
    ],
    ['no DPoP proof', 'invalid_dpop_proof', sending({}, () => [])],
    ['a DPoP proof for another address', 'invalid_dpop_proof', sending({}, () => [wallet.dpop('par')])],
    ['a scope of something else', 'invalid_scope', (token) => wallet.refresh(token, { scope: 'else' })],
    ['an empty scope', 'invalid_scope', (token) => wallet.refresh(token, { scope: ' ' })],
    [
      'details of something else',
      'invalid_authorization_details',
      (token) => wallet.refresh(token, { wanted: ['else'] }),
    ],
    [
      'every token where there are none any more',
      'invalid_grant',
      async (token) => {
        await world.issues({ refreshTokenSeconds: 0 });
        return wallet.refresh(token).finally(() => world.issues());
      },
    ],
    [
      'a token at a server that is not there',
      'not_found',
      (refreshToken) => {
        const refresh = {
          grantType: 'refresh_token',
          refreshToken,
          scope: undefined,
          wanted: undefined,
        } as const;
        return world.refreshAccess.execute(ACME, 'chained', wallet.oauth('chained-as/token'), refresh);
      },
    ],
  ];
  for (const [what, code, ask] of refusals) {
    it(`refuses ${what}, and counts nothing`, async () => {
      const { refreshToken } = await granted();
      const before = await stored(refreshToken);
      expect(await endOf(ask(refreshToken))).to.equal(code);
      expect(await stored(refreshToken)).to.deep.equal(before);
      expect(await endOf(wallet.refresh(refreshToken))).to.equal('done');
    });
  }

  it('refuses a DPoP proof that was used', async () => {
    const request = wallet.oauth('token');
    const { refreshToken } = await granted();
    await wallet.refresh(refreshToken, { request });
    expect(await endOf(wallet.refresh(refreshToken, { request }))).to.equal('invalid_dpop_proof');
    expect((await stored(refreshToken)).revokedAt).to.equal(null);
  });

  it('refuses a token whose grant was revoked', async () => {
    const { refreshToken } = await granted();
    const { id } = await stored(refreshToken);
    await world.store.commit(ACME, { grant: { id, act: 'revoke' } }, world.clock.now());
    expect(await endOf(wallet.refresh(refreshToken))).to.equal('invalid_grant');
  });

  it('refuses it also where it is revoked at the same moment', async () => {
    const { refreshToken } = await granted();
    const { id } = await stored(refreshToken);
    const commit = world.store.commit.bind(world.store);
    sinon.stub(world.store, 'commit').callsFake(async (...given) => {
      await commit(ACME, { grant: { id, act: 'revoke' } }, world.clock.now());
      return commit(...given);
    });
    expect(await endOf(wallet.refresh(refreshToken))).to.equal('invalid_grant');
  });

  it('takes those that an earlier release replaced, up to the one before the newest', async () => {
    const { refreshToken } = await granted();
    const second = await replaced(refreshToken);
    for (const token of [refreshToken, second])
      expect((await wallet.refresh(token)).body.refresh_token).to.equal(second);
  });

  it('revokes everything when one comes back whose successor was used', async () => {
    const { refreshToken } = await granted();
    const third = await replaced(await replaced(refreshToken));
    const { body } = await wallet.refresh(third);
    expect(await endOf(wallet.refresh(refreshToken))).to.equal('invalid_grant');
    expect((await stored(refreshToken)).revokedAt).to.deep.equal(world.clock.now());
    expect(await endOf(wallet.refresh(third))).to.equal('invalid_grant');
    expect(await endOf(wallet.issue(body.access_token))).to.equal('invalid_token');
  });

  it('counts by what is stored when its tenant was configured otherwise a moment ago', async () => {
    const { refreshToken } = await granted();
    await world.issues({ refreshTokenSeconds: 60 });
    const commit = sinon.spy(world.store, 'commit');
    const { body } = await wallet.refresh(refreshToken);
    expect(body.refresh_token).to.equal(refreshToken);
    expect(commit.callCount).to.equal(1);
    await world.issues();
  });
});
