import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { Store } from '../../application/ports/store.ts';
import { moveOn } from '../../domain/oauth/authorization.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { stepsOf } from '../contract/store/steps.ts';
import { Issuer } from '../support/interactive-issuer.ts';
import { type InteractiveWallet, type Required, WIRES } from '../support/interactive-wallet.ts';
import type { Held } from '../support/present.ts';
import { CLIENT_ID, makeJwt, newKey, now } from '../support/raw-wallet.ts';
import { type Answer, createTenant } from '../support/test-service.ts';
import { WalletProvider } from '../support/wallet-provider.ts';

describe('The session of an interactive authorization', () => {
  let issuer: Issuer;
  let held: Held;

  before(async () => {
    issuer = await Issuer.open();
    held = await issuer.hold();
  });
  after(() => issuer.close());

  const ask = async (configuration = 'badge', wallet = issuer.wallet(), headers = {}) => {
    const { uri, session } = await issuer.offer(configuration);
    const answer = await wallet.begin(uri, { scope: configuration }, headers);
    return { wallet, session, asked: wallet.asksPresentation(answer) };
  };
  const expectError = (answer: Answer, error: string, status = 400) => {
    expect([answer.status, answer.body?.error], answer.text).to.deep.equal([status, error]);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
  };
  const vp = (wallet: InteractiveWallet, asked: Required) => ({
    vp_token: { card: [wallet.bind(asked, held)] },
  });

  describe('is refused with the session (N137)', () => {
    type Case = [string, (wallet: InteractiveWallet, asked: Required) => Promise<Answer>];
    const post = (wallet: InteractiveWallet, asked: Required, form: Record<string, string>, headers = {}) => {
      const openid4vp_response = JSON.stringify({ vp_token: { card: [wallet.bind(asked, held)] } });
      return wallet.post({ auth_session: asked.authSession, openid4vp_response, ...form }, headers);
    };
    const cases: Case[] = [
      ['unknown', (wallet, asked) => post(wallet, asked, { auth_session: 'x'.repeat(22) })],
      [
        'guessed',
        (wallet, asked) => post(wallet, asked, { auth_session: `${asked.authSession.slice(0, -3)}abc` }),
      ],
      [
        'of another client',
        (wallet, asked) => post(wallet, asked, { client_id: 'https://other.example' }, wallet.proof()),
      ],
      ['without the key that began', (wallet, asked) => post(wallet, asked, {})],
      ['with another key', (wallet, asked) => post(wallet, asked, {}, wallet.proof(newKey()))],
    ];
    for (const [what, attempt] of cases) {
      it(what, async () => {
        const wallet = issuer.wallet();
        const { asked } = await ask('badge', wallet, wallet.proof());
        expectError(await attempt(wallet, asked), 'invalid_session');
        wallet.issuedCode(await post(wallet, asked, {}, wallet.proof()));
      });
    }

    it('of another tenant', async () => {
      const { asked, wallet } = await ask();
      await createTenant(issuer.service, 'elsewhere');
      const path = '/elsewhere/interactive-authorization';
      const form = { auth_session: asked.authSession, openid4vp_response: '{}' };
      expectError(await issuer.service.call('POST', path, { form }), 'invalid_session');
      wallet.issuedCode(await wallet.present(asked, held));
    });

    for (const wire of WIRES) {
      it(`when it came too late, in the words of ${wire.name}`, async () => {
        const { asked, wallet } = await ask('badge', issuer.wallet(wire));
        const steps = stepsOf(issuer.service.service.container.get(Store), issuer.id as TenantId);
        const found = (await steps.authorization(asked.authSession.split('.')[0] ?? ''))?.authorization;
        const { interaction } = found ?? {};
        if (found === undefined || interaction?.pending === undefined) throw new Error('nothing is pending');
        const pending = { ...interaction.pending, until: new Date() };
        await steps.advanceAuthorization(moveOn(found, { interaction: { ...interaction, pending } }), []);
        expectError(await wallet.present(asked, held), wire.sessionError);
      });
    }
  });

  it('needs no proof of a key that was only announced, but takes no other', async () => {
    const wallet = issuer.wallet();
    const { uri } = await issuer.offer('badge');
    const proof = wallet.proof();
    const announced = await wallet.begin(uri, { scope: 'badge', dpop_jkt: 'x'.repeat(43) }, proof);
    expectError(announced, 'invalid_dpop_proof');
    const asked = wallet.asksPresentation(
      await wallet.begin(uri, { scope: 'badge', dpop_jkt: 'x'.repeat(43) }),
    );
    expectError(await wallet.respond(asked, {}, wallet.proof()), 'invalid_session');
    const code = wallet.issuedCode(await wallet.present(asked, held));
    expectError(await wallet.redeemCode(code, { redirect_uri: '' }), 'invalid_grant');
  });

  describe('of a wallet that authenticates', () => {
    const display = [{ name: 'Acme', locale: 'en' }];
    const REGISTERED = 'https://registered.example';
    const key = newKey();
    let provider: WalletProvider;

    const register = () => {
      const redirect_uris = ['https://registered.example/cb'];
      return issuer.write('/issuer/config', {
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
      await issuer.write('/issuer/config', { display });
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
        {
          iss: REGISTERED,
          sub: REGISTERED,
          aud: wallet.issuer,
          jti: randomUUID(),
          iat: now(),
          exp: now() + 60,
        },
      ),
    });

    it('goes on with the same installation only', async () => {
      const wallet = issuer.wallet();
      const instance = newKey();
      const { asked } = await ask('badge', wallet, await attested(wallet, instance));
      const answer = vp(wallet, asked);
      expectError(await wallet.respond(asked, answer), 'invalid_session');
      expectError(await wallet.respond(asked, answer, await attested(wallet)), 'invalid_session');
      const bare = wallet.post({
        auth_session: asked.authSession,
        client_id: CLIENT_ID,
        openid4vp_response: '{}',
      });
      expectError(await bare, 'invalid_session');
      wallet.issuedCode(await wallet.respond(asked, answer, await attested(wallet, instance)));
    });

    it('goes on with the same registration only, which has its addresses', async () => {
      const wallet = issuer.wallet();
      const { uri } = await issuer.offer('badge');
      const begin = (redirect_uri: string) =>
        wallet.begin(uri, { scope: 'badge', client_id: REGISTERED, redirect_uri, ...assertion(wallet) });
      expectError(await begin('https://registered.example/other'), 'invalid_request');
      const asked = wallet.asksPresentation(await begin('https://registered.example/cb'));
      const form = { auth_session: asked.authSession, openid4vp_response: JSON.stringify(vp(wallet, asked)) };
      expectError(await wallet.post(form), 'invalid_session');
      expectError(await wallet.post({ ...form, client_id: REGISTERED }), 'invalid_client', 401);
      expectError(await wallet.post(form, await attested(wallet)), 'invalid_session');
      // Nobody becomes this client by its name, not even when the registration is gone.
      await issuer.write('/issuer/config', { display });
      expectError(await wallet.post({ ...form, client_id: REGISTERED }), 'invalid_session');
      await register();
      wallet.issuedCode(await wallet.post({ ...form, ...assertion(wallet) }));
    });
  });
});
