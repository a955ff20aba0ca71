import { expect } from 'chai';
import sinon from 'sinon';
import type { Decision, ShownConsent } from '../../../application/oauth/decide-authorization.ts';
import type { PageReturn } from '../../../application/oauth/return-to-interaction.ts';
import { WebhookError } from '../../../application/ports/webhooks.ts';
import { ASSERTION_TYPE } from '../../../domain/oauth/client-assertion.ts';
import { hashSecret } from '../../../domain/oauth/handle.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { AUTHORIZATION_REQUEST, CLIENT_ID, makeJwt, newKey } from '../../support/raw-wallet.ts';
import { ACME } from '../verification/kit.ts';
import { endOf, type WalletWorld } from '../wallet-kit.ts';
import { InteractiveWallet, interactiveWorld, type Required, required } from './kit.ts';

const REFUSED = { error: 'access_denied', state: AUTHORIZATION_REQUEST.state };

describe('web step of an interactive authorization', () => {
  let world: WalletWorld;
  let wallet: InteractiveWallet;

  before(async () => {
    world = await interactiveWorld();
    wallet = new InteractiveWallet(world);
  });
  beforeEach(() => {
    world.webhooks.calls.length = 0;
    world.webhooks.answer = undefined;
  });
  afterEach(() => sinon.restore());

  const show = ({ requestUri }: Required) => world.showAuthorization.execute(ACME, { clientId: CLIENT_ID, requestUri });
  const told = (location: string) => {
    const { keep: _, error_description: __, iss: ___, ...rest } = Object.fromEntries(new URL(location).searchParams);
    return rest;
  };
  const browserHash = async (asked: Required) => {
    const pending = (await wallet.stored(asked))?.interaction?.pending;
    return pending?.kind === 'web' ? pending.browserHash : undefined;
  };

  describe('ShowAuthorization', () => {
    it('shows the confirmation page for an unverified wallet before any page of the tenant', async () => {
      const asked = await wallet.asked('visitor');
      const shown = (await show(asked)) as ShownConsent;
      expect(shown.credentials.map(({ displays }) => displays)).to.deep.equal([[{ name: 'Card', locale: 'en' }]]);
      expect(shown.isVerified).to.equal(false);
      expect(JSON.stringify(shown)).not.to.include('shop.example');
      expect(await browserHash(asked)).to.equal(hashSecret(shown.cookie?.browserSecret ?? ''));
    });

    it('redirects the user of a wallet with a registered address to the page directly', async () => {
      const key = newKey();
      await world.issues({
        builtInAs: { walletInitiated: true },
        walletClients: [{ client_id: CLIENT_ID, jwks: { keys: [key.jwk] }, redirect_uris: [AUTHORIZATION_REQUEST.redirect_uri] }],
      });
      const claims = { iss: CLIENT_ID, sub: CLIENT_ID, aud: wallet.issuer, jti: 'one', exp: world.seconds + 60 };
      const client_assertion = makeJwt(key, { alg: 'ES256' }, claims);
      const asserted = { client_assertion, client_assertion_type: ASSERTION_TYPE };
      const sent = await show(required(await wallet.begin('visitor', asserted)));
      if (!('location' in sent)) throw new Error('the user is asked');
      const page = new URL(sent.location);
      expect(page.origin).to.equal('https://shop.example');
      const returnTo = new URL(page.searchParams.get('return_to') ?? '');
      expect(returnTo.pathname).to.equal('/acme/interactive-authorization/return');
      expect(returnTo.searchParams.get('auth_session')).to.equal(page.searchParams.get('visit'));
      await world.issues({ builtInAs: { walletInitiated: true } });
    });

    it('fails if concurrent requests always win', async () => {
      const asked = await wallet.asked('visitor');
      sinon.stub(world.store, 'commit').resolves({ done: false, part: 'authorization' });
      expect(await endOf(show(asked))).to.equal('invalid_request');
    });
  });

  describe('DecideAuthorization', () => {
    const shown = async () => {
      const asked = await wallet.asked('visitor');
      const { fields, cookie } = (await show(asked)) as ShownConsent;
      const browserSecrets = new Map([[asked.id, cookie?.browserSecret ?? '']]);
      const browser = { clientId: CLIENT_ID, requestUri: asked.requestUri, browserSecrets };
      return { asked, answer: { ...browser, decision: 'approve', decisionToken: fields['decision_token'] } };
    };
    const decide = (answer: Decision) => world.decideAuthorization.execute(ACME, answer);

    it('redirects an approving user to the page, and binds the browser with a new secret', async () => {
      const { asked, answer } = await shown();
      const sent = await decide(answer);
      if (!('cookie' in sent)) throw new Error('no page');
      expect(new URL(sent.location).origin).to.equal('https://shop.example');
      expect(await browserHash(asked)).to.equal(hashSecret(sent.cookie.browserSecret));
      expect(sent.cookie.seconds).to.equal(1800);
    });

    it('ends a denial with an error', async () => {
      const { asked, answer } = await shown();
      const { location } = await decide({ ...answer, decision: 'deny' });
      expect(told(location)).to.deep.equal(REFUSED);
      expect(await wallet.stored(asked)).to.deep.include({ stage: 'done', handles: {} });
    });

    it('rejects a response of another browser', async () => {
      const { asked, answer } = await shown();
      const other = { ...answer, browserSecrets: new Map([[asked.id, 'another']]) };
      expect(await endOf(decide(other))).to.equal('invalid_request');
      expect(await endOf(decide(answer))).to.equal('done');
    });
  });

  describe('ReturnToInteraction', () => {
    const visiting = async () => {
      const asked = await wallet.asked('visitor');
      const page = await wallet.visit(asked);
      const pageHandle = page.searchParams.get('visit') ?? '';
      return { asked, returned: { pageHandle, error: undefined, browserSecrets: wallet.browserSecrets } };
    };
    const comeBack = (returned: PageReturn, tenantId = ACME) => world.returnToInteraction.execute(tenantId, returned);

    it('redirects the browser to the wallet with a code after the last step, and records the completed interactions', async () => {
      const { asked, returned } = await visiting();
      const { location, authorizationId } = await comeBack(returned);
      const { code = '', ...rest } = told(location);
      expect([rest, authorizationId]).to.deep.equal([{ state: AUTHORIZATION_REQUEST.state }, asked.id]);
      expect(await wallet.stored(asked)).to.deep.include({ stage: 'done', handles: {} });
      const { body } = await wallet.redeemCode(code);
      const wanted = { credential_configuration_id: 'visitor' };
      expect((await wallet.issue(body.access_token, wanted)).credentials).to.have.length(1);
    });

    it('ends with an error when the offer has expired', async () => {
      const asked = await wallet.offered('visitor');
      const page = await wallet.visit(asked);
      const failed = { id: asked.session, anytime: ['active'], to: 'failed' } as const;
      await world.store.commit(ACME, { session: failed }, world.clock.now());
      const { sent } = await wallet.comeBack(page);
      expect([sent.get('error'), sent.get('code')]).to.deep.equal(['access_denied', null]);
      expect(await wallet.stored(asked)).to.deep.include({ stage: 'done', handles: {} });
    });

    it('redirects the browser to the wallet without a code before the last step', async () => {
      const asked = await wallet.asked('tour');
      const pageHandle = (await wallet.visit(asked)).searchParams.get('visit') ?? '';
      const returned = { pageHandle, error: undefined, browserSecrets: wallet.browserSecrets };
      const { location, authorizationId } = await comeBack(returned);
      const { auth_session: authSession = '', ...rest } = told(location);
      expect([rest, authorizationId]).to.deep.equal([{ state: AUTHORIZATION_REQUEST.state }, asked.id]);
      const stored = await wallet.stored(asked);
      expect(stored?.handles).to.deep.equal({ auth_session: hashSecret(authSession.split('.')[1] ?? '') });
    });

    it('ends with an error when the user cancelled', async () => {
      const { asked, returned } = await visiting();
      const { location } = await comeBack({ ...returned, error: 'access_denied' });
      expect(told(location)).to.deep.equal(REFUSED);
      expect(await wallet.stored(asked)).to.deep.include({ stage: 'done', handles: {} });
    });

    it('accepts one of two returns', async () => {
      const { returned } = await visiting();
      const ends = await Promise.all([endOf(comeBack(returned)), endOf(comeBack(returned))]);
      expect(ends.sort()).to.deep.equal(['done', 'invalid_request']);
    });

    type Visiting = Awaited<ReturnType<typeof visiting>>;
    const bends: readonly [what: string, bend: (visiting: Visiting) => Partial<PageReturn>][] = [
      ['no name of a page', () => ({ pageHandle: undefined })],
      ['an unknown page', () => ({ pageHandle: 'unknown' })],
      ['a page with another secret', ({ returned }) => ({ pageHandle: `${returned.pageHandle}A` })],
      ['the name that the wallet has', ({ asked }) => ({ pageHandle: asked.authSession })],
      ['another browser', ({ asked }) => ({ browserSecrets: new Map([[asked.id, 'another']]) })],
      ['a browser without its secret', () => ({ browserSecrets: new Map() })],
    ];
    for (const [what, bend] of bends) {
      it(`rejects ${what}, and the browser can still return`, async () => {
        const made = await visiting();
        expect(await endOf(comeBack({ ...made.returned, ...bend(made) }))).to.equal('invalid_request');
        expect(await endOf(comeBack(made.returned))).to.equal('done');
      });
    }

    it('expires after half an hour', async () => {
      const { returned } = await visiting();
      expect(await world.later(1800, () => endOf(comeBack(returned)))).to.equal('invalid_request');
    });

    it('fails for an unknown tenant', async () => {
      const { returned } = await visiting();
      expect(await endOf(comeBack(returned, 'nobody' as TenantId))).to.equal('not_found');
    });
  });

  describe('AcceptInteractionPage', () => {
    const visiting = async () => {
      const asked = await wallet.offered('confirmed');
      return { asked, page: await wallet.visit(asked) };
    };

    it('asks the backend once for the result, and then returns a code', async () => {
      const { asked, page } = await visiting();
      const both = await Promise.allSettled([wallet.comeBack(page), wallet.comeBack(page)]);
      const codes = both.flatMap((one) => (one.status === 'fulfilled' ? [one.value.sent.get('code')] : []));
      expect(codes).to.have.length(1);
      const visit = page.searchParams.get('visit');
      expect(world.webhooks.calls.map(({ body }) => body)).to.deep.equal([{ session: asked.session, auth_session: visit }]);
      const { body } = await wallet.redeemCode(codes[0] ?? '');
      expect(await endOf(wallet.issue(body.access_token, { credential_configuration_id: 'confirmed' }))).to.equal('done');
    });

    it('denies the wallet when the backend rejects the confirmation, and records the reason for the operator', async () => {
      const { asked, page } = await visiting();
      world.webhooks.answer = new WebhookError('bad_status', 'it answered 403', { status: 403 });
      const { sent } = await wallet.comeBack(page);
      expect([sent.get('error'), sent.get('code')]).to.deep.equal(['access_denied', null]);
      expect(await wallet.stored(asked)).to.deep.include({ stage: 'done', handles: {} });
      expect(JSON.stringify((await world.session(asked.session)).outcome?.report)).to.include('it answered 403');
      expect(await endOf(wallet.comeBack(page))).to.equal('invalid_request');
    });
  });
});
