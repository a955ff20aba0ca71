import { expect } from 'chai';
import sinon from 'sinon';
import type { OAuthRequest } from '../../../application/oauth/oauth-callers.ts';
import { hashCode } from '../../../application/oauth/redeem-grant.ts';
import { hashSecret, readHandle } from '../../../domain/oauth/handle.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { decode } from '../../support/present.ts';
import { ACME, PUBLIC_URL } from '../verification-flow/kit.ts';
import { anOffer } from '../wallet.ts';
import { endOf, type WalletWorld } from '../wallet-kit.ts';
import {
  codeOf,
  InteractiveWallet,
  interactiveWorld,
  PRESENTATION,
  required,
  WEB,
} from './interaction-kit.ts';

const CHECK = { id: 'check', webhook: null, responseMode: 'direct_post' };

describe('BeginInteraction', () => {
  let world: WalletWorld;
  let wallet: InteractiveWallet;

  before(async () => {
    world = await interactiveWorld();
    wallet = new InteractiveWallet(world);
  });
  afterEach(() => sinon.restore());

  it('asks for a presentation first, and stores what was asked', async () => {
    const { status, body } = await wallet.begin('badge');
    expect([status, body['error'], body['interaction_type_required']]).to.deep.equal([
      401,
      'insufficient_authorization',
      PRESENTATION,
    ]);
    const asked = required({ status, body });
    const stored = await wallet.stored(asked);
    const pending = stored?.interaction?.pending;
    expect(asked.request).to.include({
      response_mode: 'ia_post',
      nonce: pending?.kind === 'presentation' && pending.nonce,
    });
    expect(stored).to.deep.include({ stage: 'interacting', version: 1, session: null });
    expect(stored?.handles).to.deep.equal({
      auth_session: hashSecret(readHandle(asked.authSession)?.secret ?? ''),
    });
    expect(stored?.interaction).to.deep.include({ wire: 'ia', provesKey: true, presented: [], done: [] });
  });

  it('sends the user to the web first, and names no page to the wallet', async () => {
    const answer = await wallet.begin('visitor');
    const asked = required(answer);
    expect(answer.body).to.include({ interaction_type_required: WEB, expires_in: 60 });
    expect(JSON.stringify(answer.body)).not.to.include('shop.example');
    expect(Object.keys((await wallet.stored(asked))?.handles ?? {})).to.have.members([
      'auth_session',
      'request_uri',
      'page',
    ]);
  });

  it('gives a code where nothing is asked for', async () => {
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

  it('sends wallets to the web that know no interactions, where nothing is asked for', async () => {
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

  it('speaks the names that the wallet knows', async () => {
    const types = { interaction_types_supported: 'openid4vp_presentation' };
    const { status, body } = await wallet.begin('badge', types);
    expect(status).to.equal(200);
    expect(body).to.include({ status: 'require_interaction', type: 'openid4vp_presentation' });
  });

  type Form = Readonly<Record<string, string | undefined>>;
  type Refused = readonly [
    what: string,
    code: FailureCode,
    scope: string,
    form: Form,
    request?: Partial<OAuthRequest>,
  ];
  const refusals: readonly Refused[] = [
    ['no kinds of interactions', 'invalid_request', 'badge', { interaction_types_supported: undefined }],
    ['an empty list of kinds', 'invalid_request', 'card', { interaction_types_supported: '' }],
    ['a kind that is missing', 'missing_interaction_type', 'badge', { interaction_types_supported: WEB }],
    ['no client', 'invalid_request', 'badge', { client_id: undefined }],
    ['another response type', 'unsupported_response_type', 'badge', { response_type: 'token' }],
    ['a scope of nobody', 'invalid_scope', 'else', {}],
    ['no challenge where the web is an option', 'invalid_request', 'badge', { code_challenge: undefined }],
    ['no way back from the web', 'invalid_request', 'visitor', { redirect_uri: undefined }],
    ['a way back that any app can take', 'invalid_request', 'visitor', { redirect_uri: 'wallet://cb' }],
    ['an offer of nobody', 'invalid_request', 'badge', { issuer_state: 'unknown' }],
    ['half an attestation', 'invalid_client_attestation', 'badge', {}, { attestation: ['x'] }],
    ['two DPoP proofs', 'invalid_dpop_proof', 'badge', {}, { dpop: ['a', 'b'] }],
    ['a thumbprint of another key', 'invalid_dpop_proof', 'badge', { dpop_jkt: 'x' }],
  ];
  for (const [what, code, scope, form, request] of refusals) {
    it(`refuses ${what}`, async () => {
      const commit = sinon.spy(world.store, 'commit');
      expect(await endOf(wallet.begin(scope, form, request))).to.equal(code);
      expect(commit.callCount).to.equal(0);
    });
  }

  it('needs neither a challenge nor a way back for a presentation alone', async () => {
    const alone = { code_challenge: undefined, code_challenge_method: undefined, redirect_uri: undefined };
    const form = { ...alone, interaction_types_supported: PRESENTATION };
    expect((await wallet.begin('badge', form)).status).to.equal(401);
  });

  it('refuses an offer that does not cover what is asked for', async () => {
    const { session } = await anOffer(world, { flow: 'authorization_code' });
    expect(await endOf(wallet.begin('badge', { issuer_state: session.publicId }))).to.equal(
      'invalid_request',
    );
  });

  it('refuses a DPoP proof that was used, and stores nothing', async () => {
    const dpop = [wallet.dpop('interactive-authorization')];
    await wallet.begin('badge', {}, { dpop });
    expect(await endOf(wallet.begin('badge', {}, { dpop }))).to.equal('invalid_dpop_proof');
  });

  it('is unavailable while the presentation cannot be asked for', async () => {
    await world.store.forTenant(ACME, (own) => own.presentationConfigurations.remove('check'), {
      by: 'system',
    });
    expect(await endOf(wallet.begin('badge'))).to.equal('unavailable');
    await world.verifies({ ...CHECK, accessKeyChainId: 'access' });
    expect(await world.later(400 * 86_400, () => endOf(wallet.begin('badge')))).to.equal('unavailable');
    await world.verifies(CHECK);
  });

  it('is not found at a tenant that is not there', async () => {
    const nobody = new InteractiveWallet(world, 'nobody' as TenantId);
    expect(await endOf(nobody.begin('badge'))).to.equal('not_found');
    expect(await endOf(nobody.goOn({ authSession: 'unknown' }))).to.equal('not_found');
  });

  describe('InteractiveAuthorization', () => {
    it('begins without an auth_session, and goes on with one, be it empty', async () => {
      const [begins, goesOn] = [
        sinon.spy(world.beginInteraction, 'execute'),
        sinon.spy(world.continueInteraction, 'execute'),
      ];
      const asked = await wallet.asked('badge');
      expect([begins.callCount, goesOn.callCount]).to.deep.equal([1, 0]);
      codeOf(await wallet.presenting(asked));
      expect(await endOf(wallet.begin('badge', { auth_session: '' }))).to.equal('invalid_session');
      expect([begins.callCount, goesOn.callCount]).to.deep.equal([1, 2]);
    });
  });
});
