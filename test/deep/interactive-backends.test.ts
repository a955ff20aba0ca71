import { expect } from 'chai';
import { databases, type TestDatabase } from '../support/databases.ts';
import { withoutIssuers } from '../support/failures.ts';
import { Issuer } from '../support/interactive-authorization.ts';
import type { HeldCredential } from '../support/present.ts';
import { countOutcomes } from '../support/raced-services.ts';
import type { Answer } from '../support/test-service.ts';

for (const kind of databases()) {
  describe(`webhooks and interactive authorization, on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let issuer: Issuer;
    let credential: HeldCredential;

    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      issuer = await Issuer.open({ DATABASE_URL: database.url });
      credential = await issuer.issueCredential();
      await issuer.addPresentationConfig('told', { webhook: { url: `${issuer.backend.url}/presented` } });
      await issuer.addBadge('friend', [{ type: 'openid4vp_presentation', presentationConfigId: 'told' }]);
    });
    after(async () => {
      await issuer?.close();
      await database?.drop();
    });
    beforeEach(() => {
      issuer.backend.clearCalls();
      issuer.backend.on('/presented', { json: {} });
    });

    const startPresentation = async (configuration: string) => {
      const wallet = issuer.wallet();
      const { uri, session } = await issuer.offer(configuration);
      const interaction = wallet.expectPresentationStep(await wallet.begin(uri, { scope: configuration }));
      return { wallet, session, asked: interaction };
    };
    const expectError = (answer: Answer, error: string) =>
      expect([answer.status, answer.body?.error], answer.text).to.deep.equal([400, error]);
    const collect = async (wallet: ReturnType<Issuer['wallet']>, code: string, id: string) => {
      const token = await wallet.redeemCode(code, { redirect_uri: '' });
      expect(token.status, token.text).to.equal(200);
      return wallet.request(token.body.access_token, id);
    };

    it('calls the presentation webhook, then the claims webhook, of one session', async () => {
      const { wallet, asked: interaction, session } = await startPresentation('friend');
      const code = wallet.expectCode(await wallet.present(interaction, credential));
      const [webhookCall] = issuer.backend.callsTo('/presented');
      const { credentials } = webhookCall?.body ?? {};
      expect(withoutIssuers(credentials)).to.deep.equal([{ id: 'card', values: { name: 'Ada' } }]);
      expect(webhookCall?.body).to.deep.equal({ session, credentials });
      const sessionBefore = await issuer.session(session);
      expect(sessionBefore.deliveries).to.have.length(1);
      expect(sessionBefore.deliveries[0]).to.include({ webhook: 'presentation', result: 'delivered' });
      expect(sessionBefore.deliveries[0].id).to.equal(webhookCall?.headers['idempotency-key']);
      expect(sessionBefore.report.every(({ result }: { result: string }) => result === 'passed')).to.equal(true);
      expect((await collect(wallet, code, 'friend')).status).to.equal(200);
      const [claims] = issuer.backend.callsTo('/claims');
      expect(claims?.body).to.deep.include({ session, credentials });
      const sessionAfter = await issuer.session(session);
      expect(sessionAfter.status).to.equal('completed');
      expect(sessionAfter.deliveries.map(({ webhook }: { webhook: string }) => webhook)).to.deep.equal(['presentation', 'claims']);
      expect(JSON.stringify(sessionAfter), 'values go to backends only').to.not.include('Ada');
    });

    it('ends the authorization when the presentation webhook fails, after one attempt', async () => {
      issuer.backend.on('/presented', (response) => response.writeHead(500).end('{"secret":"of the backend"}'));
      const { wallet, asked: interaction, session } = await startPresentation('friend');
      const deniedResponse = await wallet.present(interaction, credential);
      expectError(deniedResponse, 'access_denied');
      expect(deniedResponse.text).to.not.match(/secret|500|webhook/);
      expectError(await wallet.present(interaction, credential), 'invalid_session');
      expect(issuer.backend.callsTo('/presented')).to.have.length(1);
      const { deliveries, status } = await issuer.session(session);
      expect(deliveries[0]).to.include({ webhook: 'presentation', result: 'failed' });
      expect(status).to.equal('fetched');
    });

    it('ends the authorization when the presentation webhook answers without JSON', async () => {
      issuer.backend.on('/presented', (response) => response.writeHead(200).end('OK'));
      const { wallet, asked: interaction, session } = await startPresentation('friend');
      expectError(await wallet.present(interaction, credential), 'access_denied');
      expect((await issuer.session(session)).deliveries[0]).to.include({ result: 'failed' });
    });

    it('calls the presentation webhook after a rejection, without any claim value', async () => {
      const { wallet, asked: interaction, session } = await startPresentation('friend');
      expectError(await wallet.present(interaction, credential, { nonce: 'of-another-request' }), 'access_denied');
      const [webhookCall] = issuer.backend.callsTo('/presented');
      expect(webhookCall?.body).to.deep.equal({ session, credentials: [{ id: 'card', error: 'nonce_mismatch' }] });
      expect(issuer.backend.calls).to.have.length(1);
    });

    it('creates a new session for a wallet that began without an offer', async () => {
      const display = [{ name: 'Acme', locale: 'en' }];
      await issuer.create('/issuer/config', { display, builtInAs: { walletInitiated: true } });
      const wallet = issuer.wallet();
      const interaction = wallet.expectPresentationStep(await wallet.begin(undefined, { scope: 'friend' }));
      const code = wallet.expectCode(await wallet.present(interaction, credential));
      const session = issuer.backend.callsTo('/presented')[0]?.body.session;
      expect((await issuer.session(session)).deliveries).to.have.length(1);
      expect((await collect(wallet, code, 'friend')).status).to.equal(200);
      const claims = issuer.backend.callsTo('/claims')[0]?.body;
      expect(claims?.session).to.equal(session);
      expect(withoutIssuers(claims?.credentials)).to.deep.equal([{ id: 'card', values: { name: 'Ada' } }]);
      expect((await issuer.session(session)).status).to.equal('completed');

      const interactionWithoutOffer = wallet.expectPresentationStep(await wallet.begin(undefined, { scope: 'badge' }));
      const otherCode = wallet.expectCode(await wallet.present(interactionWithoutOffer, credential));
      expect((await collect(wallet, otherCode, 'badge')).status).to.equal(200);
      wallet.expectCode(await wallet.begin(undefined, { scope: 'plain' }));
      await issuer.create('/issuer/config', { display });
    });

    for (const configuration of ['badge', 'friend', 'both']) {
      it(`accepts one of twenty requests with the same session, for ${configuration}`, async () => {
        const { wallet, asked: interaction } = await startPresentation(configuration);
        const answers = await Promise.all(Array.from({ length: 20 }, () => wallet.present(interaction, credential)));
        const expectedStatus = configuration === 'both' ? '401 insufficient_authorization' : '200';
        expect(countOutcomes(answers)).to.deep.equal({ [expectedStatus]: 1, '400 invalid_session': 19 });
        expect(issuer.backend.callsTo('/presented')).to.have.length(configuration === 'friend' ? 1 : 0);
      });
    }

    it('continues for one of twenty browsers and one of twenty wallets', async () => {
      const wallet = issuer.wallet();
      const { uri } = await issuer.offer('tour');
      const interaction = wallet.expectWebStep(await wallet.begin(uri, { scope: 'tour' }));
      const page = new URL((await wallet.browse(interaction)).headers.get('location') ?? '');
      const address = page.searchParams.get('return_to') ?? '';
      const headers = { Cookie: wallet.browser.cookie };
      const returnResponse = await Promise.all(Array.from({ length: 20 }, () => issuer.service.call('GET', address, { headers })));
      expect(countOutcomes(returnResponse)).to.deep.equal({ 302: 1, 400: 19 });
      const returnedUrl = new URL(returnResponse.find(({ status }) => status === 302)?.headers.get('location') ?? '');
      const answers = await Promise.all(Array.from({ length: 20 }, () => wallet.resume(returnedUrl)));
      expect(countOutcomes(answers)).to.deep.equal({ '401 insufficient_authorization': 1, '400 invalid_session': 19 });
    });

    it('accepts a key proof once, and ignores the second use', async () => {
      const wallet = issuer.wallet();
      const { uri } = await issuer.offer('both');
      const proof = wallet.proof();
      const interaction = wallet.expectPresentationStep(await wallet.begin(uri, { scope: 'both' }, proof));
      const vp_token = { card: [wallet.bind(interaction, credential)] };
      expectError(await wallet.respond(interaction, { vp_token }, proof), 'invalid_dpop_proof');
      wallet.expectWebStep(await wallet.respond(interaction, { vp_token }, wallet.proof()));
    });
  });
}
