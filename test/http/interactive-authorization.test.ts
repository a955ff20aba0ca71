import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { Store } from '../../application/ports/store.ts';
import { advance } from '../../domain/oauth/authorization.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { stepsOf } from '../contract/store/steps.ts';
import { withoutIssuers } from '../support/failures.ts';
import {
  CURRENT_DRAFT,
  DRAFT_VARIANTS,
  type InteractiveWallet,
  Issuer,
  type RequiredInteraction,
} from '../support/interactive-authorization.ts';
import type { HeldCredential } from '../support/present.ts';
import { CLIENT_ID, makeJwt, newKey, now } from '../support/raw-wallet.ts';
import { type Answer, createTenant } from '../support/test-service.ts';
import { WalletProvider } from '../support/wallet-provider.ts';
import { readableClaims } from '../wallets/openid4vc/credentials.ts';

describe('Interactive authorization', () => {
  let issuer: Issuer;
  let heldCredential: HeldCredential;

  before(async () => {
    issuer = await Issuer.open();
    heldCredential = await issuer.issueCredential();
  });
  after(() => issuer.close());
  beforeEach(() => issuer.backend.clearCalls());

  /** Redeems a code as a wallet does that sent no redirect URI, and collects the credential. */
  const collect = async (wallet: InteractiveWallet, code: string, configurationId: string) => {
    const token = await wallet.redeemCode(code, { redirect_uri: '' });
    expect(token.status, token.text).to.equal(200);
    const credentialResponse = await wallet.request(token.body.access_token, configurationId);
    expect(credentialResponse.status, credentialResponse.text).to.equal(200);
    return readableClaims(credentialResponse.body.credentials[0].credential);
  };

  for (const draft of DRAFT_VARIANTS) {
    describe(`with the parameter names of ${draft.name}`, () => {
      it('requests a presentation and issues according to its result', async () => {
        const wallet = issuer.wallet(draft);
        const { uri, session } = await issuer.offer('badge');
        const interaction = wallet.expectPresentationStep(await wallet.begin(uri, { scope: 'badge' }));
        const { nonce, ...request } = interaction.request;
        expect(nonce).to.match(/^[\w-]{22,}$/);
        expect(request).to.deep.equal({
          response_type: 'vp_token',
          response_mode: draft.responseMode,
          dcql_query: request.dcql_query,
          client_metadata: { vp_formats_supported: request.client_metadata.vp_formats_supported },
        });
        const code = wallet.expectCode(await wallet.present(interaction, heldCredential));
        expect(await collect(wallet, code, 'badge')).to.deep.equal({ role: 'friend of Ada' });
        const [call] = issuer.backend.callsTo('/claims');
        const { identity, credentials, ...told } = call?.body ?? {};
        expect(told).to.deep.equal({ session, credential_configuration_id: 'badge' });
        expect(withoutIssuers(credentials)).to.deep.equal([{ id: 'card', values: { name: 'Ada' } }]);
        expect(identity).to.include({ iss: wallet.issuer });
      });

      it('sends the user to a page and continues with the wallet that began', async () => {
        const wallet = issuer.wallet(draft);
        const { uri } = await issuer.offer('visitor');
        const interaction = wallet.expectWebStep(await wallet.begin(uri, { scope: 'visitor' }));
        const { page, back } = await wallet.visit(interaction);
        expect(page.href.startsWith(`${issuer.backend.url}/page?visit=`)).to.equal(true);
        const visit = page.searchParams.get('visit') ?? '';
        expect(page.searchParams.get('return_to')).to.equal(`${wallet.endpoint}/return?auth_session=${visit}`);
        expect(visit).to.not.equal(interaction.authSession);
        expect(`${back.origin}${back.pathname}`).to.equal('https://wallet.example/cb');
        const code = wallet.codeFrom(back);
        expect(await collect(wallet, code, 'visitor')).to.deep.equal({ role: 'visitor' });
      });

      it('takes one step after the other, each with a new auth_session', async () => {
        const wallet = issuer.wallet(draft);
        const { uri } = await issuer.offer('both');
        const first = wallet.expectPresentationStep(await wallet.begin(uri, { scope: 'both' }));
        const second = wallet.expectWebStep(await wallet.present(first, heldCredential));
        expect(second.authSession).to.not.equal(first.authSession);
        const lateResponse = await wallet.present(first, heldCredential);
        expect([lateResponse.status, lateResponse.body.error]).to.deep.equal([400, draft.sessionError]);
        const { back } = await wallet.visit(second);
        const code = wallet.codeFrom(back);
        expect(await collect(wallet, code, 'both')).to.deep.equal({ role: 'friend of Ada' });
        const replayedResponse = await wallet.resume(new URL(`https://x.example/?auth_session=${second.authSession}`));
        expect([replayedResponse.status, replayedResponse.body.error]).to.deep.equal([400, draft.sessionError]);
      });
    });
  }

  describe('begins with a request that', () => {
    const TYPES = `${CURRENT_DRAFT.presentation},${CURRENT_DRAFT.web}`;
    type Case = [string, string, Record<string, string>, string];
    const cases: Case[] = [
      // issuance N135
      ['lists no types', 'badge', { interaction_types_supported: '' }, 'invalid_request'],
      // issuance N135
      ['lists nothing but commas', 'badge', { interaction_types_supported: ' , ,' }, 'invalid_request'],
      // issuance N136
      ['lacks a required type', 'badge', { interaction_types_supported: CURRENT_DRAFT.web }, 'missing_interaction_type'],
      [
        'lacks a type that is needed later',
        'both',
        { interaction_types_supported: CURRENT_DRAFT.presentation },
        'missing_interaction_type',
      ],
      [
        'names the types with the names of two drafts',
        'both',
        { interaction_types_supported: `${CURRENT_DRAFT.presentation},redirect_to_web` },
        'missing_interaction_type',
      ],
      // issuance N136
      ['lists unknown types', 'badge', { interaction_types_supported: 'telepathy' }, 'missing_interaction_type'],
      // issuance N142
      ['lists the type for the web without code_challenge', 'badge', { code_challenge: '', code_challenge_method: '' }, 'invalid_request'],
      ['has a plain code_challenge', 'badge', { code_challenge_method: 'plain' }, 'invalid_request'],
      ['has a method without a challenge', 'badge', { code_challenge: '' }, 'invalid_request'],
      ['leads to the web without redirect_uri', 'visitor', { redirect_uri: '' }, 'invalid_request'],
      ['leads to the web without an https redirect_uri', 'visitor', { redirect_uri: 'wallet-app:/cb' }, 'invalid_request'],
      ['has a harmful redirect_uri', 'badge', { redirect_uri: 'javascript:alert(1)' }, 'invalid_request'],
      ['has no client_id', 'badge', { client_id: '' }, 'invalid_request'],
      ['has no response_type', 'badge', { response_type: '' }, 'invalid_request'],
      ['requests a token without a code', 'badge', { response_type: 'token' }, 'unsupported_response_type'],
      ['contains a request object', 'badge', { request: 'e30.e30.' }, 'request_not_supported'],
      ['contains a request_uri', 'badge', { request_uri: 'urn:x' }, 'invalid_request'],
      ['is for another issuer', 'badge', { resource: 'https://other.example' }, 'invalid_target'],
      ['names no credential', 'badge', { scope: 'nothing' }, 'invalid_scope'],
      ['names a credential that was not offered', 'badge', { scope: 'visitor' }, 'invalid_request'],
      ['has an unknown issuer_state', 'badge', { issuer_state: 'guessed' }, 'invalid_request'],
      ['lacks the required offer', 'badge', { issuer_state: '' }, 'invalid_request'],
    ];
    for (const [description, configuration, form, error] of cases) {
      it(`${description}, and is rejected`, async () => {
        const { uri } = await issuer.offer(configuration);
        const answer = await issuer.wallet().begin(uri, { scope: configuration, ...form });
        expect([answer.status, answer.body.error], answer.text).to.deep.equal([400, error]);
        expect(answer.headers.get('cache-control')).to.equal('no-store');
      });
    }

    it('lists more interaction types than necessary, in any order', async () => {
      const wallet = issuer.wallet();
      const { uri } = await issuer.offer('badge');
      const types = `telepathy ,redirect_to_web,${CURRENT_DRAFT.presentation},openid4vp_presentation`;
      wallet.expectPresentationStep(await wallet.begin(uri, { scope: 'badge', interaction_types_supported: types }));
    });

    it('omits redirect_uri and PKCE for a wallet that supports no web step', async () => {
      const wallet = issuer.wallet();
      const { uri } = await issuer.offer('badge');
      const interaction = wallet.expectPresentationStep(
        await wallet.begin(uri, {
          scope: 'badge',
          interaction_types_supported: CURRENT_DRAFT.presentation,
          ...{ redirect_uri: '', code_challenge: '', code_challenge_method: '' },
        }),
      );
      const code = wallet.expectCode(await wallet.present(interaction, heldCredential));
      const withAddress = await wallet.redeemCode(code, { code_verifier: '' });
      expect([withAddress.status, withAddress.body.error]).to.deep.equal([400, 'invalid_grant']);
      const token = await wallet.redeemCode(code, { redirect_uri: '', code_verifier: '' });
      expect(token.status, token.text).to.equal(200);
    });

    it('names several credentials runs one interaction after the other, and none twice', async () => {
      const wallet = issuer.wallet();
      const ids = ['badge', 'plain', 'both'];
      const { uri } = await issuer.offer(...ids);
      const scope = ids.join(' ');
      const first = wallet.expectPresentationStep(await wallet.begin(uri, { scope, interaction_types_supported: TYPES }));
      const second = wallet.expectWebStep(await wallet.present(first, heldCredential));
      const { back } = await wallet.visit(second);
      const code = wallet.codeFrom(back);
      const token = await wallet.redeemCode(code, { redirect_uri: '' });
      for (const id of ids) {
        const credentialResponse = await wallet.request(token.body.access_token, id);
        expect(credentialResponse.status, credentialResponse.text).to.equal(200);
      }
    });

    it('requires no interaction returns the code immediately for an offer', async () => {
      const wallet = issuer.wallet();
      const { uri } = await issuer.offer('plain');
      const code = wallet.expectCode(await wallet.begin(uri, { scope: 'plain' }));
      expect(await collect(wallet, code, 'plain')).to.deep.equal({ role: 'visitor' });
      const response = await wallet.begin(undefined, { scope: 'plain' });
      expect([response.status, response.body.error]).to.deep.equal([400, 'invalid_request']);
    });

    it('was pushed instead, and is rejected', async () => {
      const { uri } = await issuer.offer('badge');
      const pushResponse = await issuer
        .wallet()
        .push(uri, 'badge')
        .catch((error: Error) => error.message);
      expect(pushResponse).to.match(/^par: 400 .*invalid_request/);
    });
  });

  it('returns a code that only the wallet with the code verifier redeems, once', async () => {
    const wallet = issuer.wallet();
    const { uri } = await issuer.offer('badge');
    const interaction = wallet.expectPresentationStep(await wallet.begin(uri, { scope: 'badge' }));
    const code = wallet.expectCode(await wallet.present(interaction, heldCredential));
    for (const wrongForm of [{ code_verifier: '' }, { code_verifier: 'x'.repeat(43) }, { redirect_uri: 'https://x.example' }]) {
      const answer = await wallet.redeemCode(code, { redirect_uri: '', ...wrongForm });
      expect([answer.status, answer.body.error], JSON.stringify(wrongForm)).to.deep.equal([400, 'invalid_grant']);
    }
    expect((await wallet.redeemCode(code)).status, 'with the correct redirect_uri').to.equal(200);
    expect((await wallet.redeemCode(code)).body.error).to.equal('invalid_grant');
  });
});

const ACTION = { type: 'openid4vp_presentation', presentationConfigId: 'check' };

describe('interactions that a configuration requires since a change', () => {
  let issuer: Issuer;
  let heldCredential: HeldCredential;
  let count = 0;

  before(async () => {
    issuer = await Issuer.open();
    heldCredential = await issuer.issueCredential();
  });
  after(() => issuer.close());

  const setActions = async (id: string, iaeActions: readonly object[]) => {
    const change = { token: issuer.token, json: { iaeActions } };
    const response = await issuer.service.call('PATCH', `/issuer/credentials/${id}`, change);
    expect(response.status, response.text).to.equal(200);
  };
  const createConfiguration = async (iaeActions: readonly object[] = []) => {
    const id = `changing-${++count}`;
    await issuer.addBadge(id, iaeActions);
    return id;
  };
  const expectDenied = ({ status, body }: Answer) => expect([status, body.error]).to.deep.equal([400, 'credential_request_denied']);
  const redeemOffer = async (id: string): Promise<{ wallet: InteractiveWallet; tokens: Answer }> => {
    const wallet = issuer.wallet();
    const code = wallet.expectCode(await wallet.begin((await issuer.offer(id)).uri, { scope: id }));
    const tokens = await wallet.redeemCode(code);
    expect(tokens.status, tokens.text).to.equal(200);
    return { wallet, tokens };
  };

  it('apply to access tokens and refresh tokens from before the change', async () => {
    const id = await createConfiguration();
    const { wallet, tokens } = await redeemOffer(id);
    expect((await wallet.request(tokens.body.access_token, id)).status).to.equal(200);
    await setActions(id, [ACTION]);
    expectDenied(await wallet.request(tokens.body.access_token, id));
    const refreshResponse = await wallet.refresh(tokens.body.refresh_token, { client_id: CLIENT_ID });
    expectDenied(await wallet.request(refreshResponse.body.access_token, id));
  });

  it('apply to offers with a pre-authorized code', async () => {
    const id = await createConfiguration();
    const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: [id] };
    const { body } = await issuer.service.call('POST', '/issuer/offer', { token: issuer.token, json });
    await setActions(id, [ACTION]);
    const wallet = issuer.wallet();
    expectDenied(await wallet.request(await wallet.accessToken(body.uri), id));
  });

  it('apply to pushed requests', async () => {
    const id = await createConfiguration();
    const wallet = issuer.wallet();
    const requestUri = await wallet.push((await issuer.offer(id)).uri, id);
    await setActions(id, [ACTION]);
    const { body } = await wallet.redeemCode(await wallet.authorize(requestUri));
    expectDenied(await wallet.request(body.access_token, id));
  });

  it('are satisfied when they were done, even if they were requested differently', async () => {
    const id = await createConfiguration([ACTION]);
    const wallet = issuer.wallet();
    const interaction = wallet.expectPresentationStep(await wallet.begin((await issuer.offer(id)).uri, { scope: id }));
    const { body } = await wallet.redeemCode(wallet.expectCode(await wallet.present(interaction, heldCredential)));
    await setActions(id, [{ ...ACTION, label: 'Show your card, please' }]);
    expect((await wallet.request(body.access_token, id)).status).to.equal(200);
    const refreshResponse = await wallet.refresh(body.refresh_token, { client_id: CLIENT_ID });
    expect((await wallet.request(refreshResponse.body.access_token, id)).status).to.equal(200);
    await issuer.addPresentationConfig('other-check');
    await setActions(id, [ACTION, { ...ACTION, presentationConfigId: 'other-check' }]);
    expectDenied(await wallet.request(refreshResponse.body.access_token, id));
  });
});

describe('The session of an interactive authorization', () => {
  let issuer: Issuer;
  let heldCredential: HeldCredential;

  before(async () => {
    issuer = await Issuer.open();
    heldCredential = await issuer.issueCredential();
  });
  after(() => issuer.close());

  const beginAuthorization = async (configuration = 'badge', wallet = issuer.wallet(), headers = {}) => {
    const { uri, session } = await issuer.offer(configuration);
    const answer = await wallet.begin(uri, { scope: configuration }, headers);
    return { wallet, session, interaction: wallet.expectPresentationStep(answer) };
  };
  const expectError = (answer: Answer, error: string, status = 400) => {
    expect([answer.status, answer.body?.error], answer.text).to.deep.equal([status, error]);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
  };
  const vp = (wallet: InteractiveWallet, interaction: RequiredInteraction) => ({
    vp_token: { card: [wallet.bind(interaction, heldCredential)] },
  });

  // issuance N137
  describe('is rejected with the session', () => {
    type Case = [string, (wallet: InteractiveWallet, interaction: RequiredInteraction) => Promise<Answer>];
    const post = (wallet: InteractiveWallet, interaction: RequiredInteraction, form: Record<string, string>, headers = {}) => {
      const openid4vp_response = JSON.stringify({ vp_token: { card: [wallet.bind(interaction, heldCredential)] } });
      return wallet.post({ auth_session: interaction.authSession, openid4vp_response, ...form }, headers);
    };
    const cases: Case[] = [
      ['unknown', (wallet, interaction) => post(wallet, interaction, { auth_session: 'x'.repeat(22) })],
      ['guessed', (wallet, interaction) => post(wallet, interaction, { auth_session: `${interaction.authSession.slice(0, -3)}abc` })],
      ['of another client', (wallet, interaction) => post(wallet, interaction, { client_id: 'https://other.example' }, wallet.proof())],
      ['without the key of the first request', (wallet, interaction) => post(wallet, interaction, {})],
      ['with another key', (wallet, interaction) => post(wallet, interaction, {}, wallet.proof(newKey()))],
    ];
    for (const [description, attempt] of cases) {
      it(description, async () => {
        const wallet = issuer.wallet();
        const { interaction } = await beginAuthorization('badge', wallet, wallet.proof());
        expectError(await attempt(wallet, interaction), 'invalid_session');
        wallet.expectCode(await post(wallet, interaction, {}, wallet.proof()));
      });
    }

    it('of another tenant', async () => {
      const { interaction, wallet } = await beginAuthorization();
      await createTenant(issuer.service, 'elsewhere');
      const path = '/elsewhere/interactive-authorization';
      const form = { auth_session: interaction.authSession, openid4vp_response: '{}' };
      expectError(await issuer.service.call('POST', path, { form }), 'invalid_session');
      wallet.expectCode(await wallet.present(interaction, heldCredential));
    });

    for (const draft of DRAFT_VARIANTS) {
      it(`after its expiry, with the parameter names of ${draft.name}`, async () => {
        const { interaction, wallet } = await beginAuthorization('badge', issuer.wallet(draft));
        const steps = stepsOf(issuer.service.service.container.get(Store), issuer.id as TenantId);
        const stored = (await steps.authorization(interaction.authSession.split('.')[0] ?? ''))?.authorization;
        const storedInteraction = stored?.interaction;
        if (stored === undefined || storedInteraction?.pending === undefined) throw new Error('nothing is pending');
        const pending = { ...storedInteraction.pending, until: new Date() };
        await steps.commit({ authorization: advance(stored, { interaction: { ...storedInteraction, pending } }), uses: [] });
        expectError(await wallet.present(interaction, heldCredential), draft.sessionError);
      });
    }
  });

  it('requires no proof of a key that was only announced, but accepts no other key', async () => {
    const wallet = issuer.wallet();
    const { uri } = await issuer.offer('badge');
    const proof = wallet.proof();
    const rejection = await wallet.begin(uri, { scope: 'badge', dpop_jkt: 'x'.repeat(43) }, proof);
    expectError(rejection, 'invalid_dpop_proof');
    const interaction = wallet.expectPresentationStep(await wallet.begin(uri, { scope: 'badge', dpop_jkt: 'x'.repeat(43) }));
    expectError(await wallet.respond(interaction, {}, wallet.proof()), 'invalid_session');
    const code = wallet.expectCode(await wallet.present(interaction, heldCredential));
    expectError(await wallet.redeemCode(code, { redirect_uri: '' }), 'invalid_grant');
  });

  describe('of a wallet that authenticates', () => {
    const display = [{ name: 'Acme', locale: 'en' }];
    const REGISTERED_CLIENT = 'https://registered.example';
    const key = newKey();
    let provider: WalletProvider;

    const register = () => {
      const redirect_uris = ['https://registered.example/cb'];
      return issuer.create('/issuer/config', {
        display,
        ...provider.configuration(),
        walletAttestationRequired: false,
        walletClients: [{ client_id: REGISTERED_CLIENT, jwks: { keys: [key.jwk] }, redirect_uris }],
      });
    };
    before(async () => {
      provider = await WalletProvider.start();
      await register();
    });
    after(async () => {
      await issuer.create('/issuer/config', { display });
      await provider.close();
    });

    const attestationHeaders = async (wallet: InteractiveWallet, instance = newKey()) => {
      const { body } = await issuer.service.call('POST', `/${issuer.id}/challenge`);
      return provider.headers(instance, wallet.issuer, body.attestation_challenge);
    };
    const assertion = (wallet: InteractiveWallet) => ({
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: makeJwt(
        key,
        { alg: 'ES256' },
        { iss: REGISTERED_CLIENT, sub: REGISTERED_CLIENT, aud: wallet.issuer, jti: randomUUID(), iat: now(), exp: now() + 60 },
      ),
    });

    it('continues only with the same wallet instance', async () => {
      const wallet = issuer.wallet();
      const instance = newKey();
      const { interaction } = await beginAuthorization('badge', wallet, await attestationHeaders(wallet, instance));
      const answer = vp(wallet, interaction);
      expectError(await wallet.respond(interaction, answer), 'invalid_session');
      expectError(await wallet.respond(interaction, answer, await attestationHeaders(wallet)), 'invalid_session');
      const responseWithoutAttestation = wallet.post({
        auth_session: interaction.authSession,
        client_id: CLIENT_ID,
        openid4vp_response: '{}',
      });
      expectError(await responseWithoutAttestation, 'invalid_session');
      wallet.expectCode(await wallet.respond(interaction, answer, await attestationHeaders(wallet, instance)));
    });

    it('continues only with the same registration, and only with its redirect URIs', async () => {
      const wallet = issuer.wallet();
      const { uri } = await issuer.offer('badge');
      const beginWith = (redirect_uri: string) =>
        wallet.begin(uri, { scope: 'badge', client_id: REGISTERED_CLIENT, redirect_uri, ...assertion(wallet) });
      expectError(await beginWith('https://registered.example/other'), 'invalid_request');
      const interaction = wallet.expectPresentationStep(await beginWith('https://registered.example/cb'));
      const form = { auth_session: interaction.authSession, openid4vp_response: JSON.stringify(vp(wallet, interaction)) };
      expectError(await wallet.post(form), 'invalid_session');
      expectError(await wallet.post({ ...form, client_id: REGISTERED_CLIENT }), 'invalid_client', 401);
      expectError(await wallet.post(form, await attestationHeaders(wallet)), 'invalid_session');
      // No wallet is this client by its name alone, not even after the registration was removed.
      await issuer.create('/issuer/config', { display });
      expectError(await wallet.post({ ...form, client_id: REGISTERED_CLIENT }), 'invalid_session');
      await register();
      wallet.expectCode(await wallet.post({ ...form, ...assertion(wallet) }));
    });
  });
});
