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
  let held: HeldCredential;

  before(async () => {
    issuer = await Issuer.open();
    held = await issuer.issueCredential();
  });
  after(() => issuer.close());
  beforeEach(() => issuer.backend.clearCalls());

  /** Redeems a code as wallets do that never gave an address to return to, and collects the credential. */
  const collect = async (wallet: InteractiveWallet, code: string, configurationId: string) => {
    const token = await wallet.redeemCode(code, { redirect_uri: '' });
    expect(token.status, token.text).to.equal(200);
    const issued = await wallet.request(token.body.access_token, configurationId);
    expect(issued.status, issued.text).to.equal(200);
    return readableClaims(issued.body.credentials[0].credential);
  };

  for (const wire of DRAFT_VARIANTS) {
    describe(`with the parameter names of ${wire.name}`, () => {
      it('requests a presentation and issues according to its result', async () => {
        const wallet = issuer.wallet(wire);
        const { uri, session } = await issuer.offer('badge');
        const asked = wallet.expectPresentationStep(await wallet.begin(uri, { scope: 'badge' }));
        const { nonce, ...request } = asked.request;
        expect(nonce).to.match(/^[\w-]{22,}$/);
        expect(request).to.deep.equal({
          response_type: 'vp_token',
          response_mode: wire.responseMode,
          dcql_query: request.dcql_query,
          client_metadata: { vp_formats_supported: request.client_metadata.vp_formats_supported },
        });
        const code = wallet.expectCode(await wallet.present(asked, held));
        expect(await collect(wallet, code, 'badge')).to.deep.equal({ role: 'friend of Ada' });
        const [call] = issuer.backend.callsTo('/claims');
        const { identity, credentials, ...told } = call?.body ?? {};
        expect(told).to.deep.equal({ session, credential_configuration_id: 'badge' });
        expect(withoutIssuers(credentials)).to.deep.equal([{ id: 'card', values: { name: 'Ada' } }]);
        expect(identity).to.include({ iss: wallet.issuer });
      });

      it('sends the user to a page and continues with the wallet that began', async () => {
        const wallet = issuer.wallet(wire);
        const { uri } = await issuer.offer('visitor');
        const asked = wallet.expectWebStep(await wallet.begin(uri, { scope: 'visitor' }));
        const { page, back } = await wallet.visit(asked);
        expect(page.href.startsWith(`${issuer.backend.url}/page?visit=`)).to.equal(true);
        const visit = page.searchParams.get('visit') ?? '';
        expect(page.searchParams.get('return_to')).to.equal(`${wallet.endpoint}/return?auth_session=${visit}`);
        expect(visit).to.not.equal(asked.authSession);
        expect(`${back.origin}${back.pathname}`).to.equal('https://wallet.example/cb');
        const code = wallet.codeFrom(back);
        expect(await collect(wallet, code, 'visitor')).to.deep.equal({ role: 'visitor' });
      });

      it('takes one step after the other, each with a new auth_session', async () => {
        const wallet = issuer.wallet(wire);
        const { uri } = await issuer.offer('both');
        const first = wallet.expectPresentationStep(await wallet.begin(uri, { scope: 'both' }));
        const second = wallet.expectWebStep(await wallet.present(first, held));
        expect(second.authSession).to.not.equal(first.authSession);
        const late = await wallet.present(first, held);
        expect([late.status, late.body.error]).to.deep.equal([400, wire.sessionError]);
        const { back } = await wallet.visit(second);
        const code = wallet.codeFrom(back);
        expect(await collect(wallet, code, 'both')).to.deep.equal({ role: 'friend of Ada' });
        const replayed = await wallet.resume(new URL(`https://x.example/?auth_session=${second.authSession}`));
        expect([replayed.status, replayed.body.error]).to.deep.equal([400, wire.sessionError]);
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
      ['lacks a type that is needed', 'badge', { interaction_types_supported: CURRENT_DRAFT.web }, 'missing_interaction_type'],
      [
        'lacks a type that is needed later (N136)',
        'both',
        { interaction_types_supported: CURRENT_DRAFT.presentation },
        'missing_interaction_type',
      ],
      [
        'names the types in words of two drafts (N136)',
        'both',
        { interaction_types_supported: `${CURRENT_DRAFT.presentation},redirect_to_web` },
        'missing_interaction_type',
      ],
      // issuance N136
      ['lists unknown types', 'badge', { interaction_types_supported: 'telepathy' }, 'missing_interaction_type'],
      // issuance N142
      ['lists the web without code_challenge', 'badge', { code_challenge: '', code_challenge_method: '' }, 'invalid_request'],
      ['has a plain code_challenge', 'badge', { code_challenge_method: 'plain' }, 'invalid_request'],
      ['has a method without a challenge', 'badge', { code_challenge: '' }, 'invalid_request'],
      ['leads to the web without redirect_uri', 'visitor', { redirect_uri: '' }, 'invalid_request'],
      ['leads to the web without an https redirect_uri', 'visitor', { redirect_uri: 'wallet-app:/cb' }, 'invalid_request'],
      ['has a harmful redirect_uri', 'badge', { redirect_uri: 'javascript:alert(1)' }, 'invalid_request'],
      ['has no client_id', 'badge', { client_id: '' }, 'invalid_request'],
      ['has no response_type', 'badge', { response_type: '' }, 'invalid_request'],
      ['wants a token at once', 'badge', { response_type: 'token' }, 'unsupported_response_type'],
      ['carries a request object', 'badge', { request: 'e30.e30.' }, 'request_not_supported'],
      ['carries a request_uri', 'badge', { request_uri: 'urn:x' }, 'invalid_request'],
      ['is for another issuer', 'badge', { resource: 'https://other.example' }, 'invalid_target'],
      ['names no credential', 'badge', { scope: 'nothing' }, 'invalid_scope'],
      ['names a credential that was not offered', 'badge', { scope: 'visitor' }, 'invalid_request'],
      ['comes from no offer', 'badge', { issuer_state: 'guessed' }, 'invalid_request'],
      ['needs an offer and has none', 'badge', { issuer_state: '' }, 'invalid_request'],
    ];
    for (const [what, configuration, form, error] of cases) {
      it(`${what}, and is rejected`, async () => {
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
      const asked = wallet.expectPresentationStep(
        await wallet.begin(uri, {
          scope: 'badge',
          interaction_types_supported: CURRENT_DRAFT.presentation,
          ...{ redirect_uri: '', code_challenge: '', code_challenge_method: '' },
        }),
      );
      const code = wallet.expectCode(await wallet.present(asked, held));
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
      const second = wallet.expectWebStep(await wallet.present(first, held));
      const { back } = await wallet.visit(second);
      const code = wallet.codeFrom(back);
      const token = await wallet.redeemCode(code, { redirect_uri: '' });
      for (const id of ids) {
        const issued = await wallet.request(token.body.access_token, id);
        expect(issued.status, issued.text).to.equal(200);
      }
    });

    it('requires no interaction returns the code immediately for an offer', async () => {
      const wallet = issuer.wallet();
      const { uri } = await issuer.offer('plain');
      const code = wallet.expectCode(await wallet.begin(uri, { scope: 'plain' }));
      expect(await collect(wallet, code, 'plain')).to.deep.equal({ role: 'visitor' });
      const without = await wallet.begin(undefined, { scope: 'plain' });
      expect([without.status, without.body.error]).to.deep.equal([400, 'invalid_request']);
    });

    it('was pushed instead, and is rejected', async () => {
      const { uri } = await issuer.offer('badge');
      const pushed = await issuer
        .wallet()
        .push(uri, 'badge')
        .catch((error: Error) => error.message);
      expect(pushed).to.match(/^par: 400 .*invalid_request/);
    });
  });

  it('returns a code that only the wallet with the code verifier redeems, once', async () => {
    const wallet = issuer.wallet();
    const { uri } = await issuer.offer('badge');
    const asked = wallet.expectPresentationStep(await wallet.begin(uri, { scope: 'badge' }));
    const code = wallet.expectCode(await wallet.present(asked, held));
    for (const wrong of [{ code_verifier: '' }, { code_verifier: 'x'.repeat(43) }, { redirect_uri: 'https://x.example' }]) {
      const answer = await wallet.redeemCode(code, { redirect_uri: '', ...wrong });
      expect([answer.status, answer.body.error], JSON.stringify(wrong)).to.deep.equal([400, 'invalid_grant']);
    }
    expect((await wallet.redeemCode(code)).status, 'with the right redirect_uri').to.equal(200);
    expect((await wallet.redeemCode(code)).body.error).to.equal('invalid_grant');
  });
});

const ACTION = { type: 'openid4vp_presentation', presentationConfigId: 'check' };

describe('interactions that a configuration requires since a change', () => {
  let issuer: Issuer;
  let held: HeldCredential;
  let count = 0;

  before(async () => {
    issuer = await Issuer.open();
    held = await issuer.issueCredential();
  });
  after(() => issuer.close());

  const ask = async (id: string, iaeActions: readonly object[]) => {
    const change = { token: issuer.token, json: { iaeActions } };
    const changed = await issuer.service.call('PATCH', `/issuer/credentials/${id}`, change);
    expect(changed.status, changed.text).to.equal(200);
  };
  const fresh = async (iaeActions: readonly object[] = []) => {
    const id = `changing-${++count}`;
    await issuer.addBadge(id, iaeActions);
    return id;
  };
  const expectDenied = ({ status, body }: Answer) => expect([status, body.error]).to.deep.equal([400, 'credential_request_denied']);
  const granted = async (id: string): Promise<{ wallet: InteractiveWallet; tokens: Answer }> => {
    const wallet = issuer.wallet();
    const code = wallet.expectCode(await wallet.begin((await issuer.offer(id)).uri, { scope: id }));
    const tokens = await wallet.redeemCode(code);
    expect(tokens.status, tokens.text).to.equal(200);
    return { wallet, tokens };
  };

  it('apply to access tokens and refresh tokens from before the change', async () => {
    const id = await fresh();
    const { wallet, tokens } = await granted(id);
    expect((await wallet.request(tokens.body.access_token, id)).status).to.equal(200);
    await ask(id, [ACTION]);
    expectDenied(await wallet.request(tokens.body.access_token, id));
    const refreshed = await wallet.refresh(tokens.body.refresh_token, { client_id: CLIENT_ID });
    expectDenied(await wallet.request(refreshed.body.access_token, id));
  });

  it('apply to offers with a pre-authorized code', async () => {
    const id = await fresh();
    const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: [id] };
    const { body } = await issuer.service.call('POST', '/issuer/offer', { token: issuer.token, json });
    await ask(id, [ACTION]);
    const wallet = issuer.wallet();
    expectDenied(await wallet.request(await wallet.accessToken(body.uri), id));
  });

  it('apply to pushed requests', async () => {
    const id = await fresh();
    const wallet = issuer.wallet();
    const requestUri = await wallet.push((await issuer.offer(id)).uri, id);
    await ask(id, [ACTION]);
    const { body } = await wallet.redeemCode(await wallet.authorize(requestUri));
    expectDenied(await wallet.request(body.access_token, id));
  });

  it('are satisfied when they were done, even if they were requested differently', async () => {
    const id = await fresh([ACTION]);
    const wallet = issuer.wallet();
    const asked = wallet.expectPresentationStep(await wallet.begin((await issuer.offer(id)).uri, { scope: id }));
    const { body } = await wallet.redeemCode(wallet.expectCode(await wallet.present(asked, held)));
    await ask(id, [{ ...ACTION, label: 'Show your card, please' }]);
    expect((await wallet.request(body.access_token, id)).status).to.equal(200);
    const refreshed = await wallet.refresh(body.refresh_token, { client_id: CLIENT_ID });
    expect((await wallet.request(refreshed.body.access_token, id)).status).to.equal(200);
    await issuer.addPresentationConfig('other-check');
    await ask(id, [ACTION, { ...ACTION, presentationConfigId: 'other-check' }]);
    expectDenied(await wallet.request(refreshed.body.access_token, id));
  });
});

describe('The session of an interactive authorization', () => {
  let issuer: Issuer;
  let held: HeldCredential;

  before(async () => {
    issuer = await Issuer.open();
    held = await issuer.issueCredential();
  });
  after(() => issuer.close());

  const ask = async (configuration = 'badge', wallet = issuer.wallet(), headers = {}) => {
    const { uri, session } = await issuer.offer(configuration);
    const answer = await wallet.begin(uri, { scope: configuration }, headers);
    return { wallet, session, asked: wallet.expectPresentationStep(answer) };
  };
  const expectError = (answer: Answer, error: string, status = 400) => {
    expect([answer.status, answer.body?.error], answer.text).to.deep.equal([status, error]);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
  };
  const vp = (wallet: InteractiveWallet, asked: RequiredInteraction) => ({ vp_token: { card: [wallet.bind(asked, held)] } });

  // issuance N137
  describe('is rejected with the session', () => {
    type Case = [string, (wallet: InteractiveWallet, asked: RequiredInteraction) => Promise<Answer>];
    const post = (wallet: InteractiveWallet, asked: RequiredInteraction, form: Record<string, string>, headers = {}) => {
      const openid4vp_response = JSON.stringify({ vp_token: { card: [wallet.bind(asked, held)] } });
      return wallet.post({ auth_session: asked.authSession, openid4vp_response, ...form }, headers);
    };
    const cases: Case[] = [
      ['unknown', (wallet, asked) => post(wallet, asked, { auth_session: 'x'.repeat(22) })],
      ['guessed', (wallet, asked) => post(wallet, asked, { auth_session: `${asked.authSession.slice(0, -3)}abc` })],
      ['of another client', (wallet, asked) => post(wallet, asked, { client_id: 'https://other.example' }, wallet.proof())],
      ['without the key that began', (wallet, asked) => post(wallet, asked, {})],
      ['with another key', (wallet, asked) => post(wallet, asked, {}, wallet.proof(newKey()))],
    ];
    for (const [what, attempt] of cases) {
      it(what, async () => {
        const wallet = issuer.wallet();
        const { asked } = await ask('badge', wallet, wallet.proof());
        expectError(await attempt(wallet, asked), 'invalid_session');
        wallet.expectCode(await post(wallet, asked, {}, wallet.proof()));
      });
    }

    it('of another tenant', async () => {
      const { asked, wallet } = await ask();
      await createTenant(issuer.service, 'elsewhere');
      const path = '/elsewhere/interactive-authorization';
      const form = { auth_session: asked.authSession, openid4vp_response: '{}' };
      expectError(await issuer.service.call('POST', path, { form }), 'invalid_session');
      wallet.expectCode(await wallet.present(asked, held));
    });

    for (const wire of DRAFT_VARIANTS) {
      it(`after its expiry, with the parameter names of ${wire.name}`, async () => {
        const { asked, wallet } = await ask('badge', issuer.wallet(wire));
        const steps = stepsOf(issuer.service.service.container.get(Store), issuer.id as TenantId);
        const found = (await steps.authorization(asked.authSession.split('.')[0] ?? ''))?.authorization;
        const { interaction } = found ?? {};
        if (found === undefined || interaction?.pending === undefined) throw new Error('nothing is pending');
        const pending = { ...interaction.pending, until: new Date() };
        await steps.commit({ authorization: advance(found, { interaction: { ...interaction, pending } }), uses: [] });
        expectError(await wallet.present(asked, held), wire.sessionError);
      });
    }
  });

  it('requires no proof of a key that was only announced, but accepts no other key', async () => {
    const wallet = issuer.wallet();
    const { uri } = await issuer.offer('badge');
    const proof = wallet.proof();
    const announced = await wallet.begin(uri, { scope: 'badge', dpop_jkt: 'x'.repeat(43) }, proof);
    expectError(announced, 'invalid_dpop_proof');
    const asked = wallet.expectPresentationStep(await wallet.begin(uri, { scope: 'badge', dpop_jkt: 'x'.repeat(43) }));
    expectError(await wallet.respond(asked, {}, wallet.proof()), 'invalid_session');
    const code = wallet.expectCode(await wallet.present(asked, held));
    expectError(await wallet.redeemCode(code, { redirect_uri: '' }), 'invalid_grant');
  });

  describe('of a wallet that authenticates', () => {
    const display = [{ name: 'Acme', locale: 'en' }];
    const REGISTERED = 'https://registered.example';
    const key = newKey();
    let provider: WalletProvider;

    const register = () => {
      const redirect_uris = ['https://registered.example/cb'];
      return issuer.create('/issuer/config', {
        display,
        ...provider.configuration(),
        walletAttestationRequired: false,
        walletClients: [{ client_id: REGISTERED, jwks: { keys: [key.jwk] }, redirect_uris }],
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

    const attested = async (wallet: InteractiveWallet, instance = newKey()) => {
      const { body } = await issuer.service.call('POST', `/${issuer.id}/challenge`);
      return provider.headers(instance, wallet.issuer, body.attestation_challenge);
    };
    const assertion = (wallet: InteractiveWallet) => ({
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: makeJwt(
        key,
        { alg: 'ES256' },
        { iss: REGISTERED, sub: REGISTERED, aud: wallet.issuer, jti: randomUUID(), iat: now(), exp: now() + 60 },
      ),
    });

    it('continues only with the same wallet instance', async () => {
      const wallet = issuer.wallet();
      const instance = newKey();
      const { asked } = await ask('badge', wallet, await attested(wallet, instance));
      const answer = vp(wallet, asked);
      expectError(await wallet.respond(asked, answer), 'invalid_session');
      expectError(await wallet.respond(asked, answer, await attested(wallet)), 'invalid_session');
      const bare = wallet.post({ auth_session: asked.authSession, client_id: CLIENT_ID, openid4vp_response: '{}' });
      expectError(await bare, 'invalid_session');
      wallet.expectCode(await wallet.respond(asked, answer, await attested(wallet, instance)));
    });

    it('continues only with the same registration, and only with its redirect URIs', async () => {
      const wallet = issuer.wallet();
      const { uri } = await issuer.offer('badge');
      const begin = (redirect_uri: string) =>
        wallet.begin(uri, { scope: 'badge', client_id: REGISTERED, redirect_uri, ...assertion(wallet) });
      expectError(await begin('https://registered.example/other'), 'invalid_request');
      const asked = wallet.expectPresentationStep(await begin('https://registered.example/cb'));
      const form = { auth_session: asked.authSession, openid4vp_response: JSON.stringify(vp(wallet, asked)) };
      expectError(await wallet.post(form), 'invalid_session');
      expectError(await wallet.post({ ...form, client_id: REGISTERED }), 'invalid_client', 401);
      expectError(await wallet.post(form, await attested(wallet)), 'invalid_session');
      // Nobody becomes this client by its name, not even when the registration is gone.
      await issuer.create('/issuer/config', { display });
      expectError(await wallet.post({ ...form, client_id: REGISTERED }), 'invalid_session');
      await register();
      wallet.expectCode(await wallet.post({ ...form, ...assertion(wallet) }));
    });
  });
});
