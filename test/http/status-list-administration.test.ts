import { expect } from 'chai';
import { addClient, createResource, credentialBody } from '../support/populated.ts';
import { decode, issue, verifyWithLeaf } from '../support/present.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const RECORD = [
  ...['id', 'tenantId', 'credentialConfigurationId', 'certId', 'bits', 'capacity', 'usedEntries'],
  ...['availableEntries', 'uri', 'createdAt', 'expiresAt'],
];

describe('Status lists of a tenant for its administrators', () => {
  let service: TestService;

  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  /** A tenant that issues the credentials `card` and `badge`. */
  async function issuer(id: string, config: object = {}) {
    const tenant = await createTenant(service, id, { statusListConfig: config });
    const call = (method: string, path: string, json?: unknown) =>
      service.call(method, path, { token: tenant.token, ...(json === undefined ? {} : { json }) });
    const make = (json: object = {}) => createResource(service, tenant.token, '/status-lists', json);
    for (const credential of ['card', 'badge']) {
      await createResource(service, tenant.token, '/issuer/credentials', credentialBody(credential, 'signing'));
    }
    const listOf = async (credential: string): Promise<string> => {
      const { text } = await issue(service, tenant, credential);
      return decode(text).payload['status'].status_list.uri;
    };
    const lists = async () => (await call('GET', '/status-lists')).body;
    return { ...tenant, call, make, listOf, lists };
  }
  /** Key chains under another CA than that of the tenant's credentials. */
  const foreign = (token: string, id: string) => createResource(service, token, '/key-chain', { id, usageType: 'statusList' });

  it('are created with the current parameters of the tenant, or their own', async () => {
    const { make, call, lists } = await issuer('shapes', { bits: 2, capacity: 400, ttl: 900 });
    const list = await make();
    expect(list).to.include.all.keys(RECORD);
    expect(list).to.include({ tenantId: 'shapes', bits: 2, capacity: 400, ttl: 900, usedEntries: 0 });
    expect(list).to.include({ availableEntries: 400, credentialConfigurationId: null, certId: null });
    expect(list).to.include({ keyChainId: null, expiresAt: null, immediateUpdate: false });
    expect(list.uri).to.equal(`${service.address}/shapes/status-list/${list.id}`);
    expect((await service.call('GET', list.uri)).status).to.equal(200);
    const own = await make({ bits: 8, capacity: 100, ttl: null, immediateUpdate: true });
    expect(own).to.include({ bits: 8, capacity: 100, ttl: 900, immediateUpdate: true });
    expect((await call('PUT', '/status-list-config', { bits: 4, capacity: 200 })).status).to.equal(200);
    expect((await call('GET', `/status-lists/${list.id}`)).body).to.include({ bits: 2, capacity: 400 });
    expect(await make()).to.include({ bits: 4, capacity: 200 });
    expect((await lists()).map(({ bits }: { bits: number }) => bits)).to.have.members([2, 8, 4]);
    expect((await call('GET', `/status-lists/${list.id}`)).body.expiresAt).to.be.a('string');
    const { body } = await service.call('GET', '/shapes/status-lists');
    expect(body.status_lists).to.have.length(3).and.include(list.uri);
  });

  it('are rejected if they would be unusable', async () => {
    const { call, token } = await issuer('refused');
    await foreign(token, 'elsewhere');
    const refusals: readonly [object, string][] = [
      [{ capacity: 99 }, 'capacity'],
      [{ certId: 'access' }, 'certId'],
      [{ credentialConfigurationId: 'card', certId: 'elsewhere' }, 'certId'],
      [{ certId: 'signing', keyChainId: 'status-list' }, 'certId'],
      [{ entries: 5 }, 'entries'],
    ];
    for (const [json, path] of refusals) {
      const { status, body } = await call('POST', '/status-lists', json);
      expect([status, body.errors?.[0]?.path], JSON.stringify(json)).to.deep.equal([400, path]);
    }
    expect((await call('GET', '/status-lists')).body).to.deep.equal([]);
  });

  it('contain only the credentials of their configuration', async () => {
    const { make, listOf, lists, call } = await issuer('bound');
    const [shared, own] = [await make(), await make({ credentialConfigurationId: 'card' })];
    expect(own.credentialConfigurationId).to.equal('card');
    expect(await listOf('card')).to.equal(own.uri);
    expect(await listOf('badge')).to.equal(shared.uri);
    const used = (await lists()).map(({ usedEntries }: { usedEntries: number }) => usedEntries > 0);
    expect(used).to.deep.equal([true, true]);
    const rebound = await call('PATCH', `/status-lists/${own.id}`, { credentialConfigurationId: 'badge' });
    expect(rebound.body, rebound.text).to.include({ id: own.id, credentialConfigurationId: 'badge' });
    expect(await listOf('badge')).to.equal(own.uri);
    expect(await listOf('card')).to.equal(shared.uri);
    const nowhere = await call('PATCH', `/status-lists/${own.id}`, { credentialConfigurationId: 'nothing' });
    expect([nowhere.status, nowhere.body.errors[0].path]).to.deep.equal([400, 'credentialConfigurationId']);
    for (const made of [{ bits: 2 }, { capacity: 500 }]) {
      const refused = await call('PATCH', `/status-lists/${own.id}`, made);
      expect([refused.status, refused.body.errors[0].path]).to.deep.equal([400, Object.keys(made)[0]]);
    }
    const { body } = await call('PATCH', `/status-lists/${own.id}`, { usedEntries: 0 });
    expect(body, 'what it is made of stays').to.include({ bits: 1, capacity: 100_000 });
    expect(body.usedEntries).to.be.greaterThan(0);
    expect((await call('PATCH', '/status-lists/nothing', {})).status).to.equal(404);
  });

  it('report the number of allocated entries, without reserved ones', async () => {
    const { make, listOf, lists, call } = await issuer('counted');
    await make();
    for (const used of [1, 2, 3]) {
      await listOf('card');
      const [list] = await lists();
      expect([list.usedEntries, list.availableEntries]).to.deep.equal([used, 100_000 - used]);
      expect((await call('GET', `/status-lists/${list.id}`)).body.usedEntries).to.equal(used);
      expect((await call('PATCH', `/status-lists/${list.id}`, {})).body.usedEntries).to.equal(used);
    }
    const [{ id }] = await lists();
    expect((await call('DELETE', `/status-lists/${id}`)).status).to.equal(409);
  });

  for (const immediateUpdate of [true, false]) {
    it(`report the expiry of their last token, with immediateUpdate ${immediateUpdate}`, async () => {
      const { make, call, listOf, lists } = await issuer(`ends-${immediateUpdate}`, { immediateUpdate });
      const list = await make({ ttl: 300 });
      await listOf('card');
      const end = async () => (await call('GET', `/status-lists/${list.id}`)).body.expiresAt;
      expect(await end()).to.equal(null);
      const published = async () => decode((await service.call('GET', list.uri)).text).payload['exp'];
      for (const what of ['first', 'second']) {
        const exp = await published();
        expect(await end(), what).to.equal(new Date(exp * 1000).toISOString());
        expect((await lists())[0].expiresAt).to.equal(await end());
        expect((await call('PATCH', `/status-lists/${list.id}`, { certId: 'status-list' })).status).to.equal(200);
        await new Promise((resolve) => setTimeout(resolve, 1_000));
      }
    });
  }

  it('are signed by their key chain, and by a new key chain from the next token on', async () => {
    const { make, call, token } = await issuer('signers', { immediateUpdate: true });
    await foreign(token, 'elsewhere');
    const list = await make({ certId: 'elsewhere' });
    expect(list).to.include({ certId: 'elsewhere', keyChainId: 'elsewhere' });
    const signer = async () => verifyWithLeaf((await service.call('GET', list.uri)).text).raw.toString('base64');
    const leafOf = async (id: string) => (await call('GET', `/certs/${id}`)).body.crt[0].replaceAll(/-----[^-]+-----|\s/g, '');
    expect(await signer()).to.equal(await leafOf('elsewhere'));
    const changed = await call('PATCH', `/status-lists/${list.id}`, { certId: null });
    expect(changed.body, changed.text).to.include({ certId: null });
    expect(await signer()).to.equal(await leafOf('status-list'));
    expect((await call('DELETE', '/key-chain/elsewhere')).status).to.equal(200);
  });

  it('allocate no entry under a CA that readers of the credential do not trust', async () => {
    const { make, listOf, call, token } = await issuer('trusted');
    await foreign(token, 'elsewhere');
    const strange = await make({ certId: 'elsewhere' });
    const named = await make({ certId: 'status-list' });
    expect(await listOf('card')).to.equal(named.uri);
    const patched = await call('PATCH', `/status-lists/${named.id}`, { certId: 'elsewhere' });
    expect([patched.status, patched.body.code]).to.deep.equal([409, 'conflict']);
    expect((await call('PATCH', `/status-lists/${named.id}`, { certId: null })).status).to.equal(200);
    expect((await call('GET', `/status-lists/${strange.id}`)).body.usedEntries).to.equal(0);
    expect((await call('DELETE', '/key-chain/elsewhere')).status, 'named by a list').to.equal(409);
  });

  it('can be deleted while no credential uses them, and only then', async () => {
    const { make, listOf, call, lists } = await issuer('going');
    const [one, two] = [await make(), await make()];
    expect((await service.call('GET', one.uri)).status).to.equal(200);
    const inUse = await listOf('card');
    const [used, unused] = inUse === one.uri ? [one, two] : [two, one];
    const refused = await call('DELETE', `/status-lists/${used.id}`);
    expect([refused.status, refused.body.code]).to.deep.equal([409, 'conflict']);
    const gone = await call('DELETE', `/status-lists/${unused.id}`);
    expect([gone.status, gone.text]).to.deep.equal([204, '']);
    expect((await call('DELETE', `/status-lists/${unused.id}`)).status).to.equal(404);
    expect((await call('GET', `/status-lists/${unused.id}`)).status).to.equal(404);
    expect((await service.call('GET', unused.uri)).status).to.equal(404);
    expect((await lists()).map(({ id }: { id: string }) => id)).to.deep.equal([used.id]);
    expect(await listOf('card')).to.equal(used.uri);
  });

  it('are created again after all were deleted', async () => {
    const { make, listOf, call } = await issuer('anew');
    const list = await make();
    expect((await call('DELETE', `/status-lists/${list.id}`)).status).to.equal(204);
    const uri = await listOf('card');
    expect(uri).to.not.equal(list.uri);
    expect((await service.call('GET', uri)).status).to.equal(200);
  });

  it('are read, but not written, by restricted clients', async () => {
    const { make, token } = await issuer('narrow');
    const list = await make();
    const rights = { roles: ['issuance:manage'], allowedIssuanceConfigs: ['card'] };
    const narrow = await addClient({ service, token }, 'narrow-client', rights);
    const call = (method: string, path: string, json?: object) => service.call(method, path, { token: narrow, ...(json && { json }) });
    expect((await call('GET', '/status-lists')).status).to.equal(200);
    expect((await call('GET', `/status-lists/${list.id}`)).status).to.equal(200);
    expect((await call('POST', '/status-lists', {})).status).to.equal(403);
    expect((await call('PATCH', `/status-lists/${list.id}`, {})).status).to.equal(403);
    expect((await call('DELETE', `/status-lists/${list.id}`)).status).to.equal(403);
  });
});
