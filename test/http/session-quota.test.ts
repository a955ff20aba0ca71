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

/** Reserves all bytes that the tenant has left. */
async function occupy(service: TestService, tenant: string): Promise<() => void> {
  const sessionBytes = sessionBytesOf(service);
  const tenantId = tenant as TenantId;
  await sessionBytes.reserve(tenantId, 0, new Date());
  const bytes = QUOTA - sessionBytes.usedBy(tenantId);
  await sessionBytes.reserve(tenantId, bytes, new Date());
  return () => sessionBytes.release(tenantId, bytes);
}

const expectRefusedWallet = ({ status, headers, body, text }: Answer) => {
  expect([status, body?.error], text).to.deep.equal([503, 'temporarily_unavailable']);
  expect(headers.get('retry-after')).to.equal('60');
  expect(text).to.not.include('QUOTA');
};

for (const kind of httpDatabases()) {
  describe(`quota of open session bytes on ${kind.name}`, () => {
    let database: TestDatabase;
    let service: TestService;
    let token: string;

    const start = (more: Readonly<Record<string, string>> = {}) =>
      startTestService({ DATABASE_URL: database.url, QUOTA_SESSION_BYTES: String(QUOTA), ...more });
    /** Wallets find the new process at the same address. */
    const restart = async () => {
      await service.close();
      service = await start({ PORT: new URL(service.address).port });
    };
    const setUp = async (tenant: string) => {
      const own = (await createTenant(service, tenant)).token;
      const keys = `${tenant}-keys`;
      await createResource(service, own, '/key-chain', { id: keys, usages: ['signing', 'access'] });
      await createResource(service, own, '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }] });
      await createResource(service, own, '/issuer/credentials', credentialBody('card', keys));
      const { webhook: _webhook, ...verifier } = presentationBody('check', keys);
      await createResource(service, own, '/verifier/config', verifier);
      return own;
    };
    /** The tenant as it is before each test. */
    let prepared: { readonly database: TestDatabase; readonly token: string } | undefined;
    before(async function () {
      const opened = await kind.open();
      if (opened === undefined) return this.skip();
      database = opened;
      service = await start();
      prepared = { database, token: await setUp(TENANT) };
      await service.close();
    });
    beforeEach(async function () {
      if (prepared === undefined) return this.skip();
      token = prepared.token;
      database = await kind.copy(prepared.database);
      service = await start();
    });
    after(() => prepared?.database.drop());
    afterEach(async () => {
      sinon.restore();
      await service?.close();
      await database?.drop();
    });

    const call = (method: string, path: string, json?: unknown, as = token, on = service) =>
      on.call(method, path, { token: as, ...(json !== undefined && { json }) });
    /** An offer whose session takes about 140 kB. */
    const offerBody = (length = 100_000) => ({
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: ['card'],
      credentialClaims: { card: { type: 'inline', claims: { given_name: 'Ada', family_name: 'x'.repeat(length) } } },
    });
    const offer = (more: object = {}, as = token, on = service) => call('POST', '/issuer/offer', { ...offerBody(), ...more }, as, on);
    const request = (more: object = {}) => call('POST', '/verifier/offer', { response_type: 'uri', requestId: 'check', ...more });
    const stored = async () => Number((await rawSql(database.url, (run) => run('select count(*) as n from sessions')))[0]?.['n']);
    const expectRefused = ({ status, body, headers, text }: Answer) => {
      expect([status, body.code], text).to.deep.equal([409, CODE]);
      expect(body.detail).to.match(new RegExp(`${QUOTA} bytes .*QUOTA_SESSION_BYTES`));
      expect(headers.get('retry-after')).to.equal('60');
    };
    /** @returns what the offers until the first refusal were answered. */
    const fill = async (more: object = {}) => {
      const offers: { readonly uri: string; readonly session: string }[] = [];
      for (;;) {
        const answer = await offer(more);
        if (answer.status === 409) {
          expectRefused(answer);
          return offers;
        }
        expect(answer.status, answer.text).to.equal(201);
        offers.push(answer.body);
      }
    };

    it('rejects the offer that exceeds it with 409 and stores nothing of it', async () => {
      const offers = await fill();
      expect(offers).to.have.length.within(5, 7);
      const before = await stored();
      expectRefused(await offer());
      expectRefused(await offer({ flow: 'authorization_code' }));
      expect(await stored()).to.equal(before);
    });

    it('rejects presentation requests for links and for the Digital Credentials API', async () => {
      const free = await occupy(service, TENANT);
      const before = await stored();
      expectRefused(await request());
      expectRefused(await request({ response_type: 'dc-api' }));
      expect(await stored()).to.equal(before);
      free();
      expect((await request()).status).to.equal(201);
    });

    it('counts the answer stored under an Idempotency-Key, and repeats it when the quota is reached', async () => {
      const keyed = (key: string) =>
        service.call('POST', '/issuer/offer', { ...{ token, json: offerBody(10) }, headers: { 'Idempotency-Key': key } });
      const sessionBytes = sessionBytesOf(service);
      const before = sessionBytes.usedBy(TENANT as TenantId);
      await offer(offerBody(10));
      const plain = sessionBytes.usedBy(TENANT as TenantId) - before;
      const first = await keyed('one');
      expect(sessionBytes.usedBy(TENANT as TenantId) - before).to.be.greaterThan(2 * plain);
      const free = await occupy(service, TENANT);
      expect((await keyed('one')).body).to.deep.equal(first.body);
      expectRefused(await keyed('two'));
      free();
      expect((await keyed('two')).status).to.equal(201);
    });

    it('applies to each tenant separately', async () => {
      const other = await setUp('other');
      await fill();
      expect((await offer({}, other)).status).to.equal(201);
    });

    it('does not count a session after it was cancelled, removed or completed', async () => {
      const [cancelled, removed, completed] = await fill();
      const ends = [
        () => call('POST', `/session/${cancelled?.session}/cancel`),
        () => call('DELETE', `/session/${removed?.session}`),
        async () => {
          const wallet = new RawWallet(service, TENANT);
          const answer = await wallet.request(await wallet.accessToken(completed?.uri ?? ''), 'card');
          expect(answer.status, answer.text).to.equal(200);
        },
      ];
      for (const end of ends) {
        await end();
        expect((await offer()).status).to.equal(201);
        expectRefused(await offer());
      }
    });

    /** Bytes of the requests of all sessions, as they are stored. */
    const storedRequests = async () =>
      Number((await rawSql(database.url, (run) => run('select coalesce(sum(octet_length(request)), 0) as n from sessions')))[0]?.['n']);
    const largeData = { transaction_data: [{ type: 'urn:vidimus:note:1', credential_ids: ['pid'], note: 'x'.repeat(20_000) }] };
    const INVALID = { pid: ['e30.e30.e30~'] };

    it('erases the large requests of offers and presentation requests that are cancelled', async () => {
      for (let round = 0; round < 12; round++) {
        const { status, body, text } = round % 2 === 0 ? await offer() : await request(largeData);
        expect(status, text).to.equal(201);
        const cancelled = await call('POST', `/session/${body.session}/cancel`);
        expect(cancelled.status, cancelled.text).to.equal(200);
      }
      expect(await storedRequests()).to.equal(0);
      expect(await stored()).to.equal(12);
    });

    it('erases the large requests of sessions that expire', async () => {
      await offer({ expiresIn: 60 });
      await request({ ...largeData, expiresIn: 60 });
      const open = (await offer()).body.session;
      const before = await storedRequests();
      const { maintenance } = service.service.container.get(Store);
      await maintenance.expireSessions(new Date(Date.now() + 61_000), 100);
      expect(await storedRequests()).to.be.within(before / 4, before / 2);
      const kept = await call('GET', `/session/${open}`);
      expect(kept.body.credentialPayload.credentialClaims.card.claims.given_name).to.equal('Ada');
    });

    it('erases the large requests of sessions that fail: by an error or an invalid response of a wallet', async () => {
      const refused = await requestPresentation(service, token, 'check', largeData);
      const { state } = refused.payload;
      expect((await postResponse(service, refused, { state, error: 'access_denied' })).status).to.equal(200);
      const invalid = await requestPresentation(service, token, 'check', largeData);
      expect((await postResponse(service, invalid, await responseForm(invalid, INVALID))).status).to.equal(400);
      for (const { session } of [refused, invalid]) expect((await call('GET', `/session/${session}`)).body.status).to.equal('failed');
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
        const held = await issue(service, { id: TENANT, token }, 'card');
        const asked = await requestPresentation(service, token, 'check', { ...largeData, webhook: { url: `${backend.url}/result` } });
        expect((await present(service, asked, held)).status).to.equal(400);
        const { session } = asked;
        const { body } = await call('GET', `/session/${session}`);
        expect([body.status, body.deliveries[0].result]).to.deep.equal(['failed', 'failed']);
        const before = await storedRequests();
        backend.on('/result', { json: {} });
        const retried = await call('POST', `/session/${session}/deliveries/${body.deliveries[0].id}/retry`);
        expect([retried.status, retried.body.result], retried.text).to.deep.equal([200, 'delivered']);
        expect(await storedRequests()).to.be.lessThan(before - 100_000);
      } finally {
        await backend.close();
      }
    });

    it('keeps small requests of ended sessions, and the request of an offer that a wallet completed', async () => {
      const small = (await offer(offerBody(10))).body.session;
      await call('POST', `/session/${small}/cancel`);
      const payload = (await call('GET', `/session/${small}`)).body.credentialPayload;
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
      const [kept] = await rawSql(database.url, (run) => run('select octet_length(said) as n from kept_answers'));
      expect(Number(kept?.['n'])).to.be.greaterThan(30_000);
      expect(sessionBytesOf(service).usedBy(TENANT as TenantId) - before).to.be.greaterThan(Number(kept?.['n']) - 16_384);
    });

    it('does not count a session after it has expired', async () => {
      await fill({ expiresIn: 300 });
      const clock = sinon.useFakeTimers({ now: Date.now() + 299_000, toFake: ['Date'] });
      expectRefused(await offer());
      clock.tick(62_000);
      expect((await offer()).status).to.equal(201);
    });

    it('is not exceeded by concurrent offers', async () => {
      const answers = await Promise.all(Array.from({ length: 24 }, () => offer()));
      const made = answers.filter(({ status }) => status === 201);
      expect(made).to.have.length.within(5, 7);
      for (const answer of answers) if (answer.status !== 201) expectRefused(answer);
      expect(sessionBytesOf(service).usedBy(TENANT as TenantId)).to.be.at.most(QUOTA);
    });

    it('still counts after a restart', async () => {
      const [first] = await fill();
      await restart();
      expectRefused(await offer());
      expect((await call('POST', `/session/${first?.session}/cancel`)).status).to.equal(200);
      expect((await offer()).status).to.equal(201);
      expectRefused(await offer());
    });

    /** Lets the quota begin after what is stored, as in a migration from a release without it. */
    const beginCounting = async () => {
      await service.close();
      const since = kind.name === 'sqlite' ? `strftime('%s', 'now') * 1000 + 2000` : `now() + interval '2 s'`;
      await rawSql(database.url, async (run) => {
        await run('delete from open_session_bytes');
        await run(`update schema_migrations set executed_at = ${since} where name like '%35_open_session_bytes'`);
      });
      service = await start({ PORT: new URL(service.address).port });
    };
    /** The sum and the smallest of the rows in the table. */
    const storedBytes = async () => {
      const [row] = await rawSql(database.url, (run) => run('select sum(bytes) as total, min(bytes) as smallest from open_session_bytes'));
      return [Number(row?.['total'] ?? 0), Number(row?.['smallest'] ?? 0)] as const;
    };
    /** Bytes that count as open: this process agrees with the table. */
    const countedBytes = async () => {
      const sessionBytes = sessionBytesOf(service);
      await sessionBytes.reserve(TENANT as TenantId, 0, new Date());
      await sessionBytes.flush();
      const [row] = await rawSql(database.url, (run) => run('select coalesce(sum(bytes), 0) as n from open_session_bytes where bytes > 0'));
      expect(sessionBytes.usedBy(TENANT as TenantId), 'in memory').to.equal(Number(row?.['n']));
      return Number(row?.['n']);
    };

    it('subtracts the bytes of large sessions that the process cancels or removes just after its start', async () => {
      const sessions = [(await offer()).body.session, (await request(largeData)).body.session];
      sessions.push((await offer()).body.session, (await request(largeData)).body.session);
      expect(await countedBytes()).to.be.greaterThan(300_000);
      await restart();
      for (const session of sessions.slice(0, 2)) expect((await call('POST', `/session/${session}/cancel`)).status).to.equal(200);
      for (const session of sessions.slice(2)) expect((await call('DELETE', `/session/${session}`)).status).to.equal(200);
      expect(await countedBytes()).to.equal(0);
    });

    it('keeps the bytes of other sessions when one ends whose bytes were lost with the process', async () => {
      const lost = (await offer({ expiresIn: 60 })).body.session;
      const lostBytes = await countedBytes();
      await offer({ expiresIn: 3_600 });
      const bytes = await countedBytes();
      await rawSql(database.url, (run) =>
        run('delete from open_session_bytes where expires_at = (select min(expires_at) from open_session_bytes)'),
      );
      await restart();
      expect(await countedBytes()).to.equal(bytes - lostBytes);
      expect((await call('POST', `/session/${lost}/cancel`)).status).to.equal(200);
      expect(await countedBytes()).to.equal(bytes - lostBytes);
    });

    describe('with deferred credentials', () => {
      let backend: Backend;
      beforeEach(async () => {
        backend = await Backend.start();
        backend.on('/claims', { json: { deferred: true } });
        const { claims: _claims, ...late } = { ...credentialBody('late', `${TENANT}-keys`) };
        const claimsWebhook = { url: `${backend.url}/claims` };
        await createResource(service, token, '/issuer/credentials', { ...late, claimsWebhook });
      });
      afterEach(() => backend?.close());

      const openTransaction = async () => {
        const { credentialClaims: _inline, ...body } = offerBody();
        const late = { ...body, credentialConfigurationIds: ['late'] };
        const { uri, session } = await createResource(service, token, '/issuer/offer', late);
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
      /** Its credential takes about 400 kB. */
      const complete = ({ id }: { readonly id: string }) =>
        call('POST', `/issuer/deferred/${id}/complete`, { credential: 'x'.repeat(300_000) });
      for (const [begin, circumstances] of [
        [async () => {}, 'in the process that created it'],
        [restart, 'in a process that has just started'],
      ] as const)
        it(`does not count a credential after its session was removed, ${circumstances}`, async () => {
          const before = await countedBytes();
          const transaction = await openTransaction();
          expect((await complete(transaction)).status).to.equal(200);
          await begin();
          expect((await call('DELETE', `/session/${transaction.session}`)).status).to.equal(200);
          expect(await countedBytes()).to.be.within(before, before + 5_000);
        });

      for (const [begin, circumstances] of [
        [restart, 'in a process that has just started'],
        [beginCounting, 'of transactions of a release without the quota'],
      ] as const) {
        it(`rejects credentials that exceed it, ${circumstances}`, async () => {
          const transactions = [];
          for (let index = 0; index < 4; index++) transactions.push(await openTransaction());
          await begin();
          const atOnce = await Promise.all(transactions.map(complete));
          expect(atOnce.filter(({ status }) => status === 200)).to.have.length(2);
          const pending = transactions.filter((_, index) => atOnce[index]?.status !== 200);
          for (const transaction of pending) expectRefused(await complete(transaction));
          expect(await countedBytes()).to.be.within(800_000, QUOTA);
        });

        it(`subtracts the counted bytes when the wallet retrieves a credential, ${circumstances}`, async () => {
          const transaction = await openTransaction();
          await begin();
          const [before] = await storedBytes();
          expect((await complete(transaction)).status).to.equal(200);
          expect(await countedBytes()).to.be.within(Number(before) + 400_000, Number(before) + 401_000);
          const retrieved = await transaction.retrieve();
          expect(retrieved.status, retrieved.text).to.equal(200);
          expect(await countedBytes()).to.equal(0);
          expect(await storedBytes(), 'no row has less than nothing').to.deep.equal([0, 0]);
        });
      }
    });

    it('subtracts nothing for a session of a release without the quota', async () => {
      const { session } = (await offer()).body;
      await beginCounting();
      await call('POST', '/issuer/offer', offerBody(1_000));
      const before = sessionBytesOf(service).usedBy(TENANT as TenantId);
      expect((await call('POST', `/session/${session}/cancel`)).status).to.equal(200);
      await sessionBytesOf(service).flush();
      expect(sessionBytesOf(service).usedBy(TENANT as TenantId)).to.equal(before);
      expect(before).to.be.greaterThan(1_000);
    });

    it('begins at zero for a tenant that takes the id of a removed one', async () => {
      await fill();
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
      const [first] = await fill();
      await sessionBytesOf(service).flush();
      await call('POST', `/session/${first?.session}/cancel`);
      await offer();
      const store = service.service.container.get(Store);
      if (!(store instanceof OrmStore)) throw new Error('another store');
      const now = new Date();
      for (const step of store.fencing.steps) {
        let { nextCursor: place } = await step.run(now, 1_000);
        while (place !== undefined) ({ nextCursor: place } = await step.run(now, 1_000, place));
      }
      await store.maintenance.expireSessions(now, 1_000);
      store.rewinds.forget();
      await sessionBytesOf(service).flush();
      const rows = await rawSql(database.url, (run) => run('select * from open_session_bytes'));
      expect(rows).to.deep.equal([]);
      expect(await fill()).to.have.length.within(5, 7);
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
      await occupy(service, TENANT);
      const form = { ...AUTHORIZATION_REQUEST, scope: 'card' };
      for (const path of ['/acme/par', '/acme/chained-as/par']) expect((await service.call('POST', path, { form })).status).to.equal(201);
    });

    it('rejects the session of a wallet that began by itself on its page, and creates it later', async () => {
      const display = [{ name: 'Acme', locale: 'en' }];
      await createResource(service, token, '/issuer/config', { display, builtInAs: { walletInitiated: true } });
      const wallet = new RawWallet(service, TENANT);
      const { body } = await wallet.par({ scope: 'card' });
      const free = await occupy(service, TENANT);
      const before = await stored();
      const refused = await wallet.decide(body.request_uri);
      expect([refused.status, refused.headers.get('location')], refused.text).to.deep.equal([503, null]);
      expect(await stored()).to.equal(before);
      free();
      expect(await wallet.authorize(body.request_uri)).to.be.a('string');
    });

    it('lets a wallet finish an offer', async () => {
      const { uri } = (await offer({ flow: 'authorization_code' })).body;
      const wallet = new RawWallet(service, TENANT);
      const requestUri = await wallet.push(uri, 'card');
      await occupy(service, TENANT);
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
        const free = await occupy(service, TENANT);
        expectRefusedWallet(await wallet.request(access, 'card'));
        expect(await stored()).to.equal(0);
        free();
        expect((await wallet.request(access, 'card')).status).to.equal(200);
      } finally {
        await provider.close();
      }
    });

    it('answers a deferred credential request with 503 and accepts it later', async () => {
      const backend = await Backend.start();
      try {
        backend.on('/claims', { json: { deferred: true } });
        const { claims: _claims, ...rest } = { ...credentialBody('late', `${TENANT}-keys`) };
        const late = { ...rest, claimsWebhook: { url: `${backend.url}/claims` } };
        await createResource(service, token, '/issuer/credentials', late);
        const { credentialClaims: _inline, ...body } = offerBody();
        const { uri } = await createResource(service, token, '/issuer/offer', { ...body, credentialConfigurationIds: ['late'] });
        const wallet = new RawWallet(service, TENANT);
        const access = await wallet.accessToken(uri);
        const free = await occupy(service, TENANT);
        const collect = async () => {
          const jwt = [keyProof(newKey(), wallet.issuer, await wallet.nonce())];
          const json = { credential_configuration_id: 'late', proofs: { jwt } };
          return wallet.request(access, 'late', { body: json });
        };
        expectRefusedWallet(await collect());
        free();
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
        const put = async () => {
          const offered = { ...body, credentialConfigurationIds: ['late'] };
          const { uri } = await createResource(service, token, '/issuer/offer', offered);
          const wallet = new RawWallet(service, TENANT);
          const { body: promised } = await wallet.request(await wallet.accessToken(uri), 'late');
          return `/issuer/deferred/${promised.transaction_id}`;
        };
        const completions = [{ credential: 'x'.repeat(10_000) }, { claims: { given_name: 'Ada', family_name: 'Lovelace' } }];
        for (const completion of completions) {
          const transaction = await put();
          const free = await occupy(service, TENANT);
          expectRefused(await call('POST', `${transaction}/complete`, completion));
          expect((await call('GET', transaction)).body.status).to.equal('pending');
          const rows = await rawSql(database.url, (run) =>
            run('select credentials from deferred_transactions where credentials is not null'),
          );
          const before = completions.indexOf(completion);
          expect(rows).to.have.length(before);
          const batches = await rawSql(database.url, (run) => run('select * from issued_batches'));
          expect(batches).to.have.length(before);
          free();
          const completed = await call('POST', `${transaction}/complete`, completion);
          expect(completed.status, completed.text).to.equal(200);
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
          const offers = await fill();
          await sessionBytesOf(service).flush();
          expectRefused(await offer({}, token, second));
          const cancel = `/session/${offers[0]?.session}/cancel`;
          expect((await call('POST', cancel, undefined, token, second)).status).to.equal(200);
          await sessionBytesOf(second).flush();
          sinon.useFakeTimers({ now: Date.now() + 1_500, toFake: ['Date'] });
          expect((await offer()).status).to.equal(201);
          expectRefused(await offer());
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
      for (const wire of DRAFT_VARIANTS) {
        const wallet = issuer.wallet(wire);
        const { uri } = await issuer.offer('visitor');
        const free = await occupy(issuer.service, issuer.id);
        wallet.expectWebStep(await wallet.begin(uri, { scope: 'visitor' }));
        wallet.expectWebStep(await wallet.begin(undefined, { scope: 'visitor' }));
        free();
      }
    } finally {
      await issuer.close();
    }
  });
});
