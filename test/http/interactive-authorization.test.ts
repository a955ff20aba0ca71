import { expect } from 'chai';
import { Issuer } from '../support/interactive-issuer.ts';
import { CURRENT, type InteractiveWallet, WIRES } from '../support/interactive-wallet.ts';
import type { Held } from '../support/present.ts';
import { withoutIssuers } from '../support/results.ts';
import { readableClaims } from '../wallets/openid4vc/credentials.ts';

describe('Interactive authorization', () => {
  let issuer: Issuer;
  let held: Held;

  before(async () => {
    issuer = await Issuer.open();
    held = await issuer.hold();
  });
  after(() => issuer.close());
  beforeEach(() => issuer.backend.forget());

  /** Redeems a code as wallets do that never gave an address to return to, and collects the credential. */
  const collect = async (wallet: InteractiveWallet, code: string, configurationId: string) => {
    const token = await wallet.redeemCode(code, { redirect_uri: '' });
    expect(token.status, token.text).to.equal(200);
    const issued = await wallet.request(token.body.access_token, configurationId);
    expect(issued.status, issued.text).to.equal(200);
    return readableClaims(issued.body.credentials[0].credential);
  };

  for (const wire of WIRES) {
    describe(`in the words of ${wire.name}`, () => {
      it('asks for a presentation and issues by what was presented', async () => {
        const wallet = issuer.wallet(wire);
        const { uri, session } = await issuer.offer('badge');
        const asked = wallet.asksPresentation(await wallet.begin(uri, { scope: 'badge' }));
        const { nonce, ...request } = asked.request;
        expect(nonce).to.match(/^[\w-]{22,}$/);
        expect(request).to.deep.equal({
          response_type: 'vp_token',
          response_mode: wire.responseMode,
          dcql_query: request.dcql_query,
          client_metadata: { vp_formats_supported: request.client_metadata.vp_formats_supported },
        });
        const code = wallet.issuedCode(await wallet.present(asked, held));
        expect(await collect(wallet, code, 'badge')).to.deep.equal({ role: 'friend of Ada' });
        const [call] = issuer.backend.at('/claims');
        const { identity, credentials, ...told } = call?.body ?? {};
        expect(told).to.deep.equal({ session, credential_configuration_id: 'badge' });
        expect(withoutIssuers(credentials)).to.deep.equal([{ id: 'card', values: { name: 'Ada' } }]);
        expect(identity).to.include({ iss: wallet.issuer });
      });

      it('sends the user to a page and goes on with the wallet that began', async () => {
        const wallet = issuer.wallet(wire);
        const { uri } = await issuer.offer('visitor');
        const asked = wallet.asksWeb(await wallet.begin(uri, { scope: 'visitor' }));
        const { page, back } = await wallet.visit(asked);
        expect(page.href.startsWith(`${issuer.backend.url}/page?visit=`)).to.equal(true);
        const visit = page.searchParams.get('visit') ?? '';
        expect(page.searchParams.get('return_to')).to.equal(
          `${wallet.endpoint}/return?auth_session=${visit}`,
        );
        expect(visit).to.not.equal(asked.authSession);
        expect(`${back.origin}${back.pathname}`).to.equal('https://wallet.example/cb');
        const code = wallet.codeFrom(back);
        expect(await collect(wallet, code, 'visitor')).to.deep.equal({ role: 'visitor' });
      });

      it('takes one step after the other, each with a new name for the session', async () => {
        const wallet = issuer.wallet(wire);
        const { uri } = await issuer.offer('both');
        const first = wallet.asksPresentation(await wallet.begin(uri, { scope: 'both' }));
        const second = wallet.asksWeb(await wallet.present(first, held));
        expect(second.authSession).to.not.equal(first.authSession);
        const late = await wallet.present(first, held);
        expect([late.status, late.body.error]).to.deep.equal([400, wire.sessionError]);
        const { back } = await wallet.visit(second);
        const code = wallet.codeFrom(back);
        expect(await collect(wallet, code, 'both')).to.deep.equal({ role: 'friend of Ada' });
        const replayed = await wallet.resume(
          new URL(`https://x.example/?auth_session=${second.authSession}`),
        );
        expect([replayed.status, replayed.body.error]).to.deep.equal([400, wire.sessionError]);
      });
    });
  }

  describe('begins with a request that', () => {
    const TYPES = `${CURRENT.presentation},${CURRENT.web}`;
    type Case = [string, string, Record<string, string>, string];
    const cases: Case[] = [
      ['lists no types (N135)', 'badge', { interaction_types_supported: '' }, 'invalid_request'],
      [
        'lists nothing but commas (N135)',
        'badge',
        { interaction_types_supported: ' , ,' },
        'invalid_request',
      ],
      [
        'lacks a type that is needed (N136)',
        'badge',
        { interaction_types_supported: CURRENT.web },
        'missing_interaction_type',
      ],
      [
        'lacks a type that is needed later (N136)',
        'both',
        { interaction_types_supported: CURRENT.presentation },
        'missing_interaction_type',
      ],
      [
        'names the types in words of two drafts (N136)',
        'both',
        { interaction_types_supported: `${CURRENT.presentation},redirect_to_web` },
        'missing_interaction_type',
      ],
      [
        'lists types that nobody knows (N136)',
        'badge',
        { interaction_types_supported: 'telepathy' },
        'missing_interaction_type',
      ],
      [
        'lists the web without code_challenge (N142)',
        'badge',
        { code_challenge: '', code_challenge_method: '' },
        'invalid_request',
      ],
      ['has a plain code_challenge', 'badge', { code_challenge_method: 'plain' }, 'invalid_request'],
      ['has a method without a challenge', 'badge', { code_challenge: '' }, 'invalid_request'],
      ['leads to the web without redirect_uri', 'visitor', { redirect_uri: '' }, 'invalid_request'],
      [
        'leads to the web without an https redirect_uri',
        'visitor',
        { redirect_uri: 'wallet-app:/cb' },
        'invalid_request',
      ],
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
      it(`${what}, and is refused`, async () => {
        const { uri } = await issuer.offer(configuration);
        const answer = await issuer.wallet().begin(uri, { scope: configuration, ...form });
        expect([answer.status, answer.body.error], answer.text).to.deep.equal([400, error]);
        expect(answer.headers.get('cache-control')).to.equal('no-store');
      });
    }

    it('lists more than is needed, in any order', async () => {
      const wallet = issuer.wallet();
      const { uri } = await issuer.offer('badge');
      const types = `telepathy ,redirect_to_web,${CURRENT.presentation},openid4vp_presentation`;
      wallet.asksPresentation(
        await wallet.begin(uri, { scope: 'badge', interaction_types_supported: types }),
      );
    });

    it('needs neither redirect_uri nor PKCE where the wallet knows no web step', async () => {
      const wallet = issuer.wallet();
      const { uri } = await issuer.offer('badge');
      const asked = wallet.asksPresentation(
        await wallet.begin(uri, {
          scope: 'badge',
          interaction_types_supported: CURRENT.presentation,
          ...{ redirect_uri: '', code_challenge: '', code_challenge_method: '' },
        }),
      );
      const code = wallet.issuedCode(await wallet.present(asked, held));
      const withAddress = await wallet.redeemCode(code, { code_verifier: '' });
      expect([withAddress.status, withAddress.body.error]).to.deep.equal([400, 'invalid_grant']);
      const token = await wallet.redeemCode(code, { redirect_uri: '', code_verifier: '' });
      expect(token.status, token.text).to.equal(200);
    });

    it('asks for several credentials: one interaction after the other, and none twice', async () => {
      const wallet = issuer.wallet();
      const ids = ['badge', 'plain', 'both'];
      const { uri } = await issuer.offer(...ids);
      const scope = ids.join(' ');
      const first = wallet.asksPresentation(
        await wallet.begin(uri, { scope, interaction_types_supported: TYPES }),
      );
      const second = wallet.asksWeb(await wallet.present(first, held));
      const { back } = await wallet.visit(second);
      const code = wallet.codeFrom(back);
      const token = await wallet.redeemCode(code, { redirect_uri: '' });
      for (const id of ids) {
        const issued = await wallet.request(token.body.access_token, id);
        expect(issued.status, issued.text).to.equal(200);
      }
    });

    it('asks for what needs no interaction: the code comes at once, for an offer', async () => {
      const wallet = issuer.wallet();
      const { uri } = await issuer.offer('plain');
      const code = wallet.issuedCode(await wallet.begin(uri, { scope: 'plain' }));
      expect(await collect(wallet, code, 'plain')).to.deep.equal({ role: 'visitor' });
      const without = await wallet.begin(undefined, { scope: 'plain' });
      expect([without.status, without.body.error]).to.deep.equal([400, 'invalid_request']);
    });

    it('was pushed instead, and is refused', async () => {
      const { uri } = await issuer.offer('badge');
      const pushed = await issuer
        .wallet()
        .push(uri, 'badge')
        .catch((error: Error) => error.message);
      expect(pushed).to.match(/^par: 400 .*invalid_request/);
    });
  });

  it('leads to a code that only the wallet with the verifier redeems, once', async () => {
    const wallet = issuer.wallet();
    const { uri } = await issuer.offer('badge');
    const asked = wallet.asksPresentation(await wallet.begin(uri, { scope: 'badge' }));
    const code = wallet.issuedCode(await wallet.present(asked, held));
    for (const wrong of [
      { code_verifier: '' },
      { code_verifier: 'x'.repeat(43) },
      { redirect_uri: 'https://x.example' },
    ]) {
      const answer = await wallet.redeemCode(code, { redirect_uri: '', ...wrong });
      expect([answer.status, answer.body.error], JSON.stringify(wrong)).to.deep.equal([400, 'invalid_grant']);
    }
    expect((await wallet.redeemCode(code)).status, 'with the right redirect_uri').to.equal(200);
    expect((await wallet.redeemCode(code)).body.error).to.equal('invalid_grant');
  });
});
