import { expect } from 'chai';
import { readOnlyNames } from '../../adapters/http/input/read-only-properties.ts';
import { Cipher } from '../../application/ports/cipher.ts';
import { collectRoutes } from '../../bootstrap/wiring/routes.ts';
import { type Edit, editsOf, makeWriter } from '../support/edits.ts';
import { addClient, createResource, type PopulatedTenant, populate, UPSTREAM_SECRET } from '../support/populated.ts';
import { QUERY } from '../support/present.ts';
import { sharedRegistrar } from '../support/registrar.ts';
import { addressOf, nameOf, recipeOf, rolesOf } from '../support/requests.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { BlockMeter } from '../support/thread-blocks.ts';

const registrar = await sharedRegistrar();

describe('An edit with If-Match of a resource that was changed in the meantime', () => {
  let service: TestService;
  let world: PopulatedTenant;
  let root: string;
  let edits: readonly Edit[];

  before(async () => {
    service = await startTestService();
    world = await populate(service, 'edited');
    root = await service.rootToken();
    edits = editsOf(world.ids, registrar);
  });
  after(() => service.close());

  it('returns 409 for every kind, and changes nothing', async () => {
    for (const edit of edits) {
      const { read, write, tagOf } = makeWriter(world, root, edit);
      for (const [writeIndex, { method, path }] of edit.writes.entries()) {
        const name = `${method} ${path}`;
        const first = await tagOf();
        expect(first, name).to.match(/^"[\w.-]{20,}"$/);
        expect(await tagOf(), `${name}: the same while nothing changes`).to.equal(first);
        const firstWrite = await write(writeIndex, 1 + 2 * writeIndex, first);
        expect(firstWrite.status, `${name}: ${firstWrite.text}`).to.be.oneOf([200, 201]);
        const second = await tagOf();
        expect(firstWrite.headers.get('etag'), `${name} answers the new tag`).to.equal(second);
        expect(second, name).to.not.equal(first);
        const before = (await read()).text;
        const staleWrite = await write(writeIndex, 2 + 2 * writeIndex, first);
        expect([staleWrite.status, staleWrite.body.code], `${name}: ${staleWrite.text}`).to.deep.equal([409, 'conflict']);
        expect((await read()).text, name).to.equal(before);
        const writeWithSeveralTags = await write(writeIndex, 2 + 2 * writeIndex, `"other,one",${second}`);
        expect(writeWithSeveralTags.status, `${name}: ${writeWithSeveralTags.text}`).to.be.oneOf([200, 201]);
        expect((await write(writeIndex, 1 + 2 * writeIndex, '*')).status, name).to.be.oneOf([200, 201]);
        expect((await write(writeIndex, 2 + 2 * writeIndex)).status, `${name} without`).to.be.oneOf([200, 201]);
        expect((await write(writeIndex, 1 + 2 * writeIndex, `W/${await tagOf()}`)).status, 'a weak tag').to.equal(409);
      }
    }
  });

  it('returns 409 on every route that edits a single resource', async () => {
    const routes = collectRoutes(service.service.container).filter(({ edits }) => edits?.id !== undefined);
    const params = { ...world.ids, id: 'x', certId: world.ids.keyChain, listId: world.ids.statusList };
    const coveredRoutes = new Set(edits.flatMap(({ writes }) => writes.map(({ method, path }) => `${method} ${path}`)));
    const { paths } = (await service.call('GET', '/openapi.json')).body;
    for (const route of routes) {
      const operation = paths[route.path.replaceAll(/:([A-Za-z]+)/g, '{$1}')][route.method];
      const headers = operation.parameters.filter((parameter: { in: string }) => parameter.in === 'header');
      expect(headers.map(({ name }: { name: string }) => name)).to.deep.equal(['If-Match']);
      expect(operation.responses).to.have.property('409');
      if (route.method === 'delete') continue;
      const matches = [...coveredRoutes].some((coveredRoute) => {
        const [method, path = ''] = coveredRoute.split(' ');
        const pattern = new RegExp(`^${addressOf(route, { ...params, id: '[^/]+' }).replaceAll('%5B%5E%2F%5D%2B', '[^/]+')}$`);
        return method === route.method.toUpperCase() && pattern.test(path);
      });
      expect(matches, `${route.method} ${route.path} is not tried`).to.equal(true);
    }
    const routesWithEdits = collectRoutes(service.service.container).filter(({ edits }) => edits !== undefined);
    for (const route of routesWithEdits) {
      const { responses } = paths[route.path.replaceAll(/:([A-Za-z]+)/g, '{$1}')][route.method];
      const answer = responses[200] ?? responses[201];
      const schema = answer?.content?.['application/json']?.schema?.$ref;
      // A removed resource has no state on which a later edit could be based.
      const isDeleted = schema === '#/components/schemas/Deleted';
      if (answer?.content === undefined) continue;
      expect(Object.keys(answer.headers ?? {}).includes('ETag'), `${route.method} ${route.path}`).to.equal(!isDeleted);
    }
  });

  it('deletes only the version that was read', async () => {
    const { token } = world;
    const make = async (id: string) => {
      await createResource(service, token, '/key-chain', { id, usageType: 'signing' });
      const tag = (await service.call('GET', `/key-chain/${id}`, { token })).headers.get('etag') ?? '';
      const json = { description: 'Mine' };
      expect((await service.call('PATCH', `/key-chain/${id}`, { token, json })).status).to.equal(200);
      return tag;
    };
    const remove = (path: string, tag: string) => service.call('DELETE', path, { token, headers: { 'If-Match': tag } });
    const staleTag = await make('removed');
    expect((await remove('/key-chain/removed', staleTag)).status).to.equal(409);
    const freshTag = (await service.call('GET', '/key-chain/removed', { token })).headers.get('etag') ?? '';
    expect((await remove('/key-chain/removed', freshTag)).status).to.equal(200);
    expect((await remove('/key-chain/removed', freshTag)).status, 'a removed key chain').to.equal(404);
    const tenant = { id: 'brief', name: 'Brief' };
    const creation = await service.call('POST', '/tenant', { token: root, json: tenant });
    const json = { name: 'Briefer' };
    expect((await service.call('PATCH', '/tenant/brief', { token: root, json })).status).to.equal(200);
    const headers = { 'If-Match': creation.headers.get('etag') ?? '' };
    expect((await service.call('DELETE', '/tenant/brief', { token: root, headers })).status).to.equal(409);
    const now = (await service.call('GET', '/tenant/brief', { token: root })).headers.get('etag') ?? '';
    const last = { token: root, headers: { 'If-Match': now } };
    expect((await service.call('DELETE', '/tenant/brief', last)).status).to.equal(200);
  });

  it('is rejected on routes without conditions, and with an invalid condition', async () => {
    const { token } = world;
    const send = (method: string, path: string, headers: Record<string, string>, json?: object) =>
      service.call(method, path, { token, headers, ...(json && { json }) });
    expect((await send('GET', '/session', { 'If-Match': '*' })).status).to.equal(400);
    expect((await send('POST', '/client', { 'If-Match': '*' }, { clientId: 'x', roles: [] })).status).to.equal(400);
    for (const invalidHeader of ['', 'unquoted', '"open', '"a" "b"', '"a",, "b"', ',"a"', Array(21).fill('"a"').join()]) {
      const answer = await send('PUT', '/session-config', { 'If-Match': invalidHeader }, {});
      expect(answer.status, invalidHeader).to.equal(400);
    }
    const date = new Date().toUTCString();
    expect((await send('PUT', '/session-config', { 'If-Unmodified-Since': date }, {})).status).to.equal(400);
    const newConfiguration = { id: 'never-made', dcql_query: QUERY };
    const answer = await send('POST', '/verifier/config', { 'If-Match': '*' }, newConfiguration);
    expect([answer.status, answer.body.detail]).to.deep.equal([
      409,
      'there is no object for If-Match; remove the header to create the object',
    ]);
  });

  it('reveals nothing about secrets by its tag', async () => {
    const { token } = world;
    const putCredentials = async (clientSecret: string) => {
      const upstream = { issuer: 'http://127.0.0.1:9', clientId: 'edited', clientSecret };
      const json = { display: [{ name: 'Issuer', locale: 'en' }], chainedAs: { upstream } };
      return (await service.call('POST', '/issuer/config', { token, json })).headers.get('etag');
    };
    const [one, two] = [await putCredentials(UPSTREAM_SECRET), await putCredentials('another secret')];
    expect(one).to.not.equal(two);
    const [, mac] = /^"[^.]+\.([\w-]{43})"$/.exec(one ?? '') ?? [];
    expect(mac, 'a MAC with a key of the service').to.not.equal(undefined);
    expect(service.service.container.get(Cipher).macs('vidimus/edit-tag').make('')).to.include('.');
  });
});

type Schema = {
  readonly $ref?: string;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | object;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
};
type Media = { readonly content?: { readonly 'application/json'?: { readonly schema?: Schema } } };
type Operation = { readonly requestBody?: Media; readonly responses: Readonly<Record<string, Media>> };
type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

/** Properties that are written under one name and shown under another, or only once, with the properties that show them. */
const OTHER_NAMES: Readonly<Record<string, readonly string[]>> = {
  // Creates the tenant's first client, or changes its roles; the contract has it in requests only.
  '/tenant': ['roles'],
  '/tenant/{id}': ['roles'],
  // Only the hash is stored.
  '/client': ['secret'],
  // `activeKey.alg`, and the content of the certificates.
  '/key-chain': ['algorithm', 'subjectName', 'country', 'organization', 'rootKeyChainId', 'selfSigned'],
  '/key-chain/import': ['key', 'certificates', 'subjectName', 'country', 'organization', 'rootKeyChainId'],
  '/key': ['usages', 'algorithm', 'subjectName', 'country', 'organization'],
  '/certs': ['certUsageTypes', 'subjectName'],
  // `activeCertificate`
  '/key-chain/{id}': ['certificates'],
  // `usages`
  '/certs/{certId}': ['certUsageTypes'],
  // `entityConfig`
  '/trust-list': ['entities'],
  '/trust-list/{id}': ['entities'],
  // A login is no resource.
  '/console/login': ['ticket'],
  // `hasClientSecret`, `hasPassword`
  '/registrar/config': ['clientSecret', 'password'],
};
/** Properties of responses that do not belong to the resource; a request that contains them is accepted. */
const READ_ONLY = /(^|\.)warnings$|^clients\[\]\./;

describe('properties that are written to a resource', () => {
  let service: TestService;
  let paths: Paths;
  let schemas: Readonly<Record<string, Schema>>;

  before(async () => {
    service = await startTestService();
    const document = (await service.call('GET', '/openapi.json')).body;
    paths = document.paths;
    schemas = document.components.schemas;
  });
  after(() => service.close());

  const resolve = (schema: Schema): Schema =>
    schema.$ref === undefined ? schema : resolve(schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {});
  /** The schema and all its alternatives. */
  const alternatives = (schema: Schema): Schema[] => {
    const resolved = resolve(schema);
    const { anyOf = [], oneOf = [], allOf = [] } = resolved;
    return [resolved, ...[...anyOf, ...oneOf, ...allOf].flatMap(alternatives)];
  };
  /** True for a schema without rules for its properties: such values are shown as they were written. */
  const isUnrestricted = ({ type, properties, additionalProperties, items, anyOf, oneOf, allOf }: Schema) => {
    if (additionalProperties !== undefined && additionalProperties !== false) return true;
    const hasNoRules = [properties, additionalProperties, items, anyOf, oneOf, allOf].every((keyword) => keyword === undefined);
    return hasNoRules && (type === undefined || type === 'object');
  };

  /** Paths of properties of `written` that `shown` does not have. */
  function findMissing(writtenSchemas: readonly Schema[], shownSchemas: readonly Schema[], prefix: string): string[] {
    const [bodies, shownAlternatives] = [writtenSchemas.flatMap(alternatives), shownSchemas.flatMap(alternatives)];
    if (shownAlternatives.some(isUnrestricted)) return [];
    const propertySchemas = (schemas: readonly Schema[], name: string) => schemas.flatMap(({ properties }) => properties?.[name] ?? []);
    const names = new Set(bodies.flatMap(({ properties = {} }) => Object.keys(properties)));
    const missingHere = [...names].flatMap((name) => {
      const path = prefix === '' ? name : `${prefix}.${name}`;
      const shownProperty = propertySchemas(shownAlternatives, name);
      return shownProperty.length === 0 ? [path] : findMissing(propertySchemas(bodies, name), shownProperty, path);
    });
    const itemSchemas = (schemas: readonly Schema[]) => schemas.flatMap(({ items }) => items ?? []);
    const [writtenItems, shownItems] = [itemSchemas(bodies), itemSchemas(shownAlternatives)];
    return writtenItems.length === 0 || shownItems.length === 0
      ? missingHere
      : [...missingHere, ...findMissing(writtenItems, shownItems, `${prefix}[]`)];
  }
  const schemaOf = (media: Media | undefined) => media?.content?.['application/json']?.schema;
  /** Schemas of the responses that show a resource of the path. */
  function responseSchemas(path: string): Schema[] {
    const base = path.replace(/\/import$/, '');
    const itemPaths = [
      base,
      ...Object.keys(paths).filter((candidate) => /^\/\{\w+\}$/.test(candidate.slice(base.length)) && candidate.startsWith(base)),
    ];
    return itemPaths.flatMap((itemPath) => {
      const schema = schemaOf(paths[itemPath]?.['get']?.responses['200']);
      if (schema === undefined) return [];
      const { items } = resolve(schema);
      return [items ?? schema];
    });
  }

  it('are all contained in its representation', () => {
    const comparedRoutes: string[] = [];
    for (const [path, operations] of Object.entries(paths)) {
      if (path.startsWith('/{tenant}')) continue;
      for (const method of ['post', 'put', 'patch']) {
        const body = schemaOf(operations[method]?.requestBody);
        const schemas = responseSchemas(path);
        if (body === undefined || schemas.length === 0) continue;
        comparedRoutes.push(`${method} ${path}`);
        const missing = findMissing([body], schemas, '').filter((property) => !READ_ONLY.test(property));
        const otherNames = OTHER_NAMES[path] ?? [];
        expect(
          missing.filter((property) => !otherNames.includes(property)),
          `${method} ${path}`,
        ).to.deep.equal([]);
      }
    }
    expect(comparedRoutes.map((route) => route.split(' ')[1])).to.include.members([
      ...['/tenant', '/client', '/key-chain', '/key-chain/import', '/issuer/config', '/issuer/credentials'],
      ...['/verifier/config', '/registrar/config', '/status-lists', '/trust-list', '/session-config'],
      ...['/status-list-config', '/webhook-secret', '/certs', '/key'],
    ]);
  });

  it('of a presentation configuration include the rules for signers', async () => {
    const { token } = await createTenant(service, 'acme');
    const call = (method: string, path: string, json?: object) => service.call(method, path, { token, ...(json && { json }) });
    const dcql_query = { credentials: [{ id: 'a', format: 'dc+sd-jwt', meta: { vct_values: ['urn:a'] } }] };
    const verificationSettings = { mdlProfile: 'none', certificateRevocation: 'if-available' };
    const creation = await call('POST', '/verifier/config', { id: 'judged', dcql_query, ...verificationSettings });
    expect(creation.body, creation.text).to.include(verificationSettings);
    expect((await call('GET', '/verifier/config/judged')).body).to.include(verificationSettings);
    const reset = await call('PATCH', '/verifier/config/judged', { mdlProfile: null, certificateRevocation: null });
    expect(reset.body, reset.text).to.include({ mdlProfile: null, certificateRevocation: null });
    expect((await call('GET', '/verifier/config')).body[0]).to.include({ mdlProfile: null });
  });
});

/** Properties that the service changes by itself; a client that read them before need not know the change. */
const CHANGED_BY_SERVICE = [
  ...['updatedAt', 'usedEntries', 'availableEntries', 'expiresAt', 'cert', 'keyChain', 'sequenceNumber', 'jwt', 'key'],
  ...['activeKey', 'activeCertificate', 'activeCertificateExpiry', 'compromisedAt', 'lastRotatedAt'],
  ...['previousKey', 'previousCertificate', 'previousKeyExpiry', 'previousKeys'],
];

const otherValue = (value: unknown): unknown => {
  if (typeof value === 'string') return `${value}0`;
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'boolean') return !value;
  if (Array.isArray(value)) return [{}];
  return value === null ? 'something' : { ...(value as object), id: 'other' };
};

describe('A read-only property', () => {
  let service: TestService;
  let world: PopulatedTenant;
  let root: string;

  before(async () => {
    service = await startTestService();
    world = await populate(service, 'acme');
    root = await service.rootToken();
  });
  after(() => service.close());

  it('may be sent back unchanged at every address; another value is rejected by name', async () => {
    const properties: string[] = [];
    for (const route of collectRoutes(service.service.container)) {
      const { method, path, body, members = body, responses } = route;
      const view = responses[200];
      if (!['patch', 'put'].includes(method) || members === undefined || typeof view !== 'object') continue;
      const { params, json } = recipeOf(route).request(world.ids, 'fresh');
      const token = rolesOf(route)?.includes('tenants:manage') ? root : world.token;
      const address = addressOf(route, params);
      const write = (overrides: object) =>
        service.call(method.toUpperCase(), address, { token, json: { ...(json as object), ...overrides } });
      const readResource = async () => (await service.call('GET', address, { token })).body;

      const resource = await readResource();
      const names = readOnlyNames(route).filter((name) => name in resource);
      const fullWrite = await write(Object.fromEntries(names.map((name) => [name, resource[name]])));
      expect(fullWrite.status, `${nameOf(route)}: ${fullWrite.text}`).to.equal(200);
      const before = await readResource();
      for (const name of names) {
        const answer = await write({ [name]: otherValue(resource[name]) });
        const failureText = `${nameOf(route)} ${name}: ${answer.text}`;
        if (CHANGED_BY_SERVICE.includes(name)) {
          expect(answer.status, failureText).to.equal(200);
          continue;
        }
        expect([answer.status, answer.body.errors?.[0]?.path], failureText).to.deep.equal([400, name]);
        expect(answer.body.detail, failureText).to.include('cannot be changed');
        properties.push(`${path} ${name}`);
      }
      const { updatedAt: _updatedAt, ...unchanged } = before;
      const { updatedAt: _now, ...still } = await readResource();
      if (!names.some((name) => CHANGED_BY_SERVICE.includes(name) && name !== 'updatedAt')) {
        expect(still, nameOf(route)).to.deep.equal(unchanged);
      }
    }
    expect(properties).to.include.members([
      ...['clientId', 'tenantId', 'tenant', 'createdAt'].map((name) => `/client/:id ${name}`),
      ...['id', 'clients', 'createdAt'].map((name) => `/tenant/:id ${name}`),
      ...['id', 'bits', 'capacity', 'ttl'].map((name) => `/status-lists/:listId ${name}`),
      ...['id', 'kmsProvider', 'rootCertificate'].map((name) => `/key-chain/:id ${name}`),
      ...['id', 'keyId'].map((name) => `/certs/:certId ${name}`),
    ]);
  });

  it('may be sent back with the whole resource at every address', async () => {
    for (const route of collectRoutes(service.service.container)) {
      const { method, surface } = route;
      if (surface !== 'admin' || !['patch', 'put'].includes(method)) continue;
      const { params } = recipeOf(route).request(world.ids, 'fresh');
      const token = rolesOf(route)?.includes('tenants:manage') ? root : world.token;
      const address = addressOf(route, params);
      const readResource = async () => (await service.call('GET', address, { token })).body;
      const resource = await readResource();
      const answer = await service.call(method.toUpperCase(), address, { token, json: resource });
      const failureText = `${nameOf(route)}: ${answer.text}`;
      // A trust list is shown with the processed entities, and names the property in which they are written.
      if (address.startsWith('/trust-list')) {
        const paths = answer.body.errors?.map(({ path }: { path: string }) => path);
        expect([answer.status, paths?.includes('entityConfig')], failureText).to.deep.equal([400, true]);
        continue;
      }
      expect(answer.status, failureText).to.equal(200);
      const withoutTimes = ({ key: _key, ...rest }: Record<string, unknown>) =>
        JSON.parse(JSON.stringify(rest, (name, value) => (name === 'updatedAt' ? undefined : value)));
      expect(withoutTimes(await readResource()), nameOf(route)).to.deep.equal(withoutTimes(resource));
    }
  });

  it('may be sent back for a key without usages', async () => {
    const { token } = world;
    const call = (method: string, path: string, json?: object) =>
      service.call(method, path, { token, ...(json === undefined ? {} : { json }) });
    const creation = await call('POST', '/key', { id: 'plain' });
    expect(creation.status, creation.text).to.equal(201);
    for (const path of ['/certs', '/key-chain']) {
      const keyChain = (await call('GET', `${path}/plain`)).body;
      expect(keyChain.usages).to.deep.equal([]);
      const answer = await call('PATCH', `${path}/plain`, keyChain);
      expect([answer.status, answer.body.usages], answer.text).to.deep.equal([200, []]);
      const rejection = await call('PATCH', `${path}/${world.ids.keyChain}`, { usages: [] });
      expect([rejection.status, rejection.body.errors?.[0]?.path], rejection.text).to.deep.equal([400, 'usages']);
    }
  });

  it('may be outdated if the service itself or another client changes it', async () => {
    const { token } = world;
    const call = (method: string, path: string, json?: object, by = token) =>
      service.call(method, path, { token: by, ...(json === undefined ? {} : { json }) });
    const address = `/client/${world.ids.client}`;
    const resource = (await call('GET', address)).body;
    const rename = await call('PATCH', '/tenant/acme', { name: 'Acme & Sons' }, root);
    expect(rename.status, rename.text).to.equal(200);
    expect((await call('PATCH', address, { ...resource, description: 'one' })).status).to.equal(200);
    expect((await call('PATCH', address, { ...resource, description: 'two' })).status).to.equal(200);

    const tenant = (await call('GET', '/tenant/acme', undefined, root)).body;
    const tenants = (json: object) => call('PATCH', '/tenant/acme', json, root);
    const [first, ...otherClients] = tenant.clients;
    const withoutRoles = [{ ...first, roles: [] }, ...otherClients];
    expect((await tenants({ ...tenant, clients: withoutRoles })).body.errors[0].path).to.equal('clients');
    const withNewClient = [...tenant.clients, { clientId: 'invented', roles: [] }];
    expect((await tenants({ ...tenant, clients: withNewClient })).body.errors[0].path).to.equal('clients');

    const client = { clientId: 'meanwhile', roles: ['issuance:offer'] };
    expect((await call('POST', '/client', client)).status).to.equal(201);
    const response = await tenants(tenant);
    expect(response.status, response.text).to.equal(200);
    const tenantAfter = (await call('GET', '/tenant/acme', undefined, root)).body;
    expect((await call('PATCH', '/client/meanwhile', { roles: ['presentation:request'] })).status).to.equal(200);
    expect((await tenants(tenantAfter)).status, 'after a change by another client').to.equal(200);
    expect((await call('DELETE', '/client/meanwhile')).status).to.equal(200);
    expect((await tenants(tenantAfter)).status, 'after a removal by another client').to.equal(200);
  });

  it('is not loaded when the request contains none', async () => {
    for (const [method, path] of [
      ['PUT', '/session-config'],
      ['PUT', '/status-list-config'],
      ['PATCH', `/key-chain/${world.ids.keyChain}`],
    ] as const) {
      const answer = await service.call(method, path, { token: world.token });
      expect(answer.status, `${method} ${path}: ${answer.text}`).to.equal(200);
    }
  });

  it('does not reveal missing resources', async () => {
    const answer = await service.call('PATCH', '/client/no-such-client', {
      token: world.token,
      json: { roles: ['issuance:offer'], clientId: 'other' },
    });
    expect([answer.status, answer.body.code]).to.deep.equal([404, 'not_found']);
  });
});

/** The time that reading as many properties takes anyway, with a margin for slow machines. */
const LIMIT_MS = 400;

describe('A document with very many unknown properties', () => {
  let service: TestService;
  let world: PopulatedTenant;
  const holds = new BlockMeter();

  before(async () => {
    service = await startTestService();
    world = await populate(service, 'acme');
  });
  after(async () => {
    await holds.close();
    await service.close();
  });

  it('of a client with few rights does not block other tenants', async () => {
    const token = await addClient(world, 'offers', { roles: ['issuance:offer'] });
    const properties = Array.from({ length: 80_000 }, (_, index) => `"a${index}":1`);
    const body = {
      address: `${service.address}/issuer/deferred/x/complete`,
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
      body: `{${properties.join(',')}}`,
    };
    const { status, milliseconds } = await holds.measure(() => body, LIMIT_MS);
    expect(status).to.equal(400);
    expect(milliseconds).to.be.below(LIMIT_MS);
  });
});
