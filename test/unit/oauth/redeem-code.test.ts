import { expect } from 'chai';
import { RedeemCode } from '../../../application/oauth/redeem-code.ts';
import { hashCode } from '../../../application/oauth/redeem-grant.ts';
import { AUTHORIZATION_CODE_GRANT } from '../../../domain/oauth/token-request.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import { type PublicJwk, thumbprint } from '../../../domain/shared/jwk.ts';
import { UPSTREAM } from '../../support/fake-authorization-servers.ts';
import { decode } from '../../support/present.ts';
import { AUTHORIZATION_REQUEST, CODE_VERIFIER, newKey } from '../../support/raw-wallet.ts';
import { ACME } from '../verification-flow/kit.ts';
import { anOffer, Wallet } from '../wallet.ts';
import { endOf, WalletWorld } from '../wallet-kit.ts';

const { client_id: CLIENT, redirect_uri: REDIRECT } = AUTHORIZATION_REQUEST;

describe('RedeemCode', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    await world.offers({ id: 'pass' });
  });

  type Coded = { readonly code: string; readonly session: Session };
  const coded = async (push: Record<string, string> = {}): Promise<Coded> => {
    const ids = { credentialConfigurationIds: ['card', 'pass'] };
    const server = { authorization_server: wallet.issuer };
    const { session } = await anOffer(world, { flow: 'authorization_code', ...ids, ...server });
    const code = await wallet.approve(await wallet.push({ issuer_state: session.publicId, ...push }));
    return { code, session };
  };
  const stored = async (code: string) => {
    const grant = (await world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
    if (grant === undefined) throw new Error('no such grant');
    return grant;
  };

  it('answers with a token for what was approved, and records who redeemed', async () => {
    const { code, session } = await coded();
    const { body } = await wallet.redeemCode(code);
    expect(body).to.include({ token_type: 'DPoP', scope: 'card' });
    expect(decode(body.access_token).payload).to.deep.include({
      client_id: CLIENT,
      issuer_state: session.publicId,
      credential_configuration_ids: ['card'],
    });
    const { holder, consumedAt, generation } = await stored(code);
    const jkt = thumbprint(wallet.key.jwk as PublicJwk);
    expect(holder).to.deep.include({ clientId: CLIENT, keyThumbprint: jkt, identifiers: false });
    expect([consumedAt, generation]).to.deep.equal([world.clock.now(), 0]);
    const { credentials } = await wallet.issue(body.access_token);
    expect(credentials).to.have.length(1);
  });

  it('names identifiers when the wallet asked by details, or asks by them now', async () => {
    const details = (id: string) => [{ type: 'openid_credential', credential_configuration_id: id }];
    const asked = await coded({
      authorization_details: JSON.stringify([...details('card'), ...details('pass')]),
    });
    const { body } = await wallet.redeemCode(asked.code);
    expect(body.authorization_details).to.have.length(2);
    const { code } = await coded({ scope: 'card pass' });
    const narrowed = await wallet.redeemCode(code, { changes: { wanted: ['pass'] } });
    expect(narrowed.body.authorization_details).to.have.length(1);
    expect(narrowed.body.scope).to.equal('pass');
  });

  it('serves another wallet of an offer that has completed', async () => {
    const { session } = await anOffer(world, { flow: 'authorization_code' });
    const codeOf = async () => wallet.approve(await wallet.push({ issuer_state: session.publicId }));
    const [first, second] = [await codeOf(), await codeOf()];
    await wallet.issue((await wallet.redeemCode(first)).body.access_token);
    expect((await world.session(session.id)).status).to.equal('completed');
    await wallet.issue((await wallet.redeemCode(second)).body.access_token);
    expect((await world.stored(session.id)).batches).to.have.length(2);
  });

  type Redeeming = NonNullable<Parameters<Wallet['redeemCode']>[1]>;
  type Refused = readonly [what: string, code: FailureCode, change: () => Redeeming];
  const token = (form: Record<string, string>, more: object = {}) => wallet.oauth('token', form, more);
  const refusals: readonly Refused[] = [
    [
      'another redirect address',
      'invalid_grant',
      () => ({ changes: { redirectUri: 'https://else.example' } }),
    ],
    ['another verifier', 'invalid_grant', () => ({ changes: { codeVerifier: `${CODE_VERIFIER}x` } })],
    ['more than was approved', 'invalid_authorization_details', () => ({ changes: { wanted: ['pass'] } })],
    ['another client', 'invalid_grant', () => ({ request: token({ client_id: 'https://else.example' }) })],
    ['no client', 'invalid_grant', () => ({ request: token({}) })],
    ['no DPoP proof', 'invalid_dpop_proof', () => ({ request: token({ client_id: CLIENT }, { dpop: [] }) })],
    [
      'the key of another wallet',
      'invalid_grant',
      () => ({ request: token({ client_id: CLIENT }, { dpop: [wallet.dpop('token', { key: newKey() })] }) }),
    ],
    ['the chained server, which is not there', 'not_found', () => ({ server: 'chained' })],
  ];
  for (const [what, code, change] of refusals) {
    it(`refuses ${what}, and leaves the code as it is`, async () => {
      const made = await coded();
      const before = await stored(made.code);
      expect(await endOf(wallet.redeemCode(made.code, change()))).to.equal(code);
      expect(await stored(made.code)).to.deep.equal(before);
      expect(await endOf(wallet.redeemCode(made.code))).to.equal('done');
    });
  }

  it('refuses a code of another server of the same tenant', async () => {
    await world.issues({ chainedAs: { upstream: { issuer: UPSTREAM, clientId: 'vidimus' } } });
    const { code } = await coded();
    expect(await endOf(wallet.redeemCode(code, { server: 'chained' }))).to.equal('invalid_grant');
    await world.issues();
    expect(await endOf(wallet.redeemCode(code))).to.equal('done');
  });

  it('refuses a code of nobody, and one that was made for a pre-authorized offer', async () => {
    const { code } = await anOffer(world);
    const ends = [await endOf(wallet.redeemCode('unknown')), await endOf(wallet.redeemCode(code))];
    expect(ends).to.deep.equal(['invalid_grant', 'invalid_grant']);
    expect(await endOf(wallet.redeem(code))).to.equal('done');
  });

  it('refuses a code after a minute', async () => {
    const { code } = await coded();
    expect(await world.later(60, () => endOf(wallet.redeemCode(code)))).to.equal('invalid_grant');
    expect(await world.later(59, () => endOf(wallet.redeemCode(code)))).to.equal('done');
  });

  it('refuses a proof that was used, and revokes nothing for that', async () => {
    const request = wallet.oauth('token', { client_id: CLIENT });
    await wallet.redeemCode((await coded()).code, { request });
    const { code } = await coded();
    expect(await endOf(wallet.redeemCode(code, { request }))).to.equal('invalid_dpop_proof');
    expect((await stored(code)).revokedAt).to.equal(null);
  });

  describe('with a code that comes back', () => {
    const revoked = async (code: string) => (await stored(code)).revokedAt !== null;

    it('revokes what the code brought', async () => {
      const { code } = await coded();
      const { body } = await wallet.redeemCode(code);
      expect(await endOf(wallet.redeemCode(code))).to.equal('invalid_grant');
      expect(await revoked(code)).to.equal(true);
      expect(await endOf(wallet.issue(body.access_token))).to.equal('invalid_token');
    });

    it('revokes it also where two come at the same time, and where another process was first', async () => {
      const { code } = await coded();
      const ends = await Promise.all([1, 2].map(() => endOf(wallet.redeemCode(code))));
      expect(ends.sort()).to.deep.equal(['done', 'invalid_grant']);
      expect(await revoked(code)).to.equal(true);
      const other = await coded();
      const request = wallet.oauth('token', { client_id: CLIENT });
      const redemption = {
        code: other.code,
        redirectUri: REDIRECT,
        codeVerifier: CODE_VERIFIER,
        wanted: undefined,
      };
      const grantType = AUTHORIZATION_CODE_GRANT;
      await new RedeemCode(world.elsewhere()).execute(ACME, 'built-in', request, {
        grantType,
        ...redemption,
      });
      expect(await endOf(wallet.redeemCode(other.code))).to.equal('invalid_grant');
      expect(await revoked(other.code)).to.equal(true);
    });

    it('revokes nothing for somebody who proves neither the client nor the request', async () => {
      const { code } = await coded();
      const { body } = await wallet.redeemCode(code);
      for (const [, , change] of refusals.filter(([, refusal]) => refusal === 'invalid_grant')) {
        expect(await endOf(wallet.redeemCode(code, change()))).to.equal('invalid_grant');
        expect(await revoked(code)).to.equal(false);
      }
      expect(await endOf(wallet.issue(body.access_token))).to.equal('done');
    });

    it('revokes it when the offer ended before, so that nobody tries again', async () => {
      const { code, session } = await coded();
      const failed = { id: session.id, anytime: ['active', 'fetched'], to: 'failed' } as const;
      await world.store.commit(ACME, { session: failed }, world.clock.now());
      expect(await endOf(wallet.redeemCode(code))).to.equal('invalid_grant');
      expect(await revoked(code)).to.equal(true);
    });
  });
});
