import { createHash } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import type { Consent } from '../../../application/oauth/consents.ts';
import { hashCode } from '../../../application/oauth/pre-authorized-code-grant.ts';
import { AuthorizationServerError, type AuthorizationServerFault } from '../../../application/ports/authorization-servers.ts';
import { handleOfRequestUri } from '../../../domain/oauth/authorization.ts';
import { ForeignTokenError } from '../../../domain/oauth/foreign-token.ts';
import { hashSecret, parseHandle } from '../../../domain/oauth/handle.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { UPSTREAM } from '../../support/fakes.ts';
import { AUTHORIZATION_REQUEST } from '../../support/raw-wallet.ts';
import { ACME } from '../verification/kit.ts';
import { anOffer, outcomeOf } from '../wallet-kit.ts';
import { type Login, LoginWorld } from './kit.ts';

const UNKNOWN = 'urn:ietf:params:oauth:request_uri:unknown';

describe('StartUpstreamLogin', () => {
  let logins: LoginWorld;

  before(async () => {
    logins = await LoginWorld.open();
  });
  afterEach(() => sinon.restore());

  const idOf = (requestUri: string) => parseHandle(handleOfRequestUri(requestUri))?.id ?? '';
  const stubDiscovery = (fault: 'timeout' | 'bad_metadata') => {
    const error = new AuthorizationServerError(fault, 'no answer');
    return sinon.stub(logins.world.authorizationServers, 'discover').callsFake(() => Promise.reject(error));
  };

  it('redirects the browser to the provider with secrets of the login, and stores their hashes', async () => {
    const { id, location, browserSecrets } = await logins.start();
    const authorization = await logins.storedAuthorization(id);
    const upstream = authorization?.upstream;
    expect(location.origin + location.pathname).to.equal(`${UPSTREAM}/authorize`);
    const { state = '', ...parameters } = Object.fromEntries(location.searchParams);
    expect(parameters).to.deep.equal({
      response_type: 'code',
      client_id: 'vidimus',
      redirect_uri: `${logins.server}/callback`,
      scope: 'openid profile',
      nonce: upstream?.nonce,
      code_challenge: createHash('sha256')
        .update(upstream?.codeVerifier ?? '')
        .digest('base64url'),
      code_challenge_method: 'S256',
    });
    expect(authorization).to.deep.include({ stage: 'upstream', isOpened: true, version: 2 });
    expect(authorization?.handles.upstream).to.equal(hashSecret(parseHandle(state)?.secret ?? ''));
    expect(upstream?.browserHash).to.equal(hashSecret(browserSecrets.get(id) ?? ''));
  });

  it('uses only the last visit', async () => {
    const { requestUri, session } = await logins.push();
    const first = await logins.openLogin(requestUri);
    await logins.openLogin(requestUri);
    const id = first.cookie?.authorizationId ?? '';
    const browserSecrets = new Map([[id, first.cookie?.browserSecret ?? '']]);
    const login = { id, session, location: new URL(first.location), browserSecrets };
    expect(await outcomeOf(logins.finish(login))).to.equal('invalid_request');
  });

  it('can be opened for a minute, and then until the authorization expires', async () => {
    const [expired, recent] = [await logins.push(), await logins.push()];
    await logins.openLogin(recent.requestUri);
    const { world } = logins;
    expect(await world.afterSeconds(61, () => outcomeOf(logins.openLogin(expired.requestUri)))).to.equal('invalid_request');
    const retry = await world.afterSeconds(1700, () => logins.openLogin(recent.requestUri));
    expect(retry.cookie?.seconds).to.equal(100);
    expect(await world.afterSeconds(1800, () => outcomeOf(logins.openLogin(recent.requestUri)))).to.equal('invalid_request');
  });

  it('rejects an unknown address, and one of the built-in server', async () => {
    const authorization_server = logins.wallet.issuer;
    const { session } = await anOffer(logins.world, { flow: 'authorization_code', authorization_server });
    const builtIn = await logins.wallet.push({ issuer_state: session.publicId });
    const outcomes = [await outcomeOf(logins.openLogin(UNKNOWN)), await outcomeOf(logins.openLogin(builtIn))];
    expect(outcomes).to.deep.equal(['invalid_request', 'invalid_request']);
  });

  it('fails once the tenant has removed the server', async () => {
    const { requestUri } = await logins.push();
    await logins.configure({ enabled: false });
    expect(await outcomeOf(logins.openLogin(requestUri))).to.equal('not_found');
    await logins.configure();
    expect(await outcomeOf(logins.openLogin(requestUri))).to.equal('done');
  });

  it('fails if concurrent requests always win', async () => {
    const { requestUri } = await logins.push();
    const commit = sinon.stub(logins.world.store, 'commit').resolves({ done: false, part: 'authorization' });
    expect(await outcomeOf(logins.openLogin(requestUri))).to.equal('invalid_request');
    expect(commit.callCount).to.equal(3);
  });

  describe('while the provider is unavailable', () => {
    const faults = [
      ['timeout', 'unavailable', 'temporarily_unavailable'],
      ['bad_metadata', 'access_denied', 'server_error'],
    ] as const;
    for (const [fault, code, error] of faults) {
      it(`shows an error to the user of an unverified wallet, and a retry is possible (${fault})`, async () => {
        const { requestUri } = await logins.push();
        const provider = stubDiscovery(fault);
        expect(await outcomeOf(logins.openLogin(requestUri))).to.equal(code);
        expect(await logins.storedAuthorization(idOf(requestUri))).to.deep.include({ stage: 'pushed', isOpened: true });
        provider.restore();
        expect(await logins.world.afterSeconds(600, () => outcomeOf(logins.openLogin(requestUri)))).to.equal('done');
      });

      it(`redirects to the wallet without a confirmation page, and the authorization ends (${fault})`, async () => {
        await logins.configure({ confirmUnverifiedWallets: false });
        const { requestUri } = await logins.push();
        stubDiscovery(fault);
        const { location, cookie } = await logins.openLogin(requestUri);
        expect([logins.redirectParameters(location), cookie]).to.deep.equal([logins.errorParameters(error), undefined]);
        expect(await logins.storedAuthorization(idOf(requestUri))).to.deep.include({ stage: 'done', handles: {} });
        await logins.configure();
      });
    }

    it('is rejected without an authorization endpoint', async () => {
      const { metadata } = logins.world.authorizationServers;
      const withoutEndpoint = { ...metadata, authorizationEndpoint: undefined };
      sinon.stub(logins.world.authorizationServers, 'metadata').value(withoutEndpoint);
      const { requestUri } = await logins.push();
      expect(await outcomeOf(logins.openLogin(requestUri))).to.equal('access_denied');
    });
  });
});

const ADA = { iss: UPSTREAM, sub: 'ada', token_claims: { sub: 'ada', given_name: 'Ada' } };

describe('FinishUpstreamLogin', () => {
  let logins: LoginWorld;

  before(async () => {
    logins = await LoginWorld.open();
  });
  afterEach(() => sinon.restore());

  const withoutConfirmation = async (work: () => Promise<void>) => {
    await logins.configure({ confirmUnverifiedWallets: false });
    await work().finally(() => logins.configure());
  };
  const location = async (login: Login, changes: Parameters<LoginWorld['finish']>[1] = {}) => {
    const finished = await logins.finish(login, changes);
    if (!('location' in finished)) throw new Error('the user is asked');
    return logins.redirectParameters(finished.location);
  };
  const stubFailure = (method: 'discover' | 'exchangeCode' | 'verifyIdToken', error: Error) =>
    sinon.stub(logins.world.authorizationServers, method).callsFake((): Promise<never> => Promise.reject(error));

  it('shows the confirmation page for an unverified wallet, and stores the identity until then', async () => {
    const login = await logins.start();
    const { fields, ...asked } = (await logins.finish(login)) as Consent;
    expect(asked.credentials.map(({ displays }) => displays)).to.deep.equal([[{ name: 'Card', locale: 'en' }]]);
    expect(asked).to.deep.include({ clientId: AUTHORIZATION_REQUEST.client_id, isVerified: false, action: `${logins.server}/confirm` });
    const secret = parseHandle(fields['confirmation'] ?? '')?.secret ?? '';
    const authorization = await logins.storedAuthorization(login.id);
    expect(authorization).to.deep.include({ stage: 'confirming', identity: ADA });
    expect(authorization?.handles).to.deep.equal({ confirmation: hashSecret(secret) });
  });

  it('redirects to the wallet with a code without a confirmation page, and stores the identity', () =>
    withoutConfirmation(async () => {
      const login = await logins.start();
      const { code = '', ...rest } = await location(login);
      expect(rest).to.deep.equal({ state: AUTHORIZATION_REQUEST.state, iss: logins.server });
      const grant = (await logins.world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
      expect(grant).to.deep.include({ server: 'chained', sessionId: login.session });
      expect(grant?.authorization?.identity).to.deep.equal(ADA);
      const authorization = await logins.storedAuthorization(login.id);
      expect(authorization).to.deep.include({ stage: 'done', handles: {} });
      expect(authorization).not.to.have.any.keys('identity', 'upstream');
      const { body } = await logins.wallet.redeemCode(code, { server: 'chained' });
      expect(body.token_type).to.equal('DPoP');
    }));

  it('redeems the code of the provider once, with the secrets of this login', async () => {
    const exchange = sinon.spy(logins.world.authorizationServers, 'exchangeCode');
    const login = await logins.start();
    const { upstream } = (await logins.storedAuthorization(login.id)) ?? {};
    const outcomes = await Promise.all([1, 2].map(() => outcomeOf(logins.finish(login))));
    expect(outcomes.sort()).to.deep.equal(['done', 'invalid_request']);
    expect(exchange.callCount).to.equal(1);
    const [issuer, parameters] = exchange.firstCall.args as unknown as [string, object];
    expect(issuer).to.equal(UPSTREAM);
    expect(parameters).to.include({ code: 'the code', clientSecret: 'secret', codeVerifier: upstream?.codeVerifier });
  });

  const unknown: readonly [description: string, changes: (login: Login) => Parameters<LoginWorld['finish']>[1]][] = [
    ['no state', () => ({ state: undefined })],
    ['an unknown state', () => ({ state: 'unknown' })],
    ['a state with another secret', ({ location: { searchParams } }) => ({ state: `${searchParams.get('state')}A` })],
    ['another browser', ({ id }) => ({ browserSecrets: new Map([[id, 'another']]) })],
    ['a browser without its cookie', () => ({ browserSecrets: new Map() })],
    ['neither a code nor an error', () => ({ code: undefined })],
    ['another provider', () => ({ iss: 'https://else.example' })],
    ['no iss although the provider sends one', () => ({ iss: undefined })],
  ];
  for (const [description, changes] of unknown) {
    it(`rejects ${description}, and the login can still be finished`, async () => {
      const login = await logins.start();
      const before = await logins.storedAuthorization(login.id);
      expect(await outcomeOf(logins.finish(login, changes(login)))).to.equal('invalid_request');
      expect(await logins.storedAuthorization(login.id)).to.deep.equal(before);
      expect(await outcomeOf(logins.finish(login))).to.equal('done');
    });
  }

  type FailureCase = readonly [description: string, outcome: 'unavailable' | 'access_denied', error: string, fail: () => unknown];
  const serverError = (fault: AuthorizationServerFault, error?: string) =>
    new AuthorizationServerError(fault, 'no', error === undefined ? {} : { error });
  const failures: readonly FailureCase[] = [
    ['is unavailable', 'unavailable', 'temporarily_unavailable', () => stubFailure('discover', serverError('timeout'))],
    ['is busy', 'unavailable', 'temporarily_unavailable', () => stubFailure('exchangeCode', serverError('busy'))],
    ['rejects its code', 'access_denied', 'server_error', () => stubFailure('exchangeCode', serverError('refused', 'x'))],
    ['sends an invalid ID token', 'access_denied', 'server_error', () => stubFailure('verifyIdToken', new ForeignTokenError('nonce'))],
    ['was replaced by another provider', 'access_denied', 'server_error', () => logins.configure({}, { clientId: 'another' })],
  ];
  for (const [description, outcome, , failOnce] of failures) {
    it(`shows an error to the user when the provider ${description}, and the login ends`, async () => {
      const login = await logins.start();
      await failOnce();
      expect(await outcomeOf(logins.finish(login))).to.equal(outcome);
      await logins.configure();
      expect(await logins.storedAuthorization(login.id)).to.deep.include({ stage: 'done', handles: {} });
    });
  }
  for (const [description, , error, failOnce] of failures.slice(0, 4)) {
    it(`redirects to the wallet when the provider ${description}, without a confirmation page`, () =>
      withoutConfirmation(async () => {
        const login = await logins.start();
        await failOnce();
        expect(await location(login)).to.deep.equal(logins.errorParameters(error));
        expect(await logins.storedAuthorization(login.id)).to.deep.include({ stage: 'done', handles: {} });
      }));
  }

  it('reports that the provider denied the user, and no other text of the provider', () =>
    withoutConfirmation(async () => {
      const errorFor = async (error: string) => (await location(await logins.start(), { error }))['error'];
      expect(await errorFor('access_denied')).to.equal('access_denied');
      expect(await errorFor('anything else')).to.equal('server_error');
    }));

  it('redirects to the wallet with an error if the offer has ended', () =>
    withoutConfirmation(async () => {
      const login = await logins.start();
      await logins.failSession(login);
      expect(await location(login)).to.deep.equal(logins.errorParameters('access_denied'));
    }));

  it('expires after half an hour', async () => {
    const login = await logins.start();
    expect(await logins.world.afterSeconds(1800, () => outcomeOf(logins.finish(login)))).to.equal('invalid_request');
  });

  it('fails once the tenant has removed the server, or for an unknown tenant', async () => {
    const login = await logins.start();
    await logins.configure({ enabled: false });
    expect(await outcomeOf(logins.finish(login))).to.equal('not_found');
    await logins.configure();
    const response = { code: 'x', state: 'x', error: undefined, iss: UPSTREAM, browserSecrets: new Map() };
    const unknownTenant = logins.world.finishUpstreamLogin.execute('unknown' as TenantId, response);
    expect(await outcomeOf(unknownTenant)).to.equal('not_found');
  });

  it('rethrows internal errors', async () => {
    const login = await logins.start();
    stubFailure('verifyIdToken', new TypeError('a mistake'));
    expect(await logins.finish(login).catch(String)).to.equal('TypeError: a mistake');
  });
});
