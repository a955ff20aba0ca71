import { expect } from 'chai';
import { Store } from '../../application/ports/store.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { Backend } from '../support/backend.ts';
import { decode } from '../support/present.ts';
import { keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

/** The data of a wallet after a deferred request. */
type Deferral = {
  readonly session: string;
  readonly token: string;
  readonly transactionId: string;
  readonly wallet: RawWallet;
  readonly keys: readonly ReturnType<typeof newKey>[];
};

describe('deferred issuance', () => {
  let service: TestService;
  let backend: Backend;
  let tenant: { id: string; token: string };

  before(async () => {
    backend = await Backend.start();
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
    await call('POST', '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }], batchSize: 5 });
    const base = {
      config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
      vct: 'urn:card:1',
      statusManagement: true,
      schema: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
      claimsWebhook: { url: `${backend.url}/claims` },
    };
    for (const id of ['card', 'pass']) {
      const answer = await call('POST', '/issuer/credentials', { ...base, id });
      expect(answer.status, answer.text).to.equal(201);
    }
  });
  after(async () => {
    await service.close();
    await backend.close();
  });
  beforeEach(() => backend.on('/claims', { json: { deferred: true } }));

  const call = (method: string, path: string, json?: unknown, token = tenant.token) =>
    service.call(method, path, { token, ...(json === undefined ? {} : { json }) });
  const offer = async (ids: readonly string[] = ['card']) =>
    (await call('POST', '/issuer/offer', { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ids })).body;
  const request = async (wallet: RawWallet, token: string, id: string, count: number) => {
    const nonce = await wallet.nonce();
    const keys = Array.from({ length: count }, () => newKey());
    const jwt = keys.map((key) => keyProof(key, wallet.issuer, nonce));
    const body = { credential_configuration_id: id, proofs: { jwt } };
    return { keys, answer: await wallet.request(token, id, { body }) };
  };
  const requestDeferred = async (count = 1): Promise<Deferral> => {
    const { uri, session } = await offer();
    const wallet = new RawWallet(service, 'acme');
    const token = await wallet.accessToken(uri);
    const { keys, answer } = await request(wallet, token, 'card', count);
    expect(answer.status, answer.text).to.equal(202);
    return { session, token, transactionId: answer.body.transaction_id, wallet, keys };
  };
  const poll = ({ wallet, token, transactionId }: Deferral, json?: unknown): Promise<Answer> =>
    service.call('POST', '/acme/deferred_credential', {
      headers: wallet.authorization(token, { path: 'deferred_credential' }),
      json: json ?? { transaction_id: transactionId },
    });
  const legacyPoll = ({ wallet, token, transactionId }: Deferral): Promise<Answer> => {
    const url = `${service.address}/deferred_credential`;
    return service.call('GET', `/deferred_credential?transaction_id=${transactionId}`, {
      headers: wallet.authorization(token, { url, method: 'GET' }),
    });
  };
  const decide = (id: string, decision: 'complete' | 'fail', json: unknown) => call('POST', `/issuer/deferred/${id}/${decision}`, json);
  const statusOf = async (session: string) => (await call('GET', `/session/${session}`)).body.status;
  const errorOf = (answer: Answer) => [answer.status, answer.body.error];

  it('returns a transaction and the interval of the backend only', async () => {
    const { uri } = await offer();
    const wallet = new RawWallet(service, 'acme');
    const token = await wallet.accessToken(uri);
    const first = await request(wallet, token, 'card', 1);
    expect(first.answer.body).to.have.keys(['transaction_id', 'interval']);
    expect(first.answer.body.interval, 'the documented default').to.equal(5);
    backend.on('/claims', { json: { deferred: true, interval: 17 } });
    const second = await request(wallet, token, 'card', 1);
    expect(second.answer.body.interval).to.equal(17);
  });

  // issuance N146
  it('lets the wallet poll in both published forms, without a notification', async () => {
    const deferral = await requestDeferred();
    const pending = await poll(deferral);
    expect(pending.status).to.equal(202);
    expect(pending.body).to.deep.equal({ transaction_id: deferral.transactionId, interval: 5 });
    const legacy = await legacyPoll(deferral);
    expect(errorOf(legacy)).to.deep.equal([400, 'issuance_pending']);
    expect(legacy.body.interval).to.equal(5);
    expect(await statusOf(deferral.session)).to.equal('fetched');
  });

  it('signs the claims of the backend for each key, once', async () => {
    const deferral = await requestDeferred(3);
    const completion = await decide(deferral.transactionId, 'complete', { claims: { name: 'Ada' } });
    expect(completion.status, completion.text).to.equal(200);
    expect(completion.body).to.have.keys(['transactionId', 'status', 'message', 'warnings']);
    expect(completion.body.warnings).to.deep.equal([]);
    expect(completion.body).to.include({ transactionId: deferral.transactionId, status: 'ready' });
    const credentialResponse = await poll(deferral);
    expect(credentialResponse.status, credentialResponse.text).to.equal(200);
    expect(credentialResponse.body).to.have.keys(['credentials', 'notification_id']);
    const credentials: string[] = credentialResponse.body.credentials.map((entry: { credential: string }) => entry.credential);
    const claims = credentials.map((text) => JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString()));
    expect(claims.map(({ name }) => name)).to.deep.equal(['Ada', 'Ada', 'Ada']);
    const boundKeys = claims.map((entry) => (entry['cnf'] as { jwk: { x: string } }).jwk.x);
    expect(boundKeys).to.have.members(deferral.keys.map(({ jwk }) => jwk.x));
    const statusEntries = claims.map((entry) => JSON.stringify(entry['status']));
    expect(new Set(statusEntries).size, 'a separate status entry for each credential').to.equal(3);
    expect(await statusOf(deferral.session)).to.equal('completed');
    expect(errorOf(await poll(deferral)), 'a second poll').to.deep.equal([400, 'invalid_transaction_id']);
    expect(errorOf(await legacyPoll(deferral))).to.deep.equal([400, 'invalid_transaction_id']);
  });

  it('passes on a credential that the backend created', async () => {
    const deferral = await requestDeferred();
    const completion = await decide(deferral.transactionId, 'complete', { credential: 'made.by.them~' });
    expect(completion.status, completion.text).to.equal(200);
    expect(completion.body.warnings.map(({ member }: { member: string }) => member)).to.deep.equal(['credentials.0']);
    const credentialResponse = await legacyPoll(deferral);
    expect(credentialResponse.status, credentialResponse.text).to.equal(200);
    expect(credentialResponse.body.credential).to.equal('made.by.them~');
    expect(credentialResponse.body.credentials).to.deep.equal([{ credential: 'made.by.them~' }]);
  });

  it('is not available at the older, unencrypted endpoint if encryption is required', async () => {
    const config = { display: [{ name: 'Acme', locale: 'en' }], batchSize: 5 };
    const encryptionSettings = { requestEncryption: 'required' };
    for (const strictness of [encryptionSettings, { ...encryptionSettings, responseEncryption: 'required' }]) {
      const deferral = await requestDeferred();
      await decide(deferral.transactionId, 'complete', { claims: { name: 'Ada' } });
      const configurationResponse = await call('POST', '/issuer/config', { ...config, ...strictness });
      expect(configurationResponse.status, configurationResponse.text).to.equal(201);
      const rejection = await legacyPoll(deferral);
      expect(errorOf(rejection)).to.deep.equal([400, 'invalid_encryption_parameters']);
      expect(rejection.text).to.not.include('credentials');
      await call('POST', '/issuer/config', config);
      expect((await legacyPoll(deferral)).status, 'the transaction is not consumed').to.equal(200);
    }
  });

  it('can be revoked after it was retrieved', async () => {
    const deferral = await requestDeferred();
    await decide(deferral.transactionId, 'complete', { claims: { name: 'Ada' } });
    await poll(deferral);
    const revoked = await call('POST', '/session/revoke', { sessionId: deferral.session, status: 1 });
    expect(revoked.status, revoked.text).to.equal(201);
    const secondRequest = await request(deferral.wallet, deferral.token, 'card', 1);
    expect(errorOf(secondRequest.answer)).to.deep.equal([400, 'credential_request_denied']);
  });

  it('is not returned once its session was revoked', async () => {
    const deferral = await requestDeferred();
    await decide(deferral.transactionId, 'complete', { claims: { name: 'Ada' } });
    const revoked = await call('POST', '/session/revoke', { sessionId: deferral.session, status: 1 });
    expect(revoked.status, revoked.text).to.equal(201);
    for (const answer of [await poll(deferral), await legacyPoll(deferral)]) {
      expect(errorOf(answer)).to.deep.equal([400, 'credential_request_denied']);
    }
    const record = await call('GET', `/issuer/deferred/${deferral.transactionId}`);
    expect(record.body).to.include({ status: 'failed' });
    expect(record.body.errorMessage).to.match(/revoked/);
    await call('POST', '/session/revoke', { sessionId: deferral.session, status: 0 });
    expect(errorOf(await poll(deferral)), 'the denial is final').to.deep.equal([400, 'credential_request_denied']);
  });

  it('fails with its session when another transaction of it fails, ready or not', async () => {
    const { uri, session } = await offer(['card', 'pass']);
    const wallet = new RawWallet(service, 'acme');
    const token = await wallet.accessToken(uri);
    const deferrals: Deferral[] = [];
    for (let count = 0; count < 3; count++) {
      const { answer } = await request(wallet, token, 'card', 1);
      deferrals.push({ session, token, transactionId: answer.body.transaction_id, wallet, keys: [] });
    }
    const [ready, failedDeferral, pending] = deferrals as [Deferral, Deferral, Deferral];
    await decide(ready.transactionId, 'complete', { claims: { name: 'Ada' } });
    await decide(failedDeferral.transactionId, 'fail', { errorMessage: 'no such person' });
    for (const deferral of [ready, failedDeferral, pending]) {
      const answer = await poll(deferral);
      expect(errorOf(answer)).to.deep.equal([400, 'credential_request_denied']);
      const record = await call('GET', `/issuer/deferred/${deferral.transactionId}`);
      expect(record.body.status).to.equal('failed');
    }
    expect(await statusOf(session)).to.equal('failed');
  });

  it('completes the session when the last credential of the offer is retrieved', async () => {
    const { uri, session } = await offer(['card', 'pass']);
    const wallet = new RawWallet(service, 'acme');
    const token = await wallet.accessToken(uri);
    const { answer } = await request(wallet, token, 'card', 1);
    backend.on('/claims', { json: { pass: { name: 'Ada' } } });
    expect((await request(wallet, token, 'pass', 1)).answer.status).to.equal(200);
    expect(await statusOf(session)).to.equal('fetched');
    const transactionId = answer.body.transaction_id;
    await decide(transactionId, 'complete', { claims: { name: 'Ada' } });
    expect(await statusOf(session), 'a ready credential is not fetched').to.equal('fetched');
    await poll({ session, token, transactionId, wallet, keys: [] });
    expect(await statusOf(session)).to.equal('completed');
  });

  it('fails with a reason for the operator when the backend rejects it', async () => {
    const deferral = await requestDeferred();
    const failure = await decide(deferral.transactionId, 'fail', { errorMessage: 'no such person' });
    expect(failure.status, failure.text).to.equal(200);
    expect(failure.body.status).to.equal('failed');
    const answer = await poll(deferral);
    expect(errorOf(answer)).to.deep.equal([400, 'credential_request_denied']);
    expect(answer.text).not.to.include('no such person');
    const session = await call('GET', `/session/${deferral.session}`);
    expect(session.body).to.deep.include({ status: 'failed' });
    expect(session.body.failure).to.deep.equal({ code: 'deferred_failed', message: 'no such person' });
    const record = await call('GET', `/issuer/deferred/${deferral.transactionId}`);
    expect(record.body).to.include({ status: 'failed', errorMessage: 'no such person' });
  });

  it('is decided once, by the first decision', async () => {
    for (const [first, second] of [
      ['complete', 'fail'],
      ['fail', 'complete'],
      ['complete', 'complete'],
      ['fail', 'fail'],
    ] as const) {
      const { transactionId } = await requestDeferred();
      const body = { complete: { credential: 'a.b.c~' }, fail: { errorMessage: 'no' } };
      expect((await decide(transactionId, first, body[first])).status).to.equal(200);
      const secondDecision = await decide(transactionId, second, body[second]);
      expect([secondDecision.status, secondDecision.body.code], `${first}, ${second}`).to.deep.equal([409, 'conflict']);
    }
  });

  it('is decided once and retrieved once under concurrency', async () => {
    const deferral = await requestDeferred();
    const decisionResponses = await Promise.all(
      Array.from({ length: 20 }, (_, index) => decide(deferral.transactionId, 'complete', { credential: `number.${index}~` })),
    );
    expect(decisionResponses.filter(({ status }) => status === 200)).to.have.length(1);
    expect(decisionResponses.filter(({ status }) => status === 409)).to.have.length(19);
    const winnerIndex = decisionResponses.findIndex(({ status }) => status === 200);
    const polls = await Promise.all(Array.from({ length: 20 }, () => poll(deferral)));
    const delivered = polls.filter(({ status }) => status === 200);
    expect(delivered).to.have.length(1);
    expect(delivered[0]?.body.credentials).to.deep.equal([{ credential: `number.${winnerIndex}~` }]);
  });

  it('rejects a credential that cannot be issued, and changes nothing', async () => {
    const { transactionId } = await requestDeferred(2);
    const cases: [string, unknown, RegExp][] = [
      ['nothing', {}, /one of/],
      ['credential and claims', { credential: 'a~', claims: { name: 'Ada' } }, /one of/],
      ['claims against the schema', { claims: { name: 7 } }, /claims.*name/],
      ['a claim of the protocol', { claims: { name: 'Ada', cnf: {} } }, /cnf/],
      ['more credentials than keys', { credentials: ['a~', 'b~', 'c~'] }, /2 keys/],
      ['no credential', { credential: 'with spaces in it' }, /SD-JWT/],
      ['an unknown property', { credential: 'a~', more: true }, /more/],
    ];
    for (const [description, json, detail] of cases) {
      const answer = await decide(transactionId, 'complete', json);
      expect(answer.status, description).to.equal(400);
      expect(answer.text, description).to.match(detail);
    }
    expect((await decide(transactionId, 'fail', {})).status).to.equal(400);
    expect((await call('GET', `/issuer/deferred/${transactionId}`)).body.status).to.equal('pending');
  });

  it('shows pending transactions to the backend', async () => {
    const one = await requestDeferred();
    const list = await call('GET', `/issuer/deferred?session=${one.session}`);
    expect(list.body).to.have.length(1);
    expect(list.body[0]).to.include({
      transactionId: one.transactionId,
      tenantId: 'acme',
      sessionId: one.session,
      credentialConfigurationId: 'card',
      status: 'pending',
      interval: 5,
    });
    expect(list.body[0].holderKeys[0].x).to.equal(one.keys[0]?.jwk.x);
    const lifetime = Date.parse(list.body[0].expiresAt) - Date.parse(list.body[0].createdAt);
    expect(lifetime, 'a lifetime of 24 hours').to.equal(86_400_000);
    expect((await call('GET', '/issuer/deferred')).body.length).to.be.greaterThan(1);
  });

  it('deletes the keys of the wallet after the retrieval', async () => {
    const one = await requestDeferred(2);
    const keys = async () => (await call('GET', `/issuer/deferred/${one.transactionId}`)).body.holderKeys.length;
    const path = `/issuer/deferred/${one.transactionId}/complete`;
    expect((await call('POST', path, { claims: { name: 'Ada' } })).status).to.equal(200);
    expect(await keys()).to.equal(2);
    const credentialResponse = await poll(one);
    expect([credentialResponse.status, credentialResponse.body.credentials.length]).to.deep.equal([200, 2]);
    expect(await keys()).to.equal(0);
  });

  it('is hidden from a client that is restricted to other configurations', async () => {
    const { transactionId } = await requestDeferred();
    const secret = 'secret-of-a-restricted-client-01234';
    const rights = { roles: ['issuance:offer'], allowedIssuanceConfigs: ['pass'] };
    await call('POST', '/client', { clientId: 'restricted', secret, ...rights });
    const token = await service.token('restricted', secret);
    expect((await call('GET', '/issuer/deferred', undefined, token)).body).to.deep.equal([]);
    const path = `/issuer/deferred/${transactionId}`;
    expect((await call('GET', path, undefined, token)).status).to.equal(404);
    expect((await call('POST', `${path}/complete`, { credential: 'a~' }, token)).status).to.equal(404);
    expect((await call('POST', `${path}/fail`, { errorMessage: 'x' }, token)).status).to.equal(404);
  });

  describe('rejects a wallet', () => {
    const expectRejected = async (description: string, answer: Promise<Answer>, status: number, error: string | undefined) =>
      expect(errorOf(await answer), description).to.deep.equal([status, error]);

    it('without a token, or with a proof for another request', async () => {
      const deferral = await requestDeferred();
      const { wallet, token, transactionId } = deferral;
      const json = { transaction_id: transactionId };
      const path = '/acme/deferred_credential';
      await expectRejected('no token', service.call('POST', path, { json }), 401, 'invalid_token');
      const headersOfOtherToken = wallet.authorization(token);
      await expectRejected('proof', service.call('POST', path, { json, headers: headersOfOtherToken }), 401, 'invalid_dpop_proof');
      const headers = wallet.authorization(token, { path: 'deferred_credential' });
      expect((await service.call('POST', path, { json, headers })).status).to.equal(202);
      await expectRejected('replay', service.call('POST', path, { json, headers }), 401, 'invalid_dpop_proof');
      const root = '/deferred_credential?transaction_id=x';
      await expectRejected('no token at the root', service.call('GET', root), 401, 'invalid_token');
      const garbage = { Authorization: 'DPoP garbage' };
      await expectRejected('garbage at the root', service.call('GET', root, { headers: garbage }), 401, 'invalid_token');
    });

    it('without a transaction id, or with that of another wallet', async () => {
      const [ownDeferral, otherDeferral] = [await requestDeferred(), await requestDeferred()];
      await expectRejected('missing', poll(ownDeferral, {}), 400, 'invalid_credential_request');
      await expectRejected('a number', poll(ownDeferral, { transaction_id: 7 }), 400, 'invalid_credential_request');
      await expectRejected('unknown', poll(ownDeferral, { transaction_id: 'unknown' }), 400, 'invalid_transaction_id');
      const foreignTransaction = { transaction_id: otherDeferral.transactionId };
      await expectRejected('foreign', poll(ownDeferral, foreignTransaction), 400, 'invalid_transaction_id');
      await decide(otherDeferral.transactionId, 'complete', { credential: 'a~' });
      await expectRejected('foreign and ready', poll(ownDeferral, foreignTransaction), 400, 'invalid_transaction_id');
      expect((await poll(otherDeferral)).status).to.equal(200);
    });

    it('with a revoked token', async () => {
      const { uri } = await offer();
      const wallet = new RawWallet(service, 'acme');
      const { access_token: token } = (await wallet.redeem(await wallet.code(uri))).body;
      const { answer } = await request(wallet, token, 'card', 1);
      expect(answer.status).to.equal(202);
      const { grant_id: id } = decode(token).payload as { grant_id: string };
      const store = service.service.container.get(Store);
      await store.commit('acme' as TenantId, { grant: { id, act: 'revoke' } }, new Date());
      const deferral = { wallet, token, transactionId: answer.body.transaction_id, session: '', keys: [] };
      await expectRejected('revoked', poll(deferral), 401, 'invalid_token');
    });
  });
});
