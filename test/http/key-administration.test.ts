import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { CertificateAuthority } from '../../application/ports/certificate-authority.ts';
import type { Role } from '../../domain/clients/role.ts';
import { writePemCertificates } from '../../domain/formats/der/pem.ts';
import { KEY_USAGES, type KeyUsage } from '../../domain/keys/key-chain.ts';
import { SIGNING_ALGORITHMS } from '../../domain/shared/jwk.ts';
import { addClient, createResource, type PopulatedTenant, populate } from '../support/populated.ts';
import { QUERY } from '../support/present.ts';
import { newKey } from '../support/raw-wallet.ts';
import { type CertifiedKey, certify, certifyKey } from '../support/test-certificates.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const ISSUER = 'issuance:manage';
const VERIFIER = 'presentation:manage';
const REQUIRED_ROLES: Readonly<Record<KeyUsage, Role>> = { access: VERIFIER, signing: ISSUER, statusList: ISSUER, trustList: ISSUER };
const privateKey = () => newKey().privateKey.export({ format: 'jwk' });

describe('key roles', () => {
  let service: TestService;
  let world: PopulatedTenant;
  const tokens = new Map<string, string>();
  let root: CertifiedKey;
  let count = 0;
  const newId = () => `fresh-${++count}`;

  before(async () => {
    service = await startTestService();
    world = await populate(service, 'acme');
    for (const role of [ISSUER, VERIFIER] as const) {
      tokens.set(role, await addClient(world, role.replace(':', '-'), { roles: [role] }));
    }
    tokens.set('both', world.token);
    root = await certify({ name: 'Root', ca: true });
  });
  after(() => service.close());

  const callAs = (role: string, method: string, path: string, json?: object): Promise<Answer> =>
    service.call(method, path, { token: tokens.get(role) ?? '', ...(json === undefined ? {} : { json }) });
  const make = async (body: object): Promise<string> => {
    const id = newId();
    await createResource(service, world.token, '/key-chain', { id, ...body });
    return id;
  };
  const certifyKeyOf = async (id: string): Promise<string> => {
    const { activeKey } = (await callAs('both', 'GET', `/key-chain/${id}`)).body;
    return writePemCertificates([await certifyKey(activeKey, { name: 'Outside', by: root })]);
  };
  const expectForbidden = (answer: Answer, message: string) => {
    expect([answer.status, answer.body?.code], `${message}: ${answer.text}`).to.deep.equal([403, 'forbidden']);
    expect(answer.body.detail).to.match(/require the role (issuance|presentation):manage/);
  };

  /** Each operation runs on a separate key chain. */
  const OPERATIONS: Readonly<Record<string, (role: string, id: string, usage: KeyUsage) => Promise<Answer>>> = {
    'create under its authority': (role, id, usage) => callAs(role, 'POST', '/key-chain', { usageType: usage, rootKeyChainId: id }),
    create: (role, _, usage) => callAs(role, 'POST', '/key-chain', { id: newId(), usageType: usage }),
    import: (role, _, usage) => callAs(role, 'POST', '/key-chain/import', { id: newId(), usageType: usage, key: privateKey() }),
    'import under its authority': (role, id, usage) =>
      callAs(role, 'POST', '/key-chain/import', { usageType: usage, rootKeyChainId: id, key: privateKey() }),
    'POST /key': (role, _, usage) => callAs(role, 'POST', '/key', { usages: [usage], key: privateKey() }),
    describe: (role, id) => callAs(role, 'PATCH', `/key-chain/${id}`, { description: 'Changed' }),
    'PATCH /certs': (role, id) => callAs(role, 'PATCH', `/certs/${id}`, { description: 'Changed' }),
    'its certificates': async (role, id) => callAs(role, 'PATCH', `/certs/${id}`, { crt: await certifyKeyOf(id) }),
    rotate: (role, id) => callAs(role, 'POST', `/key-chain/${id}/rotate`, {}),
    'request a certificate': (role, id) => callAs(role, 'POST', `/key-chain/${id}/csr`, {}),
    'POST /certs/{id}/csr': (role, id) => callAs(role, 'POST', `/certs/${id}/csr`, {}),
    'another certificate': (role, id, usage) => callAs(role, 'POST', '/certs', { keyId: id, certUsageTypes: [usage] }),
    delete: (role, id) => callAs(role, 'DELETE', `/key-chain/${id}`),
    'DELETE /certs': (role, id) => callAs(role, 'DELETE', `/certs/${id}`),
    'DELETE /key': (role, id) => callAs(role, 'DELETE', `/key/${id}`),
  };

  for (const usage of KEY_USAGES) {
    const requiredRole = REQUIRED_ROLES[usage];
    const otherRole = requiredRole === ISSUER ? VERIFIER : ISSUER;
    for (const [operation, run] of Object.entries(OPERATIONS)) {
      it(`allow ${requiredRole} and not ${otherRole}: ${operation} (${usage})`, async () => {
        const id = await make({ usageType: usage });
        expectForbidden(await run(otherRole, id, usage), otherRole);
        expect((await callAs('both', 'GET', `/key-chain/${id}`)).body.description).to.equal(null);
        const answer = await run(requiredRole, id, usage);
        expect(answer.status, answer.text).to.be.oneOf([200, 201]);
      });
    }
  }

  for (const [operation, run] of Object.entries(OPERATIONS)) {
    it(`are both required for a key with both usages: ${operation}`, async () => {
      const id = await make({ usages: ['access', 'signing'] });
      for (const role of [ISSUER, VERIFIER]) {
        if (operation === 'create' || operation === 'import' || operation === 'POST /key') continue;
        expectForbidden(await run(role, id, role === ISSUER ? 'signing' : 'access'), role);
      }
      const answer = await run('both', id, 'signing');
      expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    });
  }

  describe('for a key whose private part the importer has', () => {
    for (const usage of ['signing', 'access', 'statusList'] as const) {
      it(`do not certify it as ${usage} under the authority of the issuer for ${VERIFIER}`, async () => {
        const before = (await callAs('both', 'GET', '/key-chain')).body.length;
        for (const rootKeyChainId of ['signing', 'status-list', 'trust-list']) {
          const body = { usageType: usage, key: privateKey(), rootKeyChainId };
          expectForbidden(await callAs(VERIFIER, 'POST', '/key-chain/import', body), rootKeyChainId);
        }
        expect((await callAs('both', 'GET', '/key-chain')).body.length).to.equal(before);
      });
    }

    it('certify it under an authority for other usages for a client with both roles', async () => {
      for (const [usageType, rootKeyChainId] of [
        ['access', 'signing'],
        ['access', 'trust-list'],
        ['signing', 'access'],
        ['statusList', 'access'],
      ]) {
        const body = { usageType, key: privateKey(), rootKeyChainId };
        const answer = await callAs('both', 'POST', '/key-chain/import', body);
        expect(answer.status, answer.text).to.equal(201);
      }
      const answer = await callAs('both', 'POST', '/certs', { keyId: 'signing', certUsageTypes: ['access'] });
      expect(answer.status, answer.text).to.equal(201);
      expect(answer.body.warnings).to.have.length.greaterThan(0);
    });

    it('do not certify it under a CA whose usage is set later', async () => {
      const { body: keyWithoutUsage } = await callAs('both', 'POST', '/key', { id: newId() });
      const body = { usageType: 'access', key: privateKey(), rootKeyChainId: keyWithoutUsage.id };
      expect((await callAs(VERIFIER, 'POST', '/key-chain/import', body)).status).to.equal(400);
    });
  });

  it('let a client with both roles change the usage of a key chain without a profile, with a warning', async () => {
    for (const [oldUsages, newUsages] of [
      [['access'], ['signing']],
      [['access'], ['access', 'signing']],
      [['access', 'signing'], ['access']],
      [['statusList'], ['access']],
    ]) {
      const id = await make({ usages: oldUsages });
      const answer = await callAs('both', 'PATCH', `/key-chain/${id}`, { usages: newUsages });
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.body.warnings, JSON.stringify(newUsages)).to.not.equal(undefined);
    }
    const id = await make({ usages: ['statusList'] });
    const change = await callAs(ISSUER, 'PATCH', `/key-chain/${id}`, { usages: ['signing', 'trustList'] });
    expect(change.status, change.text).to.equal(200);
  });

  it('let any client that may assign a usage set it for a key without usages', async () => {
    for (const [role, usage] of [
      [VERIFIER, 'access'],
      [ISSUER, 'signing'],
    ] as const) {
      const { body } = await callAs(role, 'POST', '/key', { id: newId() });
      const otherUsage = usage === 'access' ? 'signing' : 'access';
      expectForbidden(await callAs(role, 'PATCH', `/key-chain/${body.id}`, { usages: [otherUsage] }), role);
      expectForbidden(await callAs(role, 'POST', '/certs', { keyId: body.id, certUsageTypes: [otherUsage] }), `certificate of ${role}`);
      const answer = await callAs(role, 'PATCH', `/key-chain/${body.id}`, { usages: [usage] });
      expect(answer.status, answer.text).to.equal(200);
    }
  });

  it('let only issuers write trust lists and status lists, and both read them', async () => {
    const { trustList } = world.ids;
    const entities = [{ type: 'internal', issuerKeyChainId: 'signing', info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' } }];
    for (const [method, path, json] of [
      ['POST', '/trust-list', { id: newId(), entities }],
      ['PUT', `/trust-list/${trustList}`, { entities }],
      ['PATCH', `/trust-list/${trustList}`, { description: 'Mine' }],
      ['DELETE', `/trust-list/${trustList}`, undefined],
      ['POST', '/status-lists', { capacity: 1000 }],
      ['PATCH', `/status-lists/${world.ids.statusList}`, { credentialConfigurationId: null }],
      ['DELETE', `/status-lists/${world.ids.statusList}`, undefined],
      ['PUT', '/status-list-config', { bits: 2 }],
    ] as const) {
      const answer = await callAs(VERIFIER, method, path, json);
      expect([answer.status, answer.body.code], `${method} ${path}`).to.deep.equal([403, 'forbidden']);
    }
    expect((await callAs(VERIFIER, 'GET', `/trust-list/${trustList}`)).status).to.equal(200);
  });
});

/** Three KMS providers; one database stores the keys of all of them, which no caller can see. */
const KMS_CONFIG = JSON.stringify({
  default: 'local',
  providers: { local: { type: 'local' }, house: { type: 'local' }, bank: { type: 'local', onlyFor: ['bank'] } },
  tenants: { configured: 'house' },
});

describe('key providers over HTTP', () => {
  let service: TestService;
  let root: string;

  before(async () => {
    service = await startTestService({ KMS_CONFIG });
    root = await service.rootToken();
  });
  after(() => service.close());

  const call = (method: string, path: string, token: string, json?: unknown): Promise<Answer> =>
    service.call(method, path, { token, ...(json === undefined ? {} : { json }) });
  const readProviders = async (token: string) =>
    (await call('GET', '/key-chain/providers', token)).body as { name: string; own: boolean }[];
  const expectInvalid = (answer: Answer, path: string, message: RegExp) => {
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
    expect(answer.body.errors[0].path).to.equal(path);
    expect(answer.body.errors[0].message).to.match(message);
  };

  it('are shown with their capabilities, owner and availability', async () => {
    const { token } = await createTenant(service, 'acme');
    const commonProperties = { type: 'local', algorithms: [...SIGNING_ALGORITHMS], status: 'up' };
    expect(await readProviders(token)).to.deep.equal([
      { name: 'local', default: true, own: true, ...commonProperties },
      { name: 'house', default: false, own: false, ...commonProperties },
    ]);
  });

  it('create the first keys of a tenant in the configured provider, otherwise in the default of its creation', async () => {
    const { token } = await createTenant(service, 'configured');
    const chains = (await call('GET', '/key-chain', token)).body as { kmsProvider: string }[];
    expect(new Set(chains.map(({ kmsProvider }) => kmsProvider))).to.deep.equal(new Set(['house']));
    expect((await readProviders(token)).find(({ own }) => own)?.name).to.equal('house');

    const creation = await call('POST', '/tenant', root, { id: 'chosen', name: 'Chosen', kms: 'house' });
    expect([creation.status, creation.body.kms], creation.text).to.deep.equal([201, 'house']);
  });

  it('are changed for the next key of a tenant, and existing keys stay', async () => {
    const { token } = await createTenant(service, 'moving');
    const change = await call('PATCH', '/tenant/moving', root, { kms: 'house' });
    expect([change.status, change.body.kms], change.text).to.deep.equal([200, 'house']);
    expect((await call('GET', '/key-chain/signing', token)).body.kmsProvider).to.equal('local');
    const next = await call('POST', '/key-chain', token, { id: 'next', usageType: 'signing' });
    expect(next.body.kmsProvider, next.text).to.equal('house');
    const key = await call('POST', '/key', token, { id: 'a-key' });
    expect(key.body.kmsProvider, key.text).to.equal('house');
    const creation = await call('POST', '/key-chain', token, { id: 'elsewhere', usageType: 'access', kmsProvider: 'local' });
    expect(creation.body.kmsProvider, creation.text).to.equal('local');
    const reset = await call('PATCH', '/tenant/moving', root, { kms: null });
    expect(reset.body.kms).to.equal(null);
    const last = await call('POST', '/key-chain', token, { id: 'last', usageType: 'signing' });
    expect(last.body.kmsProvider, last.text).to.equal('local');
  });

  it('take over a key chain by a rotation, under either name', async () => {
    const { token } = await createTenant(service, 'rotating');
    const before = (await call('GET', '/key-chain/signing', token)).body;
    for (const [property, provider] of [
      ['provider', 'house'],
      ['kmsProvider', 'local'],
    ] as const) {
      const rotation = await call('POST', '/key-chain/signing/rotate', token, { [property]: provider });
      expect(rotation.status, rotation.text).to.equal(200);
      expect(rotation.body.kmsProvider).to.equal(provider);
      expect(rotation.body.rootCertificate).to.equal(before.rootCertificate);
    }
    const jwks = (await call('GET', '/rotating/.well-known/jwks.json', token)).body;
    expect(jwks.keys).to.have.length(3);
    const both = { provider: 'house', kmsProvider: 'local' };
    expectInvalid(await call('POST', '/key-chain/signing/rotate', token, both), 'kmsProvider', /either/);
  });

  it('are rejected with an unknown name or for a tenant without access', async () => {
    const { token } = await createTenant(service, 'strange');
    const expectedDetail = 'Unknown KMS provider "vault". Configured: local, house';
    const expectedMessage = /Unknown KMS provider "\w+"\. Configured: local, house/;
    expectInvalid(
      await call('POST', '/key-chain', token, { usageType: 'access', kmsProvider: 'vault' }),
      'kmsProvider',
      new RegExp(expectedDetail),
    );
    const rotate = (json: object) => call('POST', '/key-chain/signing/rotate', token, json);
    expectInvalid(await rotate({ provider: 'vault' }), 'provider', expectedMessage);
    expectInvalid(await rotate({ provider: 'bank' }), 'provider', expectedMessage);
    expectInvalid(await call('PATCH', '/tenant/strange', root, { kms: 'vault' }), 'kms', expectedMessage);
    expectInvalid(await call('PATCH', '/tenant/strange', root, { kms: 'bank' }), 'kms', /"bank" is not available to this/);
    expectInvalid(await call('POST', '/tenant', root, { id: 'never', name: 'Never', kms: 'vault' }), 'kms', expectedMessage);
    expect((await call('GET', '/tenant/never', root)).status).to.equal(404);

    const bankTenant = await createTenant(service, 'bank');
    expect((await readProviders(bankTenant.token)).map(({ name }) => name)).to.deep.equal(['local', 'house', 'bank']);
    const creation = await call('POST', '/key-chain', bankTenant.token, { usageType: 'access', kmsProvider: 'bank' });
    expect(creation.status, creation.text).to.equal(201);
  });
});

describe('concurrent issuance of a certificate', () => {
  let service: TestService;
  let token: string;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
  });
  afterEach(() => sinon.restore());
  after(() => service.close());

  const call = (method: string, path: string, json?: unknown) =>
    service.call(method, path, { token, ...(json === undefined ? {} : { json }) });
  const created = async (path: string, json: unknown) => {
    const answer = await call('POST', path, json);
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const outcome = ({ status, body }: Answer) => [status, body.errors?.[0].path ?? body.code];

  /** Sends a concurrent request between the issue of the next certificate and its storage. */
  const sendBeforeStorage = (method: string, path: string, json?: unknown): void => {
    const ca = service.service.container.get(CertificateAuthority);
    const issue = ca.issue.bind(ca);
    const stub = sinon.stub(ca, 'issue').callsFake(async (...contents) => {
      const certificate = await issue(...contents);
      stub.restore();
      const answer = await call(method, path, json);
      expect(answer.status, answer.text).to.equal(200);
      return certificate;
    });
  };

  const certifyAgain = (keyId: string) => call('POST', '/certs', { id: 'late', keyId, certUsageTypes: ['signing'] });
  const expectAbsent = async (id: string) => expect((await call('GET', `/key-chain/${id}`)).status).to.equal(404);

  it('does not restore a deleted key', async () => {
    const { key } = await created('/key', { id: 'gone' });
    sendBeforeStorage('DELETE', '/key/gone');
    expect(outcome(await certifyAgain('gone'))).to.deep.equal([404, 'not_found']);
    await expectAbsent('late');
    const { keys } = (await service.call('GET', '/acme/.well-known/jwks.json')).body;
    expect(keys.map(({ kid }: { kid: string }) => kid)).to.not.include(key.kid);
  });

  it('does not sign with a rotated key', async () => {
    await created('/key-chain', { id: 'turned', usageType: 'signing' });
    sendBeforeStorage('POST', '/key-chain/turned/rotate');
    expect(outcome(await certifyAgain('turned'))).to.deep.equal([409, 'conflict']);
    await expectAbsent('late');
    expect((await certifyAgain('turned')).status, 'a certificate for the new key').to.equal(201);
    const { body } = await call('GET', '/certs/late');
    expect(body.key.key).to.deep.equal((await call('GET', '/key-chain/turned')).body.activeKey);
  });

  for (const origin of ['made', 'brought']) {
    it(`does not certify anything ${origin} with a deleted authority`, async () => {
      await created('/key-chain', { id: 'above', usageType: 'signing' });
      sendBeforeStorage('DELETE', '/key-chain/above');
      const { privateKey } = generateKeyPairSync('ed25519');
      const body = { id: `below-${origin}`, usageType: 'statusList', rootKeyChainId: 'above' };
      const answer =
        origin === 'made'
          ? await call('POST', '/key-chain', body)
          : await call('POST', '/key-chain/import', { ...body, key: privateKey.export({ format: 'jwk' }) });
      expect(outcome(answer)).to.deep.equal([400, 'rootKeyChainId']);
      await expectAbsent(`below-${origin}`);
    });
  }

  it('keeps a certificate for mdocs when its key chain gets another key', async () => {
    await created('/key-chain', { id: 'mdocs', usageType: 'trustList' });
    sendBeforeStorage('POST', '/key-chain/mdocs/rotate');
    const usages = { usages: ['trustList', 'signing'] };
    expect(outcome(await call('PATCH', '/key-chain/mdocs', usages))).to.deep.equal([409, 'conflict']);
    expect((await call('GET', '/key-chain/mdocs')).body.usages).to.deep.equal(['trustList']);
    expect((await call('PATCH', '/key-chain/mdocs', usages)).status).to.equal(200);
  });
});

const CARD = {
  id: 'card',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
  vct: 'urn:card:1',
  claims: { name: 'Ada' },
  statusManagement: true,
};

describe('last key chain of a usage', () => {
  let service: TestService;
  let token: string;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
  });
  after(() => service.close());

  const status = async (method: string, path: string, json?: object) =>
    (await service.call(method, path, { token, ...(json === undefined ? {} : { json }) })).status;

  const usages: [string, string, string, object][] = [
    ['signing', 'signing', '/issuer/credentials', { ...CARD, statusManagement: false }],
    ['status-list', 'statusList', '/issuer/credentials', CARD],
    ['access', 'access', '/verifier/config', { id: 'card', dcql_query: QUERY }],
  ];
  for (const [id, usage, path, body] of usages) {
    it(`cannot be deleted while it is the default signer: ${usage}`, async () => {
      expect(await status('POST', path, body)).to.equal(201);
      expect(await status('PATCH', `/key-chain/${id}`, { usages: ['trustList'] })).to.equal(409);
      expect(await status('DELETE', `/key-chain/${id}`)).to.equal(409);
      const otherChain = { id: `other-${id}`, usages: [usage] };
      expect(await status('POST', '/key-chain', otherChain)).to.equal(201);
      expect(await status('PATCH', `/key-chain/${id}`, { usages: ['trustList'] })).to.equal(200);
      expect(await status('DELETE', `/key-chain/${id}`)).to.equal(200);
      expect(await status('DELETE', `/key-chain/${otherChain.id}`)).to.equal(409);
      expect(await status('DELETE', `${path}/card`)).to.equal(200);
      expect(await status('DELETE', `/key-chain/${otherChain.id}`)).to.equal(200);
      expect(await status('POST', '/key-chain', { id: `new-${id}`, usages: [usage] })).to.equal(201);
    });
  }
});
