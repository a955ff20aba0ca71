import { createHash } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { AuthorizationServerError } from '../../../application/ports/authorization-servers.ts';
import { handleOfRequestUri } from '../../../domain/oauth/authorization.ts';
import { hashSecret, readHandle } from '../../../domain/oauth/handle.ts';
import { UPSTREAM } from '../../support/fake-authorization-servers.ts';
import { anOffer } from '../wallet.ts';
import { endOf } from '../wallet-kit.ts';
import { LoginWorld } from './upstream-kit.ts';

const UNKNOWN = 'urn:ietf:params:oauth:request_uri:unknown';

describe('StartUpstreamLogin', () => {
  let logins: LoginWorld;

  before(async () => {
    logins = await LoginWorld.open();
  });
  afterEach(() => sinon.restore());

  const idOf = (requestUri: string) => readHandle(handleOfRequestUri(requestUri))?.id ?? '';
  const away = (fault: 'timeout' | 'bad_metadata') => {
    const error = new AuthorizationServerError(fault, 'no answer');
    return sinon.stub(logins.world.authorizationServers, 'discover').callsFake(() => Promise.reject(error));
  };

  it('sends the browser to the provider with secrets of its own, of which the hashes are stored', async () => {
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
    expect(stored?.handles.upstream).to.equal(hashSecret(readHandle(state)?.secret ?? ''));
    expect(upstream?.browserHash).to.equal(hashSecret(browserSecrets.get(id) ?? ''));
  });

  it('takes the last visit for the one that counts', async () => {
    const { requestUri, session } = await logins.push();
    const first = await logins.visit(requestUri);
    await logins.visit(requestUri);
    const id = first.keep?.authorizationId ?? '';
    const browserSecrets = new Map([[id, first.keep?.browserSecret ?? '']]);
    const login = { id, session, location: new URL(first.location), browserSecrets };
    expect(await endOf(logins.finish(login))).to.equal('invalid_request');
  });

  it('is good for a minute, and until the end for those who were in time', async () => {
    const [late, early] = [await logins.push(), await logins.push()];
    await logins.visit(early.requestUri);
    const { world } = logins;
    expect(await world.later(61, () => endOf(logins.visit(late.requestUri)))).to.equal('invalid_request');
    const again = await world.later(1700, () => logins.visit(early.requestUri));
    expect(again.keep?.seconds).to.equal(100);
    expect(await world.later(1800, () => endOf(logins.visit(early.requestUri)))).to.equal('invalid_request');
  });

  it('refuses an address of nobody, and one of the built-in server', async () => {
    const authorization_server = logins.wallet.issuer;
    const { session } = await anOffer(logins.world, { flow: 'authorization_code', authorization_server });
    const builtIn = await logins.wallet.push({ issuer_state: session.publicId });
    const ends = [await endOf(logins.visit(UNKNOWN)), await endOf(logins.visit(builtIn))];
    expect(ends).to.deep.equal(['invalid_request', 'invalid_request']);
  });

  it('is not found once the tenant has no such server', async () => {
    const { requestUri } = await logins.push();
    await logins.configure({ enabled: false });
    expect(await endOf(logins.visit(requestUri))).to.equal('not_found');
    await logins.configure();
    expect(await endOf(logins.visit(requestUri))).to.equal('done');
  });

  it('gives up when somebody else is always first', async () => {
    const { requestUri } = await logins.push();
    const commit = sinon.stub(logins.world.store, 'commit').resolves({ done: false, part: 'authorization' });
    expect(await endOf(logins.visit(requestUri))).to.equal('invalid_request');
    expect(commit.callCount).to.equal(3);
  });

  describe('while the provider cannot be used', () => {
    const faults = [
      ['timeout', 'unavailable', 'temporarily_unavailable'],
      ['bad_metadata', 'access_denied', 'server_error'],
    ] as const;
    for (const [fault, code, error] of faults) {
      it(`tells the user of an unverified wallet, who may come again (${fault})`, async () => {
        const { requestUri } = await logins.push();
        const provider = away(fault);
        expect(await endOf(logins.visit(requestUri))).to.equal(code);
        expect(await logins.stored(idOf(requestUri))).to.deep.include({ stage: 'pushed', isOpened: true });
        provider.restore();
        expect(await logins.world.later(600, () => endOf(logins.visit(requestUri)))).to.equal('done');
      });

      it(`tells the wallet where nobody is asked about it, and the authorization is over (${fault})`, async () => {
        await logins.configure({ confirmUnverifiedWallets: false });
        const { requestUri } = await logins.push();
        away(fault);
        const { location, keep } = await logins.visit(requestUri);
        expect([logins.told(location), keep]).to.deep.equal([logins.refusal(error), undefined]);
        expect(await logins.stored(idOf(requestUri))).to.deep.include({ stage: 'done', handles: {} });
        await logins.configure();
      });
    }

    it('is none that names no place to log in', async () => {
      const { metadata } = logins.world.authorizationServers;
      const nameless = { ...metadata, authorizationEndpoint: undefined };
      sinon.stub(logins.world.authorizationServers, 'metadata').value(nameless);
      const { requestUri } = await logins.push();
      expect(await endOf(logins.visit(requestUri))).to.equal('access_denied');
    });
  });
});
