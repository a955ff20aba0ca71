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
import { outcomeOf, type WalletWorld } from '../wallet-kit.ts';
import { type InteractionStep, InteractiveWallet, interactiveWorld, parseStep } from './kit.ts';

const DENIED = { error: 'access_denied', state: AUTHORIZATION_REQUEST.state };

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

  const show = ({ requestUri }: InteractionStep) => world.showAuthorization.execute(ACME, { clientId: CLIENT_ID, requestUri });
  const redirectParameters = (location: string) => {
    const { keep: _, error_description: __, iss: ___, ...rest } = Object.fromEntries(new URL(location).searchParams);
    return rest;
  };
  const browserHash = async (step: InteractionStep) => {
    const pendingStep = (await wallet.storedAuthorization(step))?.interaction?.pending;
    return pendingStep?.kind === 'web' ? pendingStep.browserHash : undefined;
  };

  describe('ShowAuthorization', () => {
    it('shows the confirmation page for an unverified wallet before any page of the tenant', async () => {
      const step = await wallet.startInteraction('visitor');
      const consent = (await show(step)) as ShownConsent;
      expect(consent.credentials.map(({ displays }) => displays)).to.deep.equal([[{ name: 'Card', locale: 'en' }]]);
      expect(consent.isVerified).to.equal(false);
      expect(JSON.stringify(consent)).not.to.include('shop.example');
      expect(await browserHash(step)).to.equal(hashSecret(consent.cookie?.browserSecret ?? ''));
    });

    it('redirects the user of a wallet with a registered address to the page directly', async () => {
      const key = newKey();
      await world.putIssuance({
        builtInAs: { walletInitiated: true },
        walletClients: [{ client_id: CLIENT_ID, jwks: { keys: [key.jwk] }, redirect_uris: [AUTHORIZATION_REQUEST.redirect_uri] }],
      });
      const claims = { iss: CLIENT_ID, sub: CLIENT_ID, aud: wallet.issuer, jti: 'one', exp: world.seconds + 60 };
      const client_assertion = makeJwt(key, { alg: 'ES256' }, claims);
      const clientAssertion = { client_assertion, client_assertion_type: ASSERTION_TYPE };
      const shownPage = await show(parseStep(await wallet.beginInteraction('visitor', clientAssertion)));
      if (!('location' in shownPage)) throw new Error('the user is asked');
      const page = new URL(shownPage.location);
      expect(page.origin).to.equal('https://shop.example');
      const returnTo = new URL(page.searchParams.get('return_to') ?? '');
      expect(returnTo.pathname).to.equal('/acme/interactive-authorization/return');
      expect(returnTo.searchParams.get('auth_session')).to.equal(page.searchParams.get('visit'));
      await world.putIssuance({ builtInAs: { walletInitiated: true } });
    });

    it('fails if concurrent requests always win', async () => {
      const step = await wallet.startInteraction('visitor');
      sinon.stub(world.store, 'commit').resolves({ done: false, part: 'authorization' });
      expect(await outcomeOf(show(step))).to.equal('invalid_request');
    });
  });

  describe('DecideAuthorization', () => {
    const consent = async () => {
      const step = await wallet.startInteraction('visitor');
      const { fields, cookie } = (await show(step)) as ShownConsent;
      const browserSecrets = new Map([[step.id, cookie?.browserSecret ?? '']]);
      const browser = { clientId: CLIENT_ID, requestUri: step.requestUri, browserSecrets };
      return { step, decision: { ...browser, decision: 'approve', decisionToken: fields['decision_token'] } };
    };
    const decide = (decision: Decision) => world.decideAuthorization.execute(ACME, decision);

    it('redirects an approving user to the page, and binds the browser with a new secret', async () => {
      const { step, decision } = await consent();
      const page = await decide(decision);
      if (!('cookie' in page)) throw new Error('no page');
      expect(new URL(page.location).origin).to.equal('https://shop.example');
      expect(await browserHash(step)).to.equal(hashSecret(page.cookie.browserSecret));
      expect(page.cookie.seconds).to.equal(1800);
    });

    it('ends a denial with an error', async () => {
      const { step, decision } = await consent();
      const { location } = await decide({ ...decision, decision: 'deny' });
      expect(redirectParameters(location)).to.deep.equal(DENIED);
      expect(await wallet.storedAuthorization(step)).to.deep.include({ stage: 'done', handles: {} });
    });

    it('rejects a response of another browser', async () => {
      const { step, decision } = await consent();
      const otherBrowser = { ...decision, browserSecrets: new Map([[step.id, 'another']]) };
      expect(await outcomeOf(decide(otherBrowser))).to.equal('invalid_request');
      expect(await outcomeOf(decide(decision))).to.equal('done');
    });
  });

  describe('ReturnToInteraction', () => {
    const visitPage = async () => {
      const step = await wallet.startInteraction('visitor');
      const page = await wallet.visitPage(step);
      const pageHandle = page.searchParams.get('visit') ?? '';
      return { step, pageReturn: { pageHandle, error: undefined, browserSecrets: wallet.browserSecrets } };
    };
    const returnFromPage = (pageReturn: PageReturn, tenantId = ACME) => world.returnToInteraction.execute(tenantId, pageReturn);

    it('redirects the browser to the wallet with a code after the last step, and records the completed interactions', async () => {
      const { step, pageReturn } = await visitPage();
      const { location, authorizationId } = await returnFromPage(pageReturn);
      const { code = '', ...rest } = redirectParameters(location);
      expect([rest, authorizationId]).to.deep.equal([{ state: AUTHORIZATION_REQUEST.state }, step.id]);
      expect(await wallet.storedAuthorization(step)).to.deep.include({ stage: 'done', handles: {} });
      const { body } = await wallet.redeemCode(code);
      const requestBody = { credential_configuration_id: 'visitor' };
      expect((await wallet.issue(body.access_token, requestBody)).credentials).to.have.length(1);
    });

    it('ends with an error when the offer has expired', async () => {
      const step = await wallet.startOfferedInteraction('visitor');
      const page = await wallet.visitPage(step);
      const change = { id: step.session, anytime: ['active'], to: 'failed' } as const;
      await world.store.commit(ACME, { session: change }, world.clock.now());
      const { parameters } = await wallet.returnFromPage(page);
      expect([parameters.get('error'), parameters.get('code')]).to.deep.equal(['access_denied', null]);
      expect(await wallet.storedAuthorization(step)).to.deep.include({ stage: 'done', handles: {} });
    });

    it('redirects the browser to the wallet without a code before the last step', async () => {
      const step = await wallet.startInteraction('tour');
      const pageHandle = (await wallet.visitPage(step)).searchParams.get('visit') ?? '';
      const pageReturn = { pageHandle, error: undefined, browserSecrets: wallet.browserSecrets };
      const { location, authorizationId } = await returnFromPage(pageReturn);
      const { auth_session: authSession = '', ...rest } = redirectParameters(location);
      expect([rest, authorizationId]).to.deep.equal([{ state: AUTHORIZATION_REQUEST.state }, step.id]);
      const authorization = await wallet.storedAuthorization(step);
      expect(authorization?.handles).to.deep.equal({ auth_session: hashSecret(authSession.split('.')[1] ?? '') });
    });

    it('ends with an error when the user cancelled', async () => {
      const { step, pageReturn } = await visitPage();
      const { location } = await returnFromPage({ ...pageReturn, error: 'access_denied' });
      expect(redirectParameters(location)).to.deep.equal(DENIED);
      expect(await wallet.storedAuthorization(step)).to.deep.include({ stage: 'done', handles: {} });
    });

    it('accepts one of two returns', async () => {
      const { pageReturn } = await visitPage();
      const outcomes = await Promise.all([outcomeOf(returnFromPage(pageReturn)), outcomeOf(returnFromPage(pageReturn))]);
      expect(outcomes.sort()).to.deep.equal(['done', 'invalid_request']);
    });

    type Visit = Awaited<ReturnType<typeof visitPage>>;
    const mutations: readonly [description: string, mutate: (visitPage: Visit) => Partial<PageReturn>][] = [
      ['no name of a page', () => ({ pageHandle: undefined })],
      ['an unknown page', () => ({ pageHandle: 'unknown' })],
      ['a page with another secret', ({ pageReturn }) => ({ pageHandle: `${pageReturn.pageHandle}A` })],
      ['the auth_session of the wallet', ({ step }) => ({ pageHandle: step.authSession })],
      ['another browser', ({ step }) => ({ browserSecrets: new Map([[step.id, 'another']]) })],
      ['a browser without its cookie', () => ({ browserSecrets: new Map() })],
    ];
    for (const [description, mutate] of mutations) {
      it(`rejects ${description}, and the browser can still return`, async () => {
        const visit = await visitPage();
        expect(await outcomeOf(returnFromPage({ ...visit.pageReturn, ...mutate(visit) }))).to.equal('invalid_request');
        expect(await outcomeOf(returnFromPage(visit.pageReturn))).to.equal('done');
      });
    }

    it('expires after half an hour', async () => {
      const { pageReturn } = await visitPage();
      expect(await world.afterSeconds(1800, () => outcomeOf(returnFromPage(pageReturn)))).to.equal('invalid_request');
    });

    it('fails for an unknown tenant', async () => {
      const { pageReturn } = await visitPage();
      expect(await outcomeOf(returnFromPage(pageReturn, 'unknown' as TenantId))).to.equal('not_found');
    });
  });

  describe('AcceptInteractionPage', () => {
    const visitPage = async () => {
      const step = await wallet.startOfferedInteraction('confirmed');
      return { step, page: await wallet.visitPage(step) };
    };

    it('asks the backend once for the result, and then returns a code', async () => {
      const { step, page } = await visitPage();
      const results = await Promise.allSettled([wallet.returnFromPage(page), wallet.returnFromPage(page)]);
      const codes = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value.parameters.get('code')] : []));
      expect(codes).to.have.length(1);
      const visit = page.searchParams.get('visit');
      expect(world.webhooks.calls.map(({ body }) => body)).to.deep.equal([{ session: step.session, auth_session: visit }]);
      const { body } = await wallet.redeemCode(codes[0] ?? '');
      expect(await outcomeOf(wallet.issue(body.access_token, { credential_configuration_id: 'confirmed' }))).to.equal('done');
    });

    it('denies the wallet when the backend rejects the confirmation, and records the reason for the operator', async () => {
      const { step, page } = await visitPage();
      world.webhooks.answer = new WebhookError('bad_status', 'it answered 403', { status: 403 });
      const { parameters } = await wallet.returnFromPage(page);
      expect([parameters.get('error'), parameters.get('code')]).to.deep.equal(['access_denied', null]);
      expect(await wallet.storedAuthorization(step)).to.deep.include({ stage: 'done', handles: {} });
      expect(JSON.stringify((await world.session(step.session)).outcome?.report)).to.include('it answered 403');
      expect(await outcomeOf(wallet.returnFromPage(page))).to.equal('invalid_request');
    });
  });
});
