import { expect } from 'chai';
import sinon from 'sinon';
import { hashCode } from '../../../application/oauth/redeem-grant.ts';
import { WebhookError } from '../../../application/ports/webhooks.ts';
import type { SessionId } from '../../../domain/shared/ids.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import type { PublicJwk } from '../../../domain/shared/jwk.ts';
import { withoutIssuers } from '../../support/results.ts';
import { ACME, type Changes, makeHolder } from '../verification-flow/kit.ts';
import { endOf, type WalletWorld } from '../wallet-kit.ts';
import {
  codeOf,
  InteractiveWallet,
  interactiveWorld,
  type Required,
  required,
  WEB,
} from './interaction-kit.ts';

describe('AcceptInteractionPresentation', () => {
  let world: WalletWorld;
  let wallet: InteractiveWallet;

  before(async () => {
    world = await interactiveWorld();
    wallet = new InteractiveWallet(world);
  });
  beforeEach(() => {
    world.webhooks.calls.length = 0;
    world.webhooks.answer = undefined;
    world.webhooks.beforeAnswer = async () => {};
  });
  afterEach(() => sinon.restore());

  const grantOf = async (code: string) => (await world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
  const reported = async (id: SessionId) => (await world.session(id)).outcome?.report ?? [];
  const over = async (asked: Required) => {
    const stored = await wallet.stored(asked);
    expect(stored).to.deep.include({ stage: 'done', handles: {} });
    expect(stored?.interaction).to.deep.include({ presented: [] });
    expect(await endOf(wallet.presenting(asked))).to.equal('invalid_session');
  };
  const respond = (asked: Required, response: unknown) =>
    wallet.goOn(asked, { openid4vp_response: JSON.stringify(response) });
  const sealed = async (asked: Required) => {
    const { jwks } = asked.request['client_metadata'] as { jwks: { keys: PublicJwk[] } };
    const [key] = jwks.keys;
    if (key === undefined) throw new Error('no key');
    const text = JSON.stringify({ vp_token: wallet.vpToken(asked) });
    return { response: await world.encryption.encrypt(text, key, { enc: 'A256GCM' }) };
  };

  it('ends with a code that remembers what was presented, and brings the badge', async () => {
    const asked = await wallet.offered('badge');
    const code = codeOf(await wallet.presenting(asked));
    const granted = (await grantOf(code))?.authorization;
    expect(withoutIssuers(granted?.presented)).to.deep.equal([{ id: 'card', values: { name: 'Erika' } }]);
    expect(granted?.actionsDone).to.have.length(1);
    expect((await reported(asked.session)).length).to.be.greaterThan(0);
    const { body } = await wallet.redeemCode(code);
    const { credentials } = await wallet.issue(body.access_token, { credential_configuration_id: 'badge' });
    expect(credentials).to.have.length(1);
    expect((await world.session(asked.session)).status).to.equal('completed');
  });

  it('opens what was encrypted to the key of the request', async () => {
    const asked = await wallet.asked('sealed');
    codeOf(await respond(asked, await sealed(asked)));
  });

  it('goes on to what is left to do', async () => {
    const asked = await wallet.asked('both');
    const answer = await wallet.presenting(asked);
    expect(answer.body['interaction_type_required']).to.equal(WEB);
    expect(required(answer).authSession).not.to.equal(asked.authSession);
    const { interaction, stage } = (await wallet.stored(asked)) ?? {};
    expect([stage, interaction?.done.length, interaction?.presented.length]).to.deep.equal([
      'interacting',
      1,
      1,
    ]);
    expect(await endOf(wallet.presenting(asked)), 'a second time').to.equal('invalid_session');
  });

  describe('with a backend that is told', () => {
    it('tells it once, with the call on record before and after', async () => {
      const asked = await wallet.offered('told');
      const results: unknown[] = [];
      const note = async () =>
        results.push((await world.session(asked.session)).outcome?.deliveries?.map(({ result }) => result));
      world.webhooks.beforeAnswer = async () => {
        await note();
      };
      const both = [wallet.presenting(asked), wallet.presenting(asked)];
      const ends = await Promise.all(both.map((one) => endOf(one)));
      await note();
      expect(ends.sort()).to.deep.equal(['done', 'invalid_session']);
      expect(results).to.deep.equal([['pending'], ['delivered']]);
      const [call] = world.webhooks.calls;
      expect(call?.body['session']).to.equal(asked.session);
      expect(call?.body.credentials[0]?.['values']).to.deep.equal({ name: 'Erika' });
    });

    it('has a session to speak of also where the wallet began by itself', async () => {
      const code = codeOf(await wallet.presenting(await wallet.asked('told')));
      const told = world.webhooks.calls[0]?.body['session'];
      expect((await grantOf(code))?.sessionId).to.equal(told);
    });

    it('denies the wallet when it does not take the result', async () => {
      world.webhooks.answer = new WebhookError('bad_status', 'it answered 500', { status: 500 });
      const asked = await wallet.offered('told');
      expect(await endOf(wallet.presenting(asked))).to.equal('access_denied');
      const [delivery] = (await world.session(asked.session)).outcome?.deliveries ?? [];
      expect(delivery).to.include({ webhook: 'presentation', result: 'failed' });
      await over(asked);
    });

    it('hears of a presentation that was refused, and no value of it', async () => {
      const asked = await wallet.offered('told');
      expect(await endOf(wallet.presenting(asked, { kb: { nonce: 'another' } }))).to.equal('access_denied');
      expect(world.webhooks.calls).to.have.length(1);
      expect(JSON.stringify(world.webhooks.calls)).not.to.include('Erika');
      await over(asked);
    });
  });

  const changed: readonly [what: string, changes: () => Changes][] = [
    ['for another request', () => ({ kb: { nonce: 'another' } })],
    ['for another verifier', () => ({ kb: { aud: 'ia:https://else.example' } })],
    ['by another holder', () => ({ holder: makeHolder() })],
    ['of another kind', () => ({ visible: { vct: 'urn:else:1' } })],
    ['whose time is over', () => ({ visible: { exp: world.seconds - 600 } })],
  ];
  for (const [what, changes] of changed) {
    it(`denies a presentation ${what}, once and for all, and tells the operator`, async () => {
      const asked = await wallet.offered('badge');
      expect(await endOf(wallet.presenting(asked, changes()))).to.equal('access_denied');
      expect(JSON.stringify(await reported(asked.session))).to.include('"result":"fail');
      await over(asked);
    });
  }

  it('denies a vp_token without its form', async () => {
    const asked = await wallet.offered('badge');
    expect(await endOf(respond(asked, { vp_token: 'none' }))).to.equal('access_denied');
    await over(asked);
  });

  it('denies a wallet that says that it cannot, and tells the operator so', async () => {
    const asked = await wallet.offered('badge');
    expect(await endOf(respond(asked, { error: 'invalid_request' }))).to.equal('access_denied');
    expect(JSON.stringify(await reported(asked.session))).to.include('the wallet answered invalid_request');
    await over(asked);
  });

  type Answer = (asked: Required) => Promise<JsonObject | undefined> | JsonObject | undefined;
  const malformed: readonly [what: string, scope: string, answer: Answer][] = [
    ['no answer', 'badge', () => undefined],
    ['neither a presentation nor an error', 'badge', () => ({})],
    ['a presentation and an error', 'badge', (asked) => ({ vp_token: wallet.vpToken(asked), error: 'x' })],
    ['an encrypted answer where none was asked for', 'badge', () => ({ response: 'a.b.c.d.e' })],
    ['a plain answer where it must be encrypted', 'sealed', (asked) => ({ vp_token: wallet.vpToken(asked) })],
    ['what does not decrypt', 'sealed', () => ({ response: 'a.b.c.d.e' })],
    ['more than what is encrypted', 'sealed', async (asked) => ({ ...(await sealed(asked)), error: 'x' })],
  ];
  for (const [what, scope, answer] of malformed) {
    it(`refuses ${what}, and the wallet can still answer`, async () => {
      const asked = await wallet.asked(scope);
      const before = await wallet.stored(asked);
      const response = await answer(asked);
      const sent = response === undefined ? wallet.goOn(asked) : respond(asked, response);
      expect(await endOf(sent)).to.equal('invalid_request');
      expect(await wallet.stored(asked)).to.deep.equal(before);
      const good = scope === 'sealed' ? respond(asked, await sealed(asked)) : wallet.presenting(asked);
      codeOf(await good);
    });
  }
});
