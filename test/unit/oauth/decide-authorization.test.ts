import { expect } from 'chai';
import sinon from 'sinon';
import type { Decision, ShownConsent } from '../../../application/oauth/decide-authorization.ts';
import { hashCode } from '../../../application/oauth/redeem-grant.ts';
import { handleOfRequestUri, REQUEST_URI_PREFIX } from '../../../domain/oauth/authorization.ts';
import { readHandle } from '../../../domain/oauth/handle.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import { UPSTREAM } from '../../support/fake-authorization-servers.ts';
import { AUTHORIZATION_REQUEST } from '../../support/raw-wallet.ts';
import { ACME } from '../verification-flow/kit.ts';
import { anOffer, Wallet } from '../wallet.ts';
import { endOf, WalletWorld } from '../wallet-kit.ts';

const { client_id: clientId, state } = AUTHORIZATION_REQUEST;
const NOBODY = 'nobody' as TenantId;

describe('The page of the built-in server', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
  });
  afterEach(() => sinon.restore());

  type Pushed = { readonly clientId: string; readonly requestUri: string; readonly session: SessionId };
  const pushed = async (): Promise<Pushed> => {
    const { session } = await anOffer(world, { flow: 'authorization_code' });
    return {
      clientId,
      requestUri: await wallet.push({ issuer_state: session.publicId }),
      session: session.id,
    };
  };
  const stored = async ({ requestUri }: Pick<Pushed, 'requestUri'>) => {
    const id = readHandle(handleOfRequestUri(requestUri))?.id ?? '';
    return (await world.store.read(ACME).authorization(id))?.authorization;
  };
  const show = (browser: Partial<Pushed>, tenantId = ACME) =>
    world.showAuthorization.execute(tenantId, { clientId: undefined, requestUri: undefined, ...browser });
  const consent = async (browser: Pushed) => (await show(browser)) as ShownConsent;
  const fail = (id: SessionId) => {
    const failed = { id, anytime: ['active', 'fetched'], to: 'failed' } as const;
    return world.store.commit(ACME, { session: failed }, world.clock.now());
  };
  const chained = (enabled: boolean) =>
    world.issues(enabled ? { chainedAs: { upstream: { issuer: UPSTREAM, clientId: 'vidimus' } } } : {});

  describe('ShowAuthorization', () => {
    it('says who asks for what, and where the answer would go', async () => {
      const { fields, ...said } = await consent(await pushed());
      expect(said).to.deep.equal({
        look: { name: 'Acme', displays: [{ name: 'Acme', locale: 'en' }] },
        credentials: [
          {
            id: 'card',
            displays: [{ name: 'Card', locale: 'en' }],
            claims: [{ fallback: 'name', names: [] }],
          },
        ],
        clientId,
        isVerified: false,
        destination: 'wallet.example',
        action: `${wallet.issuer}/authorize`,
      });
      expect(fields).to.include({ client_id: clientId }).and.have.property('decision_token');
    });

    it('remembers the first visit only', async () => {
      const browser = await pushed();
      await show(browser);
      expect(await stored(browser)).to.deep.include({ isOpened: true, version: 2, stage: 'pushed' });
      await show(browser);
      expect(await stored(browser)).to.deep.include({ version: 2 });
    });

    it('is good for a minute, and until the end for those who were in time', async () => {
      const [late, early] = [await pushed(), await pushed()];
      await show(early);
      expect(await world.later(61, () => endOf(show(late)))).to.equal('invalid_request');
      expect(await world.later(1799, () => endOf(show(early)))).to.equal('done');
      expect(await world.later(1800, () => endOf(show(early)))).to.equal('invalid_request');
    });

    type Bend = (browser: Pushed) => Partial<Pushed> | Promise<Partial<Pushed>>;
    const bends: readonly [what: string, bend: Bend][] = [
      ['no address', ({ clientId }) => ({ clientId })],
      ['an address of another form', (browser) => ({ ...browser, requestUri: 'urn:x' })],
      ['an address of nobody', (browser) => ({ ...browser, requestUri: `${REQUEST_URI_PREFIX}unknown` })],
      [
        'an address with another secret',
        (browser) => ({ ...browser, requestUri: `${browser.requestUri.slice(0, -4)}AAAA` }),
      ],
      ['another client', (browser) => ({ ...browser, clientId: 'https://else.example' })],
      ['no client', ({ requestUri }) => ({ requestUri })],
      [
        'what was answered',
        async (browser) => {
          await wallet.approve(browser.requestUri);
          return browser;
        },
      ],
      [
        'what was pushed at the chained server',
        async (browser) => {
          await chained(true);
          return { ...browser, requestUri: await wallet.push({}, { server: 'chained' }) };
        },
      ],
    ];
    for (const [what, bend] of bends) {
      it(`shows a page without a way on for ${what}`, async () => {
        const browser = await bend(await pushed());
        expect(await endOf(show(browser).finally(() => chained(false)))).to.equal('invalid_request');
      });
    }

    it('gives up when somebody else is always first', async () => {
      const browser = await pushed();
      const commit = sinon.stub(world.store, 'commit').resolves({ done: false, part: 'authorization' });
      expect(await endOf(show(browser))).to.equal('invalid_request');
      expect(commit.callCount).to.equal(3);
    });

    it('is not found at a tenant that is not there, whatever comes', async () => {
      const ends = [await endOf(show({}, NOBODY)), await endOf(show(await pushed(), NOBODY))];
      expect(ends).to.deep.equal(['not_found', 'not_found']);
    });
  });

  describe('DecideAuthorization', () => {
    const decide = (decision: Partial<Decision>, tenantId = ACME) =>
      world.decideAuthorization.execute(tenantId, {
        clientId: undefined,
        requestUri: undefined,
        decision: 'approve',
        decisionToken: undefined,
        browserSecrets: new Map(),
        ...decision,
      });
    const shown = async () => {
      const browser = await pushed();
      const { fields } = await consent(browser);
      return { ...browser, decisionToken: fields['decision_token'] };
    };
    const told = ({ location }: { readonly location: string }) => {
      const { searchParams } = new URL(location);
      const { keep: _, error_description: __, ...rest } = Object.fromEntries(searchParams);
      return rest;
    };

    it('ends an approval with a code, which is stored as its hash', async () => {
      const page = await shown();
      const { code = '', ...rest } = told(await decide(page));
      expect(rest).to.deep.equal({ state, iss: wallet.issuer });
      expect(await stored(page)).to.deep.include({ stage: 'done', handles: {} });
      const grant = (await world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
      expect(grant).to.deep.include({
        kind: 'authorization_code',
        sessionId: page.session,
        consumedAt: null,
      });
      expect(grant?.expiresAt.getTime()).to.equal(world.clock.time + 60_000);
      expect(grant?.authorization?.codeChallenge).to.equal(AUTHORIZATION_REQUEST.code_challenge);
    });

    it('ends a refusal with an error, and without a code', async () => {
      const page = await shown();
      const answer = told(await decide({ ...page, decision: 'deny' }));
      expect(answer).to.deep.equal({ error: 'access_denied', state, iss: wallet.issuer });
      expect(await stored(page)).to.deep.include({ stage: 'done', handles: {} });
      expect(await endOf(decide(page))).to.equal('invalid_request');
    });

    it('opens a session for a wallet that began by itself', async () => {
      await world.issues({ builtInAs: { walletInitiated: true } });
      const code = await wallet.approve(await wallet.push());
      const grant = (await world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
      const session = await world.session(grant?.sessionId ?? '');
      expect(session).to.deep.include({ status: 'fetched', configurationIds: ['card'] });
      await world.issues();
    });

    type Shown = Awaited<ReturnType<typeof shown>>;
    const bends: readonly [
      what: string,
      bend: (page: Shown) => Partial<Decision> | Promise<Partial<Decision>>,
    ][] = [
      ['no decision', () => ({ decision: undefined })],
      ['another decision', () => ({ decision: 'perhaps' })],
      ['no token of a page', () => ({ decisionToken: undefined })],
      ['the token of another page', async () => ({ decisionToken: (await shown()).decisionToken })],
      ['another client', () => ({ clientId: 'https://else.example' })],
      ['no address', () => ({ requestUri: undefined })],
    ];
    for (const [what, bend] of bends) {
      it(`refuses ${what}, and the page can still be answered`, async () => {
        const page = await shown();
        expect(await endOf(decide({ ...page, ...(await bend(page)) }))).to.equal('invalid_request');
        expect(await endOf(decide(page))).to.equal('done');
      });
    }

    it('refuses an approval of an offer that is over', async () => {
      const page = await shown();
      await fail(page.session);
      expect(await endOf(decide(page))).to.equal('invalid_request');
    });

    it('gives one code to a button that is pressed twice', async () => {
      const page = await shown();
      const ends = await Promise.all([1, 2].map(() => endOf(decide(page))));
      expect(ends.sort()).to.deep.equal(['done', 'invalid_request']);
    });

    it('takes an answer as long as the authorization lives', async () => {
      const [page, other] = [await shown(), await shown()];
      expect(await world.later(1799, () => endOf(decide(page)))).to.equal('done');
      expect(await world.later(1800, () => endOf(decide(other)))).to.equal('invalid_request');
    });

    it('is not found at a tenant that is not there', async () => {
      expect(await endOf(decide(await shown(), NOBODY))).to.equal('not_found');
    });
  });
});
