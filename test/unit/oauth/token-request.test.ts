import type { KeyObject } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { AuthorizationCodeGrant } from '../../../application/oauth/authorization-code-grant.ts';
import { hashCode } from '../../../application/oauth/pre-authorized-code-grant.ts';
import { ASSERTION_TYPE } from '../../../domain/oauth/client-assertion.ts';
import type { AuthorizationServer } from '../../../domain/oauth/grant.ts';
import { createRefreshToken, parseRefreshToken } from '../../../domain/oauth/refresh-token.ts';
import { AUTHORIZATION_CODE_GRANT, PRE_AUTHORIZED_CODE_GRANT, REFRESH_TOKEN_GRANT } from '../../../domain/oauth/token-request.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import { type PublicJwk, thumbprint } from '../../../domain/shared/jwk.ts';
import { UPSTREAM } from '../../support/fakes.ts';
import { decode } from '../../support/present.ts';
import { AUTHORIZATION_REQUEST, CODE_VERIFIER, makeJwt, newKey } from '../../support/raw-wallet.ts';
import { ACME } from '../verification/kit.ts';
import { anOffer, outcomeOf, Wallet, WalletWorld } from '../wallet-kit.ts';

const { client_id, redirect_uri } = AUTHORIZATION_REQUEST;

describe('AnswerTokenRequest', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
  });

  const requestToken = (form: Record<string, string>, server: AuthorizationServer = 'built-in', tenantId = ACME) =>
    world.answerTokenRequest.execute(tenantId, server, wallet.createOAuthRequest('token', form));
  const preAuthorized = async () => ({ grant_type: PRE_AUTHORIZED_CODE_GRANT, 'pre-authorized_code': (await anOffer(world)).code });

  it('redeems a pre-authorized code, and refreshes its token', async () => {
    const { body } = await requestToken(await preAuthorized());
    const refresh = { grant_type: REFRESH_TOKEN_GRANT, refresh_token: body.refresh_token ?? '' };
    const refreshResponse = await requestToken(refresh);
    expect(refreshResponse.body.access_token).to.be.a('string').that.is.not.equal(body.access_token);
  });

  it('redeems an authorization code', async () => {
    const { session } = await anOffer(world, { flow: 'authorization_code' });
    const code = await wallet.approve(await wallet.push({ issuer_state: session.publicId }));
    const form = { grant_type: AUTHORIZATION_CODE_GRANT, code, client_id, redirect_uri };
    const { body } = await requestToken({ ...form, code_verifier: CODE_VERIFIER });
    expect(body.scope).to.equal('card');
  });

  type Changes = Record<string, string | undefined>;
  const rejections: readonly [description: string, code: FailureCode, changes: Changes, server?: AuthorizationServer][] = [
    ['no grant', 'invalid_request', { grant_type: undefined }],
    ['the grant of a password', 'unsupported_grant_type', { grant_type: 'password' }],
    ['a pre-authorized code at the chained server', 'unsupported_grant_type', {}, 'chained'],
    ['no code', 'invalid_request', { 'pre-authorized_code': undefined }],
    ['no authorization code', 'invalid_request', { grant_type: AUTHORIZATION_CODE_GRANT }],
    ['no refresh token', 'invalid_request', { grant_type: REFRESH_TOKEN_GRANT }],
    ['a transaction code of another grant', 'invalid_request', { grant_type: REFRESH_TOKEN_GRANT, tx_code: '1234' }],
    ['details that are not a list', 'invalid_authorization_details', { authorization_details: '{}' }],
    ['details of another type', 'invalid_authorization_details', { authorization_details: '[{"type":"x"}]' }],
  ];
  for (const [description, code, changes, server] of rejections) {
    it(`rejects ${description}, and consumes nothing`, async () => {
      const form = await preAuthorized();
      const fields = Object.entries({ ...form, ...changes });
      const sentForm = Object.fromEntries(fields.filter((entry): entry is [string, string] => entry[1] !== undefined));
      expect(await outcomeOf(requestToken(sentForm, server))).to.equal(code);
      expect(await outcomeOf(requestToken(form))).to.equal('done');
    });
  }

  it('hides faults of a request to a tenant that is unknown or suspended', async () => {
    const unknownTenant = 'unknown' as TenantId;
    expect(await outcomeOf(requestToken({}, 'built-in', unknownTenant))).to.equal('not_found');
    expect(await outcomeOf(requestToken(await preAuthorized(), 'built-in', unknownTenant))).to.equal('not_found');
    const form = await preAuthorized();
    await world.changeTenant({ status: 'suspended' });
    expect([await outcomeOf(requestToken({})), await outcomeOf(requestToken(form))]).to.deep.equal(['not_found', 'not_found']);
    await world.changeTenant({ status: 'active' });
  });
});

const { client_id: CLIENT, redirect_uri: REDIRECT } = AUTHORIZATION_REQUEST;

describe('AuthorizationCodeGrant', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    await world.putCredential({ id: 'pass' });
  });

  type CodeGrant = { readonly code: string; readonly session: Session };
  const startCodeGrant = async (push: Record<string, string> = {}): Promise<CodeGrant> => {
    const ids = { credentialConfigurationIds: ['card', 'pass'] };
    const server = { authorization_server: wallet.issuer };
    const { session } = await anOffer(world, { flow: 'authorization_code', ...ids, ...server });
    const code = await wallet.approve(await wallet.push({ issuer_state: session.publicId, ...push }));
    return { code, session };
  };
  const storedGrant = async (code: string) => {
    const grant = (await world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
    if (grant === undefined) throw new Error('no such grant');
    return grant;
  };

  it('answers with a token for the approved credentials, and records the wallet', async () => {
    const { code, session } = await startCodeGrant();
    const { body } = await wallet.redeemCode(code);
    expect(body).to.include({ token_type: 'DPoP', scope: 'card' });
    expect(decode(body.access_token).payload).to.deep.include({
      client_id: CLIENT,
      issuer_state: session.publicId,
      credential_configuration_ids: ['card'],
    });
    const { holder, consumedAt, generation } = await storedGrant(code);
    const jkt = thumbprint(wallet.key.jwk as PublicJwk);
    expect(holder).to.deep.include({ clientId: CLIENT, keyThumbprint: jkt, identifiers: false });
    expect([consumedAt, generation]).to.deep.equal([world.clock.now(), 0]);
    const { credentials } = await wallet.issue(body.access_token);
    expect(credentials).to.have.length(1);
  });

  it('returns identifiers if the wallet used details in either request', async () => {
    const details = (id: string) => [{ type: 'openid_credential', credential_configuration_id: id }];
    const detailedGrant = await startCodeGrant({ authorization_details: JSON.stringify([...details('card'), ...details('pass')]) });
    const { body } = await wallet.redeemCode(detailedGrant.code);
    expect(body.authorization_details).to.have.length(2);
    const { code } = await startCodeGrant({ scope: 'card pass' });
    const narrowed = await wallet.redeemCode(code, { changes: { requestedIds: ['pass'] } });
    expect(narrowed.body.authorization_details).to.have.length(1);
    expect(narrowed.body.scope).to.equal('pass');
  });

  it('issues to another wallet with an offer that is completed', async () => {
    const { session } = await anOffer(world, { flow: 'authorization_code' });
    const approveCode = async () => wallet.approve(await wallet.push({ issuer_state: session.publicId }));
    const [first, second] = [await approveCode(), await approveCode()];
    await wallet.issue((await wallet.redeemCode(first)).body.access_token);
    expect((await world.session(session.id)).status).to.equal('completed');
    await wallet.issue((await wallet.redeemCode(second)).body.access_token);
    expect((await world.storedIssuance(session.id)).batches).to.have.length(2);
  });

  type RedeemOptions = NonNullable<Parameters<Wallet['redeemCode']>[1]>;
  type RejectionCase = readonly [description: string, code: FailureCode, change: () => RedeemOptions];
  const tokenRequest = (form: Record<string, string>, options: object = {}) => wallet.createOAuthRequest('token', form, options);
  const rejections: readonly RejectionCase[] = [
    ['another redirect address', 'invalid_grant', () => ({ changes: { redirectUri: 'https://else.example' } })],
    ['another verifier', 'invalid_grant', () => ({ changes: { codeVerifier: `${CODE_VERIFIER}x` } })],
    ['more than was approved', 'invalid_authorization_details', () => ({ changes: { requestedIds: ['pass'] } })],
    ['another client', 'invalid_grant', () => ({ request: tokenRequest({ client_id: 'https://else.example' }) })],
    ['no client', 'invalid_grant', () => ({ request: tokenRequest({}) })],
    ['no DPoP proof', 'invalid_dpop_proof', () => ({ request: tokenRequest({ client_id: CLIENT }, { dpop: [] }) })],
    [
      'the key of another wallet',
      'invalid_grant',
      () => ({ request: tokenRequest({ client_id: CLIENT }, { dpop: [wallet.dpop('token', { key: newKey() })] }) }),
    ],
    ['the chained server, which is disabled', 'not_found', () => ({ server: 'chained' })],
  ];
  for (const [description, code, buildOptions] of rejections) {
    it(`rejects ${description}, and does not consume the code`, async () => {
      const codeGrant = await startCodeGrant();
      const before = await storedGrant(codeGrant.code);
      expect(await outcomeOf(wallet.redeemCode(codeGrant.code, buildOptions()))).to.equal(code);
      expect(await storedGrant(codeGrant.code)).to.deep.equal(before);
      expect(await outcomeOf(wallet.redeemCode(codeGrant.code))).to.equal('done');
    });
  }

  it('rejects a code of another server of the same tenant', async () => {
    await world.putIssuance({ chainedAs: { upstream: { issuer: UPSTREAM, clientId: 'vidimus' } } });
    const { code } = await startCodeGrant();
    expect(await outcomeOf(wallet.redeemCode(code, { server: 'chained' }))).to.equal('invalid_grant');
    await world.putIssuance();
    expect(await outcomeOf(wallet.redeemCode(code))).to.equal('done');
  });

  it('rejects an unknown code, and one of a pre-authorized offer', async () => {
    const { code } = await anOffer(world);
    const outcomes = [await outcomeOf(wallet.redeemCode('unknown')), await outcomeOf(wallet.redeemCode(code))];
    expect(outcomes).to.deep.equal(['invalid_grant', 'invalid_grant']);
    expect(await outcomeOf(wallet.redeem(code))).to.equal('done');
  });

  it('rejects a code after a minute', async () => {
    const { code } = await startCodeGrant();
    expect(await world.afterSeconds(60, () => outcomeOf(wallet.redeemCode(code)))).to.equal('invalid_grant');
    expect(await world.afterSeconds(59, () => outcomeOf(wallet.redeemCode(code)))).to.equal('done');
  });

  it('rejects a used proof, and revokes nothing', async () => {
    const request = wallet.createOAuthRequest('token', { client_id: CLIENT });
    await wallet.redeemCode((await startCodeGrant()).code, { request });
    const { code } = await startCodeGrant();
    expect(await outcomeOf(wallet.redeemCode(code, { request }))).to.equal('invalid_dpop_proof');
    expect((await storedGrant(code)).revokedAt).to.equal(null);
  });

  describe('with a repeated code', () => {
    const isRevoked = async (code: string) => (await storedGrant(code)).revokedAt !== null;

    it('revokes the tokens of the code', async () => {
      const { code } = await startCodeGrant();
      const { body } = await wallet.redeemCode(code);
      expect(await outcomeOf(wallet.redeemCode(code))).to.equal('invalid_grant');
      expect(await isRevoked(code)).to.equal(true);
      expect(await outcomeOf(wallet.issue(body.access_token))).to.equal('invalid_token');
    });

    it('revokes them also for two simultaneous requests, and when another process was first', async () => {
      const { code } = await startCodeGrant();
      const outcomes = await Promise.all([1, 2].map(() => outcomeOf(wallet.redeemCode(code))));
      expect(outcomes.sort()).to.deep.equal(['done', 'invalid_grant']);
      expect(await isRevoked(code)).to.equal(true);
      const otherCode = await startCodeGrant();
      const request = wallet.createOAuthRequest('token', { client_id: CLIENT });
      const redemption = { code: otherCode.code, redirectUri: REDIRECT, codeVerifier: CODE_VERIFIER, requestedIds: undefined };
      const grantType = AUTHORIZATION_CODE_GRANT;
      await new AuthorizationCodeGrant(world.otherProcess()).answer(ACME, 'built-in', request, { grantType, ...redemption });
      expect(await outcomeOf(wallet.redeemCode(otherCode.code))).to.equal('invalid_grant');
      expect(await isRevoked(otherCode.code)).to.equal(true);
    });

    it('revokes nothing if neither the client nor the request is proven', async () => {
      const { code } = await startCodeGrant();
      const { body } = await wallet.redeemCode(code);
      for (const [, , buildOptions] of rejections.filter(([, errorCode]) => errorCode === 'invalid_grant')) {
        expect(await outcomeOf(wallet.redeemCode(code, buildOptions()))).to.equal('invalid_grant');
        expect(await isRevoked(code)).to.equal(false);
      }
      expect(await outcomeOf(wallet.issue(body.access_token))).to.equal('done');
    });

    it('revokes them when the offer ended before, so that it cannot be used again', async () => {
      const { code, session } = await startCodeGrant();
      const change = { id: session.id, anytime: ['active', 'fetched'], to: 'failed' } as const;
      await world.store.commit(ACME, { session: change }, world.clock.now());
      expect(await outcomeOf(wallet.redeemCode(code))).to.equal('invalid_grant');
      expect(await isRevoked(code)).to.equal(true);
    });
  });
});

describe('RefreshTokenGrant', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    await world.putCredential({ id: 'pass' });
  });
  afterEach(() => sinon.restore());

  const parseGeneration = (text: string | undefined) => parseRefreshToken(world.settings.refreshTokenKeys, ACME, text ?? '');
  const storedGrant = async (refreshToken: string) => {
    const { grantId = '' } = parseGeneration(refreshToken) ?? {};
    const grant = (await world.store.read(ACME).grant(grantId))?.grant;
    if (grant === undefined) throw new Error('no such grant');
    return grant;
  };
  /** Creates a refresh token for the requested configurations of an offer of two. */
  const grantRefreshToken = async (requestedIds?: string[]): Promise<{ refreshToken: string; session: SessionId }> => {
    const { code, session } = await anOffer(world, { credentialConfigurationIds: ['card', 'pass'] });
    const { body } = await wallet.redeem(code, requestedIds === undefined ? {} : { requestedIds });
    return { refreshToken: body.refresh_token ?? '', session: session.id };
  };
  const scopes = (tokenRequest: string) => decode(tokenRequest).payload['credential_configuration_ids'] as string[];

  /** Replaces the refresh token on each use, like an earlier release. */
  const replaceToken = async (refreshToken: string) => {
    const { id, generation } = await storedGrant(refreshToken);
    await world.store.commit(ACME, { grant: { id, act: 'refresh', generation } }, world.clock.now());
    const [key] = world.settings.refreshTokenKeys;
    return createRefreshToken(key as KeyObject, ACME, { grantId: id, generation: generation + 1 });
  };

  it('returns an access token and the same refresh token, any number of times', async () => {
    const { refreshToken } = await grantRefreshToken();
    const { body } = await wallet.refresh(refreshToken);
    expect(body).to.include({ token_type: 'DPoP', expires_in: 1800 });
    expect(scopes(body.access_token)).to.deep.equal(['card', 'pass']);
    expect(body.refresh_token).to.equal(refreshToken);
    expect((await wallet.refresh(refreshToken)).body.refresh_token).to.equal(refreshToken);
    expect(await storedGrant(refreshToken)).to.deep.include({ generation: 0, revokedAt: null });
    expect((await wallet.issue(body.access_token)).credentials).to.have.length(1);
  });

  it('rejects a wallet that uses the client_id of a removed client', async () => {
    const key = newKey();
    const clientAssertion = () => {
      const times = { iat: world.seconds, exp: world.seconds + 300, jti: world.random.token() };
      const client_assertion = makeJwt(key, { alg: 'ES256' }, { iss: 'bank', sub: 'bank', aud: wallet.issuer, ...times });
      return { client_id: 'bank', client_assertion, client_assertion_type: ASSERTION_TYPE };
    };
    await world.putIssuance({ walletClients: [{ client_id: 'bank', jwks: { keys: [key.jwk] } }] });
    const { code } = await anOffer(world);
    const { body } = await wallet.redeem(code, { request: wallet.createOAuthRequest('token', clientAssertion()) });
    const tokenRequest = body.refresh_token ?? '';
    const otherWallet = new Wallet(world);
    const refreshAsBank = (form: Record<string, string>) =>
      outcomeOf(otherWallet.refresh(tokenRequest, { request: otherWallet.createOAuthRequest('token', form) }));
    expect(await refreshAsBank(clientAssertion())).to.equal('done');
    expect(await refreshAsBank({ client_id: 'bank' })).to.equal('invalid_client');
    await world.putIssuance();
    expect(await refreshAsBank({ client_id: 'bank' })).to.equal('invalid_grant');
    expect(await storedGrant(tokenRequest)).to.deep.include({ revokedAt: null });
  });

  it('covers the granted credentials, or fewer on request', async () => {
    const narrowed = await grantRefreshToken(['pass']);
    const { body } = await wallet.refresh(narrowed.refreshToken);
    expect(body.authorization_details).to.have.length(1);
    const { refreshToken } = await grantRefreshToken();
    const byDetails = await wallet.refresh(refreshToken, { requestedIds: ['card'] });
    expect(scopes(byDetails.body.access_token)).to.deep.equal(['card']);
    const byScope = await wallet.refresh(byDetails.body.refresh_token, { scope: 'pass' });
    expect(scopes(byScope.body.access_token)).to.deep.equal(['pass']);
    const full = await wallet.refresh(byScope.body.refresh_token);
    expect(scopes(full.body.access_token)).to.deep.equal(['card', 'pass']);
  });

  type RejectionCase = readonly [description: string, code: FailureCode, call: (refreshToken: string) => Promise<unknown>];
  const refreshLater = (seconds: number) => (refreshToken: string) => world.afterSeconds(seconds, () => wallet.refresh(refreshToken));
  const refreshWith = (form: Record<string, string>, dpop?: () => string[]) => (refreshToken: string) => {
    const options = dpop === undefined ? {} : { dpop: dpop() };
    return wallet.refresh(refreshToken, { request: wallet.createOAuthRequest('token', form, options) });
  };
  const rejections: readonly RejectionCase[] = [
    ['an unknown token', 'invalid_grant', () => wallet.refresh('unknown')],
    ['a modified token', 'invalid_grant', (tokenRequest) => wallet.refresh(`${tokenRequest.slice(0, -4)}AAAA`)],
    ['a token that has expired', 'invalid_grant', refreshLater(2_592_000)],
    ['another client', 'invalid_grant', refreshWith({ client_id: 'https://else.example' })],
    ['the key of another wallet', 'invalid_grant', refreshWith({}, () => [wallet.dpop('token', { key: newKey() })])],
    ['no DPoP proof', 'invalid_dpop_proof', refreshWith({}, () => [])],
    ['a DPoP proof for another address', 'invalid_dpop_proof', refreshWith({}, () => [wallet.dpop('par')])],
    ['a scope of another configuration', 'invalid_scope', (tokenRequest) => wallet.refresh(tokenRequest, { scope: 'else' })],
    ['an empty scope', 'invalid_scope', (tokenRequest) => wallet.refresh(tokenRequest, { scope: ' ' })],
    [
      'details of another configuration',
      'invalid_authorization_details',
      (tokenRequest) => wallet.refresh(tokenRequest, { requestedIds: ['else'] }),
    ],
    [
      'every token after refresh tokens were disabled',
      'invalid_grant',
      async (tokenRequest) => {
        await world.putIssuance({ refreshTokenSeconds: 0 });
        return wallet.refresh(tokenRequest).finally(() => world.putIssuance());
      },
    ],
    [
      'a token at a disabled server',
      'not_found',
      (refreshToken) => {
        const refresh = { grantType: 'refresh_token', refreshToken, scope: undefined, requestedIds: undefined } as const;
        return world.refreshToken.answer(ACME, 'chained', wallet.createOAuthRequest('chained-as/token'), refresh);
      },
    ],
  ];
  for (const [description, code, call] of rejections) {
    it(`rejects ${description}, and changes no counter`, async () => {
      const { refreshToken } = await grantRefreshToken();
      const before = await storedGrant(refreshToken);
      expect(await outcomeOf(call(refreshToken))).to.equal(code);
      expect(await storedGrant(refreshToken)).to.deep.equal(before);
      expect(await outcomeOf(wallet.refresh(refreshToken))).to.equal('done');
    });
  }

  it('rejects a used DPoP proof', async () => {
    const request = wallet.createOAuthRequest('token');
    const { refreshToken } = await grantRefreshToken();
    await wallet.refresh(refreshToken, { request });
    expect(await outcomeOf(wallet.refresh(refreshToken, { request }))).to.equal('invalid_dpop_proof');
    expect((await storedGrant(refreshToken)).revokedAt).to.equal(null);
  });

  it('rejects a token whose grant was revoked', async () => {
    const { refreshToken } = await grantRefreshToken();
    const { id } = await storedGrant(refreshToken);
    await world.store.commit(ACME, { grant: { id, act: 'revoke' } }, world.clock.now());
    expect(await outcomeOf(wallet.refresh(refreshToken))).to.equal('invalid_grant');
  });

  it('rejects a token that is revoked simultaneously', async () => {
    const { refreshToken } = await grantRefreshToken();
    const { id } = await storedGrant(refreshToken);
    const commit = world.store.commit.bind(world.store);
    sinon.stub(world.store, 'commit').callsFake(async (...parameters) => {
      await commit(ACME, { grant: { id, act: 'revoke' } }, world.clock.now());
      return commit(...parameters);
    });
    expect(await outcomeOf(wallet.refresh(refreshToken))).to.equal('invalid_grant');
  });

  it('accepts tokens that an earlier release replaced, up to the last but one', async () => {
    const { refreshToken } = await grantRefreshToken();
    const second = await replaceToken(refreshToken);
    for (const tokenRequest of [refreshToken, second]) expect((await wallet.refresh(tokenRequest)).body.refresh_token).to.equal(second);
  });

  it('revokes everything when a refresh token is replayed whose successor was used', async () => {
    const { refreshToken } = await grantRefreshToken();
    const third = await replaceToken(await replaceToken(refreshToken));
    const { body } = await wallet.refresh(third);
    expect(await outcomeOf(wallet.refresh(refreshToken))).to.equal('invalid_grant');
    expect((await storedGrant(refreshToken)).revokedAt).to.deep.equal(world.clock.now());
    expect(await outcomeOf(wallet.refresh(third))).to.equal('invalid_grant');
    expect(await outcomeOf(wallet.issue(body.access_token))).to.equal('invalid_token');
  });

  it('is evaluated with the stored configuration if the cached one is outdated', async () => {
    const { refreshToken } = await grantRefreshToken();
    await world.putIssuance({ refreshTokenSeconds: 60 });
    const commit = sinon.spy(world.store, 'commit');
    const { body } = await wallet.refresh(refreshToken);
    expect(body.refresh_token).to.equal(refreshToken);
    expect(commit.callCount).to.equal(1);
    await world.putIssuance();
  });
});
