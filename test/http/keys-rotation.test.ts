import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { RenewKeyChains } from '../../application/keys/renew-key-chains.ts';
import { Kms } from '../../application/ports/kms.ts';
import { Log, type LogFields } from '../../application/ports/log.ts';
import { Store } from '../../application/ports/store.ts';
import { MAX_PREVIOUS_LEAVES } from '../../domain/keys/rotation.ts';
import { parseStatusListCwt } from '../../domain/status-lists/token-cwt.ts';
import { type DatabaseKind, databases, type TestDatabase } from '../support/databases.ts';
import { decode, QUERY, Shop, verifyWithLeaf } from '../support/present.ts';
import { newKey, RawWallet } from '../support/raw-wallet.ts';
import { certify, certifyKey, pem } from '../support/test-certificates.ts';
import { type Answer, startTestService } from '../support/test-service.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const kidOf = ({ kid }: { kid: string }) => kid;

describe('key rotation', () => {
  const sqlite = databases()[0] as DatabaseKind;
  let shop: Shop;
  /** The initial state of the tenants in each test. */
  let prepared: { readonly shop: Shop; readonly database: TestDatabase };
  let database: TestDatabase;

  const start = (database: TestDatabase) => startTestService({ JWT_EXPIRES_IN: '365d', DATABASE_URL: database.url });
  before(async () => {
    const openedDatabase = (await sqlite.open()) as TestDatabase;
    prepared = { database: openedDatabase, shop: await Shop.open({}, () => start(openedDatabase)) };
    await prepared.shop.close();
  });
  beforeEach(async () => {
    database = await sqlite.copy(prepared.database);
    shop = await prepared.shop.withService(await start(database));
  });
  afterEach(async () => {
    sinon.restore();
    await shop.close();
    await database.drop();
  });
  after(() => prepared.database.drop());

  const call = (method: string, path: string, json?: unknown) => shop.call(method, path, json, shop.acme.token);
  const created = async (path: string, json: unknown) => {
    const answer = await call('POST', path, json);
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const rotate = async (id = 'signing') => {
    const answer = await call('POST', `/key-chain/${id}/rotate`);
    expect(answer.status, answer.text).to.equal(200);
    return answer.body;
  };
  const chainOf = async (id = 'signing') => (await call('GET', `/key-chain/${id}`)).body;
  const jwks = async (): Promise<string[]> => (await shop.service.call('GET', '/acme/.well-known/jwks.json')).body.keys.map(kidOf);
  const advanceDays = (days: number) => sinon.useFakeTimers({ now: Date.now() + days * DAY_MS, toFake: ['Date'] });
  const renewKeyChains = () => shop.service.service.container.get(RenewKeyChains).execute(new Date(), 100);
  const leafOf = (text: string) => verifyWithLeaf(text.split('~')[0] ?? '');
  const createOffer = async () => {
    const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };
    return (await created('/issuer/offer', json)).uri as string;
  };
  const expectAccepted = async (credential: Parameters<Shop['present']>[1], requestId = 'check') => {
    const answer = await shop.present(await shop.requestPresentation(requestId), credential);
    expect(answer.status, answer.text).to.equal(200);
  };

  it('creates a new key under the same authority and shows the previous one', async () => {
    const before = await chainOf();
    const chainAfter = await rotate();
    expect(chainAfter).to.deep.equal({ ...(await chainOf()), affectedKeyChains: [], warnings: [] });
    expect(chainAfter).to.deep.include({
      rootCertificate: before.rootCertificate,
      previousKey: before.activeKey,
      previousCertificate: before.activeCertificate,
      previousKeyExpiry: before.activeCertificateExpiry,
      lastRotatedAt: chainAfter.updatedAt,
      kmsProvider: 'local',
    });
    expect(chainAfter.activeKey.kid).to.not.equal(before.activeKey.kid);
    const [leaf, root] = [chainAfter.activeCertificate, chainAfter.rootCertificate].map((text) => new X509Certificate(text));
    expect(root !== undefined && leaf?.verify(root.publicKey)).to.equal(true);
    expect(leaf?.subject).to.equal(new X509Certificate(before.activeCertificate).subject);
    expect(leaf?.subjectAltName).to.equal('DNS:localhost');
  });

  it('keeps credentials of the previous key valid and signs new ones with the new key', async () => {
    const oldCredential = await shop.issue();
    const before = await chainOf();
    const chainAfter = await rotate();
    const newCredential = await shop.issue();
    const fingerprint = (text: string) => new X509Certificate(text).fingerprint256;
    expect(leafOf(oldCredential.text).fingerprint256).to.equal(fingerprint(before.activeCertificate));
    expect(leafOf(newCredential.text).fingerprint256).to.equal(fingerprint(chainAfter.activeCertificate));
    await expectAccepted(oldCredential);
    await expectAccepted(newCredential);
    await rotate();
    await expectAccepted(oldCredential);
    await expectAccepted(newCredential);
  });

  it('keeps access tokens valid until they expire', async () => {
    const wallet = new RawWallet(shop.service, 'acme');
    const [usedToken, expiredToken] = [await wallet.accessToken(await createOffer()), await wallet.accessToken(await createOffer())];
    await rotate();
    await rotate();
    expect((await wallet.request(usedToken, 'card', { key: newKey() })).status).to.equal(200);
    const newToken = await wallet.accessToken(await createOffer());
    expect(decode(newToken).header['kid']).to.not.equal(decode(usedToken).header['kid']);
    expect((await wallet.request(newToken, 'card', { key: newKey() })).status).to.equal(200);
    advanceDays(1);
    expect((await wallet.request(expiredToken, 'card', { key: newKey() })).status).to.equal(401);
  });

  it('publishes the previous key until its certificate has expired, then deletes it', async () => {
    await call('PATCH', '/key-chain/signing', { certValidityDays: 2 });
    const second = await rotate();
    await call('PATCH', '/key-chain/signing', { certValidityDays: 365 });
    const third = await rotate();
    const [first] = third.previousKeys.slice(1);
    const shortLivedKid = second.activeKey.kid;
    expect(await jwks()).to.have.members([third.activeKey.kid, shortLivedKid, first.key.kid]);

    const clock = advanceDays(1.9);
    expect(await jwks()).to.include(shortLivedKid);
    clock.restore();
    advanceDays(2.1);
    expect(await jwks(), 'before the job runs').to.have.members([third.activeKey.kid, first.key.kid]);
    expect((await renewKeyChains()).forgotten).to.equal(1);
    expect((await chainOf()).previousKeys.map(({ key }: { key: { kid: string } }) => key.kid)).to.deep.equal([first.key.kid]);
    expect((await renewKeyChains()).forgotten).to.equal(0);
    sinon.restore();
    advanceDays(400);
    expect(await jwks()).to.not.include(first.key.kid);
  });

  it('serves open requests as they were announced, after any number of rotations', async () => {
    await created('/verifier/config', { id: 'own', dcql_query: QUERY });
    const creation = await created('/verifier/offer', { response_type: 'uri', requestId: 'own' });
    const requestParameters = new URL(creation.uri).searchParams;
    await rotate('access');
    await rotate('access');
    const fetchedRequest = await shop.service.call('GET', requestParameters.get('request_uri') ?? '');
    expect(fetchedRequest.status, fetchedRequest.text).to.equal(200);
    expect(decode(fetchedRequest.text).payload['client_id']).to.equal(requestParameters.get('client_id'));
    verifyWithLeaf(fetchedRequest.text);
    const next = await created('/verifier/offer', { response_type: 'uri', requestId: 'own' });
    expect(new URL(next.uri).searchParams.get('client_id')).to.not.equal(requestParameters.get('client_id'));
  });

  it('keeps status lists valid, which the new key signs under the same authority', async () => {
    const [keptCredential, revokedCredential] = [await shop.issue('card-status'), await shop.issue('card-status')];
    const { uri } = decode(keptCredential.text).payload['status'].status_list;
    const before = leafOf((await shop.service.call('GET', uri)).text);
    const { rootCertificate } = await rotate('status-list');
    await rotate('signing');
    await expectAccepted(keptCredential);
    const json = { sessionId: revokedCredential.session, status: 1 };
    expect((await call('POST', '/session/revoke', json)).status).to.be.oneOf([200, 201, 204]);
    advanceDays(0.1);
    const leafAfter = leafOf((await shop.service.call('GET', uri)).text);
    expect(leafAfter.fingerprint256).to.not.equal(before.fingerprint256);
    expect(leafAfter.verify(new X509Certificate(rootCertificate).publicKey)).to.equal(true);
    await expectAccepted(keptCredential);
    expect((await shop.present(await shop.requestPresentation(), revokedCredential)).status).to.equal(400);
  });

  it('keeps status lists under the authority of their credentials, in both forms', async () => {
    const { rootCertificate } = await created('/key-chain', { id: 'pid', usageType: 'signing' });
    const configure = (id: string, keyChainId: string) =>
      created('/issuer/credentials', {
        id,
        keyChainId,
        config: { format: 'dc+sd-jwt', display: [{ name: id, locale: 'en' }] },
        vct: 'urn:card:1',
        claims: { name: 'Ada' },
        statusManagement: true,
      });
    const root = new X509Certificate(rootCertificate);
    const readSigner = async (configurationId: string) => {
      const { text } = await shop.issue(configurationId);
      const { uri } = decode(text).payload['status'].status_list;
      const jwt = leafOf((await shop.service.call('GET', uri)).text);
      await rotate('pid');
      await rotate('pid-status');
      const response = await fetch(uri, { headers: { Accept: 'application/statuslist+cwt' } });
      const { chain } = parseStatusListCwt(Buffer.from(await response.arrayBuffer()));
      const cwt = new X509Certificate(Buffer.from(chain?.[0] ?? '', 'base64'));
      expect([jwt.verify(root.publicKey), cwt.verify(root.publicKey)]).to.deep.equal([true, true]);
      expect(cwt.fingerprint256).to.not.equal(jwt.fingerprint256);
      return jwt.publicKey.export({ format: 'jwk' });
    };
    await created('/key-chain', { id: 'pid-status', usageType: 'trustList', rootKeyChainId: 'pid' });
    await configure('alone', 'pid');
    const { x } = (await chainOf('pid')).activeKey;
    expect(await readSigner('alone'), 'its own key without another chain').to.include({ x });
    expect((await call('PATCH', '/key-chain/pid-status', { usages: ['statusList'] })).status).to.equal(200);
    // Valid lists stay in use; a new list is signed by the key chain for status lists.
    await created('/status-lists', { credentialConfigurationId: 'alone' });
    const { x: statusKeyX } = (await chainOf('pid-status')).activeKey;
    expect(await readSigner('alone'), 'the key chain for status lists').to.include({ x: statusKeyX });
    const rejection = await call('PATCH', '/key-chain/pid-status', { usages: ['access'] });
    expect([rejection.status, rejection.body.detail]).to.satisfy(
      ([code, detail]: [number, string]) => code === 409 && /status list/.test(detail),
    );
  });

  it('keeps trust lists valid, and the new key signs their next release', async () => {
    const entities = [{ type: 'internal', issuerKeyChainId: 'signing', info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' } }];
    const { jwt: oldJwt } = await created('/trust-list', { id: 'issuers', entities });
    const list = `${shop.service.address}/acme/trust-list/issuers`;
    await shop.configure({ id: 'listed', trustAnchors: [{ trustList: list }] });
    const credential = await shop.issue();
    await rotate('trust-list');
    await rotate('signing');
    await expectAccepted(credential, 'listed');
    await expectAccepted(await shop.issue(), 'listed');
    const { jwt } = (await call('PATCH', '/trust-list/issuers', { description: 'Again' })).body;
    expect(leafOf(jwt).fingerprint256).to.not.equal(leafOf(oldJwt).fingerprint256);
    await shop.call('DELETE', '/cache');
    await expectAccepted(credential, 'listed');
  });

  it('is done by interval, once for all processes', async () => {
    const body = { usageType: 'signing', rotationEnabled: true, rotationIntervalDays: 10, certValidityDays: 60 };
    const creation = await created('/key-chain', { id: 'often', ...body });
    expect(creation).to.deep.include({ ...body, lastRotatedAt: null });
    const nine = advanceDays(9.9);
    expect(await renewKeyChains()).to.include({ rotated: 0, renewed: 0 });
    nine.restore();
    const ten = advanceDays(10.1);
    const runs = await Promise.all([renewKeyChains(), renewKeyChains(), renewKeyChains(), renewKeyChains()]);
    expect(runs.reduce((sum, { rotated }) => sum + rotated, 0)).to.equal(1);
    expect(runs.flatMap(({ stuck }) => stuck)).to.deep.equal([]);
    const chainAfterFirst = await chainOf('often');
    expect(chainAfterFirst.previousKeys).to.have.length(1);
    expect(chainAfterFirst.lastRotatedAt).to.be.a('string');
    ten.restore();
    advanceDays(20.3);
    expect(await renewKeyChains()).to.include({ rotated: 1, renewed: 0 });
    expect((await chainOf('often')).previousKeys).to.have.length(2);
    await call('PATCH', '/key-chain/often', { rotationEnabled: false });
    sinon.restore();
    advanceDays(31);
    expect(await renewKeyChains()).to.include({ rotated: 0 });
  });

  it('is not needed to renew certificates before they expire', async () => {
    for (const id of ['signing', 'access', 'status-list']) {
      await call('PATCH', `/key-chain/${id}`, { certValidityDays: 60 });
      await rotate(id);
    }
    const before = await chainOf();
    const credential = await shop.issue();
    const clockBefore = advanceDays(39);
    expect(await renewKeyChains()).to.include({ rotated: 0, renewed: 0 });
    clockBefore.restore();
    const clock = advanceDays(41);
    expect(await renewKeyChains()).to.include({ rotated: 0, renewed: 3 });
    expect(await renewKeyChains()).to.include({ renewed: 0 });
    const chainAfter = await chainOf();
    expect(chainAfter.activeKey).to.deep.equal(before.activeKey);
    expect(chainAfter.lastRotatedAt).to.equal(before.lastRotatedAt);
    expect(chainAfter.previousCertificate).to.equal(before.activeCertificate);
    expect(Date.parse(chainAfter.activeCertificateExpiry)).to.be.greaterThan(Date.now() + 59 * DAY_MS);
    expect(await jwks(), 'each key is listed once, regardless of its certificates').to.have.length(2);
    await expectAccepted(credential);
    clock.restore();
    advanceDays(70);
    await expectAccepted(await shop.issue('card-status'));
  });

  it('of external certificates is rejected, since the operator renews them, and logged once per run', async () => {
    const root = await certify({ name: 'Root', ca: true });
    const { id, activeKey } = await created('/key-chain', { usageType: 'signing', rotationEnabled: true });
    const leaf = await certifyKey(activeKey, { name: 'Outside', by: root });
    const certificates = pem({ ...root, certificate: leaf });
    expect((await call('PATCH', `/key-chain/${id}`, { certificates })).status).to.equal(200);
    const rejection = await call('POST', `/key-chain/${id}/rotate`);
    expect([rejection.status, rejection.body.code]).to.deep.equal([409, 'conflict']);
    expect(rejection.body.detail).to.match(/come from an external authority.*csr/);
    const warn = sinon.spy(shop.service.service.container.get(Log), 'warn');
    advanceDays(91);
    const { stuck } = await renewKeyChains();
    expect(stuck).to.deep.equal([`acme/${id}`]);
    expect(warn.callCount).to.equal(1);
    const [message, fields] = warn.firstCall.args as [string, LogFields];
    expect(message).to.match(/upload another certificate/);
    expect(fields).to.deep.equal({ count: 1, keyChains: `acme/${id}` });
  });

  it('keeps issued credentials valid with certificates of another CA', async () => {
    const [keptCredential, revokedCredential] = [await shop.issue('card-status'), await shop.issue('card-status')];
    const root = await certify({ name: 'Root', ca: true });
    const { activeKey } = await chainOf();
    const leaf = await certifyKey(activeKey, { name: 'Outside', by: root });
    const certificates = pem({ ...root, certificate: leaf });
    expect((await call('PATCH', '/key-chain/signing', { certificates })).status).to.equal(200);
    await call('POST', '/session/revoke', { sessionId: revokedCredential.session, status: 1 });
    await expectAccepted(keptCredential);
    const answer = await shop.present(await shop.requestPresentation(), revokedCredential);
    expect(answer.status, 'a revoked credential').to.equal(400);
    const newCredential = await shop.issue('card-status');
    expect((await shop.present(await shop.requestPresentation(), newCredential)).status, 'a credential of another CA').to.equal(400);
    await shop.configure({ id: 'both', trustAnchors: [{ certificate: shop.anchor }, { certificate: pem(root) }] });
    await expectAccepted(newCredential, 'both');
    await expectAccepted(keptCredential, 'both');
  });

  it('is rejected for an unknown key chain and with an unknown provider', async () => {
    expect((await call('POST', '/key-chain/nothing/rotate')).status).to.equal(404);
    const answer = await call('POST', '/key-chain/signing/rotate', { kmsProvider: 'nowhere' });
    expect([answer.status, answer.body.errors?.[0].path]).to.deep.equal([400, 'kmsProvider']);
    const rotation = await call('POST', '/key-chain/signing/rotate', { kmsProvider: 'local' });
    expect(rotation.status).to.equal(200);
    const frequentRotation = { rotationEnabled: true, rotationIntervalDays: 7 };
    const rejection = await call('PATCH', '/key-chain/signing', frequentRotation);
    expect([rejection.status, rejection.body.errors?.[0].path]).to.deep.equal([400, 'rotationIntervalDays']);
    const allowedRotation = { ...frequentRotation, certValidityDays: 168 };
    expect((await call('PATCH', '/key-chain/signing', allowedRotation)).body).to.include(allowedRotation);
  });

  it('never deletes a key that is in use, and reports when a slot is free', async () => {
    const first = (await chainOf()).activeKey.kid;
    await call('PATCH', '/key-chain/signing', { certValidityDays: 100 });
    for (let i = 0; i < MAX_PREVIOUS_LEAVES; i++) await rotate();
    const fullChain = await chainOf();
    expect(await jwks())
      .to.have.length(MAX_PREVIOUS_LEAVES + 1)
      .and.include(first);
    const rejection = await call('POST', '/key-chain/signing/rotate');
    expect(rejection.status).to.equal(409);
    const expiryTimes = fullChain.previousKeys.map(({ expiry }: { expiry: string }) => expiry).sort();
    expect(rejection.body.detail).to.include(`possible after ${expiryTimes[0]}`);
    expect(await chainOf()).to.deep.equal(fullChain);
    advanceDays(101);
    expect((await renewKeyChains()).forgotten).to.equal(MAX_PREVIOUS_LEAVES - 1);
    const answer: Answer = await call('POST', '/key-chain/signing/rotate');
    expect(answer.status, answer.text).to.equal(200);
  });

  it('leaves the key unchanged when it is interrupted at any step', async () => {
    const { container } = shop.service.service;
    const before = await chainOf();
    const [store, kms] = [container.get(Store), container.get(Kms)];
    const fails: [string, () => void][] = [
      ['no key is created', () => sinon.stub(kms, 'generate').rejects(new Error('out of order'))],
      ['no certificate is signed', () => sinon.stub(kms, 'sign').rejects(new Error('out of order'))],
      [
        'nothing is stored',
        () => {
          const forTenant = store.forTenant.bind(store) as (...all: unknown[]) => Promise<unknown>;
          sinon.stub(store, 'forTenant').callsFake((...all: unknown[]) => {
            const [, , options] = all as [unknown, unknown, { exclusive?: boolean } | undefined];
            return options?.exclusive === true ? Promise.reject(new Error('crash')) : forTenant(...all);
          });
        },
      ],
    ];
    for (const [description, injectFailure] of fails) {
      injectFailure();
      const answer = await call('POST', '/key-chain/signing/rotate');
      expect(answer.status, description).to.equal(500);
      sinon.restore();
      expect(await chainOf(), description).to.deep.equal(before);
      await expectAccepted(await shop.issue());
    }
    expect((await rotate()).previousKey).to.deep.equal(before.activeKey);
  });

  it('cannot be requested by another tenant', async () => {
    const before = await chainOf();
    const paths = ['/key-chain/signing/rotate', '/key-chain/signing/csr', '/certs/signing/csr'];
    await created('/key-chain', { id: 'only-here', usageType: 'signing' });
    for (const path of paths) {
      const foreignResponse = await shop.call('POST', path.replace('signing', 'only-here'), {});
      expect(foreignResponse.status, path).to.equal(404);
    }
    expect((await shop.call('POST', '/key-chain/signing/rotate')).status, 'a key chain of the tenant').to.equal(200);
    expect(await chainOf()).to.deep.equal(before);
  });
});
