import { expect } from 'chai';
import { readOnlyNames } from '../../adapters/http/read-only-members.ts';
import { collectRoutes } from '../../bootstrap/routes.ts';
import { type Populated, populate } from '../support/populated.ts';
import { addressOf, nameOf, recipeOf, rolesOf } from '../support/requests.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

/** What the service changes by itself, so that who read it a while ago need not know. */
const SHIFTING = [
  ...[
    'updatedAt',
    'usedEntries',
    'availableEntries',
    'expiresAt',
    'cert',
    'keyChain',
    'sequenceNumber',
    'jwt',
    'key',
  ],
  ...['activeKey', 'activeCertificate', 'activeCertificateExpiry', 'compromisedAt', 'lastRotatedAt'],
  ...['previousKey', 'previousCertificate', 'previousKeyExpiry', 'previousKeys'],
];

const other = (value: unknown): unknown => {
  if (typeof value === 'string') return `${value}0`;
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'boolean') return !value;
  if (Array.isArray(value)) return [{}];
  return value === null ? 'something' : { ...(value as object), id: 'other' };
};

describe('A member that is shown and cannot be written', () => {
  let service: TestService;
  let world: Populated;
  let root: string;

  before(async () => {
    service = await startTestService();
    world = await populate(service, 'acme');
    root = await service.rootToken();
  });
  after(() => service.close());

  it('may be sent back as it was read, at every address; another value is refused by its name', async () => {
    const seen: string[] = [];
    for (const route of collectRoutes(service.service.container)) {
      const { method, path, body, members = body, responses } = route;
      const view = responses[200];
      if (!['patch', 'put'].includes(method) || members === undefined || typeof view !== 'object') continue;
      const { params, json } = recipeOf(route).request(world.ids, 'fresh');
      const token = rolesOf(route)?.includes('tenants:manage') ? root : world.token;
      const address = addressOf(route, params);
      const write = (more: object) =>
        service.call(method.toUpperCase(), address, { token, json: { ...(json as object), ...more } });
      const read = async () => (await service.call('GET', address, { token })).body;

      const shown = await read();
      const names = readOnlyNames(route).filter((name) => name in shown);
      const whole = await write(Object.fromEntries(names.map((name) => [name, shown[name]])));
      expect(whole.status, `${nameOf(route)}: ${whole.text}`).to.equal(200);
      const before = await read();
      for (const name of names) {
        const answer = await write({ [name]: other(shown[name]) });
        const told = `${nameOf(route)} ${name}: ${answer.text}`;
        if (SHIFTING.includes(name)) {
          expect(answer.status, told).to.equal(200);
          continue;
        }
        expect([answer.status, answer.body.errors?.[0]?.path], told).to.deep.equal([400, name]);
        expect(answer.body.detail, told).to.include('cannot be changed');
        seen.push(`${path} ${name}`);
      }
      const { updatedAt: _then, ...kept } = before;
      const { updatedAt: _now, ...still } = await read();
      if (!names.some((name) => SHIFTING.includes(name) && name !== 'updatedAt')) {
        expect(still, nameOf(route)).to.deep.equal(kept);
      }
    }
    expect(seen).to.include.members([
      ...['clientId', 'tenantId', 'tenant', 'createdAt'].map((name) => `/client/:id ${name}`),
      ...['id', 'clients', 'createdAt'].map((name) => `/tenant/:id ${name}`),
      ...['id', 'bits', 'capacity', 'ttl'].map((name) => `/status-lists/:listId ${name}`),
      ...['id', 'kmsProvider', 'rootCertificate'].map((name) => `/key-chain/:id ${name}`),
      ...['id', 'keyId'].map((name) => `/certs/:certId ${name}`),
    ]);
  });

  it('comes with everything else that was read, at every address', async () => {
    for (const route of collectRoutes(service.service.container)) {
      const { method, surface } = route;
      if (surface !== 'admin' || !['patch', 'put'].includes(method)) continue;
      const { params } = recipeOf(route).request(world.ids, 'fresh');
      const token = rolesOf(route)?.includes('tenants:manage') ? root : world.token;
      const address = addressOf(route, params);
      const read = async () => (await service.call('GET', address, { token })).body;
      const shown = await read();
      const answer = await service.call(method.toUpperCase(), address, { token, json: shown });
      const told = `${nameOf(route)}: ${answer.text}`;
      // A trust list is shown with what was made of its entities, and says by which name they are written.
      if (address.startsWith('/trust-list')) {
        const paths = answer.body.errors?.map(({ path }: { path: string }) => path);
        expect([answer.status, paths?.includes('entityConfig')], told).to.deep.equal([400, true]);
        continue;
      }
      expect(answer.status, told).to.equal(200);
      const untimed = ({ key: _key, ...rest }: Record<string, unknown>) =>
        JSON.parse(JSON.stringify(rest, (name, value) => (name === 'updatedAt' ? undefined : value)));
      expect(untimed(await read()), nameOf(route)).to.deep.equal(untimed(shown));
    }
  });

  it('may be sent back of a key without usages, which no key becomes', async () => {
    const { token } = world;
    const call = (method: string, path: string, json?: object) =>
      service.call(method, path, { token, ...(json === undefined ? {} : { json }) });
    const made = await call('POST', '/key', { id: 'plain' });
    expect(made.status, made.text).to.equal(201);
    for (const place of ['/certs', '/key-chain']) {
      const shown = (await call('GET', `${place}/plain`)).body;
      expect(shown.usages).to.deep.equal([]);
      const answer = await call('PATCH', `${place}/plain`, shown);
      expect([answer.status, answer.body.usages], answer.text).to.deep.equal([200, []]);
      const emptied = await call('PATCH', `${place}/${world.ids.keyChain}`, { usages: [] });
      expect([emptied.status, emptied.body.errors?.[0]?.path], emptied.text).to.deep.equal([400, 'usages']);
    }
  });

  it('may be older than what stands there now, where the service itself or others change it', async () => {
    const { token } = world;
    const call = (method: string, path: string, json?: object, by = token) =>
      service.call(method, path, { token: by, ...(json === undefined ? {} : { json }) });
    const address = `/client/${world.ids.client}`;
    const read = (await call('GET', address)).body;
    const renamed = await call('PATCH', '/tenant/acme', { name: 'Acme & Sons' }, root);
    expect(renamed.status, renamed.text).to.equal(200);
    expect((await call('PATCH', address, { ...read, description: 'one' })).status).to.equal(200);
    expect((await call('PATCH', address, { ...read, description: 'two' })).status).to.equal(200);

    const tenant = (await call('GET', '/tenant/acme', undefined, root)).body;
    const tenants = (json: object) => call('PATCH', '/tenant/acme', json, root);
    const [first, ...rest] = tenant.clients;
    const stronger = [{ ...first, roles: [] }, ...rest];
    expect((await tenants({ ...tenant, clients: stronger })).body.errors[0].path).to.equal('clients');
    const invented = [...tenant.clients, { clientId: 'invented', roles: [] }];
    expect((await tenants({ ...tenant, clients: invented })).body.errors[0].path).to.equal('clients');

    const client = { clientId: 'meanwhile', roles: ['issuance:offer'] };
    expect((await call('POST', '/client', client)).status).to.equal(201);
    const whole = await tenants(tenant);
    expect(whole.status, whole.text).to.equal(200);
    const more = (await call('GET', '/tenant/acme', undefined, root)).body;
    expect((await call('PATCH', '/client/meanwhile', { roles: ['presentation:request'] })).status).to.equal(
      200,
    );
    expect((await tenants(more)).status, 'changed meanwhile').to.equal(200);
    expect((await call('DELETE', '/client/meanwhile')).status).to.equal(200);
    expect((await tenants(more)).status, 'gone meanwhile').to.equal(200);
  });

  it('is not asked for where nothing is sent', async () => {
    for (const [method, path] of [
      ['PUT', '/session-config'],
      ['PUT', '/status-list-config'],
      ['PATCH', `/key-chain/${world.ids.keyChain}`],
    ] as const) {
      const answer = await service.call(method, path, { token: world.token });
      expect(answer.status, `${method} ${path}: ${answer.text}`).to.equal(200);
    }
  });

  it('is no way to learn of what is not there', async () => {
    const answer = await service.call('PATCH', '/client/nobody', {
      token: world.token,
      json: { roles: ['issuance:offer'], clientId: 'somebody' },
    });
    expect([answer.status, answer.body.code]).to.deep.equal([404, 'not_found']);
  });
});
