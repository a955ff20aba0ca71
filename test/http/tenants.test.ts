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
    const made = await create({ id: 'acme', name: 'Acme', description: 'Anvils', roles: TENANT_ROLES });
    expect(made.status, made.text).to.equal(201);
    const { clients, createdAt, updatedAt, warnings, ...fields } = made.body;
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
    const read = await call('GET', '/tenant/acme');
    expect(read.status).to.equal(200);
    expect({ ...read.body, warnings }).to.deep.equal({ ...made.body, clients: [administrator] });
    expect(read.text, 'told once').to.not.include(secret);
    const list = await call('GET', '/tenant');
    expect(list.body).to.deep.equal([read.body]);
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
    const said = {
      organization: 'Acme GmbH',
      organizationIdentifier: 'VATDE-123456789',
      country: 'DE',
      contact: 'mailto:trust@acme.example',
      address,
    };
    const made = await create({ id: 'whose', name: 'Acme', ...said });
    expect(made.status, made.text).to.equal(201);
    expect(made.body).to.deep.include(said);
    expect((await call('GET', '/tenant/whose')).body).to.deep.include(said);
    const changed = await call('PATCH', '/tenant/whose', { organization: 'Acme SE', contact: null });
    expect(changed.body).to.deep.include({ ...said, organization: 'Acme SE', contact: null });
    const { clients: _clients, warnings: _warnings, ...shown } = changed.body;
    expect((await call('PATCH', '/tenant/whose', shown)).body).to.deep.include({ organization: 'Acme SE', address });
    for (const [member, value] of [
      ['organization', 'x'.repeat(65)],
      ['organizationIdentifier', 'DE 123'],
      ['country', 'Germany'],
      ['contact', 'javascript:alert(1)'],
      ['address', { locality: 'Berlin' }],
    ] as const) {
      const refused = await call('PATCH', '/tenant/whose', { [member]: value });
      expect([refused.status, refused.body.errors?.[0].path.split('.')[0]], member).to.deep.equal([400, member]);
    }
  });

  it('without roles have no administrator until roles are assigned', async () => {
    expect((await create({ id: 'empty', name: 'Empty' })).body.clients).to.deep.equal([]);
    const given = await call('PATCH', '/tenant/empty', { roles: ['issuance:offer'] });
    expect(given.status, given.text).to.equal(200);
    expect(given.body.clients[0]).to.deep.include({ clientId: 'empty-admin', roles: ['issuance:offer'] });
    expect(await service.token('empty-admin', given.body.clients[0].secret)).to.be.a('string');
    const changed = await call('PATCH', '/tenant/empty', { roles: ['presentation:request'] });
    expect(changed.body.clients[0].roles).to.deep.equal(['presentation:request']);
    expect(changed.body.clients[0]).to.not.have.property('secret');
  });

  it('are rejected with a path for invalid values', async () => {
    const answer = await create({ id: 'fine', name: 'Fine', statusListConfig: { bits: 3 } });
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
    expect(answer.body.errors[0].path).to.equal('statusListConfig.bits');
    expect((await call('GET', '/tenant/fine')).status).to.equal(404);
  });

  it('are not created twice, nor over the administrator of another tenant', async () => {
    await create({ id: 'once', name: 'Once', roles: ['clients:manage'] });
    const again = await create({ id: 'once', name: 'Again', roles: ['clients:manage'] });
    expect([again.status, again.body.code]).to.deep.equal([409, 'conflict']);
    expect((await call('GET', '/tenant/once')).body.name).to.equal('Once');
    const { token } = await createTenant(service, 'squatter');
    const json = { clientId: 'later-admin', roles: ['issuance:offer'] };
    expect((await call('POST', '/client', json, token)).status, 'a name is no squat').to.equal(400);
    const { container } = service.service;
    const planted = { ...json, tenantId: 'squatter' as TenantId, secretHash: '', pickUp: null, version: 1 };
    const rest = { allowedPresentationConfigs: null, allowedIssuanceConfigs: null, description: null };
    const times = { createdAt: new Date(), updatedAt: new Date(), formerSecretUntil: null, secretRevision: 0 };
    const client: Client = { ...planted, ...rest, ...times, roles: ['issuance:offer'] };
    await container.get(Store).forService(({ clients }) => clients.add(client), { by: 'system' });
    const later = await create({ id: 'later', name: 'Later', roles: ['clients:manage'] });
    expect(later.status).to.equal(409);
    expect((await call('GET', '/tenant/later')).status, 'nothing remains of it').to.equal(404);
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
    const bad = await call('PATCH', '/tenant/patched', { name: 'Three', sessionConfig: { ttlSeconds: 1 } });
    expect(bad.status).to.equal(400);
    expect((await call('GET', '/tenant/patched')).body.name).to.equal('Two');
    expect((await call('PATCH', '/tenant/nobody', { name: 'x' })).status).to.equal(404);
  });

  it('set their own retention, over the global default', async () => {
    const { token } = await createTenant(service, 'stored');
    const own = (method: string, json?: unknown) => call(method, '/session-config', json, token);
    const defaults = { ttlSeconds: 86_400, cleanupMode: 'full' };
    expect((await own('GET')).body).to.deep.equal(defaults);
    expect((await own('PUT', { ttlSeconds: 60, cleanupMode: 'anonymize' })).body).to.deep.equal({
      ttlSeconds: 60,
      cleanupMode: 'anonymize',
      warnings: [],
    });
    expect((await own('PUT', { ttlSeconds: null })).body).to.deep.equal({ ...defaults, cleanupMode: 'anonymize', warnings: [] });
    expect((await own('PUT', { ttlSeconds: 59 })).status).to.equal(400);
    const reset = await own('DELETE');
    expect([reset.status, reset.body]).to.deep.equal([200, defaults]);
  });

  it('return errors to clients and wallets while they are suspended', async () => {
    const { token } = await createTenant(service, 'paused');
    const suspend = await call('PATCH', '/tenant/paused', { status: 'suspended' });
    expect(suspend.body.status).to.equal('suspended');
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
    const own = (path: string, json: object) => call('POST', path, json, before.token);
    const card = {
      id: 'card',
      config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
      vct: 'urn:card:1',
      claims: { name: 'Ada' },
      statusManagement: true,
    };
    await own('/issuer/credentials', card);
    await own('/issuer/config', { display: [{ name: 'Gone', locale: 'en' }] });
    await own('/verifier/config', { id: 'check', dcql_query: QUERY });
    const held = await issue(service, before, 'card');
    const payload = JSON.parse(Buffer.from(held.text.split('.')[1] ?? '', 'base64url').toString());
    const asked = (await own('/verifier/offer', { response_type: 'uri', requestId: 'check' })).body;
    const request = new URL(asked.uri).searchParams.get('request_uri') ?? '';
    const list: string = payload.status.status_list.uri;
    const publicPaths = [issuer, request, '/gone/status-lists'];
    for (const path of [...publicPaths, list]) expect((await service.call('GET', path)).status, path).to.equal(200);

    const deleted = await call('DELETE', '/tenant/gone');
    expect([deleted.status, deleted.body]).to.deep.equal([200, { id: 'gone' }]);
    for (const path of publicPaths) expect((await service.call('GET', path)).status, path).to.equal(404);
    expect((await call('GET', '/session', undefined, before.token)).status).to.equal(401);
    expect((await call('GET', '/tenant/gone')).status).to.equal(404);
    expect((await call('DELETE', '/tenant/gone')).status).to.equal(404);

    // Status lists are looked up twice a second; and a token counts whole seconds.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect((await service.call('GET', list)).status).to.equal(404);
    const after = await createTenant({ ...service, token: fresh }, 'gone');
    expect((await call('GET', '/session', undefined, before.token)).status, 'old tokens').to.equal(401);
    for (const path of ['/session', '/issuer/credentials', '/verifier/config'])
      expect((await call('GET', path, undefined, after.token)).body, path).to.deep.equal([]);
    expect((await service.call('GET', request)).status).to.equal(404);
  });

  /** Like `TestService.token`, without remembering. */
  async function fresh(clientId: string, secret: string): Promise<string> {
    const json = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
    return (await service.call('POST', '/oauth2/token', { json })).body.access_token;
  }
});

const MASTER_SECRET = 'a master secret for what ends 0123456789';
const DAY_MS = 86_400_000;
const inMs = (milliseconds: number) => new Date(Date.now() + milliseconds).toISOString();

for (const kind of httpDatabases()) {
  describe(`A tenant with an expiry date, on ${kind.name}`, () => {
    let database: TestDatabase;
    let service: TestService;
    let root: string;

    beforeEach(async function () {
      const opened = await kind.open();
      if (opened === undefined) return this.skip();
      database = opened;
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
    const remove = (of = service) => obtain(of.service.container, RemoveEndedTenants).execute(new Date(), 100);

    /** As if the time of the tenant had passed. */
    const endNow = async (id: string) => {
      const raw = await openRaw(database.url);
      await raw.run(`update tenants set ends_at = ${Date.now() - 1} where id = '${id}'`);
      await raw.close();
    };

    it('returns the date, which can be moved or removed', async () => {
      const endsAt = inMs(DAY_MS);
      const made = await call('POST', '/tenant', { id: 'trial', name: 'Trial', endsAt });
      expect(made.status).to.equal(201);
      expect(made.body).to.include({ endsAt });
      expect((await call('PATCH', '/tenant/trial', { name: 'Still' })).body).to.include({ endsAt });
      const later = inMs(2 * DAY_MS);
      const zone = later.replace('Z', '+00:00');
      expect((await call('PATCH', '/tenant/trial', { endsAt: zone })).body).to.include({ endsAt: later });
      expect((await call('PATCH', '/tenant/trial', { endsAt: null })).body).to.include({ endsAt: null });
      expect((await call('GET', '/tenant/trial')).body).to.include({ endsAt: null });
      expect((await call('POST', '/tenant', { id: 'stays', name: 'Stays' })).body).to.include({ endsAt: null });
    });

    it('cannot expire in the past, in the far future or at an invalid time', async () => {
      await call('POST', '/tenant', { id: 'trial', name: 'Trial' });
      for (const endsAt of [inMs(-1_000), inMs(3_660 * DAY_MS), 'tomorrow', 1_900_000_000]) {
        const refused = await call('PATCH', '/tenant/trial', { endsAt });
        expect(refused.status, String(endsAt)).to.equal(400);
        expect(JSON.stringify(refused.body)).to.include('endsAt');
        const made = await call('POST', '/tenant', { id: 'other', name: 'Other', endsAt });
        expect(made.status, String(endsAt)).to.equal(400);
      }
      expect((await call('GET', '/tenant/trial')).body).to.include({ endsAt: null });
      expect((await call('GET', '/tenant/other')).status).to.equal(404);
    });

    it('is removed once, also when several processes find it', async () => {
      await call('POST', '/tenant', { id: 'trial', name: 'Trial', endsAt: inMs(DAY_MS / 2) });
      await call('POST', '/tenant', { id: 'stays', name: 'Stays', endsAt: inMs(DAY_MS) });
      expect((await remove()).removed).to.equal(0);
      await endNow('trial');
      const other = kind.name === 'sqlite' ? service : await start();
      const runs = await Promise.all([remove(), remove(other), remove(), remove(other)]);
      if (other !== service) await other.close();
      expect(runs.reduce((sum, { removed }) => sum + removed, 0)).to.equal(1);
      expect((await call('GET', '/tenant/trial')).status).to.equal(404);
      expect((await call('GET', '/tenant/stays')).status).to.equal(200);
      const { body: entries } = await call('GET', '/audit-log?kind=tenant');
      const removals = entries.filter(({ action }: { action: string }) => action === 'removed');
      expect(removals).to.have.length(1);
      expect(removals[0]).to.deep.include({ target: 'trial', actor: 'system' });
      // What is left of it goes as after a deletion, whichever process goes on.
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
      const isGone = await store.forService(({ tenants }) => tenants.removeEnded('trial' as TenantId, new Date(Date.now() + DAY_MS / 2)), {
        by: 'system',
      });
      expect(isGone).to.equal(false);
      expect((await call('GET', '/tenant/trial')).status).to.equal(200);
    });
  });
}
