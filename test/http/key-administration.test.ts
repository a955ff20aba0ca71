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
const NEEDED: Readonly<Record<KeyUsage, Role>> = { access: VERIFIER, signing: ISSUER, statusList: ISSUER, trustList: ISSUER };
const privateKey = () => newKey().privateKey.export({ format: 'jwk' });

describe('key roles', () => {
  let service: TestService;
  let world: PopulatedTenant;
  const tokens = new Map<string, string>();
  let root: CertifiedKey;
  let count = 0;
  const fresh = () => `fresh-${++count}`;

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

  const as = (who: string, method: string, path: string, json?: object): Promise<Answer> =>
    service.call(method, path, { token: tokens.get(who) ?? '', ...(json === undefined ? {} : { json }) });
  const make = async (body: object): Promise<string> => {
    const id = fresh();
    await createResource(service, world.token, '/key-chain', { id, ...body });
    return id;
  };
  const certificateOf = async (id: string): Promise<string> => {
    const { activeKey } = (await as('both', 'GET', `/key-chain/${id}`)).body;
    return writePemCertificates([await certifyKey(activeKey, { name: 'Outside', by: root })]);
  };
  const expectRefusal = (answer: Answer, message: string) => {
    expect([answer.status, answer.body?.code], `${message}: ${answer.text}`).to.deep.equal([403, 'forbidden']);
    expect(answer.body.detail).to.match(/require the role (issuance|presentation):manage/);
  };

  /** Each is done to a key chain of its own. */
  const OPERATIONS: Readonly<Record<string, (who: string, id: string, usage: KeyUsage) => Promise<Answer>>> = {
    'create under its authority': (who, id, usage) => as(who, 'POST', '/key-chain', { usageType: usage, rootKeyChainId: id }),
    create: (who, _, usage) => as(who, 'POST', '/key-chain', { id: fresh(), usageType: usage }),
    import: (who, _, usage) => as(who, 'POST', '/key-chain/import', { id: fresh(), usageType: usage, key: privateKey() }),
    'import under its authority': (who, id, usage) =>
      as(who, 'POST', '/key-chain/import', { usageType: usage, rootKeyChainId: id, key: privateKey() }),
    'POST /key': (who, _, usage) => as(who, 'POST', '/key', { usages: [usage], key: privateKey() }),
    describe: (who, id) => as(who, 'PATCH', `/key-chain/${id}`, { description: 'Changed' }),
    'PATCH /certs': (who, id) => as(who, 'PATCH', `/certs/${id}`, { description: 'Changed' }),
    'its certificates': async (who, id) => as(who, 'PATCH', `/certs/${id}`, { crt: await certificateOf(id) }),
    rotate: (who, id) => as(who, 'POST', `/key-chain/${id}/rotate`, {}),
    'request a certificate': (who, id) => as(who, 'POST', `/key-chain/${id}/csr`, {}),
    'POST /certs/{id}/csr': (who, id) => as(who, 'POST', `/certs/${id}/csr`, {}),
    'another certificate': (who, id, usage) => as(who, 'POST', '/certs', { keyId: id, certUsageTypes: [usage] }),
    delete: (who, id) => as(who, 'DELETE', `/key-chain/${id}`),
    'DELETE /certs': (who, id) => as(who, 'DELETE', `/certs/${id}`),
    'DELETE /key': (who, id) => as(who, 'DELETE', `/key/${id}`),
  };

  for (const usage of KEY_USAGES) {
    const needed = NEEDED[usage];
    const other = needed === ISSUER ? VERIFIER : ISSUER;
    for (const [operation, act] of Object.entries(OPERATIONS)) {
      it(`allow ${needed} and not ${other}: ${operation} (${usage})`, async () => {
        const id = await make({ usageType: usage });
        expectRefusal(await act(other, id, usage), other);
        expect((await as('both', 'GET', `/key-chain/${id}`)).body.description).to.equal(null);
        const answer = await act(needed, id, usage);
        expect(answer.status, answer.text).to.be.oneOf([200, 201]);
      });
    }
  }

  for (const [operation, act] of Object.entries(OPERATIONS)) {
    it(`are both required for a key with both usages: ${operation}`, async () => {
      const id = await make({ usages: ['access', 'signing'] });
      for (const who of [ISSUER, VERIFIER]) {
        if (operation === 'create' || operation === 'import' || operation === 'POST /key') continue;
        expectRefusal(await act(who, id, who === ISSUER ? 'signing' : 'access'), who);
      }
      const answer = await act('both', id, 'signing');
      expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    });
  }

  describe('for a key whose private part its importer has', () => {
    for (const usage of ['signing', 'access', 'statusList'] as const) {
      it(`do not certify it as ${usage} under the authority of the issuer for ${VERIFIER}`, async () => {
        const before = (await as('both', 'GET', '/key-chain')).body.length;
        for (const rootKeyChainId of ['signing', 'status-list', 'trust-list']) {
          const body = { usageType: usage, key: privateKey(), rootKeyChainId };
          expectRefusal(await as(VERIFIER, 'POST', '/key-chain/import', body), rootKeyChainId);
        }
        expect((await as('both', 'GET', '/key-chain')).body.length).to.equal(before);
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
        const answer = await as('both', 'POST', '/key-chain/import', body);
        expect(answer.status, answer.text).to.equal(201);
      }
      const answer = await as('both', 'POST', '/certs', { keyId: 'signing', certUsageTypes: ['access'] });
      expect(answer.status, answer.text).to.equal(201);
      expect(answer.body.warnings).to.have.length.greaterThan(0);
    });

    it('do not certify it under an authority whose purpose is set later', async () => {
      const { body: bare } = await as('both', 'POST', '/key', { id: fresh() });
      const body = { usageType: 'access', key: privateKey(), rootKeyChainId: bare.id };
      expect((await as(VERIFIER, 'POST', '/key-chain/import', body)).status).to.equal(400);
    });
  });

  it('let a client with both roles change the usage of a key chain without a profile, with a warning', async () => {
    for (const [from, to] of [
      [['access'], ['signing']],
      [['access'], ['access', 'signing']],
      [['access', 'signing'], ['access']],
      [['statusList'], ['access']],
    ]) {
      const id = await make({ usages: from });
      const answer = await as('both', 'PATCH', `/key-chain/${id}`, { usages: to });
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.body.warnings, JSON.stringify(to)).to.not.equal(undefined);
    }
    const id = await make({ usages: ['statusList'] });
    const within = await as(ISSUER, 'PATCH', `/key-chain/${id}`, { usages: ['signing', 'trustList'] });
    expect(within.status, within.text).to.equal(200);
  });

  it('let any client that may assign a usage set it for a key without usages', async () => {
    for (const [who, usage] of [
      [VERIFIER, 'access'],
      [ISSUER, 'signing'],
    ] as const) {
      const { body } = await as(who, 'POST', '/key', { id: fresh() });
      const other = usage === 'access' ? 'signing' : 'access';
      expectRefusal(await as(who, 'PATCH', `/key-chain/${body.id}`, { usages: [other] }), who);
      expectRefusal(await as(who, 'POST', '/certs', { keyId: body.id, certUsageTypes: [other] }), `certificate of ${who}`);
      const answer = await as(who, 'PATCH', `/key-chain/${body.id}`, { usages: [usage] });
      expect(answer.status, answer.text).to.equal(200);
    }
  });

  it('let only issuers write trust lists and status lists, and both read them', async () => {
    const { trustList } = world.ids;
    const entities = [{ type: 'internal', issuerKeyChainId: 'signing', info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' } }];
    for (const [method, path, json] of [
      ['POST', '/trust-list', { id: fresh(), entities }],
      ['PUT', `/trust-list/${trustList}`, { entities }],
      ['PATCH', `/trust-list/${trustList}`, { description: 'Mine' }],
      ['DELETE', `/trust-list/${trustList}`, undefined],
      ['POST', '/status-lists', { capacity: 1000 }],
      ['PATCH', `/status-lists/${world.ids.statusList}`, { credentialConfigurationId: null }],
      ['DELETE', `/status-lists/${world.ids.statusList}`, undefined],
      ['PUT', '/status-list-config', { bits: 2 }],
    ] as const) {
      const answer = await as(VERIFIER, method, path, json);
      expect([answer.status, answer.body.code], `${method} ${path}`).to.deep.equal([403, 'forbidden']);
    }
    expect((await as(VERIFIER, 'GET', `/trust-list/${trustList}`)).status).to.equal(200);
  });
});

/** Three places for keys; the database holds them all, which no caller can tell. */
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
  const providersOf = async (token: string) => (await call('GET', '/key-chain/providers', token)).body as { name: string; own: boolean }[];
  const expectInvalid = (answer: Answer, path: string, words: RegExp) => {
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
    expect(answer.body.errors[0].path).to.equal(path);
    expect(answer.body.errors[0].message).to.match(words);
  };

  it('are shown with their capabilities, owner and availability', async () => {
    const { token } = await createTenant(service, 'acme');
    const common = { type: 'local', algorithms: [...SIGNING_ALGORITHMS], status: 'up' };
    expect(await providersOf(token)).to.deep.equal([
      { name: 'local', default: true, own: true, ...common },
      { name: 'house', default: false, own: false, ...common },
    ]);
  });

  it('create the first keys of a tenant in the configured provider, otherwise in the default of its creation', async () => {
    const { token } = await createTenant(service, 'configured');
    const chains = (await call('GET', '/key-chain', token)).body as { kmsProvider: string }[];
    expect(new Set(chains.map(({ kmsProvider }) => kmsProvider))).to.deep.equal(new Set(['house']));
    expect((await providersOf(token)).find(({ own }) => own)?.name).to.equal('house');

    const made = await call('POST', '/tenant', root, { id: 'chosen', name: 'Chosen', kms: 'house' });
    expect([made.status, made.body.kms], made.text).to.deep.equal([201, 'house']);
  });

  it('are changed for the next key of a tenant, and existing keys stay', async () => {
    const { token } = await createTenant(service, 'moving');
    const patched = await call('PATCH', '/tenant/moving', root, { kms: 'house' });
    expect([patched.status, patched.body.kms], patched.text).to.deep.equal([200, 'house']);
    expect((await call('GET', '/key-chain/signing', token)).body.kmsProvider).to.equal('local');
    const next = await call('POST', '/key-chain', token, { id: 'next', usageType: 'signing' });
    expect(next.body.kmsProvider, next.text).to.equal('house');
    const key = await call('POST', '/key', token, { id: 'a-key' });
    expect(key.body.kmsProvider, key.text).to.equal('house');
    const elsewhere = await call('POST', '/key-chain', token, { id: 'elsewhere', usageType: 'access', kmsProvider: 'local' });
    expect(elsewhere.body.kmsProvider, elsewhere.text).to.equal('local');
    const back = await call('PATCH', '/tenant/moving', root, { kms: null });
    expect(back.body.kms).to.equal(null);
    const last = await call('POST', '/key-chain', token, { id: 'last', usageType: 'signing' });
    expect(last.body.kmsProvider, last.text).to.equal('local');
  });

  it('take over a key chain by a rotation, under either name', async () => {
    const { token } = await createTenant(service, 'rotating');
    const before = (await call('GET', '/key-chain/signing', token)).body;
    for (const [member, provider] of [
      ['provider', 'house'],
      ['kmsProvider', 'local'],
    ] as const) {
      const rotated = await call('POST', '/key-chain/signing/rotate', token, { [member]: provider });
      expect(rotated.status, rotated.text).to.equal(200);
      expect(rotated.body.kmsProvider).to.equal(provider);
      expect(rotated.body.rootCertificate).to.equal(before.rootCertificate);
    }
    const jwks = (await call('GET', '/rotating/.well-known/jwks.json', token)).body;
    expect(jwks.keys).to.have.length(3);
    const both = { provider: 'house', kmsProvider: 'local' };
    expectInvalid(await call('POST', '/key-chain/signing/rotate', token, both), 'kmsProvider', /either/);
  });

  it('are rejected with an unknown name or for a tenant without access', async () => {
    const { token } = await createTenant(service, 'strange');
    const wrong = 'Unknown KMS provider "vault". Configured: local, house';
    const unknown = /Unknown KMS provider "\w+"\. Configured: local, house/;
    expectInvalid(await call('POST', '/key-chain', token, { usageType: 'access', kmsProvider: 'vault' }), 'kmsProvider', new RegExp(wrong));
    const rotate = (json: object) => call('POST', '/key-chain/signing/rotate', token, json);
    expectInvalid(await rotate({ provider: 'vault' }), 'provider', unknown);
    expectInvalid(await rotate({ provider: 'bank' }), 'provider', unknown);
    expectInvalid(await call('PATCH', '/tenant/strange', root, { kms: 'vault' }), 'kms', unknown);
    expectInvalid(await call('PATCH', '/tenant/strange', root, { kms: 'bank' }), 'kms', /"bank" is not available to this/);
    expectInvalid(await call('POST', '/tenant', root, { id: 'never', name: 'Never', kms: 'vault' }), 'kms', unknown);
    expect((await call('GET', '/tenant/never', root)).status).to.equal(404);

    const bank = await createTenant(service, 'bank');
    expect((await providersOf(bank.token)).map(({ name }) => name)).to.deep.equal(['local', 'house', 'bank']);
    const made = await call('POST', '/key-chain', bank.token, { usageType: 'access', kmsProvider: 'bank' });
    expect(made.status, made.text).to.equal(201);
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

  /** Somebody else sends this when the next certificate has been made, and before it is stored. */
  const meanwhile = (method: string, path: string, json?: unknown): void => {
    const authority = service.service.container.get(CertificateAuthority);
    const issue = authority.issue.bind(authority);
    const stub = sinon.stub(authority, 'issue').callsFake(async (...contents) => {
      const certificate = await issue(...contents);
      stub.restore();
      const answer = await call(method, path, json);
      expect(answer.status, answer.text).to.equal(200);
      return certificate;
    });
  };

  const another = (keyId: string) => call('POST', '/certs', { id: 'late', keyId, certUsageTypes: ['signing'] });
  const isAbsent = async (id: string) => expect((await call('GET', `/key-chain/${id}`)).status).to.equal(404);

  it('does not restore a deleted key', async () => {
    const { key } = await created('/key', { id: 'gone' });
    meanwhile('DELETE', '/key/gone');
    expect(outcome(await another('gone'))).to.deep.equal([404, 'not_found']);
    await isAbsent('late');
    const { keys } = (await service.call('GET', '/acme/.well-known/jwks.json')).body;
    expect(keys.map(({ kid }: { kid: string }) => kid)).to.not.include(key.kid);
  });

  it('does not sign with a rotated key', async () => {
    await created('/key-chain', { id: 'turned', usageType: 'signing' });
    meanwhile('POST', '/key-chain/turned/rotate');
    expect(outcome(await another('turned'))).to.deep.equal([409, 'conflict']);
    await isAbsent('late');
    expect((await another('turned')).status, 'for the new key').to.equal(201);
    const { body } = await call('GET', '/certs/late');
    expect(body.key.key).to.deep.equal((await call('GET', '/key-chain/turned')).body.activeKey);
  });

  for (const what of ['made', 'brought']) {
    it(`does not certify anything ${what} with a deleted authority`, async () => {
      await created('/key-chain', { id: 'above', usageType: 'signing' });
      meanwhile('DELETE', '/key-chain/above');
      const { privateKey } = generateKeyPairSync('ed25519');
      const body = { id: `below-${what}`, usageType: 'statusList', rootKeyChainId: 'above' };
      const answer =
        what === 'made'
          ? await call('POST', '/key-chain', body)
          : await call('POST', '/key-chain/import', { ...body, key: privateKey.export({ format: 'jwk' }) });
      expect(outcome(answer)).to.deep.equal([400, 'rootKeyChainId']);
      await isAbsent(`below-${what}`);
    });
  }

  it('keeps a certificate for mdocs when its key chain gets another key', async () => {
    await created('/key-chain', { id: 'mdocs', usageType: 'trustList' });
    meanwhile('POST', '/key-chain/mdocs/rotate');
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
      const other = { id: `other-${id}`, usages: [usage] };
      expect(await status('POST', '/key-chain', other)).to.equal(201);
      expect(await status('PATCH', `/key-chain/${id}`, { usages: ['trustList'] })).to.equal(200);
      expect(await status('DELETE', `/key-chain/${id}`)).to.equal(200);
      expect(await status('DELETE', `/key-chain/${other.id}`)).to.equal(409);
      expect(await status('DELETE', `${path}/card`)).to.equal(200);
      expect(await status('DELETE', `/key-chain/${other.id}`)).to.equal(200);
      expect(await status('POST', '/key-chain', { id: `new-${id}`, usages: [usage] })).to.equal(201);
    });
  }
});
