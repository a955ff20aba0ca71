import { expect } from 'chai';
import { Store } from '../../application/ports/store.ts';
import { RemoveEndedTenants } from '../../application/tenants/remove-ended-tenants.ts';
import { obtain } from '../../bootstrap/wiring/wire.ts';
import type { Client } from '../../domain/clients/client.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { NO_ORGANIZATION } from '../../domain/tenants/organization.ts';
import { httpDatabases, openRaw, type TestDatabase } from '../support/databases.ts';
import { issue, QUERY } from '../support/present.ts';
import { createTenant, startTestService, TENANT_ROLES, type TestService } from '../support/test-service.ts';

describe('Tenants through HTTP', () => {
  let service: TestService;
  let root: string;

  before(async () => {
    service = await startTestService();
    root = await service.rootToken();
  });
  after(() => service.close());

  const call = (method: string, path: string, json?: unknown, token = root) =>
    service.call(method, path, { token, ...(json === undefined ? {} : { json }) });
  const create = (json: unknown) => call('POST', '/tenant', json);

  it('are created complete: as in the API document, with keys and an administrator', async () => {
    const creation = await create({ id: 'acme', name: 'Acme', description: 'Anvils', roles: TENANT_ROLES });
    expect(creation.status, creation.text).to.equal(201);
    const { clients, createdAt, updatedAt, warnings, ...fields } = creation.body;
    expect(fields).to.deep.equal({
      id: 'acme',
      name: 'Acme',
      description: 'Anvils',
      status: 'active',
      sessionConfig: null,
      statusListConfig: null,
      kms: null,
      profile: null,
      endsAt: null,
      ...NO_ORGANIZATION,
    });
    expect(warnings).to.deep.equal([]);
    for (const time of [createdAt, updatedAt]) expect(new Date(time).toISOString()).to.equal(time);
    expect(clients).to.have.length(1);
    const [{ secret, ...administrator }] = clients;
    expect(administrator).to.deep.include({ clientId: 'acme-admin', tenantId: 'acme', roles: TENANT_ROLES });
    const readResponse = await call('GET', '/tenant/acme');
    expect(readResponse.status).to.equal(200);
    expect({ ...readResponse.body, warnings }).to.deep.equal({ ...creation.body, clients: [administrator] });
    expect(readResponse.text, 'the secret is returned once').to.not.include(secret);
    const list = await call('GET', '/tenant');
    expect(list.body).to.deep.equal([readResponse.body]);
    const token = await service.token('acme-admin', secret);
    const chains = (await call('GET', '/key-chain', undefined, token)).body;
    expect(chains.map(({ usageType }: { usageType: string }) => usageType)).to.have.members([
      'access',
      'signing',
      'statusList',
      'trustList',
    ]);
  });

  it('contain their owner, when read and when written', async () => {
    const address = { streetAddress: 'Main Street 1', locality: 'Berlin', postalCode: '10115' };
    const properties = {
      organization: 'Acme GmbH',
      organizationIdentifier: 'VATDE-123456789',
      country: 'DE',
      contact: 'mailto:trust@acme.example',
      address,
    };
    const creation = await create({ id: 'whose', name: 'Acme', ...properties });
    expect(creation.status, creation.text).to.equal(201);
    expect(creation.body).to.deep.include(properties);
    expect((await call('GET', '/tenant/whose')).body).to.deep.include(properties);
    const change = await call('PATCH', '/tenant/whose', { organization: 'Acme SE', contact: null });
    expect(change.body).to.deep.include({ ...properties, organization: 'Acme SE', contact: null });
    const { clients: _clients, warnings: _warnings, ...shown } = change.body;
    expect((await call('PATCH', '/tenant/whose', shown)).body).to.deep.include({ organization: 'Acme SE', address });
    for (const [property, value] of [
      ['organization', 'x'.repeat(65)],
      ['organizationIdentifier', 'DE 123'],
      ['country', 'Germany'],
      ['contact', 'javascript:alert(1)'],
      ['address', { locality: 'Berlin' }],
    ] as const) {
      const rejection = await call('PATCH', '/tenant/whose', { [property]: value });
      expect([rejection.status, rejection.body.errors?.[0].path.split('.')[0]], property).to.deep.equal([400, property]);
    }
  });

  it('without roles have no administrator until roles are assigned', async () => {
    expect((await create({ id: 'empty', name: 'Empty' })).body.clients).to.deep.equal([]);
    const change = await call('PATCH', '/tenant/empty', { roles: ['issuance:offer'] });
    expect(change.status, change.text).to.equal(200);
    expect(change.body.clients[0]).to.deep.include({ clientId: 'empty-admin', roles: ['issuance:offer'] });
    expect(await service.token('empty-admin', change.body.clients[0].secret)).to.be.a('string');
    const secondChange = await call('PATCH', '/tenant/empty', { roles: ['presentation:request'] });
    expect(secondChange.body.clients[0].roles).to.deep.equal(['presentation:request']);
    expect(secondChange.body.clients[0]).to.not.have.property('secret');
  });

  it('are rejected with a path for invalid values', async () => {
    const answer = await create({ id: 'fine', name: 'Fine', statusListConfig: { bits: 3 } });
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
    expect(answer.body.errors[0].path).to.equal('statusListConfig.bits');
    expect((await call('GET', '/tenant/fine')).status).to.equal(404);
  });

  it('are not created twice, nor over the administrator of another tenant', async () => {
    await create({ id: 'once', name: 'Once', roles: ['clients:manage'] });
    const secondCreation = await create({ id: 'once', name: 'Again', roles: ['clients:manage'] });
    expect([secondCreation.status, secondCreation.body.code]).to.deep.equal([409, 'conflict']);
    expect((await call('GET', '/tenant/once')).body.name).to.equal('Once');
    const { token } = await createTenant(service, 'squatter');
    const json = { clientId: 'later-admin', roles: ['issuance:offer'] };
    expect((await call('POST', '/client', json, token)).status, 'the name of a later administrator is reserved').to.equal(400);
    const { container } = service.service;
    const insertedClient = { ...json, tenantId: 'squatter' as TenantId, secretHash: '', pickUp: null, version: 1 };
    const restrictions = { allowedPresentationConfigs: null, allowedIssuanceConfigs: null, description: null };
    const times = { createdAt: new Date(), updatedAt: new Date(), formerSecretUntil: null, secretRevision: 0 };
    const client: Client = { ...insertedClient, ...restrictions, ...times, roles: ['issuance:offer'] };
    await container.get(Store).forService(({ clients }) => clients.add(client), { by: 'system' });
    const rejectedCreation = await create({ id: 'later', name: 'Later', roles: ['clients:manage'] });
    expect(rejectedCreation.status).to.equal(409);
    expect((await call('GET', '/tenant/later')).status, 'the tenant was not created').to.equal(404);
  });

  it('are changed by property: omitted ones stay, null resets, and invalid values change nothing', async () => {
    const sessionConfig = { ttlSeconds: 3600, cleanupMode: 'anonymize' };
    const statusListConfig = { capacity: 200, bits: 2, ttl: 60 };
    await create({ id: 'patched', name: 'One', description: 'First', sessionConfig, statusListConfig });
    const patch = async (json: unknown) => {
      const answer = await call('PATCH', '/tenant/patched', json);
      expect(answer.status, answer.text).to.equal(200);
      const { name, description, ...rest } = answer.body;
      return { name, description, sessionConfig: rest.sessionConfig, statusListConfig: rest.statusListConfig };
    };
    const all = { name: 'One', description: 'First', sessionConfig, statusListConfig };
    expect(await patch({})).to.deep.equal(all);
    expect(await patch({ name: 'Two', description: null })).to.deep.equal({ ...all, name: 'Two', description: null });
    expect((await patch({ sessionConfig: { ttlSeconds: null } })).sessionConfig).to.deep.equal({
      ttlSeconds: null,
      cleanupMode: 'anonymize',
    });
    const lists = await patch({ statusListConfig: { bits: null, immediateUpdate: true } });
    expect(lists.statusListConfig).to.deep.equal({ capacity: 200, ttl: 60, immediateUpdate: true });
    expect(await patch({ sessionConfig: null, statusListConfig: null })).to.include({ sessionConfig: null, statusListConfig: null });
    const rejection = await call('PATCH', '/tenant/patched', { name: 'Three', sessionConfig: { ttlSeconds: 1 } });
    expect(rejection.status).to.equal(400);
    expect((await call('GET', '/tenant/patched')).body.name).to.equal('Two');
    expect((await call('PATCH', '/tenant/no-such-tenant', { name: 'x' })).status).to.equal(404);
  });

  it('set their own retention, over the global default', async () => {
    const { token } = await createTenant(service, 'stored');
    const callRetention = (method: string, json?: unknown) => call(method, '/session-config', json, token);
    const defaults = { ttlSeconds: 86_400, cleanupMode: 'full' };
    expect((await callRetention('GET')).body).to.deep.equal(defaults);
    expect((await callRetention('PUT', { ttlSeconds: 60, cleanupMode: 'anonymize' })).body).to.deep.equal({
      ttlSeconds: 60,
      cleanupMode: 'anonymize',
      warnings: [],
    });
    expect((await callRetention('PUT', { ttlSeconds: null })).body).to.deep.equal({ ...defaults, cleanupMode: 'anonymize', warnings: [] });
    expect((await callRetention('PUT', { ttlSeconds: 59 })).status).to.equal(400);
    const reset = await callRetention('DELETE');
    expect([reset.status, reset.body]).to.deep.equal([200, defaults]);
  });

  it('return errors to clients and wallets while they are suspended', async () => {
    const { token } = await createTenant(service, 'paused');
    const suspension = await call('PATCH', '/tenant/paused', { status: 'suspended' });
    expect(suspension.body.status).to.equal('suspended');
    expect((await call('GET', '/key-chain', undefined, token)).status).to.equal(403);
    for (const path of ['/paused/.well-known/openid-credential-issuer', '/paused/.well-known/jwks.json'])
      expect((await service.call('GET', path)).status, path).to.equal(404);
    expect((await service.call('POST', '/paused/nonce')).status).to.equal(404);
    await call('PATCH', '/tenant/paused', { status: 'active' });
    expect((await call('GET', '/key-chain', undefined, token)).status).to.equal(200);
    expect((await call('PATCH', '/tenant/paused', { status: 'closed' })).status).to.equal(400);
  });

  it('are deleted completely, and are new tenants when they are created again', async () => {
    const issuer = '/.well-known/openid-credential-issuer/gone';
    const before = await createTenant(service, 'gone');
    const createResource = (path: string, json: object) => call('POST', path, json, before.token);
    const card = {
      id: 'card',
      config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
      vct: 'urn:card:1',
      claims: { name: 'Ada' },
      statusManagement: true,
    };
    await createResource('/issuer/credentials', card);
    await createResource('/issuer/config', { display: [{ name: 'Gone', locale: 'en' }] });
    await createResource('/verifier/config', { id: 'check', dcql_query: QUERY });
    const credential = await issue(service, before, 'card');
    const payload = JSON.parse(Buffer.from(credential.text.split('.')[1] ?? '', 'base64url').toString());
    const presentationRequest = (await createResource('/verifier/offer', { response_type: 'uri', requestId: 'check' })).body;
    const request = new URL(presentationRequest.uri).searchParams.get('request_uri') ?? '';
    const list: string = payload.status.status_list.uri;
    const publicPaths = [issuer, request, '/gone/status-lists'];
    for (const path of [...publicPaths, list]) expect((await service.call('GET', path)).status, path).to.equal(200);

    const deletion = await call('DELETE', '/tenant/gone');
    expect([deletion.status, deletion.body]).to.deep.equal([200, { id: 'gone' }]);
    for (const path of publicPaths) expect((await service.call('GET', path)).status, path).to.equal(404);
    expect((await call('GET', '/session', undefined, before.token)).status).to.equal(401);
    expect((await call('GET', '/tenant/gone')).status).to.equal(404);
    expect((await call('DELETE', '/tenant/gone')).status).to.equal(404);

    // Status lists are reloaded twice a second, and the times of a token are whole seconds.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect((await service.call('GET', list)).status).to.equal(404);
    const recreated = await createTenant({ ...service, token: requestToken }, 'gone');
    expect((await call('GET', '/session', undefined, before.token)).status, 'tokens of the removed tenant').to.equal(401);
    for (const path of ['/session', '/issuer/credentials', '/verifier/config'])
      expect((await call('GET', path, undefined, recreated.token)).body, path).to.deep.equal([]);
    expect((await service.call('GET', request)).status).to.equal(404);
  });

  /** Like `TestService.token`, without the cache. */
  async function requestToken(clientId: string, secret: string): Promise<string> {
    const json = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
    return (await service.call('POST', '/oauth2/token', { json })).body.access_token;
  }
});

const MASTER_SECRET = 'a master secret for expired tenants 0123';
const DAY_MS = 86_400_000;
const inMs = (milliseconds: number) => new Date(Date.now() + milliseconds).toISOString();

for (const kind of httpDatabases()) {
  describe(`A tenant with an expiry date, on ${kind.name}`, () => {
    let database: TestDatabase;
    let service: TestService;
    let root: string;

    beforeEach(async function () {
      const openedDatabase = await kind.open();
      if (openedDatabase === undefined) return this.skip();
      database = openedDatabase;
      service = await start();
      root = await service.rootToken();
    });
    afterEach(async () => {
      await service?.close();
      await database?.drop();
    });

    const start = () => startTestService({ DATABASE_URL: database.url, MASTER_SECRET });
    const call = (method: string, path: string, json?: unknown) =>
      service.call(method, path, { token: root, ...(json !== undefined && { json }) });
    const remove = (target = service) => obtain(target.service.container, RemoveEndedTenants).execute(new Date(), 100);

    /** Sets the expiry of the tenant to the past. */
    const expireNow = async (id: string) => {
      const raw = await openRaw(database.url);
      await raw.run(`update tenants set ends_at = ${Date.now() - 1} where id = '${id}'`);
      await raw.close();
    };

    it('returns the date, which can be moved or removed', async () => {
      const endsAt = inMs(DAY_MS);
      const creation = await call('POST', '/tenant', { id: 'trial', name: 'Trial', endsAt });
      expect(creation.status).to.equal(201);
      expect(creation.body).to.include({ endsAt });
      expect((await call('PATCH', '/tenant/trial', { name: 'Still' })).body).to.include({ endsAt });
      const laterExpiry = inMs(2 * DAY_MS);
      const zone = laterExpiry.replace('Z', '+00:00');
      expect((await call('PATCH', '/tenant/trial', { endsAt: zone })).body).to.include({ endsAt: laterExpiry });
      expect((await call('PATCH', '/tenant/trial', { endsAt: null })).body).to.include({ endsAt: null });
      expect((await call('GET', '/tenant/trial')).body).to.include({ endsAt: null });
      expect((await call('POST', '/tenant', { id: 'stays', name: 'Stays' })).body).to.include({ endsAt: null });
    });

    it('cannot expire in the past, in the far future or at an invalid time', async () => {
      await call('POST', '/tenant', { id: 'trial', name: 'Trial' });
      for (const endsAt of [inMs(-1_000), inMs(3_660 * DAY_MS), 'tomorrow', 1_900_000_000]) {
        const rejection = await call('PATCH', '/tenant/trial', { endsAt });
        expect(rejection.status, String(endsAt)).to.equal(400);
        expect(JSON.stringify(rejection.body)).to.include('endsAt');
        const rejectedCreation = await call('POST', '/tenant', { id: 'other', name: 'Other', endsAt });
        expect(rejectedCreation.status, String(endsAt)).to.equal(400);
      }
      expect((await call('GET', '/tenant/trial')).body).to.include({ endsAt: null });
      expect((await call('GET', '/tenant/other')).status).to.equal(404);
    });

    it('is removed once, also when several processes find it', async () => {
      await call('POST', '/tenant', { id: 'trial', name: 'Trial', endsAt: inMs(DAY_MS / 2) });
      await call('POST', '/tenant', { id: 'stays', name: 'Stays', endsAt: inMs(DAY_MS) });
      expect((await remove()).removed).to.equal(0);
      await expireNow('trial');
      const otherService = kind.name === 'sqlite' ? service : await start();
      const runs = await Promise.all([remove(), remove(otherService), remove(), remove(otherService)]);
      if (otherService !== service) await otherService.close();
      expect(runs.reduce((sum, { removed }) => sum + removed, 0)).to.equal(1);
      expect((await call('GET', '/tenant/trial')).status).to.equal(404);
      expect((await call('GET', '/tenant/stays')).status).to.equal(200);
      const { body: entries } = await call('GET', '/audit-log?kind=tenant');
      const removals = entries.filter(({ action }: { action: string }) => action === 'removed');
      expect(removals).to.have.length(1);
      expect(removals[0]).to.deep.include({ target: 'trial', actor: 'system' });
      // The remaining rows are removed as after a deletion, by any process.
      await service.close();
      service = await start();
      const { maintenance } = service.service.container.get(Store);
      while ((await maintenance.removeRemainingRows(new Date(Date.now() + 61_000), 100)) > 0);
      root = await service.rootToken();
      expect((await call('POST', '/tenant', { id: 'trial', name: 'Again' })).status).to.equal(201);
      expect((await remove()).removed).to.equal(0);
    });

    it('stays if its expiry is extended at the last moment', async () => {
      await call('POST', '/tenant', { id: 'trial', name: 'Trial', endsAt: inMs(DAY_MS / 2) });
      expect((await call('PATCH', '/tenant/trial', { endsAt: inMs(DAY_MS) })).status).to.equal(200);
      const store = service.service.container.get(Store);
      const isRemoved = await store.forService(
        ({ tenants }) => tenants.removeEnded('trial' as TenantId, new Date(Date.now() + DAY_MS / 2)),
        { by: 'system' },
      );
      expect(isRemoved).to.equal(false);
      expect((await call('GET', '/tenant/trial')).status).to.equal(200);
    });
  });
}
