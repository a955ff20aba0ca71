import { expect } from 'chai';
import sinon from 'sinon';
import type { OAuthRequest } from '../../../application/oauth/oauth-callers.ts';
import { hashCode } from '../../../application/oauth/pre-authorized-code-grant.ts';
import { WebhookError } from '../../../application/ports/webhooks.ts';
import { hashSecret, parseHandle } from '../../../domain/oauth/handle.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import type { PublicJwk } from '../../../domain/shared/jwk.ts';
import { withoutIssuers } from '../../support/failures.ts';
import { decode } from '../../support/present.ts';
import { CODE_VERIFIER, newKey } from '../../support/raw-wallet.ts';
import { ACME, type Changes, makeHolder, PUBLIC_URL } from '../verification/kit.ts';
import { anOffer, endOf, type WalletWorld } from '../wallet-kit.ts';
import { codeOf, InteractiveWallet, interactiveWorld, PRESENTATION, type Required, required, WEB } from './kit.ts';

const CHECK = { id: 'check', webhook: null, responseMode: 'direct_post' };

describe('BeginInteraction', () => {
  let world: WalletWorld;
  let wallet: InteractiveWallet;

  before(async () => {
    world = await interactiveWorld();
    wallet = new InteractiveWallet(world);
  });
  afterEach(() => sinon.restore());

  it('requests a presentation first, and stores the request', async () => {
    const { status, body } = await wallet.begin('badge');
    expect([status, body['error'], body['interaction_type_required']]).to.deep.equal([401, 'insufficient_authorization', PRESENTATION]);
    const asked = required({ status, body });
    const stored = await wallet.stored(asked);
    const pending = stored?.interaction?.pending;
    expect(asked.request).to.include({ response_mode: 'ia_post', nonce: pending?.kind === 'presentation' && pending.nonce });
    expect(stored).to.deep.include({ stage: 'interacting', version: 1, session: null });
    expect(stored?.handles).to.deep.equal({ auth_session: hashSecret(parseHandle(asked.authSession)?.secret ?? '') });
    expect(stored?.interaction).to.deep.include({ wire: 'ia', provesKey: true, presented: [], done: [] });
  });

  it('sends the user to the web page first, and sends no page address to the wallet', async () => {
    const answer = await wallet.begin('visitor');
    const asked = required(answer);
    expect(answer.body).to.include({ interaction_type_required: WEB, expires_in: 60 });
    expect(JSON.stringify(answer.body)).not.to.include('shop.example');
    expect(Object.keys((await wallet.stored(asked))?.handles ?? {})).to.have.members(['auth_session', 'request_uri', 'page']);
  });

  it('returns a code without required actions', async () => {
    const code = codeOf(await wallet.begin('card'));
    const grant = (await world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
    expect(grant?.authorization).to.deep.include({ interactive: true, actionsDone: [], presented: [] });
    expect((await wallet.redeemCode(code)).body.scope).to.equal('card');
  });

  it('signs its request with the key that the configuration names', async () => {
    await world.verifies({ ...CHECK, accessKeyChainId: 'access' });
    const { request } = await wallet.asked('badge');
    const { payload } = decode(String(request['request']));
    expect(payload).to.deep.include({ expected_origins: [PUBLIC_URL], aud: 'https://self-issued.me/v2' });
    await world.verifies(CHECK);
  });

  it('redirects wallets without interaction support to the web page, without required actions', async () => {
    const commit = sinon.spy(world.store, 'commit');
    // Wallets of OAuth 2.0 for First-Party Applications, which has no response_type, and no address to return to
    for (const more of [{}, { response_type: undefined }, { redirect_uri: undefined }]) {
      const form = { interaction_types_supported: undefined, ...more };
      expect(await endOf(wallet.begin('card', form))).to.equal('redirect_to_web');
    }
    expect(commit.callCount).to.equal(0);
    for (const [scope, code] of [
      ['card badge', 'invalid_request'],
      ['else', 'invalid_scope'],
    ] as const)
      expect(await endOf(wallet.begin(scope, { interaction_types_supported: undefined }))).to.equal(code);
  });

  it('uses the interaction names of the wallet', async () => {
    const types = { interaction_types_supported: 'openid4vp_presentation' };
    const { status, body } = await wallet.begin('badge', types);
    expect(status).to.equal(200);
    expect(body).to.include({ status: 'require_interaction', type: 'openid4vp_presentation' });
  });

  type Form = Readonly<Record<string, string | undefined>>;
  type Refused = readonly [what: string, code: FailureCode, scope: string, form: Form, request?: Partial<OAuthRequest>];
  const refusals: readonly Refused[] = [
    ['no kinds of interactions', 'invalid_request', 'badge', { interaction_types_supported: undefined }],
    ['an empty list of kinds', 'invalid_request', 'card', { interaction_types_supported: '' }],
    ['a kind that is missing', 'missing_interaction_type', 'badge', { interaction_types_supported: WEB }],
    ['no client', 'invalid_request', 'badge', { client_id: undefined }],
    ['another response type', 'unsupported_response_type', 'badge', { response_type: 'token' }],
    ['an unknown scope', 'invalid_scope', 'else', {}],
    ['no challenge where the web is an option', 'invalid_request', 'badge', { code_challenge: undefined }],
    ['no redirect_uri for the web step', 'invalid_request', 'visitor', { redirect_uri: undefined }],
    ['a redirect_uri that any app can claim', 'invalid_request', 'visitor', { redirect_uri: 'wallet://cb' }],
    ['an unknown offer', 'invalid_request', 'badge', { issuer_state: 'unknown' }],
    ['half an attestation', 'invalid_client_attestation', 'badge', {}, { attestation: ['x'] }],
    ['two DPoP proofs', 'invalid_dpop_proof', 'badge', {}, { dpop: ['a', 'b'] }],
    ['a thumbprint of another key', 'invalid_dpop_proof', 'badge', { dpop_jkt: 'x' }],
  ];
  for (const [what, code, scope, form, request] of refusals) {
    it(`rejects ${what}`, async () => {
      const commit = sinon.spy(world.store, 'commit');
      expect(await endOf(wallet.begin(scope, form, request))).to.equal(code);
      expect(commit.callCount).to.equal(0);
    });
  }

  it('requires neither a challenge nor a redirect URI for a presentation only', async () => {
    const alone = { code_challenge: undefined, code_challenge_method: undefined, redirect_uri: undefined };
    const form = { ...alone, interaction_types_supported: PRESENTATION };
    expect((await wallet.begin('badge', form)).status).to.equal(401);
  });

  it('rejects an offer that does not cover the request', async () => {
    const { session } = await anOffer(world, { flow: 'authorization_code' });
    expect(await endOf(wallet.begin('badge', { issuer_state: session.publicId }))).to.equal('invalid_request');
  });

  it('rejects a used DPoP proof, and stores nothing', async () => {
    const dpop = [wallet.dpop('interactive-authorization')];
    await wallet.begin('badge', {}, { dpop });
    expect(await endOf(wallet.begin('badge', {}, { dpop }))).to.equal('invalid_dpop_proof');
  });

  it('is unavailable while the presentation cannot be requested', async () => {
    await world.store.forTenant(ACME, (own) => own.presentationConfigurations.remove('check'), { by: 'system' });
    expect(await endOf(wallet.begin('badge'))).to.equal('unavailable');
    await world.verifies({ ...CHECK, accessKeyChainId: 'access' });
    expect(await world.later(400 * 86_400, () => endOf(wallet.begin('badge')))).to.equal('unavailable');
    await world.verifies(CHECK);
  });

  it('fails for an unknown tenant', async () => {
    const nobody = new InteractiveWallet(world, 'nobody' as TenantId);
    expect(await endOf(nobody.begin('badge'))).to.equal('not_found');
    expect(await endOf(nobody.goOn({ authSession: 'unknown' }))).to.equal('not_found');
  });

  describe('InteractiveAuthorization', () => {
    it('begins without an auth_session, and continues with one, even if it is empty', async () => {
      const [begins, goesOn] = [sinon.spy(world.beginInteraction, 'execute'), sinon.spy(world.continueInteraction, 'execute')];
      const asked = await wallet.asked('badge');
      expect([begins.callCount, goesOn.callCount]).to.deep.equal([1, 0]);
      codeOf(await wallet.presenting(asked));
      expect(await endOf(wallet.begin('badge', { auth_session: '' }))).to.equal('invalid_session');
      expect([begins.callCount, goesOn.callCount]).to.deep.equal([1, 2]);
    });
  });
});

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
    ['an unknown name', 'invalid_session', (asked) => answer({ ...asked, authSession: 'unknown' })],
    ['another secret', 'invalid_session', (asked) => answer({ ...asked, authSession: `${asked.authSession}A` })],
    ['another client', 'invalid_session', (asked) => answer(asked, { client_id: 'https://else.example' })],
    ['another key', 'invalid_session', (asked) => answer(asked, {}, { dpop: [wallet.dpop(PATH, { key: newKey() })] })],
    ['no key, where the wallet began with one', 'invalid_session', (asked) => answer(asked, {}, { dpop: [] })],
    ['a proof for another address', 'invalid_dpop_proof', (asked) => answer(asked, {}, { dpop: [wallet.dpop('par')] })],
    ['half an attestation', 'invalid_client_attestation', (asked) => answer(asked, {}, { attestation: ['x'] })],
    ['an answer after the time of the question', 'invalid_session', (asked) => world.later(300, () => answer(asked))],
  ];
  for (const [what, code, bend] of bends) {
    it(`rejects ${what}, and the wallet can still answer`, async () => {
      const asked = await wallet.asked('badge');
      const before = await wallet.stored(asked);
      expect(await endOf(bend(asked))).to.equal(code);
      expect(await wallet.stored(asked)).to.deep.equal(before);
      codeOf(await answer(asked));
    });
  }

  it('continues without the client_id of an unauthenticated wallet', async () => {
    const asked = await wallet.asked('badge');
    codeOf(await wallet.goOn(asked, { openid4vp_response: response(asked), client_id: undefined }));
  });

  it('answers once, also for two simultaneous requests', async () => {
    const asked = await wallet.asked('badge');
    const ends = await Promise.all([endOf(answer(asked)), endOf(answer(asked))]);
    expect(ends.sort()).to.deep.equal(['done', 'invalid_session']);
    expect(await endOf(answer(asked))).to.equal('invalid_session');
  });

  it('rejects a used DPoP proof', async () => {
    const [first, second] = [await wallet.asked('badge'), await wallet.asked('both')];
    const dpop = [wallet.dpop(PATH)];
    codeOf(await answer(first, {}, { dpop }));
    expect(await endOf(answer(second, {}, { dpop }))).to.equal('invalid_dpop_proof');
    expect(await endOf(answer(second))).to.equal('done');
  });

  it('names the rejection by the draft of the wallet', async () => {
    const asked = required(await wallet.begin('badge', { interaction_types_supported: 'openid4vp_presentation' }));
    const late = () => endOf(wallet.goOn(asked, { openid4vp_response: '{}' }));
    expect(await world.later(300, late)).to.equal('invalid_request');
  });

  it('denies the wallet once the offer has ended', async () => {
    const asked = await wallet.offered('badge');
    const failed = { id: asked.session, anytime: ['active'], to: 'failed' } as const;
    await world.store.commit(ACME, { session: failed }, world.clock.now());
    expect(await endOf(answer(asked))).to.equal('access_denied');
    expect(await wallet.stored(asked)).to.deep.include({ stage: 'done', handles: {} });
  });

  it('fails for a tenant that another process has suspended', async () => {
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

    it('continues for the wallet that began, and ends with a code after the last step', async () => {
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
      ['a presentation that was not requested', 'invalid_request', { openid4vp_response: '{}' }],
    ];
    for (const [what, code, form] of web) {
      it(`rejects ${what}, and the wallet can still continue`, async () => {
        const { back } = await returned();
        expect(await endOf(wallet.goOn(back, form))).to.equal(code);
        required(await wallet.goOn(back));
      });
    }

    it('rejects a wallet whose user has not returned', async () => {
      const asked = await wallet.asked('tour');
      expect(await endOf(wallet.goOn(asked))).to.equal('invalid_request');
      await wallet.visit(asked);
      expect(await endOf(wallet.goOn(asked))).to.equal('invalid_request');
    });

    it('rejects the former auth_session of the wallet, since the browser returns a new one', async () => {
      const { asked, back } = await returned();
      expect(await endOf(wallet.goOn(asked))).to.equal('invalid_session');
      required(await wallet.goOn(back));
    });
  });
});

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
  const respond = (asked: Required, response: unknown) => wallet.goOn(asked, { openid4vp_response: JSON.stringify(response) });
  const sealed = async (asked: Required) => {
    const { jwks } = asked.request['client_metadata'] as { jwks: { keys: PublicJwk[] } };
    const [key] = jwks.keys;
    if (key === undefined) throw new Error('no key');
    const text = JSON.stringify({ vp_token: wallet.vpToken(asked) });
    return { response: await world.encryption.encrypt(text, key, { enc: 'A256GCM' }) };
  };

  it('returns a code that records the presented data, and issues the credential', async () => {
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

  it('decrypts a response that was encrypted to the key of the request', async () => {
    const asked = await wallet.asked('sealed');
    codeOf(await respond(asked, await sealed(asked)));
  });

  it('continues with the remaining steps', async () => {
    const asked = await wallet.asked('both');
    const answer = await wallet.presenting(asked);
    expect(answer.body['interaction_type_required']).to.equal(WEB);
    expect(required(answer).authSession).not.to.equal(asked.authSession);
    const { interaction, stage } = (await wallet.stored(asked)) ?? {};
    expect([stage, interaction?.done.length, interaction?.presented.length]).to.deep.equal(['interacting', 1, 1]);
    expect(await endOf(wallet.presenting(asked)), 'a second time').to.equal('invalid_session');
  });

  describe('with a backend that is notified', () => {
    it('calls the webhook once, and records the call before and after it', async () => {
      const asked = await wallet.offered('told');
      const results: unknown[] = [];
      const note = async () => results.push((await world.session(asked.session)).outcome?.deliveries?.map(({ result }) => result));
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

    it('names a session also for a wallet-initiated flow', async () => {
      const code = codeOf(await wallet.presenting(await wallet.asked('told')));
      const told = world.webhooks.calls[0]?.body['session'];
      expect((await grantOf(code))?.sessionId).to.equal(told);
    });

    it('denies the wallet when the backend rejects the result', async () => {
      world.webhooks.answer = new WebhookError('bad_status', 'it answered 500', { status: 500 });
      const asked = await wallet.offered('told');
      expect(await endOf(wallet.presenting(asked))).to.equal('access_denied');
      const [delivery] = (await world.session(asked.session)).outcome?.deliveries ?? [];
      expect(delivery).to.include({ webhook: 'presentation', result: 'failed' });
      await over(asked);
    });

    it('notifies the backend of a rejected presentation without its values', async () => {
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
    ['that has expired', () => ({ visible: { exp: world.seconds - 600 } })],
  ];
  for (const [what, changes] of changed) {
    it(`permanently denies a presentation ${what}, and records the reason for the operator`, async () => {
      const asked = await wallet.offered('badge');
      expect(await endOf(wallet.presenting(asked, changes()))).to.equal('access_denied');
      expect(JSON.stringify(await reported(asked.session))).to.include('"result":"fail');
      await over(asked);
    });
  }

  it('denies a malformed vp_token', async () => {
    const asked = await wallet.offered('badge');
    expect(await endOf(respond(asked, { vp_token: 'none' }))).to.equal('access_denied');
    await over(asked);
  });

  it('denies a wallet that reports an error, and records the reason for the operator', async () => {
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
    it(`rejects ${what}, and the wallet can still answer`, async () => {
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
