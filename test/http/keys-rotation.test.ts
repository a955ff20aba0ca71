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
  /** The tenants as they are before each test. */
  let prepared: { readonly shop: Shop; readonly database: TestDatabase };
  let database: TestDatabase;

  const start = (of: TestDatabase) => startTestService({ JWT_EXPIRES_IN: '365d', DATABASE_URL: of.url });
  before(async () => {
    const opened = (await sqlite.open()) as TestDatabase;
    prepared = { database: opened, shop: await Shop.open({}, () => start(opened)) };
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
  const later = (days: number) => sinon.useFakeTimers({ now: Date.now() + days * DAY_MS, toFake: ['Date'] });
  const renew = () => shop.service.service.container.get(RenewKeyChains).execute(new Date(), 100);
  const leafOf = (text: string) => verifyWithLeaf(text.split('~')[0] ?? '');
  const offered = async () => {
    const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };
    return (await created('/issuer/offer', json)).uri as string;
  };
  const accepted = async (held: Parameters<Shop['present']>[1], requestId = 'check') => {
    const answer = await shop.present(await shop.requestPresentation(requestId), held);
    expect(answer.status, answer.text).to.equal(200);
  };

  it('creates a new key under the same authority and shows the previous one', async () => {
    const before = await chainOf();
    const after = await rotate();
    expect(after).to.deep.equal({ ...(await chainOf()), affectedKeyChains: [], warnings: [] });
    expect(after).to.deep.include({
      rootCertificate: before.rootCertificate,
      previousKey: before.activeKey,
      previousCertificate: before.activeCertificate,
      previousKeyExpiry: before.activeCertificateExpiry,
      lastRotatedAt: after.updatedAt,
      kmsProvider: 'local',
    });
    expect(after.activeKey.kid).to.not.equal(before.activeKey.kid);
    const [leaf, root] = [after.activeCertificate, after.rootCertificate].map((text) => new X509Certificate(text));
    expect(root !== undefined && leaf?.verify(root.publicKey)).to.equal(true);
    expect(leaf?.subject).to.equal(new X509Certificate(before.activeCertificate).subject);
    expect(leaf?.subjectAltName).to.equal('DNS:localhost');
  });

  it('keeps credentials of the previous key valid and signs new ones with the new key', async () => {
    const old = await shop.issue();
    const before = await chainOf();
    const after = await rotate();
    const young = await shop.issue();
    const fingerprint = (text: string) => new X509Certificate(text).fingerprint256;
    expect(leafOf(old.text).fingerprint256).to.equal(fingerprint(before.activeCertificate));
    expect(leafOf(young.text).fingerprint256).to.equal(fingerprint(after.activeCertificate));
    await accepted(old);
    await accepted(young);
    await rotate();
    await accepted(old);
    await accepted(young);
  });

  it('keeps access tokens valid until they expire', async () => {
    const wallet = new RawWallet(shop.service, 'acme');
    const [used, ended] = [await wallet.accessToken(await offered()), await wallet.accessToken(await offered())];
    await rotate();
    await rotate();
    expect((await wallet.request(used, 'card', { key: newKey() })).status).to.equal(200);
    const fresh = await wallet.accessToken(await offered());
    expect(decode(fresh).header['kid']).to.not.equal(decode(used).header['kid']);
    expect((await wallet.request(fresh, 'card', { key: newKey() })).status).to.equal(200);
    later(1);
    expect((await wallet.request(ended, 'card', { key: newKey() })).status).to.equal(401);
  });

  it('publishes the previous key until its certificate has expired, then deletes it', async () => {
    await call('PATCH', '/key-chain/signing', { certValidityDays: 2 });
    const second = await rotate();
    await call('PATCH', '/key-chain/signing', { certValidityDays: 365 });
    const third = await rotate();
    const [first] = third.previousKeys.slice(1);
    const shortLived = second.activeKey.kid;
    expect(await jwks()).to.have.members([third.activeKey.kid, shortLived, first.key.kid]);

    const clock = later(1.9);
    expect(await jwks()).to.include(shortLived);
    clock.restore();
    later(2.1);
    expect(await jwks(), 'before any chore').to.have.members([third.activeKey.kid, first.key.kid]);
    expect((await renew()).forgotten).to.equal(1);
    expect((await chainOf()).previousKeys.map(({ key }: { key: { kid: string } }) => key.kid)).to.deep.equal([first.key.kid]);
    expect((await renew()).forgotten).to.equal(0);
    sinon.restore();
    later(400);
    expect(await jwks()).to.not.include(first.key.kid);
  });

  it('serves open requests as they were announced, after any number of rotations', async () => {
    await created('/verifier/config', { id: 'own', dcql_query: QUERY });
    const made = await created('/verifier/offer', { response_type: 'uri', requestId: 'own' });
    const announced = new URL(made.uri).searchParams;
    await rotate('access');
    await rotate('access');
    const fetched = await shop.service.call('GET', announced.get('request_uri') ?? '');
    expect(fetched.status, fetched.text).to.equal(200);
    expect(decode(fetched.text).payload['client_id']).to.equal(announced.get('client_id'));
    verifyWithLeaf(fetched.text);
    const next = await created('/verifier/offer', { response_type: 'uri', requestId: 'own' });
    expect(new URL(next.uri).searchParams.get('client_id')).to.not.equal(announced.get('client_id'));
  });

  it('keeps status lists valid, which the new key signs under the same authority', async () => {
    const [kept, revoked] = [await shop.issue('card-status'), await shop.issue('card-status')];
    const { uri } = decode(kept.text).payload['status'].status_list;
    const before = leafOf((await shop.service.call('GET', uri)).text);
    const { rootCertificate } = await rotate('status-list');
    await rotate('signing');
    await accepted(kept);
    const json = { sessionId: revoked.session, status: 1 };
    expect((await call('POST', '/session/revoke', json)).status).to.be.oneOf([200, 201, 204]);
    later(0.1);
    const after = leafOf((await shop.service.call('GET', uri)).text);
    expect(after.fingerprint256).to.not.equal(before.fingerprint256);
    expect(after.verify(new X509Certificate(rootCertificate).publicKey)).to.equal(true);
    await accepted(kept);
    expect((await shop.present(await shop.requestPresentation(), revoked)).status).to.equal(400);
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
    const signersOf = async (configurationId: string) => {
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
    expect(await signersOf('alone'), 'itself, without another').to.include({ x });
    expect((await call('PATCH', '/key-chain/pid-status', { usages: ['statusList'] })).status).to.equal(200);
    // Lists that are good stay in use; a new one is signed by the chain that is for it.
    await created('/status-lists', { credentialConfigurationId: 'alone' });
    const { x: own } = (await chainOf('pid-status')).activeKey;
    expect(await signersOf('alone'), 'the one that is for it').to.include({ x: own });
    const refused = await call('PATCH', '/key-chain/pid-status', { usages: ['access'] });
    expect([refused.status, refused.body.detail]).to.satisfy(
      ([code, detail]: [number, string]) => code === 409 && /status list/.test(detail),
    );
  });

  it('keeps trust lists valid, and the new key signs their next release', async () => {
    const entities = [{ type: 'internal', issuerKeyChainId: 'signing', info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' } }];
    const { jwt: old } = await created('/trust-list', { id: 'issuers', entities });
    const list = `${shop.service.address}/acme/trust-list/issuers`;
    await shop.configure({ id: 'listed', trustAnchors: [{ trustList: list }] });
    const held = await shop.issue();
    await rotate('trust-list');
    await rotate('signing');
    await accepted(held, 'listed');
    await accepted(await shop.issue(), 'listed');
    const { jwt } = (await call('PATCH', '/trust-list/issuers', { description: 'Again' })).body;
    expect(leafOf(jwt).fingerprint256).to.not.equal(leafOf(old).fingerprint256);
    await shop.call('DELETE', '/cache');
    await accepted(held, 'listed');
  });

  it('is done by interval, once for all processes', async () => {
    const body = { usageType: 'signing', rotationEnabled: true, rotationIntervalDays: 10, certValidityDays: 60 };
    const made = await created('/key-chain', { id: 'often', ...body });
    expect(made).to.deep.include({ ...body, lastRotatedAt: null });
    const nine = later(9.9);
    expect(await renew()).to.include({ rotated: 0, renewed: 0 });
    nine.restore();
    const ten = later(10.1);
    const runs = await Promise.all([renew(), renew(), renew(), renew()]);
    expect(runs.reduce((sum, { rotated }) => sum + rotated, 0)).to.equal(1);
    expect(runs.flatMap(({ stuck }) => stuck)).to.deep.equal([]);
    const once = await chainOf('often');
    expect(once.previousKeys).to.have.length(1);
    expect(once.lastRotatedAt).to.be.a('string');
    ten.restore();
    later(20.3);
    expect(await renew()).to.include({ rotated: 1, renewed: 0 });
    expect((await chainOf('often')).previousKeys).to.have.length(2);
    await call('PATCH', '/key-chain/often', { rotationEnabled: false });
    sinon.restore();
    later(31);
    expect(await renew()).to.include({ rotated: 0 });
  });

  it('is not needed to renew certificates before they expire', async () => {
    for (const id of ['signing', 'access', 'status-list']) {
      await call('PATCH', `/key-chain/${id}`, { certValidityDays: 60 });
      await rotate(id);
    }
    const before = await chainOf();
    const held = await shop.issue();
    const early = later(39);
    expect(await renew()).to.include({ rotated: 0, renewed: 0 });
    early.restore();
    const clock = later(41);
    expect(await renew()).to.include({ rotated: 0, renewed: 3 });
    expect(await renew()).to.include({ renewed: 0 });
    const after = await chainOf();
    expect(after.activeKey).to.deep.equal(before.activeKey);
    expect(after.lastRotatedAt).to.equal(before.lastRotatedAt);
    expect(after.previousCertificate).to.equal(before.activeCertificate);
    expect(Date.parse(after.activeCertificateExpiry)).to.be.greaterThan(Date.now() + 59 * DAY_MS);
    expect(await jwks(), 'a key stands there once, whatever its certificates').to.have.length(2);
    await accepted(held);
    clock.restore();
    later(70);
    await accepted(await shop.issue('card-status'));
  });

  it('of external certificates is rejected, since the operator renews them, and logged once per run', async () => {
    const root = await certify({ name: 'Root', ca: true });
    const { id, activeKey } = await created('/key-chain', { usageType: 'signing', rotationEnabled: true });
    const leaf = await certifyKey(activeKey, { name: 'Outside', by: root });
    const certificates = pem({ ...root, certificate: leaf });
    expect((await call('PATCH', `/key-chain/${id}`, { certificates })).status).to.equal(200);
    const refused = await call('POST', `/key-chain/${id}/rotate`);
    expect([refused.status, refused.body.code]).to.deep.equal([409, 'conflict']);
    expect(refused.body.detail).to.match(/come from an external authority.*csr/);
    const warn = sinon.spy(shop.service.service.container.get(Log), 'warn');
    later(91);
    const { stuck } = await renew();
    expect(stuck).to.deep.equal([`acme/${id}`]);
    expect(warn.callCount).to.equal(1);
    const [message, fields] = warn.firstCall.args as [string, LogFields];
    expect(message).to.match(/upload another certificate/);
    expect(fields).to.deep.equal({ count: 1, keyChains: `acme/${id}` });
  });

  it('keeps issued credentials valid with certificates of another CA', async () => {
    const [kept, revoked] = [await shop.issue('card-status'), await shop.issue('card-status')];
    const root = await certify({ name: 'Root', ca: true });
    const { activeKey } = await chainOf();
    const leaf = await certifyKey(activeKey, { name: 'Outside', by: root });
    const certificates = pem({ ...root, certificate: leaf });
    expect((await call('PATCH', '/key-chain/signing', { certificates })).status).to.equal(200);
    await call('POST', '/session/revoke', { sessionId: revoked.session, status: 1 });
    await accepted(kept);
    const answer = await shop.present(await shop.requestPresentation(), revoked);
    expect(answer.status, 'revoked').to.equal(400);
    const young = await shop.issue('card-status');
    expect((await shop.present(await shop.requestPresentation(), young)).status, 'of another authority').to.equal(400);
    await shop.configure({ id: 'both', trustAnchors: [{ certificate: shop.anchor }, { certificate: pem(root) }] });
    await accepted(young, 'both');
    await accepted(kept, 'both');
  });

  it('is rejected for an unknown key chain and with an unknown provider', async () => {
    expect((await call('POST', '/key-chain/nothing/rotate')).status).to.equal(404);
    const answer = await call('POST', '/key-chain/signing/rotate', { kmsProvider: 'nowhere' });
    expect([answer.status, answer.body.errors?.[0].path]).to.deep.equal([400, 'kmsProvider']);
    const own = await call('POST', '/key-chain/signing/rotate', { kmsProvider: 'local' });
    expect(own.status).to.equal(200);
    const fast = { rotationEnabled: true, rotationIntervalDays: 7 };
    const piled = await call('PATCH', '/key-chain/signing', fast);
    expect([piled.status, piled.body.errors?.[0].path]).to.deep.equal([400, 'rotationIntervalDays']);
    const fits = { ...fast, certValidityDays: 168 };
    expect((await call('PATCH', '/key-chain/signing', fits)).body).to.include(fits);
  });

  it('never deletes a key that is in use, and reports when a slot is free', async () => {
    const first = (await chainOf()).activeKey.kid;
    await call('PATCH', '/key-chain/signing', { certValidityDays: 100 });
    for (let i = 0; i < MAX_PREVIOUS_LEAVES; i++) await rotate();
    const full = await chainOf();
    expect(await jwks())
      .to.have.length(MAX_PREVIOUS_LEAVES + 1)
      .and.include(first);
    const refused = await call('POST', '/key-chain/signing/rotate');
    expect(refused.status).to.equal(409);
    const ends = full.previousKeys.map(({ expiry }: { expiry: string }) => expiry).sort();
    expect(refused.body.detail).to.include(`possible after ${ends[0]}`);
    expect(await chainOf()).to.deep.equal(full);
    later(101);
    expect((await renew()).forgotten).to.equal(MAX_PREVIOUS_LEAVES - 1);
    const answer: Answer = await call('POST', '/key-chain/signing/rotate');
    expect(answer.status, answer.text).to.equal(200);
  });

  it('leaves the key unchanged when it is interrupted at any step', async () => {
    const { container } = shop.service.service;
    const before = await chainOf();
    const [store, kms] = [container.get(Store), container.get(Kms)];
    const fails: [string, () => void][] = [
      ['no key is made', () => sinon.stub(kms, 'generate').rejects(new Error('out of order'))],
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
    for (const [what, fail] of fails) {
      fail();
      const answer = await call('POST', '/key-chain/signing/rotate');
      expect(answer.status, what).to.equal(500);
      sinon.restore();
      expect(await chainOf(), what).to.deep.equal(before);
      await accepted(await shop.issue());
    }
    expect((await rotate()).previousKey).to.deep.equal(before.activeKey);
  });

  it('cannot be requested by another tenant', async () => {
    const before = await chainOf();
    const paths = ['/key-chain/signing/rotate', '/key-chain/signing/csr', '/certs/signing/csr'];
    await created('/key-chain', { id: 'only-here', usageType: 'signing' });
    for (const path of paths) {
      const foreign = await shop.call('POST', path.replace('signing', 'only-here'), {});
      expect(foreign.status, path).to.equal(404);
    }
    expect((await shop.call('POST', '/key-chain/signing/rotate')).status, 'its own').to.equal(200);
    expect(await chainOf()).to.deep.equal(before);
  });
});
