import { expect } from 'chai';
import sinon from 'sinon';
import type { WalletRequest } from '../../../application/issuance/issue-credential.ts';
import { AuthorizationServerError } from '../../../application/ports/authorization-servers.ts';
import { ForeignTokenError } from '../../../domain/oauth/foreign-token.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { type PublicJwk, thumbprint } from '../../../domain/shared/jwk.ts';
import { UPSTREAM } from '../../support/fake-authorization-servers.ts';
import { decode } from '../../support/present.ts';
import { type HolderKey, makeJwt, newKey } from '../../support/raw-wallet.ts';
import { ACME } from '../verification-flow/kit.ts';
import { anOffer, type Issued, Wallet } from '../wallet.ts';
import { endOf, WalletWorld } from '../wallet-kit.ts';

const jktOf = ({ jwk }: HolderKey) => thumbprint(jwk as PublicJwk);

describe('IssueCredential', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    await world.offers({
      id: 'visitor',
      iaeActions: [{ type: 'redirect_to_web', url: 'https://a.example' }],
    });
  });
  afterEach(() => sinon.restore());

  const execute = (request: WalletRequest) => world.issueCredential.execute(ACME, request);

  describe('with encryption', () => {
    const recipient = () => {
      const pair = world.encryption.generate();
      return { pair, jwk: pair.publicJwk as unknown as JsonObject };
    };
    /** The request as a JWE for the key that the metadata publish. */
    const sealed = async (token: string, changes: object = {}): Promise<WalletRequest> => {
      const request = await wallet.wanting(token, changes);
      const [key] = world.encryption.requestKeys(ACME);
      if (key === undefined) throw new Error('no key');
      const jwe = await world.encryption.encrypt(request.body.toString(), key.publicJwk, { enc: 'A256GCM' });
      return { ...request, contentType: 'application/jwt', body: Buffer.from(jwe) };
    };

    it('opens the request and seals the answer with the key of the wallet', async () => {
      const { pair, jwk } = recipient();
      const token = await wallet.token(await anOffer(world));
      const asked = await sealed(token, { credential_response_encryption: { enc: 'A128GCM', jwk } });
      const { text, contentType } = await execute(asked);
      expect(contentType).to.equal('application/jwt');
      const opened = JSON.parse((await world.encryption.decrypt(text, pair)) ?? '') as Issued;
      expect(decode(opened.credentials[0]?.credential ?? '').payload).to.include({ name: 'Ada' });
    });

    it('takes nothing in the clear where it is required, and answers nothing in the clear', async () => {
      await world.issues({ requestEncryption: 'required', responseEncryption: 'required' });
      const { session, code } = await anOffer(world);
      const token = await wallet.token({ session, code });
      const open = await wallet.wanting(token);
      expect(await endOf(execute(open))).to.equal('invalid_encryption_parameters');
      expect(await endOf(execute(await sealed(token)))).to.equal('invalid_encryption_parameters');
      expect((await world.stored(session.id)).batches).to.deep.equal([]);
      const response = { credential_response_encryption: { enc: 'A256GCM', jwk: recipient().jwk } };
      expect(await endOf(execute(await sealed(token, response)))).to.equal('done');
      await world.issues();
    });
  });

  describe('with a token of an external authorization server', () => {
    const key = newKey();
    const token = (changes: object = {}) =>
      makeJwt(key, { alg: 'ES256', typ: 'at+jwt' }, { iss: UPSTREAM, sub: 'ada', ...changes });
    /** What the server vouches for. */
    const claims = (changes: JsonObject = {}) => {
      world.authorizationServers.claims = {
        iss: UPSTREAM,
        sub: 'ada',
        exp: world.seconds + 600,
        jti: world.random.token(),
        scope: 'card',
        cnf: { jkt: jktOf(wallet.key) },
        ...changes,
      };
    };
    const sessions = () => world.store.read(ACME).sessions({ kinds: [], ascending: true, limit: 100 });

    before(() => world.issues({ authServers: [UPSTREAM] }));
    beforeEach(() => claims());

    it('opens one session for its user, and tells the claims webhook who that is', async () => {
      await world.offers({ id: 'hooked', claims: null, claimsWebhook: { url: 'https://backend.example' } });
      world.webhooks.answer = { hooked: { name: 'Grace' } };
      claims({ scope: 'card hooked' });
      const before = await sessions();
      await wallet.issue(token());
      await wallet.issue(token(), { credential_configuration_id: 'hooked' });
      const [opened, ...others] = (await sessions()).filter(({ id }) => !before.some((one) => one.id === id));
      expect(others).to.deep.equal([]);
      expect(opened).to.deep.include({ status: 'completed', configurationIds: ['card', 'hooked'] });
      expect(opened?.outcome?.external).to.deep.equal({ issuer: UPSTREAM, subject: 'ada' });
      const identity = { iss: UPSTREAM, sub: 'ada', token_claims: world.authorizationServers.claims };
      expect(world.webhooks.calls.at(-1)?.body['identity']).to.deep.equal(identity);
    });

    it('covers what another process configured a moment ago', async () => {
      claims({ sub: 'newcomer', scope: 'card newest' });
      await wallet.issue(token());
      claims({ sub: 'late', scope: 'card newest' });
      await world.offers({ id: 'newest' });
      const { credentials } = await wallet.issue(token(), { credential_configuration_id: 'newest' });
      expect(credentials).to.have.length(1);
    });

    it('notes its user at the offer that it names', async () => {
      const { session } = await anOffer(world, { flow: 'authorization_code' });
      claims({ issuer_state: session.publicId, sub: 'grace' });
      await wallet.issue(token());
      const { status, outcome } = await world.session(session.id);
      expect([status, outcome?.external]).to.deep.equal([
        'completed',
        { issuer: UPSTREAM, subject: 'grace' },
      ]);
    });

    const refusals: readonly [what: string, code: FailureCode, changes: JsonObject][] = [
      ['that covers nothing of this issuer', 'insufficient_scope', { scope: 'else' }],
      ['that covers what asks for an interaction', 'insufficient_scope', { scope: 'visitor' }],
      ['that names an offer of nobody', 'invalid_token', { issuer_state: 'unknown' }],
      ['without an end', 'invalid_token', { exp: 'never' }],
      ['that is bound to another key', 'invalid_token', { cnf: { jkt: jktOf(newKey()) } }],
    ];
    for (const [what, code, changes] of refusals) {
      it(`refuses a token ${what}, and opens no session`, async () => {
        const before = await sessions();
        claims(changes);
        expect(await endOf(wallet.issue(token()))).to.equal(code);
        expect(await sessions()).to.deep.equal(before);
      });
    }

    it('refuses a pre-authorized offer that is named', async () => {
      const { session } = await anOffer(world);
      claims({ issuer_state: session.publicId });
      expect(await endOf(wallet.issue(token()))).to.equal('invalid_token');
    });

    it('refuses a token that is bound to no key', async () => {
      const { cnf: _, ...unbound } = world.authorizationServers.claims;
      world.authorizationServers.claims = unbound;
      const bearer = { wallet: { authorization: `Bearer ${token()}`, dpop: [] } };
      expect(await endOf(execute(await wallet.wanting(token(), {}, bearer)))).to.equal('invalid_token');
    });

    it('refuses a token of another server without asking anybody', async () => {
      const verify = sinon.spy(world.authorizationServers, 'verifyToken');
      expect(await endOf(wallet.issue(token({ iss: 'https://else.example' })))).to.equal('invalid_token');
      expect(verify.callCount).to.equal(0);
    });

    const faults: readonly [what: string, code: FailureCode, fault: Error][] = [
      ['is not good', 'invalid_token', new ForeignTokenError('signature')],
      ['cannot be judged', 'unavailable', new AuthorizationServerError('timeout', 'no answer')],
    ];
    for (const [what, code, fault] of faults) {
      it(`refuses a token that ${what}`, async () => {
        sinon.stub(world.authorizationServers, 'verifyToken').callsFake(() => Promise.reject(fault));
        expect(await endOf(wallet.issue(token()))).to.equal(code);
      });
    }
  });
});
