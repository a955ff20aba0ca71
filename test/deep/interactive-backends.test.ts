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
    let held: HeldCredential;

    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      issuer = await Issuer.open({ DATABASE_URL: database.url });
      held = await issuer.issueCredential();
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

    const ask = async (configuration: string) => {
      const wallet = issuer.wallet();
      const { uri, session } = await issuer.offer(configuration);
      const asked = wallet.expectPresentationStep(await wallet.begin(uri, { scope: configuration }));
      return { wallet, session, asked };
    };
    const expectError = (answer: Answer, error: string) =>
      expect([answer.status, answer.body?.error], answer.text).to.deep.equal([400, error]);
    const collect = async (wallet: ReturnType<Issuer['wallet']>, code: string, id: string) => {
      const token = await wallet.redeemCode(code, { redirect_uri: '' });
      expect(token.status, token.text).to.equal(200);
      return wallet.request(token.body.access_token, id);
    };

    it('calls the presentation webhook, then the claims webhook, of one session', async () => {
      const { wallet, asked, session } = await ask('friend');
      const code = wallet.expectCode(await wallet.present(asked, held));
      const [presented] = issuer.backend.callsTo('/presented');
      const { credentials } = presented?.body ?? {};
      expect(withoutIssuers(credentials)).to.deep.equal([{ id: 'card', values: { name: 'Ada' } }]);
      expect(presented?.body).to.deep.equal({ session, credentials });
      const before = await issuer.session(session);
      expect(before.deliveries).to.have.length(1);
      expect(before.deliveries[0]).to.include({ webhook: 'presentation', result: 'delivered' });
      expect(before.deliveries[0].id).to.equal(presented?.headers['idempotency-key']);
      expect(before.report.every(({ result }: { result: string }) => result === 'passed')).to.equal(true);
      expect((await collect(wallet, code, 'friend')).status).to.equal(200);
      const [claims] = issuer.backend.callsTo('/claims');
      expect(claims?.body).to.deep.include({ session, credentials });
      const after = await issuer.session(session);
      expect(after.status).to.equal('completed');
      expect(after.deliveries.map(({ webhook }: { webhook: string }) => webhook)).to.deep.equal(['presentation', 'claims']);
      expect(JSON.stringify(after), 'values go to backends only').to.not.include('Ada');
    });

    it('ends the authorization when the presentation webhook fails, after one attempt', async () => {
      issuer.backend.on('/presented', (response) => response.writeHead(500).end('{"secret":"of the backend"}'));
      const { wallet, asked, session } = await ask('friend');
      const denied = await wallet.present(asked, held);
      expectError(denied, 'access_denied');
      expect(denied.text).to.not.match(/secret|500|webhook/);
      expectError(await wallet.present(asked, held), 'invalid_session');
      expect(issuer.backend.callsTo('/presented')).to.have.length(1);
      const { deliveries, status } = await issuer.session(session);
      expect(deliveries[0]).to.include({ webhook: 'presentation', result: 'failed' });
      expect(status).to.equal('fetched');
    });

    it('ends the authorization when the presentation webhook answers without JSON', async () => {
      issuer.backend.on('/presented', (response) => response.writeHead(200).end('OK'));
      const { wallet, asked, session } = await ask('friend');
      expectError(await wallet.present(asked, held), 'access_denied');
      expect((await issuer.session(session)).deliveries[0]).to.include({ result: 'failed' });
    });

    it('calls the presentation webhook after a rejection, without any claim value', async () => {
      const { wallet, asked, session } = await ask('friend');
      expectError(await wallet.present(asked, held, { nonce: 'of-another-request' }), 'access_denied');
      const [told] = issuer.backend.callsTo('/presented');
      expect(told?.body).to.deep.equal({ session, credentials: [{ id: 'card', error: 'nonce_mismatch' }] });
      expect(issuer.backend.calls).to.have.length(1);
    });

    it('creates a new session for a wallet that began without an offer', async () => {
      const display = [{ name: 'Acme', locale: 'en' }];
      await issuer.create('/issuer/config', { display, builtInAs: { walletInitiated: true } });
      const wallet = issuer.wallet();
      const asked = wallet.expectPresentationStep(await wallet.begin(undefined, { scope: 'friend' }));
      const code = wallet.expectCode(await wallet.present(asked, held));
      const session = issuer.backend.callsTo('/presented')[0]?.body.session;
      expect((await issuer.session(session)).deliveries).to.have.length(1);
      expect((await collect(wallet, code, 'friend')).status).to.equal(200);
      const claims = issuer.backend.callsTo('/claims')[0]?.body;
      expect(claims?.session).to.equal(session);
      expect(withoutIssuers(claims?.credentials)).to.deep.equal([{ id: 'card', values: { name: 'Ada' } }]);
      expect((await issuer.session(session)).status).to.equal('completed');

      const quiet = wallet.expectPresentationStep(await wallet.begin(undefined, { scope: 'badge' }));
      const other = wallet.expectCode(await wallet.present(quiet, held));
      expect((await collect(wallet, other, 'badge')).status).to.equal(200);
      wallet.expectCode(await wallet.begin(undefined, { scope: 'plain' }));
      await issuer.create('/issuer/config', { display });
    });

    for (const configuration of ['badge', 'friend', 'both']) {
      it(`accepts one of twenty requests with the same session, for ${configuration}`, async () => {
        const { wallet, asked } = await ask(configuration);
        const answers = await Promise.all(Array.from({ length: 20 }, () => wallet.present(asked, held)));
        const good = configuration === 'both' ? '401 insufficient_authorization' : '200';
        expect(countOutcomes(answers)).to.deep.equal({ [good]: 1, '400 invalid_session': 19 });
        expect(issuer.backend.callsTo('/presented')).to.have.length(configuration === 'friend' ? 1 : 0);
      });
    }

    it('continues for one of twenty browsers and one of twenty wallets', async () => {
      const wallet = issuer.wallet();
      const { uri } = await issuer.offer('tour');
      const asked = wallet.expectWebStep(await wallet.begin(uri, { scope: 'tour' }));
      const page = new URL((await wallet.browse(asked)).headers.get('location') ?? '');
      const address = page.searchParams.get('return_to') ?? '';
      const headers = { Cookie: wallet.browser.cookie };
      const returned = await Promise.all(Array.from({ length: 20 }, () => issuer.service.call('GET', address, { headers })));
      expect(countOutcomes(returned)).to.deep.equal({ 302: 1, 400: 19 });
      const back = new URL(returned.find(({ status }) => status === 302)?.headers.get('location') ?? '');
      const answers = await Promise.all(Array.from({ length: 20 }, () => wallet.resume(back)));
      expect(countOutcomes(answers)).to.deep.equal({ '401 insufficient_authorization': 1, '400 invalid_session': 19 });
    });

    it('accepts a key proof once, and ignores the second use', async () => {
      const wallet = issuer.wallet();
      const { uri } = await issuer.offer('both');
      const proof = wallet.proof();
      const asked = wallet.expectPresentationStep(await wallet.begin(uri, { scope: 'both' }, proof));
      const vp_token = { card: [wallet.bind(asked, held)] };
      expectError(await wallet.respond(asked, { vp_token }, proof), 'invalid_dpop_proof');
      wallet.expectWebStep(await wallet.respond(asked, { vp_token }, wallet.proof()));
    });
  });
}
