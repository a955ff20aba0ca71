import { expect } from 'chai';
import sinon from 'sinon';
import { IssueCredential, type WalletRequest } from '../../../application/issuance/issue-credential.ts';
import { hashCode } from '../../../application/oauth/redeem-grant.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import { rememberedCaller } from '../../support/remembered-caller.ts';
import { ACME } from '../verification-flow/kit.ts';
import { anOffer, type Offered, Wallet } from '../wallet.ts';
import { endOf, WalletWorld } from '../wallet-kit.ts';

/** One request each, whose offer, grant and proofs are its own. */
describe('A credential request', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    await world.offers({ id: 'listed', statusManagement: true });
  });
  afterEach(() => sinon.restore());

  type Ready = { readonly offered: Offered; readonly token: string; readonly request: WalletRequest };
  const ready = async (changes: object = {}, wanted: object = {}): Promise<Ready> => {
    const offered = await anOffer(world, changes);
    const token = await wallet.token(offered);
    return { offered, token, request: await wallet.wanting(token, wanted) };
  };
  const execute = (request: WalletRequest) => world.issueCredential.execute(ACME, request);
  const moved = (session: Session, to: Session['status']) =>
    world.store.commit(ACME, { session: { id: session.id, anytime: ['active'], to } }, world.clock.now());

  it('costs one commit and no read while all is remembered', async () => {
    const { request } = await ready();
    await world.caller();
    const [read, commit] = [sinon.spy(world.store, 'read'), sinon.spy(world.store, 'commit')];
    await execute(request);
    expect([read.callCount, commit.callCount]).to.deep.equal([0, 1]);
  });

  it('is issued by a process that remembers nothing of it', async () => {
    const { request, offered } = await ready();
    const other = new IssueCredential(world.elsewhere());
    expect((await other.execute(ACME, request)).status).to.equal(200);
    expect((await world.stored(offered.session.id)).batches).to.have.length(1);
  });

  it('is judged by what another process configured a moment ago', async () => {
    const { request, offered } = await ready();
    await world.offers({ id: 'card', claims: { name: 'Grace' } });
    const { text } = await execute(request);
    const [, payload = ''] = (JSON.parse(text).credentials[0].credential as string).split('.');
    expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).to.include({ name: 'Grace' });
    expect((await world.stored(offered.session.id)).batches).to.have.length(1);
  });

  it('is refused for a configuration that another process removed', async () => {
    await world.offers({ id: 'gone' });
    const gone = { credentialConfigurationIds: ['gone'] };
    const { request, offered } = await ready(gone, { credential_configuration_id: 'gone' });
    await world.store.forTenant(ACME, (own) => own.credentialConfigurations.remove('gone'), { by: 'system' });
    expect(await endOf(execute(request))).to.equal('unknown_credential_configuration');
    expect((await world.stored(offered.session.id)).batches).to.deep.equal([]);
  });

  it('ends for a tenant that another process suspended', async () => {
    const { request, offered } = await ready();
    await world.change({ status: 'suspended' });
    expect(await endOf(execute(request))).to.equal('not_found');
    await world.change({ status: 'active' });
    expect((await world.stored(offered.session.id)).batches).to.deep.equal([]);
    expect(await endOf(execute(request)), 'nothing of it was spent').to.equal('done');
  });

  type Meeting = (asked: Ready) => Promise<Partial<WalletRequest> | undefined>;
  const met: readonly [what: string, code: FailureCode, meet: Meeting][] = [
    [
      'comes with a nonce that was used',
      'invalid_nonce',
      async ({ request, token }) => {
        await execute(request);
        return { wallet: (await wallet.wanting(token)).wallet };
      },
    ],
    [
      'comes with a DPoP proof that was used',
      'invalid_dpop_proof',
      async ({ request, token }) => {
        await execute(request);
        return { body: (await wallet.wanting(token)).body };
      },
    ],
    [
      'comes with a token whose grant was revoked by another process',
      'invalid_token',
      async ({ offered }) => {
        const grant = (await world.store.read(ACME).grantByCode(hashCode(offered.code)))?.grant;
        await world.store.commit(ACME, { grant: { id: grant?.id ?? '', act: 'revoke' } }, world.clock.now());
        return undefined;
      },
    ],
    [
      'comes after another process ended the session',
      'credential_request_denied',
      async ({ offered }) => {
        await moved(offered.session, 'failed');
        return undefined;
      },
    ],
    [
      'comes for a session that is gone',
      'credential_request_denied',
      async ({ offered }) => {
        await world.store.commit(ACME, { removes: offered.session.id }, world.clock.now());
        return undefined;
      },
    ],
  ];
  for (const [what, code, meet] of met) {
    it(`is refused when it ${what}, and nothing more is issued`, async () => {
      const asked = await ready();
      const changes = await meet(asked);
      const before = await world.store.read(ACME).issued(asked.offered.session.id);
      expect(await endOf(execute({ ...asked.request, ...changes }))).to.equal(code);
      expect(await world.store.read(ACME).issued(asked.offered.session.id)).to.deep.equal(before);
    });
  }

  const late: readonly [what: string, code: FailureCode, seconds: number, offer: object][] = [
    ['the access token has ended', 'invalid_token', 1800, {}],
    ['its nonce has ended', 'invalid_nonce', 300, {}],
    ['the offer has ended', 'credential_request_denied', 60, { expiresIn: 60 }],
  ];
  for (const [what, code, seconds, offer] of late) {
    it(`is refused when ${what}`, async () => {
      const { token, request } = await ready(offer);
      const late = () => ({ wallet: { ...request.wallet, dpop: [wallet.dpop('credential', { token })] } });
      expect(await world.later(seconds, () => endOf(execute({ ...request, ...late() })))).to.equal(code);
    });
  }

  it('gets nothing more of what was revoked, and gives its status entry back', async () => {
    const listed = { credential_configuration_id: 'listed' };
    const both = { credentialConfigurationIds: ['listed', 'card'] };
    const { token, request, offered } = await ready(both, listed);
    await execute(request);
    const caller = rememberedCaller(await world.caller());
    await world.revokeSession.execute(caller, { sessionId: offered.session.id, status: 1 });
    const giveBack = sinon.spy(world.statusAllocator, 'giveBack');
    expect(await endOf(wallet.issue(token, listed))).to.equal('credential_request_denied');
    expect(giveBack.callCount).to.be.at.least(1);
    expect((await world.stored(offered.session.id)).batches).to.have.length(1);
  });

  it('gives no status entry back while nobody knows whether its credentials are on record', async () => {
    const listed = { credential_configuration_id: 'listed' };
    const { request } = await ready({ credentialConfigurationIds: ['listed'] }, listed);
    sinon.stub(world.store, 'commit').callsFake(() => Promise.reject(new Error('the connection broke')));
    const giveBack = sinon.spy(world.statusAllocator, 'giveBack');
    const error = await execute(request).catch((reason: unknown) => reason);
    expect([String(error), giveBack.callCount]).to.deep.equal(['Error: the connection broke', 0]);
  });

  it('may come with a bearer token where the tenant takes those, and is told so otherwise', async () => {
    await world.issues({ dPopRequired: false });
    const bearer = await wallet.redeem((await anOffer(world)).code, {
      request: wallet.oauth('token', {}, { dpop: [] }),
    });
    const token = bearer.body.access_token;
    const scheme = (authorization: string) => ({ wallet: { authorization, dpop: [] } });
    const wrong = await wallet.wanting(token, {}, scheme(`DPoP ${token}`));
    expect(await endOf(execute(wrong))).to.equal('invalid_token');
    expect(await endOf(execute(await wallet.wanting(token, {}, scheme(`Bearer ${token}`))))).to.equal('done');
    await world.issues();
  });
});
