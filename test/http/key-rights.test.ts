import { expect } from 'chai';
import type { Role } from '../../domain/clients/role.ts';
import { writePemCertificates } from '../../domain/formats/der/pem.ts';
import { KEY_USAGES, type KeyUsage } from '../../domain/keys/key-chain.ts';
import { addClient, created, type Populated, populate } from '../support/populated.ts';
import { newKey } from '../support/raw-wallet.ts';
import { type Certified, certify, certifyKey } from '../support/test-certificates.ts';
import { type Answer, startTestService, type TestService } from '../support/test-service.ts';

const ISSUER = 'issuance:manage';
const VERIFIER = 'presentation:manage';
const NEEDED: Readonly<Record<KeyUsage, Role>> = {
  access: VERIFIER,
  signing: ISSUER,
  statusList: ISSUER,
  trustList: ISSUER,
};
const privateKey = () => newKey().privateKey.export({ format: 'jwk' });

describe('Who may touch which key', () => {
  let service: TestService;
  let world: Populated;
  const tokens = new Map<string, string>();
  let root: Certified;
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
    await created(service, world.token, '/key-chain', { id, ...body });
    return id;
  };
  const certificateOf = async (id: string): Promise<string> => {
    const { activeKey } = (await as('both', 'GET', `/key-chain/${id}`)).body;
    return writePemCertificates([await certifyKey(activeKey, { name: 'Outside', by: root })]);
  };
  const expectRefusal = (answer: Answer, message: string) => {
    expect([answer.status, answer.body?.code], `${message}: ${answer.text}`).to.deep.equal([
      403,
      'forbidden',
    ]);
    expect(answer.body.detail).to.match(/need the role (issuance|presentation):manage/);
  };

  /** Each is done to a key chain of its own. */
  const OPERATIONS: Readonly<Record<string, (who: string, id: string, usage: KeyUsage) => Promise<Answer>>> =
    {
      'create under its authority': (who, id, usage) =>
        as(who, 'POST', '/key-chain', { usageType: usage, rootKeyChainId: id }),
      create: (who, _, usage) => as(who, 'POST', '/key-chain', { id: fresh(), usageType: usage }),
      import: (who, _, usage) =>
        as(who, 'POST', '/key-chain/import', { id: fresh(), usageType: usage, key: privateKey() }),
      'import under its authority': (who, id, usage) =>
        as(who, 'POST', '/key-chain/import', { usageType: usage, rootKeyChainId: id, key: privateKey() }),
      'POST /key': (who, _, usage) => as(who, 'POST', '/key', { usages: [usage], key: privateKey() }),
      describe: (who, id) => as(who, 'PATCH', `/key-chain/${id}`, { description: 'Changed' }),
      'PATCH /certs': (who, id) => as(who, 'PATCH', `/certs/${id}`, { description: 'Changed' }),
      'its certificates': async (who, id) =>
        as(who, 'PATCH', `/certs/${id}`, { crt: await certificateOf(id) }),
      rotate: (who, id) => as(who, 'POST', `/key-chain/${id}/rotate`, {}),
      'request a certificate': (who, id) => as(who, 'POST', `/key-chain/${id}/csr`, {}),
      'POST /certs/{id}/csr': (who, id) => as(who, 'POST', `/certs/${id}/csr`, {}),
      'another certificate': (who, id, usage) =>
        as(who, 'POST', '/certs', { keyId: id, certUsageTypes: [usage] }),
      delete: (who, id) => as(who, 'DELETE', `/key-chain/${id}`),
      'DELETE /certs': (who, id) => as(who, 'DELETE', `/certs/${id}`),
      'DELETE /key': (who, id) => as(who, 'DELETE', `/key/${id}`),
    };

  for (const usage of KEY_USAGES) {
    const needed = NEEDED[usage];
    const other = needed === ISSUER ? VERIFIER : ISSUER;
    for (const [operation, act] of Object.entries(OPERATIONS)) {
      it(`${needed} may, and ${other} may not: ${operation} (${usage})`, async () => {
        const id = await make({ usageType: usage });
        expectRefusal(await act(other, id, usage), other);
        expect((await as('both', 'GET', `/key-chain/${id}`)).body.description).to.equal(null);
        const answer = await act(needed, id, usage);
        expect(answer.status, answer.text).to.be.oneOf([200, 201]);
      });
    }
  }

  for (const [operation, act] of Object.entries(OPERATIONS)) {
    it(`a key for both needs both roles: ${operation}`, async () => {
      const id = await make({ usages: ['access', 'signing'] });
      for (const who of [ISSUER, VERIFIER]) {
        if (operation === 'create' || operation === 'import' || operation === 'POST /key') continue;
        expectRefusal(await act(who, id, who === ISSUER ? 'signing' : 'access'), who);
      }
      const answer = await act('both', id, 'signing');
      expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    });
  }

  describe('A key that its importer knows', () => {
    for (const usage of ['signing', 'access', 'statusList'] as const) {
      it(`is not certified as ${usage} under the authority of the issuer for ${VERIFIER}`, async () => {
        const before = (await as('both', 'GET', '/key-chain')).body.length;
        for (const rootKeyChainId of ['signing', 'status-list', 'trust-list']) {
          const body = { usageType: usage, key: privateKey(), rootKeyChainId };
          expectRefusal(await as(VERIFIER, 'POST', '/key-chain/import', body), rootKeyChainId);
        }
        expect((await as('both', 'GET', '/key-chain')).body.length).to.equal(before);
      });
    }

    it('is certified under an authority for other usages for a client with both roles', async () => {
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

    it('does not come under an authority that gets its purpose later', async () => {
      const { body: bare } = await as('both', 'POST', '/key', { id: fresh() });
      const body = { usageType: 'access', key: privateKey(), rootKeyChainId: bare.id };
      expect((await as(VERIFIER, 'POST', '/key-chain/import', body)).status).to.equal(400);
    });
  });

  it('a key chain may change sides without a profile, with a warning, by a client with both roles', async () => {
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

  it('a key without usages gets one from whoever may give it', async () => {
    for (const [who, usage] of [
      [VERIFIER, 'access'],
      [ISSUER, 'signing'],
    ] as const) {
      const { body } = await as(who, 'POST', '/key', { id: fresh() });
      const other = usage === 'access' ? 'signing' : 'access';
      expectRefusal(await as(who, 'PATCH', `/key-chain/${body.id}`, { usages: [other] }), who);
      expectRefusal(
        await as(who, 'POST', '/certs', { keyId: body.id, certUsageTypes: [other] }),
        `certificate of ${who}`,
      );
      const answer = await as(who, 'PATCH', `/key-chain/${body.id}`, { usages: [usage] });
      expect(answer.status, answer.text).to.equal(200);
    }
  });

  it('lists of issuers and of statuses are written by issuers alone, and read by both', async () => {
    const { trustList } = world.ids;
    const entities = [
      {
        type: 'internal',
        issuerKeyChainId: 'signing',
        info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' },
      },
    ];
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
