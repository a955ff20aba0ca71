import { expect } from 'chai';
import { RenewKeyChains } from '../../application/keys/renew-key-chains.ts';
import { Store } from '../../application/ports/store.ts';
import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { writePemCertificates } from '../../domain/formats/der/pem.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { QUERY } from '../support/present.ts';
import { newKey } from '../support/raw-wallet.ts';
import { type Certified, certify, certifyKey, pem, UNREADABLE_TIMES } from '../support/test-certificates.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const PLACES = ['/key-chain', '/certs', '/key', '/trust-list', '/verifier/config'];

describe('A certificate whose times cannot be read', () => {
  let service: TestService;
  let token: string;
  let root: Certified;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    root = await certify({ name: 'Root', ca: true });
  });
  after(() => service.close());

  const call = (method: string, path: string, json?: unknown) =>
    service.call(method, path, { token, ...(json === undefined ? {} : { json }) });
  const everything = async () =>
    (await Promise.all(PLACES.map((path) => call('GET', path)))).map(({ status, text }) => [status, text]);
  const expectInvalid = (answer: Answer, path: string, message: RegExp) => {
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
    expect(answer.body.errors[0].path).to.equal(path);
    expect(answer.body.errors[0].message).to.match(message);
  };

  for (const [what, validity] of Object.entries(UNREADABLE_TIMES)) {
    it(`is refused wherever somebody brings it, and nothing is stored: ${what}`, async () => {
      const before = await everything();
      const key = newKey();
      const own = await certify({ name: 'Own', by: root, key, validity });
      const { activeKey } = (await call('GET', '/key-chain/signing')).body;
      const forSigning = writePemCertificates([
        await certifyKey(activeKey, { name: 'Signing', by: root, validity }),
      ]);
      const brought = {
        id: 'bad',
        usageType: 'signing',
        key: key.privateKey.export({ format: 'jwk' }),
        certificates: pem(own),
      };
      expectInvalid(await call('POST', '/key-chain/import', brought), 'certificates', /times/);
      const middle = await certify({ name: 'Middle', by: root, ca: true, validity });
      const below = pem(await certify({ name: 'Below', by: middle, key })) + pem(middle);
      expectInvalid(
        await call('POST', '/key-chain/import', { ...brought, certificates: below }),
        'certificates',
        /times/,
      );
      const changed = await call('PATCH', '/key-chain/signing', { certificates: forSigning });
      expectInvalid(changed, 'certificates', /times/);
      expectInvalid(await call('PATCH', '/certs/signing', { crt: forSigning }), 'crt', /times/);
      const another = { keyId: 'signing', certUsageTypes: ['signing'], crt: forSigning };
      expectInvalid(await call('POST', '/certs', another), 'crt', /times/);

      const outside = {
        type: 'external',
        info: { name: 'Bad', country: 'DE', streetAddress: 'Weg 1' },
        issuerCertPem: pem(own),
      };
      expectInvalid(
        await call('POST', '/trust-list', { id: 'bad', entities: [outside] }),
        'entities.0.issuerCertPem',
        /PEM certificate/,
      );
      const anchored = (trustAnchors: unknown) =>
        call('POST', '/verifier/config', { id: 'bad', dcql_query: QUERY, trustAnchors });
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
      expectInvalid(
        await call('POST', '/registrar/config', registrar),
        'registrationCertificateAnchors.0',
        /certificate/,
      );
      expect(await everything()).to.deep.equal(before);
    });
  }

  describe('that was stored before', () => {
    const tenantId = 'stored' as TenantId;
    let stored: string;
    const callStored = (method: string, path: string, json?: unknown) =>
      service.call(method, path, { token: stored, ...(json === undefined ? {} : { json }) });

    before(async () => {
      ({ token: stored } = await createTenant(service, tenantId));
      for (const id of ['aaa', 'zzz']) {
        const body = {
          id,
          usageType: 'access',
          rotationEnabled: true,
          rotationIntervalDays: 10,
          certValidityDays: 60,
        };
        expect((await callStored('POST', '/key-chain', body)).status).to.equal(201);
      }
      // What an end that was no time is read as, see test/unit/persistence/document-codec.test.ts.
      const notAfter = new Date(0);
      await change('signing', ({ root: _root, ...chain }) => ({
        ...chain,
        active: { ...chain.active, notAfter },
      }));
    });

    const change = (id: string, changed: (chain: KeyChain) => KeyChain) =>
      service.service.container
        .get(Store)
        .forTenant(tenantId, async ({ keyChains }) => keyChains.put(changed(await keyChains.get(id))), {
          by: SYSTEM,
        });

    it('is shown as ended, beside all others', async () => {
      for (const path of ['/key-chain', '/certs', '/key', '/certs/signing', '/key/signing']) {
        expect((await callStored('GET', path)).status, path).to.equal(200);
      }
      const { status, body } = await callStored('GET', '/key-chain/signing');
      expect([status, body.activeCertificateExpiry]).to.deep.equal([200, '1970-01-01T00:00:00.000Z']);
    });

    it('signs nothing', async () => {
      const config = { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] };
      const card = { id: 'card', config, vct: 'urn:card:1', keyChainId: 'signing' };
      const answer = await callStored('POST', '/issuer/credentials', card);
      expect([answer.status, answer.body.errors?.[0].path], answer.text).to.deep.equal([400, 'keyChainId']);
    });

    it('keeps no other key chain of the tenant from renewal', async () => {
      const chore = service.service.container.get(RenewKeyChains);
      const run = await chore.execute(new Date(Date.now() + 11 * DAY_MS), 100);
      expect(run.stuck).to.deep.equal(['stored/signing']);
      for (const id of ['aaa', 'zzz']) {
        const { body } = await callStored('GET', `/key-chain/${id}`);
        expect(body.previousKeys, id).to.have.length(1);
      }
    });

    it('keeps no other from renewal either, whatever is wrong with it', async () => {
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
      const replaced = await callStored('PATCH', '/key-chain/signing', {
        certificates: writePemCertificates([certificate]),
      });
      expect(replaced.status, replaced.text).to.equal(200);
      expect(replaced.body.activeCertificateExpiry).to.equal('2046-01-01T00:00:00.000Z');
      expect((await callStored('DELETE', '/key-chain/signing')).status).to.equal(200);
    });
  });
});
