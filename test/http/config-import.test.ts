import { expect } from 'chai';
import sinon from 'sinon';
import { CheckFolder } from '../../application/configuration-files/check.ts';
import { ImportFolder } from '../../application/configuration-files/import-folder.ts';
import type { PortsOf } from '../../application/needs.ts';
import type { Store } from '../../application/ports/store.ts';
import { resolve } from '../../bootstrap/wiring/wire.ts';
import type { Environment } from '../../config/configuration-files/placeholders.ts';
import { readFolder } from '../../config/configuration-files/read-folder.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { CARD, ConfigFolder, dump, FILES, makeImportedKey, placeholder, SECRETS, SHOP } from '../support/config-folder.ts';
import { httpDatabases, type TestDatabase } from '../support/databases.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

type Ports = PortsOf<typeof ImportFolder.needs>;

/** A store that ends the process, so to speak, as soon as something was written. */
function crashingAfter(store: Store): Store {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return (...given: unknown[]) => {
        const result: unknown = member.apply(target, given);
        const isWrite = given.length > (name === 'forTenant' ? 2 : 1);
        if (!isWrite || (name !== 'forTenant' && name !== 'forService')) return result;
        return Promise.resolve(result).then(() => {
          throw new Error('a crash');
        });
      };
    },
  });
}

/** A store that a process leaves behind without the end of its lease. */
function leavingItsLease(store: Store): Store {
  const maintenance = new Proxy(store.maintenance, {
    get(target, name) {
      if (name !== 'tryLease') return Reflect.get(target, name, target);
      const tryLease: Store['maintenance']['tryLease'] = async (job, holder, now, ttlSeconds) =>
        ttlSeconds > 0 && target.tryLease(job, holder, now, ttlSeconds);
      return tryLease;
    },
  });
  return new Proxy(store, { get: (target, name) => (name === 'maintenance' ? maintenance : Reflect.get(target, name, target)) });
}

function importFolder(ports: Ports, folder: string, environment: Environment): Promise<void> {
  const contents = readFolder(folder, environment);
  return new ImportFolder(ports).execute(folder, contents, { isAlone: false });
}

/** Alike for all starts on one database, as the addresses in it are. */
const PUBLIC_URL = 'http://localhost:3999';

for (const { name, open, copy } of httpDatabases()) {
  describe(`configuration folder that is imported at the start, into ${name}`, () => {
    let database: TestDatabase;
    let folder: ConfigFolder;
    let running: TestService | undefined;
    /** What a start makes of the folder as it is before each test, made by the first test that begins with it. */
    let imported: TestDatabase | undefined;

    beforeEach(async function () {
      const opened = await open();
      if (opened === undefined) return this.skip();
      database = opened;
      folder = new ConfigFolder();
      folder.write(FILES);
    });
    afterEach(async () => {
      await running?.close();
      running = undefined;
      folder.remove();
      await database.drop();
    });
    after(() => imported?.drop());

    const start = async (environment: Readonly<Record<string, string>> = {}) => {
      running = await startTestService({ DATABASE_URL: database.url, CONFIG_FOLDER: folder.path, ...SECRETS, PUBLIC_URL, ...environment });
      return running;
    };
    const stop = async () => {
      await running?.close();
      running = undefined;
    };
    const startAndStop = async () => {
      await start();
      await stop();
    };
    /** As after a start and a stop on the empty database. */
    const beginImported = async () => {
      if (imported === undefined) {
        await startAndStop();
        imported = await copy(database);
        return;
      }
      await database.drop();
      database = await copy(imported);
    };
    const failToStart = async (environment: Readonly<Record<string, string>> = {}): Promise<string> => {
      try {
        await start(environment);
      } catch (error) {
        return String((error as Error).message);
      }
      throw new Error('the service started');
    };
    const as = async (service: TestService, clientId: string, secret: string) => {
      const { address } = { address: `http://127.0.0.1:${service.service.port}` };
      const answer = await service.call('POST', `${address}/oauth2/token`, {
        json: { grant_type: 'client_credentials', client_id: clientId, client_secret: secret },
      });
      expect(answer.status, answer.text).to.equal(200);
      const token = answer.body.access_token as string;
      return async (method: string, path: string, json?: unknown) =>
        service.call(method, address + path, { token, ...(json === undefined ? {} : { json }) });
    };
    const asRoot = (service: TestService) => as(service, 'root', 'root-secret-for-the-tests');
    const asAdministrator = async (service: TestService) => {
      const root = await asRoot(service);
      const { secret } = (await root('POST', '/client/acme-admin/rotate-secret')).body;
      return as(service, 'acme-admin', secret);
    };

    /** For tests of what the importer makes of files: it is the same code on both databases. */
    const itOfContents = (title: string, test: () => Promise<void>) => {
      if (name === 'sqlite') it(title, test);
    };

    it('is complete when the service answers, with its secrets', async () => {
      const service = await start();
      const root = await asRoot(service);
      const tenants = (await root('GET', '/tenant')).body;
      expect(tenants.map(({ id }: { id: string }) => id)).to.deep.equal(['acme', 'other']);
      expect(tenants[0]).to.deep.include({
        name: 'Acme',
        description: `costs ${placeholder('5')}`,
        statusListConfig: { bits: 2, immediateUpdate: true },
      });
      const shop = await as(service, 'acme-shop', SECRETS.ACME_SHOP);
      const offer = await shop('POST', '/verifier/offer', { response_type: 'uri', requestId: 'age' });
      expect(offer.status, offer.text).to.equal(201);

      const admin = await asAdministrator(service);
      const chains = (await admin('GET', '/key-chain')).body;
      expect(chains.map(({ id }: { id: string }) => id)).to.have.members(['access', 'second', 'signing', 'status-list', 'trust-list']);
      const of = (id: string) => chains.find((chain: { id: string }) => chain.id === id);
      expect(of('second')).to.deep.include({ usages: ['signing', 'statusList'], rotationEnabled: true });
      expect(of('second').activeKey.alg).to.equal('ES384');
      expect(of('access').description).to.equal('Brought');
      expect(of('status-list').rootCertificate).to.equal(of('signing').rootCertificate);
      const issuance = (await admin('GET', '/issuer/config')).body;
      expect(issuance).to.include({ batchSize: 3 });
      expect(issuance.chainedAs.upstream.clientSecret).to.equal('***');
      const list = (await admin('GET', '/trust-list/issuers')).body;
      expect(list).to.include({ sequenceNumber: 1 });
    });

    it('changes no row when it is imported again', async () => {
      await beginImported();
      const before = await dump(database.url);
      await startAndStop();
      expect(await dump(database.url)).to.deep.equal(before);
      expect(Object.values(before).flat().join()).to.not.include(SECRETS.ACME_WEBHOOK);
    });

    itOfContents('changes what differs, and nothing else', async () => {
      await beginImported();
      const before = await dump(database.url);
      folder.write({
        'acme/issuance/credentials/card.json': { ...CARD, lifeTime: 3600 },
        'acme/clients/acme-shop.json': { ...SHOP, roles: ['presentation:request'], allowedIssuanceConfigs: null },
        'acme/keys/second.json': { usages: ['statusList', 'signing'], rotationEnabled: false, algorithm: 'ES384' },
        'other/tenant.json': { name: 'Other', sessionConfig: { ttlSeconds: 120 } },
      });
      const service = await start({ ACME_SHOP: 'another-secret-of-the-shop' });
      const shop = await as(service, 'acme-shop', 'another-secret-of-the-shop');
      expect((await shop('POST', '/issuer/offer', {})).status).to.equal(403);
      const admin = await asAdministrator(service);
      expect((await admin('GET', '/issuer/credentials/card')).body).to.include({ lifeTime: 3600 });
      expect((await admin('GET', '/key-chain/second')).body).to.include({ rotationEnabled: false });
      await stop();
      const after = await dump(database.url);
      for (const table of ['presentation_configurations', 'trust_lists', 'registrar_configurations', 'issuance_configurations']) {
        expect(after[table], table).to.deep.equal(before[table]);
      }
      const changed = (rows: readonly string[] = []) => rows.filter((row) => !before['key_chains']?.includes(row));
      expect(changed(after['key_chains'])).to.have.length(1);
      folder.write({ 'other/tenant.json': { name: 'Other' } });
      await startAndStop();
      const [, other] = (await dump(database.url))['tenants'] ?? [];
      expect(JSON.parse(other ?? '{}').session_config).to.equal(null);
    });

    itOfContents('keeps resources that the folder does not contain', async () => {
      await beginImported();
      const service = await start();
      const admin = await asAdministrator(service);
      const more = { ...CARD, id: 'more', config: { ...CARD.config, scope: 'more' }, claimsWebhook: undefined };
      expect((await admin('POST', '/issuer/credentials', more)).status).to.equal(201);
      expect((await admin('POST', '/client', { clientId: 'acme-more', roles: ['issuance:manage'] })).status).to.equal(201);
      const root = await asRoot(service);
      expect((await root('PATCH', '/tenant/other', { status: 'suspended' })).status).to.equal(200);
      await stop();
      folder.write({ 'acme/presentation/age.json': undefined, 'acme/issuance/credentials/card.json': undefined });
      folder.write({ 'acme/clients/acme-shop.json': undefined });
      const again = await start();
      const tenants = (await (await asRoot(again))('GET', '/tenant')).body;
      expect(tenants[0].clients).to.have.length(3);
      expect(tenants[1].status).to.equal('suspended');
      const same = await asAdministrator(again);
      expect((await same('GET', '/issuer/credentials')).body).to.have.length(2);
      expect((await same('GET', '/verifier/config')).body).to.have.length(1);
    });

    itOfContents('stops the start when a file is invalid: every fault of every file is named, and nothing is imported', async () => {
      await beginImported();
      const before = await dump(database.url);
      const more = { ...CARD, config: { ...CARD.config, scope: 'more' }, iaeActions: null };
      folder.write({
        'acme/tenant.yaml': 'name: Changed\nroles: [clients:manage]\nnames: x\n',
        'acme/keys/access.json': { usageType: 'access', key: SECRETS.ACME_ACCESS_KEY.replace('M', 'N') },
        'acme/issuance/credentials/card.json': { ...CARD, keyChainId: 'nowhere', lifeTime: 1 },
        'acme/issuance/credentials/more.json': { ...more, keyChainId: 'nowhere' },
        'acme/issuance/credentials/more.yaml': 'id: more\nconfig: {format: dc+sd-jwt, display: none}\nvct: urn:more',
        'acme/presentation/broken.json': '{"id": ',
        'acme/clients/acme-shop.json': { ...SHOP, secret: '***' },
        'acme/clients/till.json': {
          roles: ['issuance:offer'],
          allowedPresentationConfigs: ['age', 'broken', 'none'],
          allowedIssuanceConfigs: ['card', 'more'],
        },
        'acme/clients/other-admin.json': { roles: ['issuance:offer'] },
        'acme/trust-lists/issuers.yaml':
          'entities:\n  - type: internal\n    issuerCertId: nobody\n    info: {name: Acme, country: DE, streetAddress: Weg 1}\n',
        'acme/stray.txt': '',
        'other/tenant.json': { name: 'Other', roles: ['tenants:manage'] },
        'other/keys/under.json': { usageType: 'signing', rootKeyChainId: 'broken' },
        'other/keys/broken.json': { usageType: 'nothing' },
        'fourth/tenant.json': { name: 'Fourth', roles: ['issuance:manage'] },
        'fourth/clients/admin.json': { clientId: 'fourth-admin', roles: ['issuance:manage'] },
        'third/issuance/config.json': { display: [{}] },
        'Third!/tenant.json': { name: placeholder('NOT_SET') },
      });
      const message = await failToStart({ ACME_PASSWORD: '' });
      const faults = message
        .split('\n')
        .slice(1)
        .map((line) => line.replace(/^ {2}- /, ''));
      const expected: RegExp[] = [
        /^Third!: is not a valid tenant id/,
        /^Third!\/tenant.json: id: .*lower-case/,
        /^Third!\/tenant.json: name: the variable NOT_SET is not set/,
        /^acme\/clients\/acme-shop.json: secret: .*at least 16/,
        /^acme\/clients\/acme-shop.json: secret: .*placeholder/,
        /^acme\/clients\/other-admin.json: clientId: names that end in -admin/,
        /^acme\/issuance\/credentials\/card.json: lifeTime: /,
        /^acme\/issuance\/credentials\/more.json: keyChainId: There is no key chain "nowhere"/,
        /^acme\/issuance\/credentials\/more.yaml: describes the same object as acme\/issuance\/credentials\/more.json/,
        /^acme\/issuance\/credentials\/more.yaml: config.display: /,
        /^acme\/keys\/access.json: key: /,
        /^acme\/presentation\/broken.json: is not JSON/,
        /^acme\/registrar.json: password: the variable ACME_PASSWORD is not set/,
        /^acme\/stray.txt: is not expected here/,
        /^acme\/tenant.yaml: names: there is no such property; did you mean name\?/,
        /^acme\/trust-lists\/issuers.yaml: entities.0.issuerKeyChainId: /,
        /^fourth\/tenant.json: roles: the roles of the administrator are set in fourth\/clients\/admin.json/,
        /^other\/keys\/broken.json: usageType: /,
        /^other\/tenant.json: roles: /,
        /^third\/issuance\/config.json: display.0.name: /,
        /^third\/tenant.json: is missing/,
      ];
      for (const fault of expected)
        expect(
          faults.some((line) => fault.test(line)),
          `${fault}\n${message}`,
        ).to.equal(true);
      expect(faults, message).to.have.length(expected.length);
      for (const secret of Object.values(SECRETS)) expect(message).to.not.include(secret);
      expect(await dump(database.url)).to.deep.equal(before);
    });

    itOfContents('starts without files that exceed a quota, since release 0.1.0 had none', async () => {
      await beginImported();
      const before = await dump(database.url);
      folder.write({ 'acme/issuance/credentials/more.json': { ...CARD, config: { ...CARD.config, scope: 'more' } } });
      await start({ QUOTA_CREDENTIAL_CONFIGS: '1' });
      await stop();
      expect(await dump(database.url)).to.deep.equal(before);
      await start({ QUOTA_CREDENTIAL_CONFIGS: '2' });
      await stop();
      expect(await dump(database.url)).to.not.deep.equal(before);
    });

    itOfContents('continues an import at the point where a crash ended it', async () => {
      const service = await start({ CONFIG_FOLDER: '' });
      const { container } = service.service;
      const ports = resolve(container, ImportFolder.needs);
      const environment = { ...SECRETS, PUBLIC_URL };
      let crashes = 0;
      for (; crashes < 50; crashes++) {
        const failing = { ...ports, store: crashingAfter(ports.store) };
        try {
          await importFolder(failing, folder.path, environment);
          break;
        } catch (error) {
          expect((error as Error).message).to.equal('a crash');
        }
      }
      expect(crashes, 'one after each write').to.equal(8);
      const chains = await ports.store.forTenant('acme' as TenantId, ({ keyChains }) => keyChains.list());
      expect(chains).to.have.length(5);
      const before = await dump(database.url);
      await importFolder(ports, folder.path, environment);
      expect(await dump(database.url)).to.deep.equal(before);
    });

    itOfContents('does not report conflicts with a concurrent import as faults of the folder', async () => {
      const service = await start({ CONFIG_FOLDER: '' });
      const ports = resolve(service.service.container, ImportFolder.needs);
      const environment = { ...SECRETS, PUBLIC_URL };
      const { execute } = CheckFolder.prototype;
      const check = sinon.stub(CheckFolder.prototype, 'execute').callsFake(async function (this: CheckFolder, of) {
        const checked = await execute.call(this, of);
        if (check.callCount > 1) return checked;
        // Another process has made the client since this one looked for it.
        const fault = { file: 'acme/clients/acme-shop.json', path: '', message: 'a client with this id already exists' };
        return { ...checked, faults: [fault] };
      });
      try {
        await importFolder(ports, folder.path, environment);
      } finally {
        check.restore();
      }
      expect((await dump(database.url))['tenants']).to.have.length(2);
    });

    it('waits for a crashed process only until its lease ends', async () => {
      const service = await start({ CONFIG_FOLDER: '' });
      const ports = resolve(service.service.container, ImportFolder.needs);
      const environment = { ...SECRETS, PUBLIC_URL };
      const dying = { ...ports, store: leavingItsLease(crashingAfter(ports.store)) };
      const died = await importFolder(dying, folder.path, environment).catch((error: Error) => error.message);
      expect(died).to.equal('a crash');
      if (name === 'sqlite') {
        // No other process can have the file.
        await stop();
        await start();
      } else {
        const later = Date.now() + 10_000;
        const clock = { now: () => new Date(later) };
        await importFolder({ ...ports, clock }, folder.path, environment);
      }
      expect((await dump(database.url))['tenants']).to.have.length(2);
    });

    itOfContents('imports keys with certificates, and the same again once they have expired', async () => {
      const { key, certificates } = await makeImportedKey();
      folder.write({
        'acme/keys/access.json': { usageType: 'access', key: placeholder('ACME_ACCESS_KEY'), certificates },
        'acme/keys/as-jwk.json': { usageType: 'signing', key: placeholder('AS_JWK') },
      });
      const AS_JWK = JSON.stringify({ kty: 'EC', crv: 'P-256', x: 'x' });
      expect(await failToStart({ ACME_ACCESS_KEY: key, AS_JWK })).to.match(/as-jwk.json: key: .*without "d"/);
      folder.write({ 'acme/keys/as-jwk.json': undefined });
      const oneLine = key.replaceAll('\n', '\\n');
      const service = await start({ ACME_ACCESS_KEY: oneLine });
      const chain = (await (await asAdministrator(service))('GET', '/key-chain/access')).body;
      expect(chain.rootCertificate).to.equal(null);
      expect(certificates.startsWith(chain.activeCertificate)).to.equal(true);
      await stop();
      const before = await dump(database.url);
      const { container } = (await start({ ACME_ACCESS_KEY: key })).service;
      const clock = { now: () => new Date('2126-01-01T00:00:00Z') };
      const ports = { ...resolve(container, ImportFolder.needs), clock };
      await importFolder(ports, folder.path, { ...SECRETS, ACME_ACCESS_KEY: key, PUBLIC_URL });
      await stop();
      expect((await dump(database.url))['key_chains']).to.deep.equal(before['key_chains']);
      expect(await failToStart()).to.match(/access.json: key: the key chain has another key/);
    });
  });
}
