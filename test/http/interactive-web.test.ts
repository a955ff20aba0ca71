import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { decisionPurpose } from '../../application/oauth/decide-authorization.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { Store } from '../../application/ports/store.ts';
import { makeChallenge } from '../../domain/oauth/challenge.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { stepsOf } from '../contract/store/steps.ts';
import { Browser } from '../support/chained-wallet.ts';
import { later } from '../support/chained-world.ts';
import { Issuer } from '../support/interactive-issuer.ts';
import { askPage, expectError, expectErrorPage, goBack, pageOf } from '../support/interactive-page.ts';
import type { Required } from '../support/interactive-wallet.ts';
import { CLIENT_ID } from '../support/raw-wallet.ts';
import { createTenant } from '../support/test-service.ts';

/** What the page that asks about the wallet of this authorization carries. */
function approvalOf({ service, id }: Issuer, { authSession }: Required): string {
  const [key] = service.service.container.get(ServiceSettings).nonceKeys;
  if (key === undefined) throw new Error('no key');
  const purpose = decisionPurpose(authSession.split('.')[0] ?? '');
  return makeChallenge(key, id as TenantId, purpose, new Date(), randomBytes(10));
}

describe('A page before an issuance', () => {
  let issuer: Issuer;

  before(async () => {
    issuer = await Issuer.open();
  });
  after(() => issuer.close());
  beforeEach(() => issuer.backend.forget());

  const ask = (configuration?: string) => askPage(issuer, configuration);

  it('that is not the last goes on with the verifier of the wallet that began alone (N141)', async () => {
    const { wallet, asked } = await ask('tour');
    const { back } = await wallet.visit(asked);
    expect(back.searchParams.get('code'), 'the browser carries no code').to.equal(null);
    for (const verifier of ['', 'x'.repeat(43)]) {
      expectError(await wallet.resume(back, verifier), 'invalid_grant');
    }
    const second = wallet.asksWeb(await wallet.resume(back));
    expectError(await wallet.resume(back), 'invalid_session');
    wallet.codeFrom((await wallet.visit(second)).back);
  });

  it('that is the last brings a code, which only the wallet that began redeems', async () => {
    const { wallet, asked } = await ask();
    const { back } = await wallet.visit(asked);
    expect(back.searchParams.get('auth_session'), 'nothing is left to ask').to.equal(null);
    expectError(
      await wallet.resume(new URL(`https://x.example/?auth_session=${asked.authSession}`)),
      'invalid_session',
    );
    const code = wallet.codeFrom(back);
    for (const code_verifier of ['', 'x'.repeat(43)]) {
      const refused = await issuer.wallet().redeemCode(code, { code_verifier });
      expectError(refused, 'invalid_grant');
    }
    const token = await wallet.redeemCode(code);
    expect(token.status, token.text).to.equal(200);
    expect((await wallet.request(token.body.access_token, 'visitor')).status).to.equal(200);
  });

  it('is not left out: not by going on at once, presenting something, or approving', async () => {
    const { wallet, asked } = await ask();
    const here = new URL(`https://x.example/?auth_session=${asked.authSession}`);
    expectError(await wallet.resume(here), 'invalid_request');
    expectError(await wallet.respond(asked, { vp_token: {} }), 'invalid_request');
    const decision_token = approvalOf(issuer, asked);
    for (const decision of ['approve', 'deny']) {
      const form = { client_id: CLIENT_ID, request_uri: asked.requestUri, decision, decision_token };
      expectErrorPage(await issuer.service.call('POST', `/${issuer.id}/authorize`, { form }));
    }
    wallet.codeFrom((await wallet.visit(asked)).back);
    const tour = await ask('tour');
    const { back } = await tour.wallet.visit(tour.asked);
    const authSession = back.searchParams.get('auth_session') ?? '';
    expectError(await tour.wallet.respond({ ...tour.asked, authSession }, {}), 'invalid_request');
    tour.wallet.asksWeb(await tour.wallet.resume(back));
  });

  it('can be loaded again until the user is back', async () => {
    const { wallet, asked } = await ask();
    const [one, other] = [await pageOf(wallet, asked), await pageOf(wallet, asked)];
    expect(one.href).to.equal(other.href);
    const { back } = await wallet.visit(asked);
    expectErrorPage(await wallet.browse(asked));
    expectErrorPage(await goBack(wallet.browser, one));
    wallet.codeFrom(back);
  });

  it('waits for a user who was in time and came back to it later', async () => {
    const { wallet, asked } = await ask();
    const unopened = await ask();
    const page = await pageOf(wallet, asked);
    await later(120, async () => {
      expect((await pageOf(wallet, asked)).href).to.equal(page.href);
      expectErrorPage(await unopened.wallet.browse(unopened.asked));
    });
  });

  it('is opened within a minute of being asked for, however long the steps before took', async () => {
    const { wallet, asked } = await ask();
    const steps = stepsOf(issuer.service.service.container.get(Store), issuer.id as TenantId);
    const found = (await steps.authorization(asked.authSession.split('.')[0] ?? ''))?.authorization;
    const { interaction } = found ?? {};
    if (found === undefined || interaction?.pending === undefined) throw new Error('nothing is pending');
    const longAgo = new Date(Date.now() - 120_000);
    const slow = { ...found, createdAt: longAgo, version: found.version + 1 };
    await steps.advanceAuthorization(slow, []);
    await wallet.visit(asked);
    const late = { ...interaction, pending: { ...interaction.pending, since: longAgo } };
    // A step for the question, one for the browser that was sent, one for its return.
    const written = { ...slow, interaction: late, version: slow.version + 4 };
    expect(await steps.advanceAuthorization(written, [])).to.equal('advanced');
    expectErrorPage(await wallet.browse(asked));
  });

  it('has a name that opens nothing else', async () => {
    const { wallet, asked } = await ask();
    const page = await pageOf(wallet, asked);
    const visit = page.searchParams.get('visit') ?? '';
    expectError(await wallet.resume(new URL(`https://x.example/?auth_session=${visit}`)), 'invalid_session');
    for (const guessed of [asked.authSession, `${visit.slice(0, -3)}abc`, 'guessed', '']) {
      const path = `/${issuer.id}/interactive-authorization/return?auth_session=${guessed}`;
      expectErrorPage(await wallet.browser.visit(`${issuer.service.address}${path}`));
    }
    await createTenant(issuer.service, 'elsewhere');
    const elsewhere = page.searchParams.get('return_to')?.replace('/acme/', '/elsewhere/') ?? '';
    const headers = { Cookie: wallet.browser.cookie };
    expectErrorPage(await issuer.service.call('GET', elsewhere, { headers }));
    expectErrorPage(await wallet.browse(asked, 'https://other.example'));
    wallet.codeFrom((await wallet.visit(asked)).back);
  });

  it('makes the session that the wallet knew before worth nothing', async () => {
    const { wallet, asked } = await ask();
    const { back } = await wallet.visit(asked);
    const before = new URL(`https://x.example/?auth_session=${asked.authSession}`);
    expectError(await wallet.resume(before), 'invalid_session');
    wallet.codeFrom(back);
  });

  it('ends the authorization when the user gives up there', async () => {
    const { wallet, asked } = await ask();
    const page = await pageOf(wallet, asked);
    const returned = await goBack(wallet.browser, page, '&error=cancelled');
    expect(returned.status).to.equal(302);
    const { error_description: _, ...sent } = Object.fromEntries(
      new URL(returned.headers.get('location') ?? '').searchParams,
    );
    expect(sent).to.deep.equal({
      keep: 'this',
      error: 'access_denied',
      state: 'state of the wallet',
      iss: wallet.issuer,
    });
    expectErrorPage(await goBack(wallet.browser, page));
    expectError(
      await wallet.resume(new URL(`https://x.example/?auth_session=${asked.authSession}`)),
      'invalid_session',
    );
  });

  describe('that the customer has to confirm', () => {
    before(() => {
      const { url } = issuer.backend;
      return issuer.badge('member', [
        { type: 'redirect_to_web', url: `${url}/join/{auth_session}`, callbackUrl: `${url}/joined` },
      ]);
    });

    it('counts when the customer says yes, and is asked about once', async () => {
      issuer.backend.on('/joined', (response) => response.writeHead(204).end());
      const { wallet, asked, session } = await ask('member');
      const page = await pageOf(wallet, asked);
      expectErrorPage(await goBack(new Browser(), page));
      expect(issuer.backend.calls, 'nobody is asked for strangers').to.have.length(0);
      const headers = { Cookie: wallet.browser.cookie };
      const address = page.searchParams.get('return_to') ?? '';
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => issuer.service.call('GET', address, { headers })),
      );
      const [sent, ...more] = answers.filter(({ status }) => status === 302);
      expect(more).to.deep.equal([]);
      wallet.codeFrom(new URL(sent?.headers.get('location') ?? ''));
      const [call, ...others] = issuer.backend.at('/joined');
      expect(others).to.have.length(0);
      const visit = page.pathname.replace('/join/', '');
      expect(call?.body).to.deep.equal({ session, auth_session: visit });
      expect(call?.headers['idempotency-key']).to.match(/^[\w-]{22,}$/);
    });

    it('ends the authorization when the customer says anything else', async () => {
      const refusals = [403, 500, 302];
      for (const status of refusals) {
        issuer.backend.on('/joined', (response) => response.writeHead(status, { Location: '/' }).end());
        const { wallet, asked, session } = await ask('member');
        const { page, back } = await wallet.visit(asked);
        expect(back.searchParams.get('error')).to.equal('access_denied');
        expect(back.searchParams.get('code')).to.equal(null);
        expect(back.searchParams.get('error_description')).to.not.include(String(status));
        issuer.backend.on('/joined', { json: {} });
        expectErrorPage(await goBack(wallet.browser, page));
        expect(JSON.stringify((await issuer.session(session)).report)).to.match(/web step/);
      }
      expect(issuer.backend.at('/joined')).to.have.length(refusals.length);
    });
  });
});
