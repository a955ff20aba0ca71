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
import { anOffer, endOf } from '../wallet-kit.ts';
import { type Login, LoginWorld } from './kit.ts';

const UNKNOWN = 'urn:ietf:params:oauth:request_uri:unknown';

describe('StartUpstreamLogin', () => {
  let logins: LoginWorld;

  before(async () => {
    logins = await LoginWorld.open();
  });
  afterEach(() => sinon.restore());

  const idOf = (requestUri: string) => parseHandle(handleOfRequestUri(requestUri))?.id ?? '';
  const away = (fault: 'timeout' | 'bad_metadata') => {
    const error = new AuthorizationServerError(fault, 'no answer');
    return sinon.stub(logins.world.authorizationServers, 'discover').callsFake(() => Promise.reject(error));
  };

  it('redirects the browser to the provider with secrets of the login, and stores their hashes', async () => {
    const { id, location, browserSecrets } = await logins.start();
    const stored = await logins.stored(id);
    const upstream = stored?.upstream;
    expect(location.origin + location.pathname).to.equal(`${UPSTREAM}/authorize`);
    const { state = '', ...sent } = Object.fromEntries(location.searchParams);
    expect(sent).to.deep.equal({
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
    expect(stored).to.deep.include({ stage: 'upstream', isOpened: true, version: 2 });
    expect(stored?.handles.upstream).to.equal(hashSecret(parseHandle(state)?.secret ?? ''));
    expect(upstream?.browserHash).to.equal(hashSecret(browserSecrets.get(id) ?? ''));
  });

  it('uses only the last visit', async () => {
    const { requestUri, session } = await logins.push();
    const first = await logins.visit(requestUri);
    await logins.visit(requestUri);
    const id = first.cookie?.authorizationId ?? '';
    const browserSecrets = new Map([[id, first.cookie?.browserSecret ?? '']]);
    const login = { id, session, location: new URL(first.location), browserSecrets };
    expect(await endOf(logins.finish(login))).to.equal('invalid_request');
  });

  it('can be opened for a minute, and then until the authorization expires', async () => {
    const [late, early] = [await logins.push(), await logins.push()];
    await logins.visit(early.requestUri);
    const { world } = logins;
    expect(await world.later(61, () => endOf(logins.visit(late.requestUri)))).to.equal('invalid_request');
    const again = await world.later(1700, () => logins.visit(early.requestUri));
    expect(again.cookie?.seconds).to.equal(100);
    expect(await world.later(1800, () => endOf(logins.visit(early.requestUri)))).to.equal('invalid_request');
  });

  it('rejects an unknown address, and one of the built-in server', async () => {
    const authorization_server = logins.wallet.issuer;
    const { session } = await anOffer(logins.world, { flow: 'authorization_code', authorization_server });
    const builtIn = await logins.wallet.push({ issuer_state: session.publicId });
    const ends = [await endOf(logins.visit(UNKNOWN)), await endOf(logins.visit(builtIn))];
    expect(ends).to.deep.equal(['invalid_request', 'invalid_request']);
  });

  it('fails once the tenant has removed the server', async () => {
    const { requestUri } = await logins.push();
    await logins.configure({ enabled: false });
    expect(await endOf(logins.visit(requestUri))).to.equal('not_found');
    await logins.configure();
    expect(await endOf(logins.visit(requestUri))).to.equal('done');
  });

  it('fails if concurrent requests always win', async () => {
    const { requestUri } = await logins.push();
    const commit = sinon.stub(logins.world.store, 'commit').resolves({ done: false, part: 'authorization' });
    expect(await endOf(logins.visit(requestUri))).to.equal('invalid_request');
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
        const provider = away(fault);
        expect(await endOf(logins.visit(requestUri))).to.equal(code);
        expect(await logins.stored(idOf(requestUri))).to.deep.include({ stage: 'pushed', isOpened: true });
        provider.restore();
        expect(await logins.world.later(600, () => endOf(logins.visit(requestUri)))).to.equal('done');
      });

      it(`redirects to the wallet without a confirmation page, and the authorization ends (${fault})`, async () => {
        await logins.configure({ confirmUnverifiedWallets: false });
        const { requestUri } = await logins.push();
        away(fault);
        const { location, cookie } = await logins.visit(requestUri);
        expect([logins.told(location), cookie]).to.deep.equal([logins.refusal(error), undefined]);
        expect(await logins.stored(idOf(requestUri))).to.deep.include({ stage: 'done', handles: {} });
        await logins.configure();
      });
    }

    it('is rejected without an authorization endpoint', async () => {
      const { metadata } = logins.world.authorizationServers;
      const nameless = { ...metadata, authorizationEndpoint: undefined };
      sinon.stub(logins.world.authorizationServers, 'metadata').value(nameless);
      const { requestUri } = await logins.push();
      expect(await endOf(logins.visit(requestUri))).to.equal('access_denied');
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

  const unconfirmed = async (work: () => Promise<void>) => {
    await logins.configure({ confirmUnverifiedWallets: false });
    await work().finally(() => logins.configure());
  };
  const location = async (login: Login, changes: Parameters<LoginWorld['finish']>[1] = {}) => {
    const finished = await logins.finish(login, changes);
    if (!('location' in finished)) throw new Error('the user is asked');
    return logins.told(finished.location);
  };
  const failing = (method: 'discover' | 'exchangeCode' | 'verifyIdToken', error: Error) =>
    sinon.stub(logins.world.authorizationServers, method).callsFake((): Promise<never> => Promise.reject(error));

  it('shows the confirmation page for an unverified wallet, and stores the identity until then', async () => {
    const login = await logins.start();
    const { fields, ...asked } = (await logins.finish(login)) as Consent;
    expect(asked.credentials.map(({ displays }) => displays)).to.deep.equal([[{ name: 'Card', locale: 'en' }]]);
    expect(asked).to.deep.include({ clientId: AUTHORIZATION_REQUEST.client_id, isVerified: false, action: `${logins.server}/confirm` });
    const secret = parseHandle(fields['confirmation'] ?? '')?.secret ?? '';
    const stored = await logins.stored(login.id);
    expect(stored).to.deep.include({ stage: 'confirming', identity: ADA });
    expect(stored?.handles).to.deep.equal({ confirmation: hashSecret(secret) });
  });

  it('redirects to the wallet with a code without a confirmation page, and stores the identity', () =>
    unconfirmed(async () => {
      const login = await logins.start();
      const { code = '', ...rest } = await location(login);
      expect(rest).to.deep.equal({ state: AUTHORIZATION_REQUEST.state, iss: logins.server });
      const grant = (await logins.world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
      expect(grant).to.deep.include({ server: 'chained', sessionId: login.session });
      expect(grant?.authorization?.identity).to.deep.equal(ADA);
      const done = await logins.stored(login.id);
      expect(done).to.deep.include({ stage: 'done', handles: {} });
      expect(done).not.to.have.any.keys('identity', 'upstream');
      const { body } = await logins.wallet.redeemCode(code, { server: 'chained' });
      expect(body.token_type).to.equal('DPoP');
    }));

  it('redeems the code of the provider once, with the secrets of this login', async () => {
    const exchange = sinon.spy(logins.world.authorizationServers, 'exchangeCode');
    const login = await logins.start();
    const { upstream } = (await logins.stored(login.id)) ?? {};
    const ends = await Promise.all([1, 2].map(() => endOf(logins.finish(login))));
    expect(ends.sort()).to.deep.equal(['done', 'invalid_request']);
    expect(exchange.callCount).to.equal(1);
    const [issuer, sent] = exchange.firstCall.args as unknown as [string, object];
    expect(issuer).to.equal(UPSTREAM);
    expect(sent).to.include({ code: 'the code', clientSecret: 'secret', codeVerifier: upstream?.codeVerifier });
  });

  const unknown: readonly [what: string, changes: (login: Login) => Parameters<LoginWorld['finish']>[1]][] = [
    ['no state', () => ({ state: undefined })],
    ['an unknown state', () => ({ state: 'unknown' })],
    ['a state with another secret', ({ location: { searchParams } }) => ({ state: `${searchParams.get('state')}A` })],
    ['another browser', ({ id }) => ({ browserSecrets: new Map([[id, 'another']]) })],
    ['a browser without its secret', () => ({ browserSecrets: new Map() })],
    ['neither a code nor an error', () => ({ code: undefined })],
    ['another provider', () => ({ iss: 'https://else.example' })],
    ['no name of a provider that names itself', () => ({ iss: undefined })],
  ];
  for (const [what, changes] of unknown) {
    it(`rejects ${what}, and the login can still be finished`, async () => {
      const login = await logins.start();
      const before = await logins.stored(login.id);
      expect(await endOf(logins.finish(login, changes(login)))).to.equal('invalid_request');
      expect(await logins.stored(login.id)).to.deep.equal(before);
      expect(await endOf(logins.finish(login))).to.equal('done');
    });
  }

  type Failing = readonly [what: string, end: 'unavailable' | 'access_denied', error: string, fail: () => unknown];
  const serverError = (fault: AuthorizationServerFault, error?: string) =>
    new AuthorizationServerError(fault, 'no', error === undefined ? {} : { error });
  const failures: readonly Failing[] = [
    ['is unavailable', 'unavailable', 'temporarily_unavailable', () => failing('discover', serverError('timeout'))],
    ['is busy', 'unavailable', 'temporarily_unavailable', () => failing('exchangeCode', serverError('busy'))],
    ['refuses its code', 'access_denied', 'server_error', () => failing('exchangeCode', serverError('refused', 'x'))],
    ['sends a bad ID token', 'access_denied', 'server_error', () => failing('verifyIdToken', new ForeignTokenError('nonce'))],
    ['is another one by now', 'access_denied', 'server_error', () => logins.configure({}, { clientId: 'another' })],
  ];
  for (const [what, end, , fail] of failures) {
    it(`shows an error to the user when the provider ${what}, and the login ends`, async () => {
      const login = await logins.start();
      await fail();
      expect(await endOf(logins.finish(login))).to.equal(end);
      await logins.configure();
      expect(await logins.stored(login.id)).to.deep.include({ stage: 'done', handles: {} });
    });
  }
  for (const [what, , error, fail] of failures.slice(0, 4)) {
    it(`redirects to the wallet when the provider ${what}, without a confirmation page`, () =>
      unconfirmed(async () => {
        const login = await logins.start();
        await fail();
        expect(await location(login)).to.deep.equal(logins.refusal(error));
        expect(await logins.stored(login.id)).to.deep.include({ stage: 'done', handles: {} });
      }));
  }

  it('reports that the provider denied the user, and no other text of the provider', () =>
    unconfirmed(async () => {
      const told = async (error: string) => (await location(await logins.start(), { error }))['error'];
      expect(await told('access_denied')).to.equal('access_denied');
      expect(await told('anything else')).to.equal('server_error');
    }));

  it('redirects to the wallet with an error if the offer has ended', () =>
    unconfirmed(async () => {
      const login = await logins.start();
      await logins.end(login);
      expect(await location(login)).to.deep.equal(logins.refusal('access_denied'));
    }));

  it('expires after half an hour', async () => {
    const login = await logins.start();
    expect(await logins.world.later(1800, () => endOf(logins.finish(login)))).to.equal('invalid_request');
  });

  it('fails once the tenant has removed the server, or for an unknown tenant', async () => {
    const login = await logins.start();
    await logins.configure({ enabled: false });
    expect(await endOf(logins.finish(login))).to.equal('not_found');
    await logins.configure();
    const response = { code: 'x', state: 'x', error: undefined, iss: UPSTREAM, browserSecrets: new Map() };
    const nobody = logins.world.finishUpstreamLogin.execute('nobody' as TenantId, response);
    expect(await endOf(nobody)).to.equal('not_found');
  });

  it('rethrows internal errors', async () => {
    const login = await logins.start();
    failing('verifyIdToken', new TypeError('a mistake'));
    expect(await logins.finish(login).catch(String)).to.equal('TypeError: a mistake');
  });
});
