import { expect } from 'chai';
import sinon from 'sinon';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import { Store } from '../../application/ports/store.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { parsePublicJwk, thumbprint } from '../../domain/shared/jwk.ts';
import { Backend } from '../support/backend.ts';
import { httpDatabases, rawSql, type TestDatabase } from '../support/databases.ts';
import { DRAFT_VARIANTS, Issuer } from '../support/interactive-authorization.ts';
import { createResource, credentialBody, presentationBody } from '../support/populated.ts';
import { issue, postResponse, present, requestPresentation, responseForm } from '../support/present.ts';
import { AUTHORIZATION_REQUEST, keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

import { startUpstreamProvider } from '../support/upstream-provider.ts';

const QUOTA = 1_048_576;
const CODE = 'session_quota_exceeded';
const TENANT = 'acme';

const sessionBytesOf = ({ service }: TestService) => {
  const store = service.container.get(Store);
  if (!(store instanceof OrmStore) || store.sessionBytes === undefined) throw new Error('nothing is counted');
  return store.sessionBytes;
};

/** Reserves all bytes that are left for the tenant. */
async function reserveAll(service: TestService, tenant: string): Promise<() => void> {
  const sessionBytes = sessionBytesOf(service);
  const tenantId = tenant as TenantId;
  await sessionBytes.reserve(tenantId, 0, new Date());
  const bytes = QUOTA - sessionBytes.usedBy(tenantId);
  await sessionBytes.reserve(tenantId, bytes, new Date());
  return () => sessionBytes.release(tenantId, bytes);
}

const expectUnavailable = ({ status, headers, body, text }: Answer) => {
  expect([status, body?.error], text).to.deep.equal([503, 'temporarily_unavailable']);
  expect(headers.get('retry-after')).to.equal('60');
  expect(text).to.not.include('QUOTA');
};

for (const kind of httpDatabases()) {
  describe(`quota of open session bytes on ${kind.name}`, () => {
    let database: TestDatabase;
    let service: TestService;
    let token: string;

    const start = (overrides: Readonly<Record<string, string>> = {}) =>
      startTestService({ DATABASE_URL: database.url, QUOTA_SESSION_BYTES: String(QUOTA), ...overrides });
    /** The new process has the same address. */
    const restart = async () => {
      await service.close();
      service = await start({ PORT: new URL(service.address).port });
    };
    const setUp = async (tenant: string) => {
      const tenantToken = (await createTenant(service, tenant)).token;
      const keys = `${tenant}-keys`;
      await createResource(service, tenantToken, '/key-chain', { id: keys, usages: ['signing', 'access'] });
      await createResource(service, tenantToken, '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }] });
      await createResource(service, tenantToken, '/issuer/credentials', credentialBody('card', keys));
      const { webhook: _webhook, ...verifier } = presentationBody('check', keys);
      await createResource(service, tenantToken, '/verifier/config', verifier);
      return tenantToken;
    };
    /** The initial state of the tenant in each test. */
    let initialState: { readonly database: TestDatabase; readonly token: string } | undefined;
    before(async function () {
      const openedDatabase = await kind.open();
      if (openedDatabase === undefined) return this.skip();
      database = openedDatabase;
      service = await start();
      initialState = { database, token: await setUp(TENANT) };
      await service.close();
    });
    beforeEach(async function () {
      if (initialState === undefined) return this.skip();
      token = initialState.token;
      database = await kind.copy(initialState.database);
      service = await start();
    });
    after(() => initialState?.database.drop());
    afterEach(async () => {
      sinon.restore();
      await service?.close();
      await database?.drop();
    });

    const call = (method: string, path: string, json?: unknown, accessToken = token, on = service) =>
      on.call(method, path, { token: accessToken, ...(json !== undefined && { json }) });
    /** Creates an offer whose session takes about 140 kB. */
    const offerBody = (length = 100_000) => ({
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: ['card'],
      credentialClaims: { card: { type: 'inline', claims: { given_name: 'Ada', family_name: 'x'.repeat(length) } } },
    });
    const offer = (overrides: object = {}, accessToken = token, on = service) =>
      call('POST', '/issuer/offer', { ...offerBody(), ...overrides }, accessToken, on);
    const request = (overrides: object = {}) => call('POST', '/verifier/offer', { response_type: 'uri', requestId: 'check', ...overrides });
    const countSessions = async () => Number((await rawSql(database.url, (run) => run('select count(*) as n from sessions')))[0]?.['n']);
    const expectRejected = ({ status, body, headers, text }: Answer) => {
      expect([status, body.code], text).to.deep.equal([409, CODE]);
      expect(body.detail).to.match(new RegExp(`${QUOTA} bytes .*QUOTA_SESSION_BYTES`));
      expect(headers.get('retry-after')).to.equal('60');
    };
    /** Creates offers until one is rejected. @returns the created offers. */
    const fillQuota = async (overrides: object = {}) => {
      const offers: { readonly uri: string; readonly session: string }[] = [];
      for (;;) {
        const answer = await offer(overrides);
        if (answer.status === 409) {
          expectRejected(answer);
          return offers;
        }
        expect(answer.status, answer.text).to.equal(201);
        offers.push(answer.body);
      }
    };

    it('rejects the offer that exceeds it with 409 and stores nothing of it', async () => {
      const offers = await fillQuota();
      expect(offers).to.have.length.within(5, 7);
      const before = await countSessions();
      expectRejected(await offer());
      expectRejected(await offer({ flow: 'authorization_code' }));
      expect(await countSessions()).to.equal(before);
    });

    it('rejects presentation requests for links and for the Digital Credentials API', async () => {
      const releaseBytes = await reserveAll(service, TENANT);
      const before = await countSessions();
      expectRejected(await request());
      expectRejected(await request({ response_type: 'dc-api' }));
      expect(await countSessions()).to.equal(before);
      releaseBytes();
      expect((await request()).status).to.equal(201);
    });

    it('counts the answer stored under an Idempotency-Key, and repeats it when the quota is reached', async () => {
      const offerWithKey = (key: string) =>
        service.call('POST', '/issuer/offer', { ...{ token, json: offerBody(10) }, headers: { 'Idempotency-Key': key } });
      const sessionBytes = sessionBytesOf(service);
      const before = sessionBytes.usedBy(TENANT as TenantId);
      await offer(offerBody(10));
      const plainBytes = sessionBytes.usedBy(TENANT as TenantId) - before;
      const first = await offerWithKey('one');
      expect(sessionBytes.usedBy(TENANT as TenantId) - before).to.be.greaterThan(2 * plainBytes);
      const releaseBytes = await reserveAll(service, TENANT);
      expect((await offerWithKey('one')).body).to.deep.equal(first.body);
      expectRejected(await offerWithKey('two'));
      releaseBytes();
      expect((await offerWithKey('two')).status).to.equal(201);
    });

    it('applies to each tenant separately', async () => {
      const otherToken = await setUp('other');
      await fillQuota();
      expect((await offer({}, otherToken)).status).to.equal(201);
    });

    it('does not count a session after it was cancelled, removed or completed', async () => {
      const [cancelledSession, removedSession, completedSession] = await fillQuota();
      const finishers = [
        () => call('POST', `/session/${cancelledSession?.session}/cancel`),
        () => call('DELETE', `/session/${removedSession?.session}`),
        async () => {
          const wallet = new RawWallet(service, TENANT);
          const answer = await wallet.request(await wallet.accessToken(completedSession?.uri ?? ''), 'card');
          expect(answer.status, answer.text).to.equal(200);
        },
      ];
      for (const finish of finishers) {
        await finish();
        expect((await offer()).status).to.equal(201);
        expectRejected(await offer());
      }
    });

    /** Stored bytes of the requests of all sessions. */
    const storedRequests = async () =>
      Number((await rawSql(database.url, (run) => run('select coalesce(sum(octet_length(request)), 0) as n from sessions')))[0]?.['n']);
    const largeRequest = { transaction_data: [{ type: 'urn:vidimus:note:1', credential_ids: ['pid'], note: 'x'.repeat(20_000) }] };
    const INVALID = { pid: ['e30.e30.e30~'] };

    it('erases the large requests of offers and presentation requests that are cancelled', async () => {
      for (let round = 0; round < 12; round++) {
        const { status, body, text } = round % 2 === 0 ? await offer() : await request(largeRequest);
        expect(status, text).to.equal(201);
        const cancelled = await call('POST', `/session/${body.session}/cancel`);
        expect(cancelled.status, cancelled.text).to.equal(200);
      }
      expect(await storedRequests()).to.equal(0);
      expect(await countSessions()).to.equal(12);
    });

    it('erases the large requests of sessions that expire', async () => {
      await offer({ expiresIn: 60 });
      await request({ ...largeRequest, expiresIn: 60 });
      const openSession = (await offer()).body.session;
      const before = await storedRequests();
      const { maintenance } = service.service.container.get(Store);
      await maintenance.expireSessions(new Date(Date.now() + 61_000), 100);
      expect(await storedRequests()).to.be.within(before / 4, before / 2);
      const sessionResponse = await call('GET', `/session/${openSession}`);
      expect(sessionResponse.body.credentialPayload.credentialClaims.card.claims.given_name).to.equal('Ada');
    });

    it('erases the large requests of sessions that fail: by an error or an invalid response of a wallet', async () => {
      const rejection = await requestPresentation(service, token, 'check', largeRequest);
      const { state } = rejection.payload;
      expect((await postResponse(service, rejection, { state, error: 'access_denied' })).status).to.equal(200);
      const invalid = await requestPresentation(service, token, 'check', largeRequest);
      expect((await postResponse(service, invalid, await responseForm(invalid, INVALID))).status).to.equal(400);
      for (const { session } of [rejection, invalid]) expect((await call('GET', `/session/${session}`)).body.status).to.equal('failed');
      expect(await storedRequests()).to.equal(0);
    });

    it('erases the large request of an offer after five wrong transaction codes', async () => {
      const { uri, session } = (await offer({ tx_code: '1234' })).body;
      const wallet = new RawWallet(service, TENANT);
      const code = await wallet.code(uri);
      for (let attempt = 0; attempt < 5; attempt++) await wallet.redeem(code, { tx_code: '0000' });
      expect((await call('GET', `/session/${session}`)).body.status).to.equal('failed');
      expect(await storedRequests()).to.equal(0);
    });

    it('keeps the request of a failed presentation until its webhook has received the result', async () => {
      const backend = await Backend.start();
      try {
        backend.on('/result', (response) => response.writeHead(500).end());
        const credential = await issue(service, { id: TENANT, token }, 'card');
        const request = await requestPresentation(service, token, 'check', { ...largeRequest, webhook: { url: `${backend.url}/result` } });
        expect((await present(service, request, credential)).status).to.equal(400);
        const { session } = request;
        const { body } = await call('GET', `/session/${session}`);
        expect([body.status, body.deliveries[0].result]).to.deep.equal(['failed', 'failed']);
        const before = await storedRequests();
        backend.on('/result', { json: {} });
        const retry = await call('POST', `/session/${session}/deliveries/${body.deliveries[0].id}/retry`);
        expect([retry.status, retry.body.result], retry.text).to.deep.equal([200, 'delivered']);
        expect(await storedRequests()).to.be.lessThan(before - 100_000);
      } finally {
        await backend.close();
      }
    });

    it('keeps small requests of finished sessions, and the request of an offer that a wallet completed', async () => {
      const smallSession = (await offer(offerBody(10))).body.session;
      await call('POST', `/session/${smallSession}/cancel`);
      const payload = (await call('GET', `/session/${smallSession}`)).body.credentialPayload;
      expect(payload.credentialClaims.card.claims.given_name).to.equal('Ada');
      const { uri, session } = (await offer()).body;
      const wallet = new RawWallet(service, TENANT);
      expect((await wallet.request(await wallet.accessToken(uri), 'card')).status).to.equal(200);
      expect((await call('GET', `/session/${session}`)).body.status).to.equal('completed');
      expect(await storedRequests()).to.be.greaterThan(130_000);
    });

    it('still counts a large answer stored under an Idempotency-Key after its session was cancelled', async () => {
      const before = sessionBytesOf(service).usedBy(TENANT as TenantId);
      const answer = await service.call('POST', '/verifier/offer', {
        token,
        json: {
          ...{ response_type: 'dc-api', requestId: 'check' },
          transaction_data: [{ type: 'urn:vidimus:note:1', credential_ids: ['pid'], note: 'x'.repeat(20_000) }],
        },
        headers: { 'Idempotency-Key': 'one' },
      });
      expect(answer.status, answer.text).to.equal(201);
      expect((await call('POST', `/session/${answer.body.session}/cancel`)).status).to.equal(200);
      const [row] = await rawSql(database.url, (run) => run('select octet_length(said) as n from kept_answers'));
      expect(Number(row?.['n'])).to.be.greaterThan(30_000);
      expect(sessionBytesOf(service).usedBy(TENANT as TenantId) - before).to.be.greaterThan(Number(row?.['n']) - 16_384);
    });

    it('does not count a session after it has expired', async () => {
      await fillQuota({ expiresIn: 300 });
      const clock = sinon.useFakeTimers({ now: Date.now() + 299_000, toFake: ['Date'] });
      expectRejected(await offer());
      clock.tick(62_000);
      expect((await offer()).status).to.equal(201);
    });

    it('is not exceeded by concurrent offers', async () => {
      const responses = await Promise.all(Array.from({ length: 24 }, () => offer()));
      const createdOffers = responses.filter(({ status }) => status === 201);
      expect(createdOffers).to.have.length.within(5, 7);
      for (const answer of responses) if (answer.status !== 201) expectRejected(answer);
      expect(sessionBytesOf(service).usedBy(TENANT as TenantId)).to.be.at.most(QUOTA);
    });

    it('still counts after a restart', async () => {
      const [first] = await fillQuota();
      await restart();
      expectRejected(await offer());
      expect((await call('POST', `/session/${first?.session}/cancel`)).status).to.equal(200);
      expect((await offer()).status).to.equal(201);
      expectRejected(await offer());
    });

    /** Starts the counting after the present sessions, as in a migration from a release without the quota. */
    const startCounting = async () => {
      await service.close();
      const since = kind.name === 'sqlite' ? `strftime('%s', 'now') * 1000 + 2000` : `now() + interval '2 s'`;
      await rawSql(database.url, async (run) => {
        await run('delete from open_session_bytes');
        await run(`update schema_migrations set executed_at = ${since} where name like '%35_open_session_bytes'`);
      });
      service = await start({ PORT: new URL(service.address).port });
    };
    /** Sum and minimum of the bytes in the table. */
    const storedBytes = async () => {
      const [row] = await rawSql(database.url, (run) => run('select sum(bytes) as total, min(bytes) as smallest from open_session_bytes'));
      return [Number(row?.['total'] ?? 0), Number(row?.['smallest'] ?? 0)] as const;
    };
    /** Counted bytes of open sessions, which are the same in this process and in the table. */
    const countedBytes = async () => {
      const sessionBytes = sessionBytesOf(service);
      await sessionBytes.reserve(TENANT as TenantId, 0, new Date());
      await sessionBytes.flush();
      const [row] = await rawSql(database.url, (run) => run('select coalesce(sum(bytes), 0) as n from open_session_bytes where bytes > 0'));
      expect(sessionBytes.usedBy(TENANT as TenantId), 'in memory').to.equal(Number(row?.['n']));
      return Number(row?.['n']);
    };

    it('subtracts the bytes of large sessions that the process cancels or removes just after its start', async () => {
      const sessions = [(await offer()).body.session, (await request(largeRequest)).body.session];
      sessions.push((await offer()).body.session, (await request(largeRequest)).body.session);
      expect(await countedBytes()).to.be.greaterThan(300_000);
      await restart();
      for (const session of sessions.slice(0, 2)) expect((await call('POST', `/session/${session}/cancel`)).status).to.equal(200);
      for (const session of sessions.slice(2)) expect((await call('DELETE', `/session/${session}`)).status).to.equal(200);
      expect(await countedBytes()).to.equal(0);
    });

    it('keeps the bytes of other sessions when a session ends whose bytes were lost with the process', async () => {
      const lostSession = (await offer({ expiresIn: 60 })).body.session;
      const lostBytes = await countedBytes();
      await offer({ expiresIn: 3_600 });
      const bytes = await countedBytes();
      await rawSql(database.url, (run) =>
        run('delete from open_session_bytes where expires_at = (select min(expires_at) from open_session_bytes)'),
      );
      await restart();
      expect(await countedBytes()).to.equal(bytes - lostBytes);
      expect((await call('POST', `/session/${lostSession}/cancel`)).status).to.equal(200);
      expect(await countedBytes()).to.equal(bytes - lostBytes);
    });

    describe('with deferred credentials', () => {
      let backend: Backend;
      beforeEach(async () => {
        backend = await Backend.start();
        backend.on('/claims', { json: { deferred: true } });
        const { claims: _claims, ...deferringConfiguration } = { ...credentialBody('late', `${TENANT}-keys`) };
        const claimsWebhook = { url: `${backend.url}/claims` };
        await createResource(service, token, '/issuer/credentials', { ...deferringConfiguration, claimsWebhook });
      });
      afterEach(() => backend?.close());

      const openTransaction = async () => {
        const { credentialClaims: _inline, ...body } = offerBody();
        const deferringConfiguration = { ...body, credentialConfigurationIds: ['late'] };
        const { uri, session } = await createResource(service, token, '/issuer/offer', deferringConfiguration);
        const wallet = new RawWallet(service, TENANT);
        const access = await wallet.accessToken(uri);
        const { transaction_id: id } = (await wallet.request(access, 'late')).body;
        const retrieve = () =>
          service.call('POST', `/${TENANT}/deferred_credential`, {
            headers: wallet.authorization(access, { path: 'deferred_credential' }),
            json: { transaction_id: id },
          });
        return { id: String(id), session: String(session), retrieve };
      };
      /** Completes a transaction with a credential of about 400 kB. */
      const complete = ({ id }: { readonly id: string }) =>
        call('POST', `/issuer/deferred/${id}/complete`, { credential: 'x'.repeat(300_000) });
      for (const [prepare, condition] of [
        [async () => {}, 'in the process that created it'],
        [restart, 'in a process that has just started'],
      ] as const)
        it(`does not count a credential after its session was removed, ${condition}`, async () => {
          const before = await countedBytes();
          const transaction = await openTransaction();
          expect((await complete(transaction)).status).to.equal(200);
          await prepare();
          expect((await call('DELETE', `/session/${transaction.session}`)).status).to.equal(200);
          expect(await countedBytes()).to.be.within(before, before + 5_000);
        });

      for (const [prepare, condition] of [
        [restart, 'in a process that has just started'],
        [startCounting, 'of transactions of a release without the quota'],
      ] as const) {
        it(`rejects credentials that exceed it, ${condition}`, async () => {
          const transactions = [];
          for (let index = 0; index < 4; index++) transactions.push(await openTransaction());
          await prepare();
          const completions = await Promise.all(transactions.map(complete));
          expect(completions.filter(({ status }) => status === 200)).to.have.length(2);
          const pending = transactions.filter((_, index) => completions[index]?.status !== 200);
          for (const transaction of pending) expectRejected(await complete(transaction));
          expect(await countedBytes()).to.be.within(800_000, QUOTA);
        });

        it(`subtracts the counted bytes when the wallet retrieves a credential, ${condition}`, async () => {
          const transaction = await openTransaction();
          await prepare();
          const [before] = await storedBytes();
          expect((await complete(transaction)).status).to.equal(200);
          expect(await countedBytes()).to.be.within(Number(before) + 400_000, Number(before) + 401_000);
          const retrieved = await transaction.retrieve();
          expect(retrieved.status, retrieved.text).to.equal(200);
          expect(await countedBytes()).to.equal(0);
          expect(await storedBytes(), 'no row is negative').to.deep.equal([0, 0]);
        });
      }
    });

    it('subtracts nothing for a session of a release without the quota', async () => {
      const { session } = (await offer()).body;
      await startCounting();
      await call('POST', '/issuer/offer', offerBody(1_000));
      const before = sessionBytesOf(service).usedBy(TENANT as TenantId);
      expect((await call('POST', `/session/${session}/cancel`)).status).to.equal(200);
      await sessionBytesOf(service).flush();
      expect(sessionBytesOf(service).usedBy(TENANT as TenantId)).to.equal(before);
      expect(before).to.be.greaterThan(1_000);
    });

    it('begins at zero for a tenant that takes the id of a removed one', async () => {
      await fillQuota();
      await sessionBytesOf(service).flush();
      const root = await service.rootToken();
      await service.call('DELETE', `/tenant/${TENANT}`, { token: root });
      const { maintenance } = service.service.container.get(Store);
      const later = new Date(Date.now() + 61_000);
      while ((await maintenance.removeRemainingRows(later, 1_000)) > 0);
      const rows = await rawSql(database.url, (run) => run('select * from open_session_bytes'));
      expect(rows).to.deep.equal([]);
      token = await setUp(TENANT);
      sinon.useFakeTimers({ now: Date.now() + 2_000, toFake: ['Date'] });
      expect((await offer()).status).to.equal(201);
    });

    it('begins at zero after the fence that follows a rewind of the database', async () => {
      const [first] = await fillQuota();
      await sessionBytesOf(service).flush();
      await call('POST', `/session/${first?.session}/cancel`);
      await offer();
      const store = service.service.container.get(Store);
      if (!(store instanceof OrmStore)) throw new Error('another store');
      const now = new Date();
      for (const step of store.fencing.steps) {
        let { nextCursor: cursor } = await step.run(now, 1_000);
        while (cursor !== undefined) ({ nextCursor: cursor } = await step.run(now, 1_000, cursor));
      }
      await store.maintenance.expireSessions(now, 1_000);
      store.rewinds.forget();
      await sessionBytesOf(service).flush();
      const rows = await rawSql(database.url, (run) => run('select * from open_session_bytes'));
      expect(rows).to.deep.equal([]);
      expect(await fillQuota()).to.have.length.within(5, 7);
    });

    it('deletes expired rows, and no others', async () => {
      await offer({ expiresIn: 60 });
      await offer({ expiresIn: 3_600 });
      await sessionBytesOf(service).flush();
      const rows = async () => (await rawSql(database.url, (run) => run('select expires_at from open_session_bytes'))).length;
      expect(await rows()).to.equal(2);
      const { maintenance } = service.service.container.get(Store);
      await maintenance.forgetExpired(new Date(Date.now() + 180_000), 100);
      expect(await rows()).to.equal(1);
    });

    it('accepts pushed requests of wallets, which leave the quota to the tenant', async () => {
      const upstream = { issuer: 'http://127.0.0.1:9', clientId: 'x', clientSecret: 'y' };
      const display = [{ name: 'Acme', locale: 'en' }];
      const builtInAs = { walletInitiated: true };
      await createResource(service, token, '/issuer/config', { display, builtInAs, chainedAs: { upstream } });
      await reserveAll(service, TENANT);
      const form = { ...AUTHORIZATION_REQUEST, scope: 'card' };
      for (const path of ['/acme/par', '/acme/chained-as/par']) expect((await service.call('POST', path, { form })).status).to.equal(201);
    });

    it('rejects the session of a wallet that began by itself on its page, and creates it later', async () => {
      const display = [{ name: 'Acme', locale: 'en' }];
      await createResource(service, token, '/issuer/config', { display, builtInAs: { walletInitiated: true } });
      const wallet = new RawWallet(service, TENANT);
      const { body } = await wallet.par({ scope: 'card' });
      const releaseBytes = await reserveAll(service, TENANT);
      const before = await countSessions();
      const rejection = await wallet.decide(body.request_uri);
      expect([rejection.status, rejection.headers.get('location')], rejection.text).to.deep.equal([503, null]);
      expect(await countSessions()).to.equal(before);
      releaseBytes();
      expect(await wallet.authorize(body.request_uri)).to.be.a('string');
    });

    it('lets a wallet finish an offer', async () => {
      const { uri } = (await offer({ flow: 'authorization_code' })).body;
      const wallet = new RawWallet(service, TENANT);
      const requestUri = await wallet.push(uri, 'card');
      await reserveAll(service, TENANT);
      const { body } = await wallet.redeemCode(await wallet.authorize(requestUri));
      expect((await wallet.request(body.access_token, 'card')).status).to.equal(200);
    });

    it('rejects the session of a token of an external authorization server with 503', async () => {
      const provider = await startUpstreamProvider({ accounts: { alice: {} }, resourceScopes: ['card'], algorithm: 'ES256' });
      try {
        const display = [{ name: 'Acme', locale: 'en' }];
        await createResource(service, token, '/issuer/config', { display, authServers: [provider.issuer] });
        const wallet = new RawWallet(service, TENANT);
        const key = parsePublicJwk(wallet.dpopKey.jwk);
        if (key === undefined) throw new Error('no key');
        const keyThumbprint = thumbprint(key);
        const access = await provider.accessTokenFor(wallet.issuer, { scope: 'card', keyThumbprint });
        const releaseBytes = await reserveAll(service, TENANT);
        expectUnavailable(await wallet.request(access, 'card'));
        expect(await countSessions()).to.equal(0);
        releaseBytes();
        expect((await wallet.request(access, 'card')).status).to.equal(200);
      } finally {
        await provider.close();
      }
    });

    it('rejects a deferred credential request with 503 and accepts it later', async () => {
      const backend = await Backend.start();
      try {
        backend.on('/claims', { json: { deferred: true } });
        const { claims: _claims, ...rest } = { ...credentialBody('late', `${TENANT}-keys`) };
        const deferringConfiguration = { ...rest, claimsWebhook: { url: `${backend.url}/claims` } };
        await createResource(service, token, '/issuer/credentials', deferringConfiguration);
        const { credentialClaims: _inline, ...body } = offerBody();
        const { uri } = await createResource(service, token, '/issuer/offer', { ...body, credentialConfigurationIds: ['late'] });
        const wallet = new RawWallet(service, TENANT);
        const access = await wallet.accessToken(uri);
        const releaseBytes = await reserveAll(service, TENANT);
        const collect = async () => {
          const jwt = [keyProof(newKey(), wallet.issuer, await wallet.nonce())];
          const json = { credential_configuration_id: 'late', proofs: { jwt } };
          return wallet.request(access, 'late', { body: json });
        };
        expectUnavailable(await collect());
        releaseBytes();
        expect((await collect()).status).to.equal(202);
      } finally {
        await backend.close();
      }
    });

    it('rejects completing a deferred transaction with credentials that exceed it, and accepts it later', async () => {
      const backend = await Backend.start();
      try {
        backend.on('/claims', { json: { deferred: true } });
        const { claims: _claims, ...rest } = { ...credentialBody('late', `${TENANT}-keys`) };
        const claimsWebhook = { url: `${backend.url}/claims` };
        await createResource(service, token, '/issuer/credentials', { ...rest, claimsWebhook });
        const { credentialClaims: _inline, ...body } = offerBody();
        const createTransaction = async () => {
          const offerOfDeferring = { ...body, credentialConfigurationIds: ['late'] };
          const { uri } = await createResource(service, token, '/issuer/offer', offerOfDeferring);
          const wallet = new RawWallet(service, TENANT);
          const { body: deferredResponse } = await wallet.request(await wallet.accessToken(uri), 'late');
          return `/issuer/deferred/${deferredResponse.transaction_id}`;
        };
        const completions = [{ credential: 'x'.repeat(10_000) }, { claims: { given_name: 'Ada', family_name: 'Lovelace' } }];
        for (const completion of completions) {
          const transaction = await createTransaction();
          const releaseBytes = await reserveAll(service, TENANT);
          expectRejected(await call('POST', `${transaction}/complete`, completion));
          expect((await call('GET', transaction)).body.status).to.equal('pending');
          const rows = await rawSql(database.url, (run) =>
            run('select credentials from deferred_transactions where credentials is not null'),
          );
          const before = completions.indexOf(completion);
          expect(rows).to.have.length(before);
          const batches = await rawSql(database.url, (run) => run('select * from issued_batches'));
          expect(batches).to.have.length(before);
          releaseBytes();
          const completionResponse = await call('POST', `${transaction}/complete`, completion);
          expect(completionResponse.status, completionResponse.text).to.equal(200);
          expect((await call('GET', transaction)).body.status).to.equal('ready');
        }
      } finally {
        await backend.close();
      }
    });

    if (kind.name === 'postgres')
      it('is shared by two processes after they have written their counts', async () => {
        const second = await start();
        try {
          const offers = await fillQuota();
          await sessionBytesOf(service).flush();
          expectRejected(await offer({}, token, second));
          const cancel = `/session/${offers[0]?.session}/cancel`;
          expect((await call('POST', cancel, undefined, token, second)).status).to.equal(200);
          await sessionBytesOf(second).flush();
          sinon.useFakeTimers({ now: Date.now() + 1_500, toFake: ['Date'] });
          expect((await offer()).status).to.equal(201);
          expectRejected(await offer());
        } finally {
          await second.close();
        }
      });
  });
}

describe('quota of open session bytes', () => {
  it('lets wallets begin interactive authorization, which leaves the quota to the tenant', async () => {
    const issuer = await Issuer.open({ QUOTA_SESSION_BYTES: String(QUOTA) });
    try {
      const display = [{ name: 'Card', locale: 'en' }];
      await issuer.create('/issuer/config', { display, builtInAs: { walletInitiated: true } });
      for (const draft of DRAFT_VARIANTS) {
        const wallet = issuer.wallet(draft);
        const { uri } = await issuer.offer('visitor');
        const releaseBytes = await reserveAll(issuer.service, issuer.id);
        wallet.expectWebStep(await wallet.begin(uri, { scope: 'visitor' }));
        wallet.expectWebStep(await wallet.begin(undefined, { scope: 'visitor' }));
        releaseBytes();
      }
    } finally {
      await issuer.close();
    }
  });
});
