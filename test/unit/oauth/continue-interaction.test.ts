import { expect } from 'chai';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import { CODE_VERIFIER, newKey } from '../../support/raw-wallet.ts';
import { ACME } from '../verification-flow/kit.ts';
import { endOf, type WalletWorld } from '../wallet-kit.ts';
import { codeOf, InteractiveWallet, interactiveWorld, type Required, required } from './interaction-kit.ts';

const PATH = 'interactive-authorization';

describe('ContinueInteraction', () => {
  let world: WalletWorld;
  let wallet: InteractiveWallet;

  before(async () => {
    world = await interactiveWorld();
    wallet = new InteractiveWallet(world);
  });

  const response = (asked: Required) => JSON.stringify({ vp_token: wallet.vpToken(asked) });
  const answer = (asked: Required, form: Record<string, string> = {}, more: object = {}) =>
    wallet.goOn(asked, { openid4vp_response: response(asked), ...form }, more);

  type Bend = (asked: Required) => Promise<unknown>;
  const bends: readonly [what: string, code: FailureCode, bend: Bend][] = [
    ['a name of nobody', 'invalid_session', (asked) => answer({ ...asked, authSession: 'unknown' })],
    [
      'another secret',
      'invalid_session',
      (asked) => answer({ ...asked, authSession: `${asked.authSession}A` }),
    ],
    ['another client', 'invalid_session', (asked) => answer(asked, { client_id: 'https://else.example' })],
    [
      'another key',
      'invalid_session',
      (asked) => answer(asked, {}, { dpop: [wallet.dpop(PATH, { key: newKey() })] }),
    ],
    [
      'no key, where the wallet began with one',
      'invalid_session',
      (asked) => answer(asked, {}, { dpop: [] }),
    ],
    [
      'a proof for another address',
      'invalid_dpop_proof',
      (asked) => answer(asked, {}, { dpop: [wallet.dpop('par')] }),
    ],
    [
      'half an attestation',
      'invalid_client_attestation',
      (asked) => answer(asked, {}, { attestation: ['x'] }),
    ],
    [
      'an answer after the time of the question',
      'invalid_session',
      (asked) => world.later(300, () => answer(asked)),
    ],
  ];
  for (const [what, code, bend] of bends) {
    it(`refuses ${what}, and the wallet can still answer`, async () => {
      const asked = await wallet.asked('badge');
      const before = await wallet.stored(asked);
      expect(await endOf(bend(asked))).to.equal(code);
      expect(await wallet.stored(asked)).to.deep.equal(before);
      codeOf(await answer(asked));
    });
  }

  it('goes on without the name of a wallet that proves nothing', async () => {
    const asked = await wallet.asked('badge');
    codeOf(await wallet.goOn(asked, { openid4vp_response: response(asked), client_id: undefined }));
  });

  it('answers once, also where two come at the same time', async () => {
    const asked = await wallet.asked('badge');
    const ends = await Promise.all([endOf(answer(asked)), endOf(answer(asked))]);
    expect(ends.sort()).to.deep.equal(['done', 'invalid_session']);
    expect(await endOf(answer(asked))).to.equal('invalid_session');
  });

  it('refuses a DPoP proof that was used', async () => {
    const [first, second] = [await wallet.asked('badge'), await wallet.asked('both')];
    const dpop = [wallet.dpop(PATH)];
    codeOf(await answer(first, {}, { dpop }));
    expect(await endOf(answer(second, {}, { dpop }))).to.equal('invalid_dpop_proof');
    expect(await endOf(answer(second))).to.equal('done');
  });

  it('calls its refusal as the draft of the wallet does', async () => {
    const asked = required(
      await wallet.begin('badge', { interaction_types_supported: 'openid4vp_presentation' }),
    );
    const late = () => endOf(wallet.goOn(asked, { openid4vp_response: '{}' }));
    expect(await world.later(300, late)).to.equal('invalid_request');
  });

  it('denies the wallet once the offer is over', async () => {
    const asked = await wallet.offered('badge');
    const failed = { id: asked.session, anytime: ['active'], to: 'failed' } as const;
    await world.store.commit(ACME, { session: failed }, world.clock.now());
    expect(await endOf(answer(asked))).to.equal('access_denied');
    expect(await wallet.stored(asked)).to.deep.include({ stage: 'done', handles: {} });
  });

  it('is not found at a tenant that another process suspended', async () => {
    const asked = await wallet.asked('badge');
    await world.change({ status: 'suspended' });
    expect(await endOf(answer(asked))).to.equal('not_found');
    await world.change({ status: 'active' });
  });

  describe('after a page', () => {
    const returned = async () => {
      const asked = await wallet.asked('tour');
      return { asked, back: await wallet.comeBack(await wallet.visit(asked)) };
    };

    it('goes on for the wallet that began, and ends with a code after the last', async () => {
      const { asked, back } = await returned();
      expect((await wallet.stored(asked))?.interaction?.pending).to.include({ isReturned: true });
      const second = required(await wallet.goOn(back));
      const { sent } = await wallet.comeBack(await wallet.visit(second));
      expect((await wallet.stored(asked))?.stage).to.equal('done');
      const { body } = await wallet.redeemCode(sent.get('code') ?? '');
      const wanted = { credential_configuration_id: 'tour' };
      expect((await wallet.issue(body.access_token, wanted)).credentials).to.have.length(1);
    });

    const web: readonly [what: string, code: FailureCode, form: Record<string, string | undefined>][] = [
      ['no verifier', 'invalid_grant', { code_verifier: undefined }],
      ['another verifier', 'invalid_grant', { code_verifier: `${CODE_VERIFIER}x` }],
      ['a presentation that nobody asked for', 'invalid_request', { openid4vp_response: '{}' }],
    ];
    for (const [what, code, form] of web) {
      it(`refuses ${what}, and the wallet can still go on`, async () => {
        const { back } = await returned();
        expect(await endOf(wallet.goOn(back, form))).to.equal(code);
        required(await wallet.goOn(back));
      });
    }

    it('refuses a wallet whose user has not come back', async () => {
      const asked = await wallet.asked('tour');
      expect(await endOf(wallet.goOn(asked))).to.equal('invalid_request');
      await wallet.visit(asked);
      expect(await endOf(wallet.goOn(asked))).to.equal('invalid_request');
    });

    it('refuses the name that the wallet had before, since the browser brings a new one', async () => {
      const { asked, back } = await returned();
      expect(await endOf(wallet.goOn(asked))).to.equal('invalid_session');
      required(await wallet.goOn(back));
    });
  });
});
