import { expect } from 'chai';
import sinon from 'sinon';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import { Store } from '../../application/ports/store.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { readPublicJwk, thumbprint } from '../../domain/shared/jwk.ts';
import { Backend } from '../support/backend.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { Issuer } from '../support/interactive-issuer.ts';
import { WIRES } from '../support/interactive-wallet.ts';
import { created, credentialBody, presentationBody } from '../support/populated.ts';
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

for (const kind of databases()) {
  describe(`The quota of open session bytes on ${kind.name}`, () => {
    let database: TestDatabase;
    let service: TestService;
    let token: string;

    const start = () => startTestService({ DATABASE_URL: database.url, QUOTA_SESSION_BYTES: String(QUOTA) });
    const setUp = async (tenant: string) => {
      const own = (await createTenant(service, tenant)).token;
      const keys = `${tenant}-keys`;
      await created(service, own, '/key-chain', { id: keys, usages: ['signing', 'access'] });
      await created(service, own, '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }] });
      await created(service, own, '/issuer/credentials', credentialBody('card', keys));
      const { webhook: _webhook, ...verifier } = presentationBody('check', keys);
      await created(service, own, '/verifier/config', verifier);
      return own;
    };
    beforeEach(async function () {
      const opened = await kind.open();
      if (opened === undefined) return this.skip();
      database = opened;
      service = await start();
      token = await setUp(TENANT);
    });
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
      credentialClaims: {
        card: { type: 'inline', claims: { given_name: 'Ada', family_name: 'x'.repeat(length) } },
      },
    });
    const offer = (more: object = {}, as = token, on = service) =>
      call('POST', '/issuer/offer', { ...offerBody(), ...more }, as, on);
    const request = (more: object = {}) =>
      call('POST', '/verifier/offer', { response_type: 'uri', requestId: 'check', ...more });
    const stored = async () =>
      Number((await rawSql(database.url, (run) => run('select count(*) as n from sessions')))[0]?.['n']);
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

    it('refuses the offer that exceeds it with 409 and stores nothing of it', async () => {
      const offers = await fill();
      expect(offers).to.have.length.within(5, 7);
      const before = await stored();
      expectRefused(await offer());
      expectRefused(await offer({ flow: 'authorization_code' }));
      expect(await stored()).to.equal(before);
    });

    it('refuses presentation requests for links and for the Digital Credentials API', async () => {
      const free = await occupy(service, TENANT);
      const before = await stored();
      expectRefused(await request());
      expectRefused(await request({ response_type: 'dc-api' }));
      expect(await stored()).to.equal(before);
      free();
      expect((await request()).status).to.equal(201);
    });

    it('counts the answer that is kept under an Idempotency-Key, and repeats it when the quota is reached', async () => {
      const keyed = (key: string) =>
        service.call('POST', '/issuer/offer', {
          ...{ token, json: offerBody(10) },
          headers: { 'Idempotency-Key': key },
        });
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

    it('holds for each tenant alone', async () => {
      const other = await setUp('other');
      await fill();
      expect((await offer({}, other)).status).to.equal(201);
    });

    it('counts a session no more once it was cancelled, removed or completed', async () => {
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

    it('counts a session no more once it has expired', async () => {
      await fill({ expiresIn: 300 });
      const clock = sinon.useFakeTimers({ now: Date.now() + 299_000, toFake: ['Date'] });
      expectRefused(await offer());
      clock.tick(62_000);
      expect((await offer()).status).to.equal(201);
    });

    it('is not exceeded by offers that race', async () => {
      const answers = await Promise.all(Array.from({ length: 24 }, () => offer()));
      const made = answers.filter(({ status }) => status === 201);
      expect(made).to.have.length.within(5, 7);
      for (const answer of answers) if (answer.status !== 201) expectRefused(answer);
      expect(sessionBytesOf(service).usedBy(TENANT as TenantId)).to.be.at.most(QUOTA);
    });

    it('goes on counting after a restart', async () => {
      const [first] = await fill();
      await service.close();
      service = await start();
      expectRefused(await offer());
      expect((await call('POST', `/session/${first?.session}/cancel`)).status).to.equal(200);
      expect((await offer()).status).to.equal(201);
      expectRefused(await offer());
    });

    it('takes nothing off for a session of a release without the quota', async () => {
      const { session } = (await offer()).body;
      await service.close();
      const since = kind.name === 'sqlite' ? `strftime('%s', 'now') * 1000 + 2000` : `now() + interval '2 s'`;
      await rawSql(database.url, async (run) => {
        await run('delete from open_session_bytes');
        await run(
          `update schema_migrations set executed_at = ${since} where name like '%35_open_session_bytes'`,
        );
      });
      service = await start();
      await call('POST', '/issuer/offer', offerBody(1_000));
      const before = sessionBytesOf(service).usedBy(TENANT as TenantId);
      expect((await call('POST', `/session/${session}/cancel`)).status).to.equal(200);
      await sessionBytesOf(service).flush();
      expect(sessionBytesOf(service).usedBy(TENANT as TenantId)).to.equal(before);
      expect(before).to.be.greaterThan(1_000);
    });

    it('begins at nothing for a tenant that takes the id of a removed one', async () => {
      await fill();
      await sessionBytesOf(service).flush();
      const root = await service.rootToken();
      await service.call('DELETE', `/tenant/${TENANT}`, { token: root });
      const { maintenance } = service.service.container.get(Store);
      const later = new Date(Date.now() + 61_000);
      while ((await maintenance.removeRemains(later, 1_000)) > 0);
      const rows = await rawSql(database.url, (run) => run('select * from open_session_bytes'));
      expect(rows).to.deep.equal([]);
      token = await setUp(TENANT);
      sinon.useFakeTimers({ now: Date.now() + 2_000, toFake: ['Date'] });
      expect((await offer()).status).to.equal(201);
    });

    it('forgets rows whose time has passed, and no others', async () => {
      await offer({ expiresIn: 60 });
      await offer({ expiresIn: 3_600 });
      await sessionBytesOf(service).flush();
      const rows = async () =>
        (await rawSql(database.url, (run) => run('select expires_at from open_session_bytes'))).length;
      expect(await rows()).to.equal(2);
      const { maintenance } = service.service.container.get(Store);
      await maintenance.forgetExpired(new Date(Date.now() + 180_000), 100);
      expect(await rows()).to.equal(1);
    });

    it('takes pushed requests of wallets, which leave the room to the tenant', async () => {
      const upstream = { issuer: 'http://127.0.0.1:9', clientId: 'x', clientSecret: 'y' };
      const display = [{ name: 'Acme', locale: 'en' }];
      const builtInAs = { walletInitiated: true };
      await created(service, token, '/issuer/config', { display, builtInAs, chainedAs: { upstream } });
      await occupy(service, TENANT);
      const form = { ...AUTHORIZATION_REQUEST, scope: 'card' };
      for (const path of ['/acme/par', '/acme/chained-as/par'])
        expect((await service.call('POST', path, { form })).status).to.equal(201);
    });

    it('refuses the session of a wallet that began by itself on its page, and opens it later', async () => {
      const display = [{ name: 'Acme', locale: 'en' }];
      await created(service, token, '/issuer/config', { display, builtInAs: { walletInitiated: true } });
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

    it('lets a wallet finish what its offer began', async () => {
      const { uri } = (await offer({ flow: 'authorization_code' })).body;
      const wallet = new RawWallet(service, TENANT);
      const requestUri = await wallet.push(uri, 'card');
      await occupy(service, TENANT);
      const { body } = await wallet.redeemCode(await wallet.authorize(requestUri));
      expect((await wallet.request(body.access_token, 'card')).status).to.equal(200);
    });

    it('refuses the session of a token of an external authorization server with 503', async () => {
      const provider = await startUpstreamProvider({
        accounts: { alice: {} },
        resourceScopes: ['card'],
        algorithm: 'ES256',
      });
      try {
        const display = [{ name: 'Acme', locale: 'en' }];
        await created(service, token, '/issuer/config', { display, authServers: [provider.issuer] });
        const wallet = new RawWallet(service, TENANT);
        const key = readPublicJwk(wallet.dpopKey.jwk);
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

    it('answers a credential request that a backend puts off with 503, and takes it later', async () => {
      const backend = await Backend.start();
      try {
        backend.on('/claims', { json: { deferred: true } });
        const { claims: _claims, ...rest } = { ...credentialBody('late', `${TENANT}-keys`) };
        const late = { ...rest, claimsWebhook: { url: `${backend.url}/claims` } };
        await created(service, token, '/issuer/credentials', late);
        const { credentialClaims: _inline, ...body } = offerBody();
        const { uri } = await created(service, token, '/issuer/offer', {
          ...body,
          credentialConfigurationIds: ['late'],
        });
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

    if (kind.name === 'postgres')
      it('is shared by two processes once they have written what they counted', async () => {
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

describe('The quota of open session bytes', () => {
  it('lets wallets begin interactive authorization, which leaves the room to the tenant', async () => {
    const issuer = await Issuer.open({ QUOTA_SESSION_BYTES: String(QUOTA) });
    try {
      const display = [{ name: 'Card', locale: 'en' }];
      await issuer.write('/issuer/config', { display, builtInAs: { walletInitiated: true } });
      for (const wire of WIRES) {
        const wallet = issuer.wallet(wire);
        const { uri } = await issuer.offer('visitor');
        const free = await occupy(issuer.service, issuer.id);
        wallet.asksWeb(await wallet.begin(uri, { scope: 'visitor' }));
        wallet.asksWeb(await wallet.begin(undefined, { scope: 'visitor' }));
        free();
      }
    } finally {
      await issuer.close();
    }
  });
});
