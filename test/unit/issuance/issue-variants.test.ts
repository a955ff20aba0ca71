import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import type { WalletRequest } from '../../../application/issuance/issue-credential.ts';
import { AuthorizationServerError } from '../../../application/ports/authorization-servers.ts';
import { WebhookError } from '../../../application/ports/webhooks.ts';
import { prepareMdoc, sealMdoc } from '../../../domain/formats/mdoc/issue.ts';
import { findBackendCredentialProblems } from '../../../domain/issuance/backend-credential-problems.ts';
import { ForeignTokenError } from '../../../domain/oauth/foreign-token.ts';
import { MAX_ISSUANCES, type Session } from '../../../domain/sessions/session.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import type { Json, JsonObject } from '../../../domain/shared/json.ts';
import { type PublicJwk, thumbprint } from '../../../domain/shared/jwk.ts';
import { UPSTREAM } from '../../support/fakes.ts';
import { decode } from '../../support/present.ts';
import { type HolderKey, makeJwt, newKey } from '../../support/raw-wallet.ts';
import { ACME } from '../verification/kit.ts';
import { anOffer, type CredentialResponse, outcomeOf, Wallet, WalletWorld } from '../wallet-kit.ts';

const jktOf = ({ jwk }: HolderKey) => thumbprint(jwk as PublicJwk);

describe('IssueCredential', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    await world.putCredential({ id: 'visitor', iaeActions: [{ type: 'redirect_to_web', url: 'https://a.example' }] });
  });
  afterEach(() => sinon.restore());

  const execute = (request: WalletRequest) => world.issueCredential.execute(ACME, request);

  describe('with encryption', () => {
    const recipient = () => {
      const pair = world.encryption.generate();
      return { pair, jwk: pair.publicJwk as unknown as JsonObject };
    };
    /** Returns the request as a JWE for the key in the metadata. */
    const encryptedRequest = async (token: string, changes: object = {}): Promise<WalletRequest> => {
      const request = await wallet.credentialRequest(token, changes);
      const [key] = world.encryption.requestKeys(ACME);
      if (key === undefined) throw new Error('no key');
      const jwe = await world.encryption.encrypt(request.body.toString(), key.publicJwk, { enc: 'A256GCM' });
      return { ...request, contentType: 'application/jwt', body: Buffer.from(jwe) };
    };

    it('opens the request and seals the answer with the key of the wallet', async () => {
      const { pair, jwk } = recipient();
      const token = await wallet.token(await anOffer(world));
      const request = await encryptedRequest(token, { credential_response_encryption: { enc: 'A128GCM', jwk } });
      const { text, contentType } = await execute(request);
      expect(contentType).to.equal('application/jwt');
      const decrypted = JSON.parse((await world.encryption.decrypt(text, pair)) ?? '') as CredentialResponse;
      expect(decode(decrypted.credentials[0]?.credential ?? '').payload).to.include({ name: 'Ada' });
    });

    it('rejects plain requests if it is required, and sends no plain response', async () => {
      await world.putIssuance({ requestEncryption: 'required', responseEncryption: 'required' });
      const { session, code } = await anOffer(world);
      const token = await wallet.token({ session, code });
      const request = await wallet.credentialRequest(token);
      expect(await outcomeOf(execute(request))).to.equal('invalid_encryption_parameters');
      expect(await outcomeOf(execute(await encryptedRequest(token)))).to.equal('invalid_encryption_parameters');
      expect((await world.storedIssuance(session.id)).batches).to.deep.equal([]);
      const response = { credential_response_encryption: { enc: 'A256GCM', jwk: recipient().jwk } };
      expect(await outcomeOf(execute(await encryptedRequest(token, response)))).to.equal('done');
      await world.putIssuance();
    });
  });

  describe('with a token of an external authorization server', () => {
    const key = newKey();
    const token = (changes: object = {}) => makeJwt(key, { alg: 'ES256', typ: 'at+jwt' }, { iss: UPSTREAM, sub: 'ada', ...changes });
    /** The claims that the server asserts. */
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

    before(() => world.putIssuance({ authServers: [UPSTREAM] }));
    beforeEach(() => claims());

    it('creates one session for its user, and sends the identity to the claims webhook', async () => {
      await world.putCredential({ id: 'hooked', claims: null, claimsWebhook: { url: 'https://backend.example' } });
      world.webhooks.answer = { hooked: { name: 'Grace' } };
      claims({ scope: 'card hooked' });
      const before = await sessions();
      await wallet.issue(token());
      await wallet.issue(token(), { credential_configuration_id: 'hooked' });
      const [created, ...rest] = (await sessions()).filter(({ id }) => !before.some((session) => session.id === id));
      expect(rest).to.deep.equal([]);
      expect(created).to.deep.include({ status: 'completed', configurationIds: ['card', 'hooked'] });
      expect(created?.outcome?.external).to.deep.equal({ issuer: UPSTREAM, subject: 'ada' });
      const identity = { iss: UPSTREAM, sub: 'ada', token_claims: world.authorizationServers.claims };
      expect(world.webhooks.calls.at(-1)?.body['identity']).to.deep.equal(identity);
    });

    it('covers a configuration that another process stored just before', async () => {
      claims({ sub: 'newcomer', scope: 'card newest' });
      await wallet.issue(token());
      claims({ sub: 'late', scope: 'card newest' });
      await world.putCredential({ id: 'newest' });
      const { credentials } = await wallet.issue(token(), { credential_configuration_id: 'newest' });
      expect(credentials).to.have.length(1);
    });

    it('records its user in the named offer', async () => {
      const { session } = await anOffer(world, { flow: 'authorization_code' });
      claims({ issuer_state: session.publicId, sub: 'grace' });
      await wallet.issue(token());
      const { status, outcome } = await world.session(session.id);
      expect([status, outcome?.external]).to.deep.equal(['completed', { issuer: UPSTREAM, subject: 'grace' }]);
    });

    const rejections: readonly [description: string, code: FailureCode, changes: JsonObject][] = [
      ['that covers nothing of this issuer', 'insufficient_scope', { scope: 'else' }],
      ['that covers a configuration with an interaction', 'insufficient_scope', { scope: 'visitor' }],
      ['that names an unknown offer', 'invalid_token', { issuer_state: 'unknown' }],
      ['without an expiry', 'invalid_token', { exp: 'never' }],
      ['that is bound to another key', 'invalid_token', { cnf: { jkt: jktOf(newKey()) } }],
    ];
    for (const [description, code, changes] of rejections) {
      it(`rejects a token ${description}, and creates no session`, async () => {
        const before = await sessions();
        claims(changes);
        expect(await outcomeOf(wallet.issue(token()))).to.equal(code);
        expect(await sessions()).to.deep.equal(before);
      });
    }

    it('rejects a named pre-authorized offer', async () => {
      const { session } = await anOffer(world);
      claims({ issuer_state: session.publicId });
      expect(await outcomeOf(wallet.issue(token()))).to.equal('invalid_token');
    });

    it('rejects a token without key binding', async () => {
      const { cnf: _, ...unbound } = world.authorizationServers.claims;
      world.authorizationServers.claims = unbound;
      const bearer = { wallet: { authorization: `Bearer ${token()}`, dpop: [] } };
      expect(await outcomeOf(execute(await wallet.credentialRequest(token(), {}, bearer)))).to.equal('invalid_token');
    });

    it('rejects a token of another server without a request', async () => {
      const verify = sinon.spy(world.authorizationServers, 'verifyToken');
      expect(await outcomeOf(wallet.issue(token({ iss: 'https://else.example' })))).to.equal('invalid_token');
      expect(verify.callCount).to.equal(0);
    });

    const faults: readonly [description: string, code: FailureCode, fault: Error][] = [
      ['is invalid', 'invalid_token', new ForeignTokenError('signature')],
      ['cannot be verified', 'unavailable', new AuthorizationServerError('timeout', 'no answer')],
    ];
    for (const [description, code, fault] of faults) {
      it(`rejects a token that ${description}`, async () => {
        sinon.stub(world.authorizationServers, 'verifyToken').callsFake(() => Promise.reject(fault));
        expect(await outcomeOf(wallet.issue(token()))).to.equal(code);
      });
    }
  });
});

const WEBHOOK = { url: 'https://backend.example/claims' };
const HOOKED = { credential_configuration_id: 'hooked' };

describe('credential with claims of a backend', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    await world.putCredential({ id: 'hooked', claims: null, claimsWebhook: WEBHOOK, schema });
  });
  beforeEach(() => {
    world.webhooks.calls.length = 0;
    world.webhooks.answer = { hooked: { name: 'Grace' } };
    world.webhooks.beforeAnswer = async () => {};
  });
  afterEach(() => sinon.restore());

  const offer = async () => {
    const offer = await anOffer(world, { credentialConfigurationIds: ['hooked'] });
    return { id: offer.session.id, token: await wallet.token(offer) };
  };
  const requestHooked = async (token: string, changes: object = {}) =>
    world.issueCredential.execute(ACME, await wallet.credentialRequest(token, { ...HOOKED, ...changes }));
  const deliveries = ({ outcome }: Session) => outcome?.deliveries?.map(({ webhook, result }) => [webhook, result]);

  it('is issued with the claims of the backend, which gets the context of the request', async () => {
    const { id, token } = await offer();
    let duringCall: Session | undefined;
    world.webhooks.beforeAnswer = async () => {
      duringCall = await world.session(id);
    };
    const { status, text } = await requestHooked(token);
    const response = JSON.parse(text) as CredentialResponse;
    expect(status).to.equal(200);
    expect(decode(response.credentials[0]?.credential ?? '').payload).to.include({ name: 'Grace' });
    const [call] = world.webhooks.calls;
    expect(call?.body).to.deep.equal({ session: id, credential_configuration_id: 'hooked', identity: {}, credentials: [] });
    expect(duringCall && deliveries(duringCall), 'during the call').to.deep.equal([['claims', 'pending']]);
    const { session, batches } = await world.storedIssuance(id);
    expect([session.status, deliveries(session)]).to.deep.equal(['completed', [['claims', 'delivered']]]);
    const [delivery] = session.outcome?.deliveries ?? [];
    expect(delivery).to.include({ id: call?.deliveryId, status: 200 });
    expect(delivery?.durationMs, 'the duration of the call').to.be.at.least(0);
    expect(duringCall?.outcome?.deliveries?.[0]).to.not.have.any.keys('status', 'durationMs');
    expect(batches.map((batch) => batch.id)).to.deep.equal([response.notification_id]);
  });

  it('is requested once, even if the request is repeated', async () => {
    const { token } = await offer();
    const request = await wallet.credentialRequest(token, HOOKED);
    const attempts = [1, 2, 3].map(() => outcomeOf(world.issueCredential.execute(ACME, request)));
    const outcomes = await Promise.all(attempts);
    expect(outcomes.filter((outcome) => outcome === 'done')).to.have.length(1);
    expect(outcomes).to.have.members(['done', ...outcomes.filter((outcome) => /^invalid_(nonce|dpop_proof)$/.test(outcome))]);
    expect(world.webhooks.calls).to.have.length(1);
  });

  it('is not requested for a session that has ended', async () => {
    const { id, token } = await offer();
    const change = { id: id as Session['id'], anytime: ['active'], to: 'failed' } as const;
    await world.store.commit(ACME, { session: change }, world.clock.now());
    expect(await outcomeOf(requestHooked(token))).to.equal('credential_request_denied');
    expect(world.webhooks.calls).to.deep.equal([]);
  });

  const backendErrors: readonly [description: string, answer: Json | WebhookError | undefined, reason: RegExp][] = [
    ['that cannot be reached', new WebhookError('unreachable', 'unreachable'), /^claims webhook: unreachable$/],
    ['with an empty answer', undefined, /did not answer with an object/],
    ['with a list as its answer', [], /did not answer with an object/],
    ['without claims of this credential', { card: { name: 'Grace' } }, /no object for hooked/],
    ['whose claims do not fit the schema', { hooked: { name: 7 } }, /do not match the schema: \.name/],
    ['whose claims belong to the issuer', { hooked: { name: 'Grace', iss: 'me' } }, /cannot be issued: \.iss/],
    ['that defers for zero seconds', { deferred: true, interval: 0 }, /from 1 to 86400/],
    ['that defers for too long', { deferred: true, interval: 86_401 }, /from 1 to 86400/],
    ['that defers for a text', { deferred: true, interval: 'soon' }, /from 1 to 86400/],
  ];
  for (const [description, answer, reason] of backendErrors) {
    it(`is denied by a backend ${description}, and the session fails with the reason`, async () => {
      const { id, token } = await offer();
      world.webhooks.answer = answer;
      expect(await outcomeOf(requestHooked(token))).to.equal('credential_request_denied');
      const { session, batches } = await world.storedIssuance(id);
      expect([session.status, deliveries(session), batches]).to.deep.equal(['failed', [['claims', 'failed']], []]);
      expect(session.outcome?.failure?.message).to.match(reason);
      expect(session.outcome?.deliveries?.[0]?.detail).to.equal(session.outcome?.failure?.message);
    });
  }

  it('is not issued when the session ended during the call to the backend', async () => {
    const { id, token } = await offer();
    world.webhooks.beforeAnswer = async () => {
      const change = { id: id as Session['id'], anytime: ['active'], to: 'failed' } as const;
      await world.store.commit(ACME, { session: change }, world.clock.now());
    };
    expect(await outcomeOf(requestHooked(token))).to.equal('credential_request_denied');
    expect((await world.storedIssuance(id)).batches).to.deep.equal([]);
  });

  it('is issued even if the offer expired during the call to the backend', async () => {
    const offer = await anOffer(world, { credentialConfigurationIds: ['hooked'], expiresIn: 60 });
    const token = await wallet.token(offer);
    const start = world.clock.time;
    world.webhooks.beforeAnswer = async () => {
      world.clock.time += 61_000;
    };
    expect((await requestHooked(token)).status).to.equal(200);
    world.clock.time = start;
    expect((await world.session(offer.session.id)).status).to.equal('completed');
  });

  it('fails the session with the reason when its own claims cannot be issued any more', async () => {
    const offer = await anOffer(world);
    const token = await wallet.token(offer);
    await world.putCredential({ id: 'card', schema: { type: 'object', required: ['age'] } });
    expect(await outcomeOf(wallet.issue(token))).to.equal('credential_request_denied');
    await world.putCredential({ id: 'card' });
    const { status, outcome } = await world.session(offer.session.id);
    expect(status).to.equal('failed');
    expect(outcome?.failure?.message).to.match(/do not match the schema/);
  });

  it('is deferred with the proven keys', async () => {
    world.webhooks.answer = { deferred: true, interval: 7 };
    const { id, token } = await offer();
    const key = newKey();
    const { status, text } = await requestHooked(token, { proofs: { jwt: [wallet.keyProof(await wallet.nonce(), {}, key)] } });
    const { transaction_id: transactionId = '', ...rest } = JSON.parse(text) as CredentialResponse;
    expect([status, rest]).to.deep.equal([202, { interval: 7 }]);
    const transaction = await world.store.read(ACME).deferred(transactionId);
    expect(transaction).to.deep.include({ sessionId: id, status: 'pending', intervalSeconds: 7, credentials: null });
    expect(transaction?.holderKeys).to.deep.equal([key.jwk]);
    expect(transaction?.expiresAt.getTime()).to.equal(world.clock.time + 86_400_000);
    const { session, batches } = await world.storedIssuance(id);
    expect([session.status, deliveries(session), batches]).to.deep.equal(['active', [['claims', 'delivered']], []]);
    expect(session.expiresAt, 'the session lives as long').to.deep.equal(transaction?.expiresAt);
  });

  it('is deferred a limited number of times; then the backend is no longer called', async () => {
    world.webhooks.answer = { deferred: true };
    const { token } = await offer();
    const { transaction_id: id = '' } = JSON.parse((await requestHooked(token)).text) as CredentialResponse;
    const first = await world.store.read(ACME).deferred(id);
    if (first === undefined) throw new Error('no transaction');
    for (let index = 1; index < MAX_ISSUANCES; index++) {
      const deferred = { ...first, id: world.random.token() };
      await world.store.commit(ACME, { opens: { deferred } }, world.clock.now());
    }
    world.webhooks.calls.length = 0;
    expect(await outcomeOf(requestHooked(token))).to.equal('credential_request_denied');
    expect(world.webhooks.calls).to.deep.equal([]);
  });
});

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const sdJwt = (payload: object) => `${encode({ alg: 'ES256', typ: 'dc+sd-jwt' })}.${encode(payload)}.${'A'.repeat(86)}~`;
const keys = [newKey(), newKey()].map(({ jwk }) => jwk as PublicJwk);
const [first, second] = keys as [PublicJwk, PublicJwk];
const otherKey = newKey().jwk as PublicJwk;
const bound = (jwk: PublicJwk) => sdJwt({ vct: 'urn:card', cnf: { jwk } });
const mdoc = (holderKey: PublicJwk) => {
  const [signed, validUntil] = [new Date(), new Date(Date.now() + 86_400_000)];
  const prepared = prepareMdoc({
    docType: 'org.example.card',
    claimsByNamespace: { 'org.example.card': { name: 'Ada' } },
    holderKey,
    signer: { algorithm: 'ES256', chain: ['AAAA'] },
    validity: { signed, validFrom: signed, validUntil },
    random: randomBytes,
  });
  return sealMdoc(prepared, Buffer.alloc(64));
};

type Format = 'dc+sd-jwt' | 'mso_mdoc';
const problemsOf = (
  credentials: readonly string[],
  format: Format = 'dc+sd-jwt',
  keyBinding = true,
  provenKeys: readonly PublicJwk[] = keys,
) =>
  findBackendCredentialProblems(credentials, { config: { format }, keyBinding }, provenKeys).map(
    ({ member, message }) => `${member}: ${message}`,
  );

describe('credentials that a backend created', () => {
  it('are valid with one credential for each key of the wallet', () => {
    expect(problemsOf([bound(first), bound(second)])).to.deep.equal([]);
    expect(problemsOf([mdoc(second), mdoc(first)], 'mso_mdoc')).to.deep.equal([]);
    expect(problemsOf([sdJwt({ vct: 'urn:ticket' })], 'dc+sd-jwt', false, [])).to.deep.equal([]);
  });

  const foreignCredentials: readonly (readonly [string, Format, readonly string[], readonly string[]])[] = [
    ['fewer than keys', 'dc+sd-jwt', [bound(first)], ['credentials: the backend returned 1 credentials for 2 keys']],
    [
      'a key of another party',
      'dc+sd-jwt',
      [bound(first), bound(otherKey)],
      ['credentials.1: it is bound to a key that the wallet did not prove'],
    ],
    ['one key twice', 'mso_mdoc', [mdoc(first), mdoc(first)], ['credentials.1: another credential is bound to the same key']],
    ['no key', 'dc+sd-jwt', [bound(first), sdJwt({ vct: 'urn:card' })], ['credentials.1: it is not bound to a key']],
    ['another format', 'mso_mdoc', [mdoc(first), bound(second)], ['credentials.1: it is not a valid mso_mdoc (malformed: not base64url)']],
  ];
  for (const [description, format, credentials, expected] of foreignCredentials) {
    it(`cause a warning with ${description}`, () => expect(problemsOf(credentials, format)).to.deep.equal(expected));
  }

  it('cause a warning if they are invalid', () => {
    for (const text of ['abc', 'a.b.c~', mdoc(first)]) {
      expect(problemsOf([text], 'dc+sd-jwt', true, [first])[0], text).to.match(/^credentials\.0: it is not a valid dc\+sd-jwt/);
    }
    for (const text of ['abc', 'AAAA', Buffer.from('a0', 'hex').toString('base64url')]) {
      expect(problemsOf([text], 'mso_mdoc', true, [first])[0], text).to.match(/^credentials\.0: it is not a valid mso_mdoc/);
    }
  });
});
