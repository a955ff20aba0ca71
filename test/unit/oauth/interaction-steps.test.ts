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
import { ACME, makeHolder, type PresentationChanges, PUBLIC_URL } from '../verification/kit.ts';
import { anOffer, outcomeOf, type WalletWorld } from '../wallet-kit.ts';
import { authorizationCodeOf, type InteractionStep, InteractiveWallet, interactiveWorld, PRESENTATION, parseStep, WEB } from './kit.ts';

const CHECK_CONFIGURATION = { id: 'check', webhook: null, responseMode: 'direct_post' };

describe('BeginInteraction', () => {
  let world: WalletWorld;
  let wallet: InteractiveWallet;

  before(async () => {
    world = await interactiveWorld();
    wallet = new InteractiveWallet(world);
  });
  afterEach(() => sinon.restore());

  it('requests a presentation first, and stores the request', async () => {
    const { status, body } = await wallet.beginInteraction('badge');
    expect([status, body['error'], body['interaction_type_required']]).to.deep.equal([401, 'insufficient_authorization', PRESENTATION]);
    const step = parseStep({ status, body });
    const authorization = await wallet.storedAuthorization(step);
    const pending = authorization?.interaction?.pending;
    expect(step.request).to.include({ response_mode: 'ia_post', nonce: pending?.kind === 'presentation' && pending.nonce });
    expect(authorization).to.deep.include({ stage: 'interacting', version: 1, session: null });
    expect(authorization?.handles).to.deep.equal({ auth_session: hashSecret(parseHandle(step.authSession)?.secret ?? '') });
    expect(authorization?.interaction).to.deep.include({ draft: 'ia', provesKey: true, presented: [], done: [] });
  });

  it('sends the user to the web page first, and sends no page address to the wallet', async () => {
    const respond = await wallet.beginInteraction('visitor');
    const step = parseStep(respond);
    expect(respond.body).to.include({ interaction_type_required: WEB, expires_in: 60 });
    expect(JSON.stringify(respond.body)).not.to.include('shop.example');
    expect(Object.keys((await wallet.storedAuthorization(step))?.handles ?? {})).to.have.members(['auth_session', 'request_uri', 'page']);
  });

  it('returns a code without required actions', async () => {
    const code = authorizationCodeOf(await wallet.beginInteraction('card'));
    const grant = (await world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
    expect(grant?.authorization).to.deep.include({ interactive: true, actionsDone: [], presented: [] });
    expect((await wallet.redeemCode(code)).body.scope).to.equal('card');
  });

  it('signs its request with the key that the configuration names', async () => {
    await world.putPresentation({ ...CHECK_CONFIGURATION, accessKeyChainId: 'access' });
    const { request } = await wallet.startInteraction('badge');
    const { payload } = decode(String(request['request']));
    expect(payload).to.deep.include({ expected_origins: [PUBLIC_URL], aud: 'https://self-issued.me/v2' });
    await world.putPresentation(CHECK_CONFIGURATION);
  });

  it('redirects wallets without interaction support to the web page, without required actions', async () => {
    const commit = sinon.spy(world.store, 'commit');
    // OAuth 2.0 for First-Party Applications has no response_type and no redirect_uri.
    for (const changes of [{}, { response_type: undefined }, { redirect_uri: undefined }]) {
      const form = { interaction_types_supported: undefined, ...changes };
      expect(await outcomeOf(wallet.beginInteraction('card', form))).to.equal('redirect_to_web');
    }
    expect(commit.callCount).to.equal(0);
    for (const [scope, code] of [
      ['card badge', 'invalid_request'],
      ['else', 'invalid_scope'],
    ] as const)
      expect(await outcomeOf(wallet.beginInteraction(scope, { interaction_types_supported: undefined }))).to.equal(code);
  });

  it('uses the interaction names of the wallet', async () => {
    const types = { interaction_types_supported: 'openid4vp_presentation' };
    const { status, body } = await wallet.beginInteraction('badge', types);
    expect(status).to.equal(200);
    expect(body).to.include({ status: 'require_interaction', type: 'openid4vp_presentation' });
  });

  type Form = Readonly<Record<string, string | undefined>>;
  type RejectionCase = readonly [description: string, code: FailureCode, scope: string, form: Form, request?: Partial<OAuthRequest>];
  const rejections: readonly RejectionCase[] = [
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
  for (const [description, code, scope, form, request] of rejections) {
    it(`rejects ${description}`, async () => {
      const commit = sinon.spy(world.store, 'commit');
      expect(await outcomeOf(wallet.beginInteraction(scope, form, request))).to.equal(code);
      expect(commit.callCount).to.equal(0);
    });
  }

  it('requires neither a challenge nor a redirect URI for a presentation only', async () => {
    const withoutPkce = { code_challenge: undefined, code_challenge_method: undefined, redirect_uri: undefined };
    const form = { ...withoutPkce, interaction_types_supported: PRESENTATION };
    expect((await wallet.beginInteraction('badge', form)).status).to.equal(401);
  });

  it('rejects an offer that does not cover the request', async () => {
    const { session } = await anOffer(world, { flow: 'authorization_code' });
    expect(await outcomeOf(wallet.beginInteraction('badge', { issuer_state: session.publicId }))).to.equal('invalid_request');
  });

  it('rejects a used DPoP proof, and stores nothing', async () => {
    const dpop = [wallet.dpop('interactive-authorization')];
    await wallet.beginInteraction('badge', {}, { dpop });
    expect(await outcomeOf(wallet.beginInteraction('badge', {}, { dpop }))).to.equal('invalid_dpop_proof');
  });

  it('is unavailable while the presentation cannot be requested', async () => {
    await world.store.forTenant(ACME, (repositories) => repositories.presentationConfigurations.remove('check'), { by: 'system' });
    expect(await outcomeOf(wallet.beginInteraction('badge'))).to.equal('unavailable');
    await world.putPresentation({ ...CHECK_CONFIGURATION, accessKeyChainId: 'access' });
    expect(await world.afterSeconds(400 * 86_400, () => outcomeOf(wallet.beginInteraction('badge')))).to.equal('unavailable');
    await world.putPresentation(CHECK_CONFIGURATION);
  });

  it('fails for an unknown tenant', async () => {
    const unknownTenant = new InteractiveWallet(world, 'unknown' as TenantId);
    expect(await outcomeOf(unknownTenant.beginInteraction('badge'))).to.equal('not_found');
    expect(await outcomeOf(unknownTenant.continueInteraction({ authSession: 'unknown' }))).to.equal('not_found');
  });

  describe('InteractiveAuthorization', () => {
    it('begins without an auth_session, and continues with one, even if it is empty', async () => {
      const [begin, continueInteraction] = [sinon.spy(world.beginInteraction, 'execute'), sinon.spy(world.continueInteraction, 'execute')];
      const step = await wallet.startInteraction('badge');
      expect([begin.callCount, continueInteraction.callCount]).to.deep.equal([1, 0]);
      authorizationCodeOf(await wallet.sendPresentation(step));
      expect(await outcomeOf(wallet.beginInteraction('badge', { auth_session: '' }))).to.equal('invalid_session');
      expect([begin.callCount, continueInteraction.callCount]).to.deep.equal([1, 2]);
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

  const response = (step: InteractionStep) => JSON.stringify({ vp_token: wallet.vpToken(step) });
  const respond = (step: InteractionStep, form: Record<string, string> = {}, changes: object = {}) =>
    wallet.continueInteraction(step, { openid4vp_response: response(step), ...form }, changes);

  type Mutation = (step: InteractionStep) => Promise<unknown>;
  const mutations: readonly [description: string, code: FailureCode, mutate: Mutation][] = [
    ['an unknown name', 'invalid_session', (step) => respond({ ...step, authSession: 'unknown' })],
    ['another secret', 'invalid_session', (step) => respond({ ...step, authSession: `${step.authSession}A` })],
    ['another client', 'invalid_session', (step) => respond(step, { client_id: 'https://else.example' })],
    ['another key', 'invalid_session', (step) => respond(step, {}, { dpop: [wallet.dpop(PATH, { key: newKey() })] })],
    ['no key, although the wallet began with one', 'invalid_session', (step) => respond(step, {}, { dpop: [] })],
    ['a proof for another address', 'invalid_dpop_proof', (step) => respond(step, {}, { dpop: [wallet.dpop('par')] })],
    ['half an attestation', 'invalid_client_attestation', (step) => respond(step, {}, { attestation: ['x'] })],
    ['an answer after the request has expired', 'invalid_session', (step) => world.afterSeconds(300, () => respond(step))],
  ];
  for (const [description, code, mutate] of mutations) {
    it(`rejects ${description}, and the wallet can still answer`, async () => {
      const step = await wallet.startInteraction('badge');
      const before = await wallet.storedAuthorization(step);
      expect(await outcomeOf(mutate(step))).to.equal(code);
      expect(await wallet.storedAuthorization(step)).to.deep.equal(before);
      authorizationCodeOf(await respond(step));
    });
  }

  it('continues without the client_id of an unauthenticated wallet', async () => {
    const step = await wallet.startInteraction('badge');
    authorizationCodeOf(await wallet.continueInteraction(step, { openid4vp_response: response(step), client_id: undefined }));
  });

  it('answers once, also for two simultaneous requests', async () => {
    const step = await wallet.startInteraction('badge');
    const outcomes = await Promise.all([outcomeOf(respond(step)), outcomeOf(respond(step))]);
    expect(outcomes.sort()).to.deep.equal(['done', 'invalid_session']);
    expect(await outcomeOf(respond(step))).to.equal('invalid_session');
  });

  it('rejects a used DPoP proof', async () => {
    const [first, second] = [await wallet.startInteraction('badge'), await wallet.startInteraction('both')];
    const dpop = [wallet.dpop(PATH)];
    authorizationCodeOf(await respond(first, {}, { dpop }));
    expect(await outcomeOf(respond(second, {}, { dpop }))).to.equal('invalid_dpop_proof');
    expect(await outcomeOf(respond(second))).to.equal('done');
  });

  it('names the rejection by the draft of the wallet', async () => {
    const step = parseStep(await wallet.beginInteraction('badge', { interaction_types_supported: 'openid4vp_presentation' }));
    const respondLate = () => outcomeOf(wallet.continueInteraction(step, { openid4vp_response: '{}' }));
    expect(await world.afterSeconds(300, respondLate)).to.equal('invalid_request');
  });

  it('denies the wallet once the offer has ended', async () => {
    const step = await wallet.startOfferedInteraction('badge');
    const change = { id: step.session, anytime: ['active'], to: 'failed' } as const;
    await world.store.commit(ACME, { session: change }, world.clock.now());
    expect(await outcomeOf(respond(step))).to.equal('access_denied');
    expect(await wallet.storedAuthorization(step)).to.deep.include({ stage: 'done', handles: {} });
  });

  it('fails for a tenant that another process has suspended', async () => {
    const step = await wallet.startInteraction('badge');
    await world.changeTenant({ status: 'suspended' });
    expect(await outcomeOf(respond(step))).to.equal('not_found');
    await world.changeTenant({ status: 'active' });
  });

  describe('after a page', () => {
    const returnParameters = async () => {
      const step = await wallet.startInteraction('tour');
      return { step, back: await wallet.returnFromPage(await wallet.visitPage(step)) };
    };

    it('continues for the wallet that began, and ends with a code after the last step', async () => {
      const { step, back } = await returnParameters();
      expect((await wallet.storedAuthorization(step))?.interaction?.pending).to.include({ hasReturned: true });
      const second = parseStep(await wallet.continueInteraction(back));
      const { parameters: submission } = await wallet.returnFromPage(await wallet.visitPage(second));
      expect((await wallet.storedAuthorization(step))?.stage).to.equal('done');
      const { body } = await wallet.redeemCode(submission.get('code') ?? '');
      const requestBody = { credential_configuration_id: 'tour' };
      expect((await wallet.issue(body.access_token, requestBody)).credentials).to.have.length(1);
    });

    const web: readonly [description: string, code: FailureCode, form: Record<string, string | undefined>][] = [
      ['no verifier', 'invalid_grant', { code_verifier: undefined }],
      ['another verifier', 'invalid_grant', { code_verifier: `${CODE_VERIFIER}x` }],
      ['a presentation that was not requested', 'invalid_request', { openid4vp_response: '{}' }],
    ];
    for (const [description, code, form] of web) {
      it(`rejects ${description}, and the wallet can still continue`, async () => {
        const { back } = await returnParameters();
        expect(await outcomeOf(wallet.continueInteraction(back, form))).to.equal(code);
        parseStep(await wallet.continueInteraction(back));
      });
    }

    it('rejects a wallet whose user has not returned', async () => {
      const step = await wallet.startInteraction('tour');
      expect(await outcomeOf(wallet.continueInteraction(step))).to.equal('invalid_request');
      await wallet.visitPage(step);
      expect(await outcomeOf(wallet.continueInteraction(step))).to.equal('invalid_request');
    });

    it('rejects the former auth_session of the wallet, since the browser returns a new one', async () => {
      const { step, back } = await returnParameters();
      expect(await outcomeOf(wallet.continueInteraction(step))).to.equal('invalid_session');
      parseStep(await wallet.continueInteraction(back));
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
  const isFailed = async (step: InteractionStep) => {
    const authorization = await wallet.storedAuthorization(step);
    expect(authorization).to.deep.include({ stage: 'done', handles: {} });
    expect(authorization?.interaction).to.deep.include({ presented: [] });
    expect(await outcomeOf(wallet.sendPresentation(step))).to.equal('invalid_session');
  };
  const respondWith = (step: InteractionStep, response: unknown) =>
    wallet.continueInteraction(step, { openid4vp_response: JSON.stringify(response) });
  const encryptResponse = async (step: InteractionStep) => {
    const { jwks } = step.request['client_metadata'] as { jwks: { keys: PublicJwk[] } };
    const [key] = jwks.keys;
    if (key === undefined) throw new Error('no key');
    const text = JSON.stringify({ vp_token: wallet.vpToken(step) });
    return { response: await world.encryption.encrypt(text, key, { enc: 'A256GCM' }) };
  };

  it('returns a code that records the presented data, and issues the credential', async () => {
    const step = await wallet.startOfferedInteraction('badge');
    const code = authorizationCodeOf(await wallet.sendPresentation(step));
    const authorization = (await grantOf(code))?.authorization;
    expect(withoutIssuers(authorization?.presented)).to.deep.equal([{ id: 'card', values: { name: 'Erika' } }]);
    expect(authorization?.actionsDone).to.have.length(1);
    expect((await reported(step.session)).length).to.be.greaterThan(0);
    const { body } = await wallet.redeemCode(code);
    const { credentials } = await wallet.issue(body.access_token, { credential_configuration_id: 'badge' });
    expect(credentials).to.have.length(1);
    expect((await world.session(step.session)).status).to.equal('completed');
  });

  it('decrypts a response that was encrypted to the key of the request', async () => {
    const step = await wallet.startInteraction('encrypted');
    authorizationCodeOf(await respondWith(step, await encryptResponse(step)));
  });

  it('continues with the remaining steps', async () => {
    const step = await wallet.startInteraction('both');
    const respond = await wallet.sendPresentation(step);
    expect(respond.body['interaction_type_required']).to.equal(WEB);
    expect(parseStep(respond).authSession).not.to.equal(step.authSession);
    const { interaction, stage } = (await wallet.storedAuthorization(step)) ?? {};
    expect([stage, interaction?.done.length, interaction?.presented.length]).to.deep.equal(['interacting', 1, 1]);
    expect(await outcomeOf(wallet.sendPresentation(step)), 'a second time').to.equal('invalid_session');
  });

  describe('with a backend that is notified', () => {
    it('calls the webhook once, and records the call before and after it', async () => {
      const step = await wallet.startOfferedInteraction('notified');
      const results: unknown[] = [];
      const recordResults = async () => results.push((await world.session(step.session)).outcome?.deliveries?.map(({ result }) => result));
      world.webhooks.beforeAnswer = async () => {
        await recordResults();
      };
      const presentations = [wallet.sendPresentation(step), wallet.sendPresentation(step)];
      const outcomes = await Promise.all(presentations.map((presentation) => outcomeOf(presentation)));
      await recordResults();
      expect(outcomes.sort()).to.deep.equal(['done', 'invalid_session']);
      expect(results).to.deep.equal([['pending'], ['delivered']]);
      const [call] = world.webhooks.calls;
      expect(call?.body['session']).to.equal(step.session);
      expect(call?.body.credentials[0]?.['values']).to.deep.equal({ name: 'Erika' });
    });

    it('names a session also for a wallet-initiated flow', async () => {
      const code = authorizationCodeOf(await wallet.sendPresentation(await wallet.startInteraction('notified')));
      const notifiedSession = world.webhooks.calls[0]?.body['session'];
      expect((await grantOf(code))?.sessionId).to.equal(notifiedSession);
    });

    it('denies the wallet when the backend rejects the result', async () => {
      world.webhooks.answer = new WebhookError('bad_status', 'it answered 500', { status: 500 });
      const step = await wallet.startOfferedInteraction('notified');
      expect(await outcomeOf(wallet.sendPresentation(step))).to.equal('access_denied');
      const [delivery] = (await world.session(step.session)).outcome?.deliveries ?? [];
      expect(delivery).to.include({ webhook: 'presentation', result: 'failed' });
      await isFailed(step);
    });

    it('notifies the backend of a rejected presentation without its values', async () => {
      const step = await wallet.startOfferedInteraction('notified');
      expect(await outcomeOf(wallet.sendPresentation(step, { kb: { nonce: 'another' } }))).to.equal('access_denied');
      expect(world.webhooks.calls).to.have.length(1);
      expect(JSON.stringify(world.webhooks.calls)).not.to.include('Erika');
      await isFailed(step);
    });
  });

  const invalidPresentations: readonly [description: string, changes: () => PresentationChanges][] = [
    ['for another request', () => ({ kb: { nonce: 'another' } })],
    ['for another verifier', () => ({ kb: { aud: 'ia:https://else.example' } })],
    ['by another holder', () => ({ holder: makeHolder() })],
    ['of another kind', () => ({ visible: { vct: 'urn:else:1' } })],
    ['that has expired', () => ({ visible: { exp: world.seconds - 600 } })],
  ];
  for (const [description, changes] of invalidPresentations) {
    it(`permanently denies a presentation ${description}, and records the reason for the operator`, async () => {
      const step = await wallet.startOfferedInteraction('badge');
      expect(await outcomeOf(wallet.sendPresentation(step, changes()))).to.equal('access_denied');
      expect(JSON.stringify(await reported(step.session))).to.include('"result":"fail');
      await isFailed(step);
    });
  }

  it('denies a malformed vp_token', async () => {
    const step = await wallet.startOfferedInteraction('badge');
    expect(await outcomeOf(respondWith(step, { vp_token: 'none' }))).to.equal('access_denied');
    await isFailed(step);
  });

  it('denies a wallet that reports an error, and records the reason for the operator', async () => {
    const step = await wallet.startOfferedInteraction('badge');
    expect(await outcomeOf(respondWith(step, { error: 'invalid_request' }))).to.equal('access_denied');
    expect(JSON.stringify(await reported(step.session))).to.include('the wallet answered invalid_request');
    await isFailed(step);
  });

  type BuildResponse = (step: InteractionStep) => Promise<JsonObject | undefined> | JsonObject | undefined;
  const malformed: readonly [description: string, scope: string, answer: BuildResponse][] = [
    ['no answer', 'badge', () => undefined],
    ['neither a presentation nor an error', 'badge', () => ({})],
    ['a presentation and an error', 'badge', (step) => ({ vp_token: wallet.vpToken(step), error: 'x' })],
    ['an encrypted answer where encryption is not required', 'badge', () => ({ response: 'a.b.c.d.e' })],
    ['a plain answer where it must be encrypted', 'encrypted', (step) => ({ vp_token: wallet.vpToken(step) })],
    ['an undecryptable answer', 'encrypted', () => ({ response: 'a.b.c.d.e' })],
    ['additional unencrypted parameters', 'encrypted', async (step) => ({ ...(await encryptResponse(step)), error: 'x' })],
  ];
  for (const [description, scope, respond] of malformed) {
    it(`rejects ${description}, and the wallet can still answer`, async () => {
      const step = await wallet.startInteraction(scope);
      const before = await wallet.storedAuthorization(step);
      const response = await respond(step);
      const submission = response === undefined ? wallet.continueInteraction(step) : respondWith(step, response);
      expect(await outcomeOf(submission)).to.equal('invalid_request');
      expect(await wallet.storedAuthorization(step)).to.deep.equal(before);
      const validResponse = scope === 'encrypted' ? respondWith(step, await encryptResponse(step)) : wallet.sendPresentation(step);
      authorizationCodeOf(await validResponse);
    });
  }
});
