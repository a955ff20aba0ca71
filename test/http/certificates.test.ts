import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { RenewKeyChains } from '../../application/keys/renew-key-chains.ts';
import { Store } from '../../application/ports/store.ts';
import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { writePemCertificates } from '../../domain/formats/der/pem.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { Backend } from '../support/backend.ts';
import { compressList } from '../support/compress-list.ts';
import { QUERY } from '../support/present.ts';
import { makeJwt, newKey, now } from '../support/raw-wallet.ts';
import { makeCrl } from '../support/revocation-maker.ts';
import {
  type CertifiedKey,
  certify,
  certifyKey,
  DOCUMENT_SIGNER,
  forgeCertificate,
  pem,
  READER,
  rsaKey,
  UNREADABLE_TIMES,
  WEB_SERVER,
} from '../support/test-certificates.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { CARD_QUERY, LICENCE_QUERY, openWorld, type World } from './negative-verification/world.ts';

type Format = 'card' | 'licence';
const QUERIES = { card: CARD_QUERY, licence: LICENCE_QUERY } as const;

describe('Revocation checks of issuer certificates, through HTTP', () => {
  let world: World;
  let publisher: Backend;
  let root: CertifiedKey;
  let middle: CertifiedKey;
  let leaf: CertifiedKey;
  let nth = 0;

  before(async () => {
    world = await openWorld();
    publisher = await Backend.start();
  });
  after(async () => {
    await publisher?.close();
    await world?.close();
  });

  beforeEach(async () => {
    nth++;
    root = await certify({ name: 'Root', ca: true });
    middle = await certify({ name: 'Middle', by: root, ca: true, crlUrls: [address('root')] });
    leaf = await certify({ name: 'Leaf', by: middle, crlUrls: [address('middle')], ...DOCUMENT_SIGNER });
    serve('root', makeCrl({ by: root }));
    serve('middle', makeCrl({ by: middle }));
  });

  const path = (name: string) => `/${nth}/${name}.crl`;
  const address = (name: string) => publisher.url + path(name);
  const calls = () => publisher.calls.filter((call) => call.path.startsWith(`/${nth}/`)).length;
  const serve = (name: string, body: Buffer) =>
    publisher.on(path(name), (response) => response.writeHead(200, { 'Content-Type': 'application/pkix-crl' }).end(body));
  const ask = (format: Format, certificateRevocation: string | null | undefined, changes = {}) =>
    world.ask({
      dcql_query: { credentials: [QUERIES[format]] },
      trustAnchors: [{ certificate: pem(root) }],
      ...(certificateRevocation === undefined ? {} : { certificateRevocation }),
      ...changes,
    });
  const presented = async (format: Format, asked: Awaited<ReturnType<typeof ask>>, tenant?: 'rival') => {
    const issuer = { key: leaf, chain: [leaf.certificate, middle.certificate] };
    await world.answer(asked, { [format]: [world[format](asked, { issuer })] });
    const { status, failure, report } = await world.session(asked, tenant);
    const row = report.find((one: { check: string }) => one.check === 'certificate revocation');
    return { outcome: status === 'completed' ? status : failure.message, row };
  };

  for (const format of ['card', 'licence'] as const) {
    it(`reject a ${format} with a revoked certificate if they are required or its list is available`, async () => {
      const good = await presented(format, await ask(format, 'required'));
      expect(good.outcome).to.equal('completed');
      expect(good.row).to.include({ result: 'passed', section: 'RFC 5280 section 6.3' });
      expect(good.row.input).to.include(`signer: not on ${address('middle')}`);
      serve('middle', makeCrl({ by: middle, revoked: [leaf] }));
      await world.admin('DELETE', '/cache');
      for (const mode of ['required', 'if-available']) {
        const { outcome, row } = await presented(format, await ask(format, mode));
        expect(outcome).to.include(`${format}: certificate_revoked`);
        expect(row).to.include({ result: 'failed', reason: 'certificate_revoked' });
        expect(row.detail).to.include('signer: keyCompromise');
      }
      for (const mode of ['off', null, undefined]) {
        expect(await presented(format, await ask(format, mode))).to.deep.equal({ outcome: 'completed', row: undefined });
      }
    });

    it(`reject a ${format} without an available list if they are required, and otherwise report it`, async () => {
      publisher.on(path('root'), (response) => response.writeHead(302, { Location: address('root') }).end());
      const required = await presented(format, await ask(format, 'required'));
      expect(required.outcome).to.include(`${format}: revocation_unavailable`);
      expect(required.row).to.include({ result: 'failed', reason: 'revocation_unavailable' });
      const available = await presented(format, await ask(format, 'if-available'));
      expect(available.outcome).to.equal('completed');
      expect(available.row.input).to.include('revocation_unavailable: authority 1').and.include('redirect');
    });
  }

  it('reject a revoked certificate that signed a status list', async () => {
    const revoker = await certify({ name: 'Revoker', by: root, crlUrls: [address('root')] });
    const uri = address('status');
    const list = makeJwt(
      revoker,
      { alg: 'ES256', typ: 'statuslist+jwt', x5c: [revoker.certificate] },
      { sub: uri, iat: now(), ttl: 3600, status_list: { bits: 1, lst: compressList(Buffer.alloc(8)) } },
    );
    publisher.on(path('status'), (response) => response.writeHead(200, { 'Content-Type': 'application/statuslist+jwt' }).end(list));
    const outcome = async (mode: string) => {
      const asked = await ask('card', mode);
      const issuer = { key: leaf, chain: [leaf.certificate, middle.certificate] };
      const status = { status_list: { idx: 1, uri } };
      await world.answer(asked, { card: [world.card(asked, { issuer, payload: (all) => ({ ...all, status }) })] });
      const { status: ended, report } = await world.session(asked);
      return ended === 'completed' ? ended : report.find((one: { detail?: string }) => one.detail).detail;
    };
    expect(await outcome('required')).to.equal('completed');
    serve('root', makeCrl({ by: root, revoked: [revoker] }));
    await world.admin('DELETE', '/cache');
    for (const mode of ['required', 'if-available']) {
      expect(await outcome(mode)).to.include('certificate_revoked: signer of the status list: keyCompromise');
    }
    expect(await outcome('off')).to.equal('completed');
  });

  it('do not read a list of more than 2 MiB', async () => {
    serve('middle', Buffer.concat([makeCrl({ by: middle }), Buffer.alloc(2 * 1024 * 1024)]));
    const { row } = await presented('card', await ask('card', 'required'));
    expect(row.detail).to.include('too_large');
  });

  it('make no calls for untrusted issuers, invalid credentials or foreign keys', async () => {
    const before = calls();
    const stranger = { trustAnchors: [{ certificate: pem(await certify({ name: 'Root', ca: true })) }] };
    expect((await presented('card', await ask('card', 'required', stranger))).outcome).to.include('untrusted_chain');
    const issuer = { key: leaf, chain: [leaf.certificate, middle.certificate] };
    const asked = await ask('card', 'required');
    const other = await ask('card', 'required');
    await world.answer(asked, { card: [world.card(other, { issuer })] });
    expect((await world.session(asked))['failure'].message).to.include('nonce_mismatch');
    expect(calls()).to.equal(before);
  });

  it('fetch a list once for twenty-four concurrent presentations', async () => {
    const asked = await Promise.all(Array.from({ length: 24 }, () => ask('card', 'required')));
    const outcomes = await Promise.all(asked.map((one) => presented('card', one)));
    expect(outcomes.map(({ outcome }) => outcome)).to.deep.equal(Array(24).fill('completed'));
    expect(calls()).to.equal(2);
    const { body } = await world.admin('GET', '/cache/stats');
    const kept = body.revocationListCache.entries.map(({ uri }: { uri: string }) => uri);
    expect(kept).to.include.members([address('root'), address('middle')]);
  });

  it('fetch a list separately for each tenant', async () => {
    await presented('card', await ask('card', 'required'));
    const rival = { dcql_query: { credentials: [CARD_QUERY] }, trustAnchors: [{ certificate: pem(root) }] };
    serve('middle', makeCrl({ by: middle, revoked: [leaf] }));
    const asked = await world.ask({ ...rival, certificateRevocation: 'required' }, 'rival');
    expect((await presented('card', asked, 'rival')).outcome).to.include('certificate_revoked');
    expect(calls()).to.equal(4);
    expect((await presented('card', await ask('card', 'required'))).outcome, 'its own copy').to.equal('completed');
  });

  it('accept three settings only', async () => {
    const body = { id: 'wrong', dcql_query: { credentials: [CARD_QUERY] }, certificateRevocation: 'yes' };
    expect((await world.admin('POST', '/verifier/config', body)).status).to.equal(400);
  });
});

const DAY_MS = 24 * 60 * 60 * 1000;
const PLACES = ['/key-chain', '/certs', '/key', '/trust-list', '/verifier/config'];

describe('A certificate with unreadable dates', () => {
  let service: TestService;
  let token: string;
  let root: CertifiedKey;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    root = await certify({ name: 'Root', ca: true });
  });
  after(() => service.close());

  const call = (method: string, path: string, json?: unknown) =>
    service.call(method, path, { token, ...(json === undefined ? {} : { json }) });
  const everything = async () => (await Promise.all(PLACES.map((path) => call('GET', path)))).map(({ status, text }) => [status, text]);
  const expectInvalid = (answer: Answer, path: string, message: RegExp) => {
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
    expect(answer.body.errors[0].path).to.equal(path);
    expect(answer.body.errors[0].message).to.match(message);
  };

  for (const [what, validity] of Object.entries(UNREADABLE_TIMES)) {
    it(`is rejected by every input, and nothing is stored: ${what}`, async () => {
      const before = await everything();
      const key = newKey();
      const own = await certify({ name: 'Own', by: root, key, validity });
      const { activeKey } = (await call('GET', '/key-chain/signing')).body;
      const forSigning = writePemCertificates([await certifyKey(activeKey, { name: 'Signing', by: root, validity })]);
      const brought = { id: 'bad', usageType: 'signing', key: key.privateKey.export({ format: 'jwk' }), certificates: pem(own) };
      expectInvalid(await call('POST', '/key-chain/import', brought), 'certificates', /validity period/);
      const middle = await certify({ name: 'Middle', by: root, ca: true, validity });
      const below = pem(await certify({ name: 'Below', by: middle, key })) + pem(middle);
      expectInvalid(await call('POST', '/key-chain/import', { ...brought, certificates: below }), 'certificates', /validity period/);
      const changed = await call('PATCH', '/key-chain/signing', { certificates: forSigning });
      expectInvalid(changed, 'certificates', /validity period/);
      expectInvalid(await call('PATCH', '/certs/signing', { crt: forSigning }), 'crt', /validity period/);
      const another = { keyId: 'signing', certUsageTypes: ['signing'], crt: forSigning };
      expectInvalid(await call('POST', '/certs', another), 'crt', /validity period/);

      const outside = { type: 'external', info: { name: 'Bad', country: 'DE', streetAddress: 'Weg 1' }, issuerCertPem: pem(own) };
      expectInvalid(await call('POST', '/trust-list', { id: 'bad', entities: [outside] }), 'entities.0.issuerCertPem', /PEM certificate/);
      const anchored = (trustAnchors: unknown) => call('POST', '/verifier/config', { id: 'bad', dcql_query: QUERY, trustAnchors });
      const certificate = pem(await certify({ name: 'Bad root', ca: true, validity }));
      expectInvalid(await anchored([{ certificate }]), 'trustAnchors.0.certificate', /PEM certificate/);
      const list = { trustList: 'https://operator.example/list', signedBy: [certificate] };
      expectInvalid(await anchored([list]), 'trustAnchors.0.signedBy.0', /PEM certificate/);
      const registrar = {
        registrarUrl: 'https://registrar.example',
        oidcUrl: 'https://login.example',
        clientId: 'acme',
        username: 'acme',
        password: 'password',
        registrationCertificateAnchors: [certificate],
      };
      expectInvalid(await call('POST', '/registrar/config', registrar), 'registrationCertificateAnchors.0', /certificate/);
      expect(await everything()).to.deep.equal(before);
    });
  }

  describe('that was stored by an earlier release', () => {
    const tenantId = 'stored' as TenantId;
    let stored: string;
    const callStored = (method: string, path: string, json?: unknown) =>
      service.call(method, path, { token: stored, ...(json === undefined ? {} : { json }) });

    before(async () => {
      ({ token: stored } = await createTenant(service, tenantId));
      for (const id of ['aaa', 'zzz']) {
        const body = { id, usageType: 'access', rotationEnabled: true, rotationIntervalDays: 10, certValidityDays: 60 };
        expect((await callStored('POST', '/key-chain', body)).status).to.equal(201);
      }
      // What an end that was no time is read as, see test/unit/persistence/persistence.test.ts.
      const notAfter = new Date(0);
      await change('signing', ({ root: _root, ...chain }) => ({ ...chain, active: { ...chain.active, notAfter } }));
    });

    const change = (id: string, changed: (chain: KeyChain) => KeyChain) =>
      service.service.container
        .get(Store)
        .forTenant(tenantId, async ({ keyChains }) => keyChains.put(changed(await keyChains.get(id))), { by: SYSTEM });

    it('is shown as expired, with valid ones', async () => {
      for (const path of ['/key-chain', '/certs', '/key', '/certs/signing', '/key/signing']) {
        expect((await callStored('GET', path)).status, path).to.equal(200);
      }
      const { status, body } = await callStored('GET', '/key-chain/signing');
      expect([status, body.activeCertificateExpiry]).to.deep.equal([200, '1970-01-01T00:00:00.000Z']);
    });

    it('is not used for signatures', async () => {
      const config = { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] };
      const card = { id: 'card', config, vct: 'urn:card:1', keyChainId: 'signing' };
      const answer = await callStored('POST', '/issuer/credentials', card);
      expect([answer.status, answer.body.errors?.[0].path], answer.text).to.deep.equal([400, 'keyChainId']);
    });

    it('does not prevent the renewal of other key chains of the tenant', async () => {
      const chore = service.service.container.get(RenewKeyChains);
      const run = await chore.execute(new Date(Date.now() + 11 * DAY_MS), 100);
      expect(run.stuck).to.deep.equal(['stored/signing']);
      for (const id of ['aaa', 'zzz']) {
        const { body } = await callStored('GET', `/key-chain/${id}`);
        expect(body.previousKeys, id).to.have.length(1);
      }
    });

    it('does not prevent the renewal of others, regardless of its error', async () => {
      await change('access', (chain) => ({ ...chain, lastRotatedAt: 'no time at all' as never }));
      const chore = service.service.container.get(RenewKeyChains);
      const run = await chore.execute(new Date(Date.now() + 22 * DAY_MS), 100);
      expect(run.stuck).to.deep.equal(['stored/access', 'stored/signing']);
      expect(run.rotated).to.equal(2);
      await change('access', ({ lastRotatedAt: _last, ...chain }) => chain);
    });

    it('can be replaced and deleted', async () => {
      const { activeKey } = (await callStored('GET', '/key-chain/signing')).body;
      const certificate = await certifyKey(activeKey, { name: 'New', by: root });
      const replaced = await callStored('PATCH', '/key-chain/signing', { certificates: writePemCertificates([certificate]) });
      expect(replaced.status, replaced.text).to.equal(200);
      expect(replaced.body.activeCertificateExpiry).to.equal('2046-01-01T00:00:00.000Z');
      expect((await callStored('DELETE', '/key-chain/signing')).status).to.equal(200);
    });
  });
});

describe('Certificates in the responses of wallets', () => {
  let world: World;
  before(async () => {
    world = await openWorld();
  });
  after(() => world?.close());
  afterEach(() => sinon.restore());

  it('from untrusted issuers with large RSA keys cause no signature verification in sixty presentations', async () => {
    const spki = rsaKey({ bits: 4096 });
    const chains: string[][] = [];
    for (let i = 0; i < 60; i++) {
      const middle = await forgeCertificate({ subject: `CN=A${i}`, issuer: `CN=B${i}` }, spki);
      const leaf = await forgeCertificate({ subject: `CN=L${i}`, issuer: `CN=A${i}` }, spki, false);
      chains.push([leaf, middle]);
    }
    const query = { credentials: [{ ...CARD_QUERY, multiple: true }] };
    const asked = await world.ask({ dcql_query: query });
    const { key } = world.issuer;
    const cards = chains.map((chain) => world.card(asked, { issuer: { key, chain } }));
    const verified = sinon.spy(X509Certificate.prototype, 'verify');
    expect((await world.answer(asked, { card: cards })).status).to.equal(400);
    expect(verified.callCount).to.equal(0);
    expect((await world.session(asked))['failure'].message).to.include('card: untrusted_chain');
  });

  it('are not parsed if there are more presentations than requested', async () => {
    const asked = await world.ask();
    const read = sinon.spy(X509Certificate.prototype, 'publicKey', ['get']);
    const { status } = await world.answer(asked, { card: [world.card(asked), world.card(asked)] });
    expect(status).to.equal(400);
    expect(read.get.callCount).to.equal(0);
  });

  it('are not parsed in presentations that no credential set needs', async () => {
    const query = { credentials: [CARD_QUERY, { ...CARD_QUERY, id: 'spare' }], credential_sets: [{ options: [['card']] }] };
    const asked = await world.ask({ dcql_query: query });
    const verified = sinon.spy(X509Certificate.prototype, 'verify');
    const leaf = await certify({ name: 'Unasked', by: world.authority });
    const spare = world.card(asked, { issuer: { key: leaf, chain: [leaf.certificate] } });
    expect((await world.answer(asked, { card: [world.card(asked)], spare: [spare] })).status).to.equal(200);
    expect(verified.callCount).to.be.at.most(1);
    const { report } = await world.session(asked);
    expect(JSON.stringify(report)).to.not.include('Unasked').and.not.include('"spare"');
  });

  describe('that sign a driving licence', () => {
    const outcome = async (mdlProfile: string | undefined, ...[bend]: Parameters<typeof certify>) => {
      const asked = await world.ask({ dcql_query: { credentials: [LICENCE_QUERY] }, mdlProfile });
      const leaf = await certify({ by: world.authority, ...bend });
      const licence = world.licence(asked, { issuer: { key: leaf, chain: [leaf.certificate] } });
      await world.answer(asked, { licence: [licence] });
      const { status, failure } = await world.session(asked);
      return status === 'completed' ? status : failure.message;
    };

    it('must follow the standard, unless the configuration disables that', async () => {
      expect(await outcome(undefined, { name: 'Right', ...DOCUMENT_SIGNER })).to.equal('completed');
      for (const [name, bend] of [
        ['Any', {}],
        ['Not critical', { ...DOCUMENT_SIGNER, critical: false }],
        ['Other mdocs', { purposes: ['1.0.23220.4.1.2'], critical: true }],
      ] as const) {
        expect(await outcome(undefined, { name, ...bend }), name).to.include('certificate_profile');
        expect(await outcome('iso-18013-5', { name, ...bend }), name).to.include('certificate_profile');
        expect(await outcome('none', { name, ...bend }), name).to.equal('completed');
      }
      const abroad = { name: 'Abroad, C=FR', ...DOCUMENT_SIGNER };
      expect(await outcome(undefined, abroad)).to.include('issuer_country_mismatch');
      expect(await outcome('none', abroad)).to.equal('completed');
    });

    it('are rejected if they are for web servers or readers', async () => {
      for (const usage of [WEB_SERVER, READER]) {
        expect(await outcome('none', { name: 'Other', purposes: [usage] })).to.include('certificate_profile');
      }
    });
  });

  it('select the profile of licences by one of two values', async () => {
    const body = { id: 'wrong', dcql_query: { credentials: [LICENCE_QUERY] }, mdlProfile: 'off' };
    expect((await world.admin('POST', '/verifier/config', body)).status).to.equal(400);
  });
});
