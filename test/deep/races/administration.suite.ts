import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { RenewKeyChains } from '../../../application/keys/renew-key-chains.ts';
import { editsOf, makeWriter } from '../../support/edits.ts';
import { addClient, createResource, populate } from '../../support/populated.ts';
import { verifyWithLeaf } from '../../support/present.ts';
import { callInParallel, countOutcomes, prepareSessions, type RaceSuite } from '../../support/raced-services.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { sharedRegistrar } from '../../support/registrar.ts';
import { type Answer, createTenant } from '../../support/test-service.ts';

export const administration: RaceSuite = [
  'concurrent administrators',
  (racing) => {
    it('keep one valid secret after many rotations', async () => {
      const { service, token } = racing();
      await createResource(service, token, '/client', { clientId: 'rotated', roles: ['issuance:offer'] });
      const answers = await callInParallel(10, () => service.call('POST', '/client/rotated/rotate-secret', { token }));
      const { 201: createdCount = 0, '409 conflict': conflictCount = 0 } = countOutcomes(answers);
      expect(createdCount + conflictCount, JSON.stringify(countOutcomes(answers))).to.equal(10);
      expect(createdCount).to.be.greaterThan(0);
      // One after the other, since many simultaneous attempts on one client are rejected.
      const logins: typeof answers = [];
      for (const { status, body } of answers) {
        if (status !== 201) continue;
        const json = { grant_type: 'client_credentials', client_id: 'rotated', client_secret: body.secret };
        logins.push(await service.call('POST', '/oauth2/token', { json }));
      }
      const { 200: successCount = 0, '401 invalid_client': failureCount = 0 } = countOutcomes(logins);
      expect([successCount, failureCount]).to.deep.equal([1, createdCount - 1]);
    });

    it('create one tenant from simultaneous requests', async () => {
      const { service } = racing();
      const token = await service.rootToken();
      const json = { id: 'wanted', name: 'Wanted', roles: ['clients:manage'] };
      const answers = await callInParallel(10, () => service.call('POST', '/tenant', { token, json }));
      expect(countOutcomes(answers)).to.deep.equal({ 201: 1, '409 conflict': 9 });
      const winner = answers.find(({ status }) => status === 201);
      const tenants = await service.call('GET', '/tenant', { token });
      expect(tenants.body.filter(({ id }: { id: string }) => id === 'wanted')).to.have.length(1);
      expect(winner?.body.id).to.equal('wanted');
    });

    it('create one client from simultaneous requests', async () => {
      const { service, token } = racing();
      const json = { clientId: 'wanted', roles: ['issuance:offer'] };
      const answers = await callInParallel(10, () => service.call('POST', '/client', { token, json }));
      expect(countOutcomes(answers)).to.deep.equal({ 201: 1, '409 conflict': 9 });
    });

    it('write one configuration as if the requests came one after the other', async () => {
      const { service, token } = racing();
      const body = (lifeTime: number) => ({
        id: 'contested',
        lifeTime,
        dcql_query: { credentials: [{ id: 'x', format: 'dc+sd-jwt', meta: { vct_values: ['y'] } }] },
      });
      const answers = await callInParallel(20, (index) => service.call('POST', '/verifier/config', { token, json: body(100 + index) }));
      const { 201: createdCount = 0, '409 conflict': conflictCount = 0 } = countOutcomes(answers);
      expect(createdCount + conflictCount, JSON.stringify(countOutcomes(answers))).to.equal(20);
      const storedConfiguration = await service.call('GET', '/verifier/config/contested', { token });
      expect(storedConfiguration.body.lifeTime).to.be.within(100, 119);
    });

    it('delete a session once', async () => {
      const { service, token } = racing();
      const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['pid'] };
      const { session } = await createResource(service, token, '/issuer/offer', json);
      const answers = await callInParallel(10, () => service.call('DELETE', `/session/${session}`, { token }));
      expect(countOutcomes(answers)).to.deep.equal({ 200: 1, '404 not_found': 9 });
    });

    it('change rights that apply in every process at once', async () => {
      const { service, token } = racing();
      const client = await addClient({ service, token }, 'demoted', { roles: ['issuance:manage', 'clients:manage'] });
      for (let attempt = 0; attempt < 10; attempt++) {
        const roles = attempt % 2 === 0 ? ['issuance:manage'] : ['issuance:manage', 'clients:manage'];
        const roleChange = await service.call('PATCH', '/client/demoted', { token, json: { roles } });
        expect(roleChange.status).to.equal(200);
        const answers = await callInParallel(4, () => service.call('GET', '/client', { token: client }));
        expect(countOutcomes(answers)).to.deep.equal(attempt % 2 === 0 ? { '403 forbidden': 4 } : { 200: 4 });
      }
    });

    it('keep the last key chain of a usage that a configuration needs', async () => {
      const { service } = racing();
      const { token } = await createTenant(service, 'keepers');
      const badge = { id: 'badge', config: { format: 'dc+sd-jwt', display: [{ name: 'Badge', locale: 'en' }] }, vct: 'urn:badge:1' };
      await createResource(service, token, '/issuer/credentials', badge);
      let keptChain = 'signing';
      for (let attempt = 0; attempt < 8; attempt++) {
        const otherChain = `signing-${attempt}`;
        await createResource(service, token, '/key-chain', { id: otherChain, usages: ['signing'] });
        const ids = [keptChain, otherChain];
        const answers = await callInParallel(2, (index) => service.call('DELETE', `/key-chain/${ids[index]}`, { token }));
        expect(countOutcomes(answers), `round ${attempt}`).to.deep.equal({ 200: 1, '409 conflict': 1 });
        keptChain = ids[answers.findIndex(({ status }) => status === 409)] ?? '';
      }
    });

    it('reference no key chain in a configuration that is deleted simultaneously', async () => {
      const { service } = racing();
      const { token } = await createTenant(service, 'namers');
      const config = { format: 'dc+sd-jwt', display: [{ name: 'Badge', locale: 'en' }] };
      for (let attempt = 0; attempt < 8; attempt++) {
        const keyChainId = `own-${attempt}`;
        await createResource(service, token, '/key-chain', { id: keyChainId, usages: ['signing'] });
        const json = { id: `badge-${attempt}`, config, vct: 'urn:badge:1', keyChainId };
        const [removal, referencing] = await Promise.all([
          service.call('DELETE', `/key-chain/${keyChainId}`, { token }),
          service.call('POST', '/issuer/credentials', { token, json }),
        ]);
        expect([removal.status, referencing.status], `round ${attempt}`).to.be.deep.oneOf([
          [200, 400],
          [409, 201],
        ]);
      }
    });
  },
];

const registrar = await sharedRegistrar();

export const editsWithOneTag: RaceSuite = [
  'concurrent edits with one tag',
  (racing) => {
    it('succeed once for any edited resource and any concurrent edits', async () => {
      const { service } = racing();
      const tenant = await populate(service, 'raced');
      const root = await service.rootToken();
      for (const edit of editsOf(tenant.ids, registrar)) {
        const { write, tagOf } = makeWriter(tenant, root, edit);
        // All written values differ from the stored one.
        await write(0, 0);
        const tag = await tagOf();
        const answers = await callInParallel(12, (n) => write(n, edit.read.startsWith('/status-lists') ? 1 : n + 1, tag));
        const counts = countOutcomes(answers);
        const successCount = (counts['200'] ?? 0) + (counts['201'] ?? 0);
        expect([successCount, counts['409 conflict']], `${edit.name}: ${JSON.stringify(counts)}`).to.deep.equal([1, 11]);
        const winner = answers.find(({ status }) => status < 300);
        expect(winner?.headers.get('etag'), edit.name).to.equal(await tagOf());
      }
    });

    it('are not overwritten by an edit without a tag', async () => {
      const { service } = racing();
      const tenant = await populate(service, 'mixed');
      const path = `/client/${tenant.ids.client}`;
      const { token } = tenant;
      const patch = (description: string, ifMatch?: string) => {
        const json = { roles: ['presentation:request'], description };
        return service.call('PATCH', path, { token, json, headers: ifMatch ? { 'If-Match': ifMatch } : {} });
      };
      for (let attempt = 0; attempt < 5; attempt++) {
        const tag = (await service.call('GET', path, { token })).headers.get('etag') ?? '';
        const answers = await callInParallel(8, (n) => patch(`${attempt} ${n}`, n % 2 === 0 ? tag : undefined));
        for (const { status, text } of answers) expect(status, text).to.be.oneOf([200, 409]);
        const conditionalEdits = answers.filter((_, n) => n % 2 === 0);
        expect(conditionalEdits.filter(({ status }) => status === 200).length).to.be.at.most(1);
      }
    });
  },
];

const DAY_MS = 24 * 60 * 60 * 1000;

export const keys: RaceSuite = [
  'key chains',
  (racing) => {
    const call = (method: string, path: string, json?: object): Promise<Answer> =>
      racing().service.call(method, path, { token: racing().token, ...(json === undefined ? {} : { json }) });
    const create = (id: string, overrides: object = {}) => {
      const { service, token } = racing();
      return createResource(service, token, '/key-chain', { id, usageType: 'signing', ...overrides });
    };
    const kid = ({ key }: { key: { kid: string } }): string => key.kid;

    it('are rotated one after the other, and every key that signed stays published', async () => {
      const creation = await create('contested');
      const answers = await callInParallel(20, () => call('POST', '/key-chain/contested/rotate'));
      const { 200: deletedCount = 0, '409 conflict': conflictCount = 0 } = countOutcomes(answers);
      expect(deletedCount + conflictCount, JSON.stringify(countOutcomes(answers))).to.equal(20);
      expect(deletedCount).to.be.greaterThan(0);
      const { body: chain } = await call('GET', '/key-chain/contested');
      const active = answers.filter(({ status }) => status === 200).map(({ body }) => body.activeKey.kid);
      expect(new Set(active).size, 'each created its own').to.equal(deletedCount);
      const knownKeys = [chain.activeKey.kid, ...chain.previousKeys.map(kid)];
      expect(knownKeys).to.have.members([...active, creation.activeKey.kid]);
      const { keys } = (await call('GET', `/${racing().wallet.tenant}/.well-known/jwks.json`)).body;
      expect(keys.map((key: { kid: string }) => key.kid)).to.include.members(knownKeys);
      const leaf = new X509Certificate(chain.activeCertificate);
      const { x } = leaf.publicKey.export({ format: 'jwk' });
      expect(x, 'key and certificate must be sent together').to.equal(chain.activeKey.x);
    });

    it('sign concurrent credentials, each under its own certificate', async () => {
      const { wallet } = racing();
      const sessions = await prepareSessions(racing(), 12);
      const [issuedCertificates] = await Promise.all([
        callInParallel(12, (index) => wallet.request(sessions[index]?.accessToken ?? '', 'pid', { key: newKey() })),
        callInParallel(6, () => call('POST', '/key-chain/signing/rotate')),
      ]);
      for (const { status, body, text } of issuedCertificates) {
        expect(status, text).to.equal(200);
        const leaf = verifyWithLeaf(body.credentials[0].credential.split('~')[0]);
        const { body: chain } = await call('GET', '/key-chain/signing');
        expect(leaf.verify(new X509Certificate(chain.rootCertificate).publicKey)).to.equal(true);
      }
    });

    it('are either deleted or rotated when both are requested at once', async () => {
      for (let attempt = 0; attempt < 5; attempt++) {
        await create(`fickle-${attempt}`);
        const [removal, rotation] = await Promise.all([
          call('DELETE', `/key-chain/fickle-${attempt}`),
          call('POST', `/key-chain/fickle-${attempt}/rotate`),
        ]);
        expect(removal.status).to.equal(200);
        expect(rotation.status).to.be.oneOf([200, 404]);
        expect((await call('GET', `/key-chain/fickle-${attempt}`)).status).to.equal(404);
      }
    });

    const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

    it('stay deleted when a certificate is created for them simultaneously', async () => {
      for (let attempt = 0; attempt < 24; attempt++) {
        const id = `going-${attempt}`;
        const { key } = await createResource(racing().service, racing().token, '/key', { id });
        const [creation, removal] = await Promise.all([
          call('POST', '/certs', { id: `cert-${attempt}`, keyId: id, certUsageTypes: ['signing'] }),
          pause(attempt % 6).then(() => call('DELETE', `/key/${id}`)),
        ]);
        expect(removal.status).to.equal(200);
        expect(creation.status).to.be.oneOf([201, 404]);
        expect((await call('GET', `/certs/cert-${attempt}`)).status, `round ${attempt}`).to.equal(404);
        const { keys } = (await call('GET', `/${racing().wallet.tenant}/.well-known/jwks.json`)).body;
        expect(keys.map((key: { kid: string }) => key.kid)).to.not.include(key.kid);
      }
    });

    it('are imported once under one id', async () => {
      const key = newKey().privateKey.export({ format: 'jwk' });
      const answers = await callInParallel(10, () => call('POST', '/key-chain/import', { id: 'wanted', usageType: 'signing', key }));
      expect(countOutcomes(answers)).to.deep.equal({ 201: 1, '409 conflict': 9 });
    });

    it('are rotated once by many simultaneous maintenance runs', async () => {
      await create('due', { rotationEnabled: true, rotationIntervalDays: 20 });
      const maintenanceJob = racing().service.service.container.get(RenewKeyChains);
      const clock = sinon.useFakeTimers({ now: Date.now() + 21 * DAY_MS, toFake: ['Date'] });
      try {
        await callInParallel(8, () => maintenanceJob.execute(new Date(), 100));
      } finally {
        clock.restore();
      }
      expect((await call('GET', '/key-chain/due')).body.previousKeys).to.have.length(1);
    });
  },
];
