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
import { BlockMeter } from '../support/thread-holds.ts';

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
      for (const [which, { method, path }] of edit.writes.entries()) {
        const name = `${method} ${path}`;
        const first = await tagOf();
        expect(first, name).to.match(/^"[\w.-]{20,}"$/);
        expect(await tagOf(), `${name}: the same while nothing changes`).to.equal(first);
        const good = await write(which, 1 + 2 * which, first);
        expect(good.status, `${name}: ${good.text}`).to.be.oneOf([200, 201]);
        const second = await tagOf();
        expect(good.headers.get('etag'), `${name} answers the new tag`).to.equal(second);
        expect(second, name).to.not.equal(first);
        const before = (await read()).text;
        const stale = await write(which, 2 + 2 * which, first);
        expect([stale.status, stale.body.code], `${name}: ${stale.text}`).to.deep.equal([409, 'conflict']);
        expect((await read()).text, name).to.equal(before);
        const several = await write(which, 2 + 2 * which, `"other,one",${second}`);
        expect(several.status, `${name}: ${several.text}`).to.be.oneOf([200, 201]);
        expect((await write(which, 1 + 2 * which, '*')).status, name).to.be.oneOf([200, 201]);
        expect((await write(which, 2 + 2 * which)).status, `${name} without`).to.be.oneOf([200, 201]);
        expect((await write(which, 1 + 2 * which, `W/${await tagOf()}`)).status, 'weak').to.equal(409);
      }
    }
  });

  it('returns 409 on every route that edits a single resource', async () => {
    const routes = collectRoutes(service.service.container).filter(({ edits }) => edits?.id !== undefined);
    const params = { ...world.ids, id: 'x', certId: world.ids.keyChain, listId: world.ids.statusList };
    const covered = new Set(edits.flatMap(({ writes }) => writes.map(({ method, path }) => `${method} ${path}`)));
    const { paths } = (await service.call('GET', '/openapi.json')).body;
    for (const route of routes) {
      const operation = paths[route.path.replaceAll(/:([A-Za-z]+)/g, '{$1}')][route.method];
      const headers = operation.parameters.filter((parameter: { in: string }) => parameter.in === 'header');
      expect(headers.map(({ name }: { name: string }) => name)).to.deep.equal(['If-Match']);
      expect(operation.responses).to.have.property('409');
      if (route.method === 'delete') continue;
      const matches = [...covered].some((known) => {
        const [method, path = ''] = known.split(' ');
        const pattern = new RegExp(`^${addressOf(route, { ...params, id: '[^/]+' }).replaceAll('%5B%5E%2F%5D%2B', '[^/]+')}$`);
        return method === route.method.toUpperCase() && pattern.test(path);
      });
      expect(matches, `${route.method} ${route.path} is not tried`).to.equal(true);
    }
    const shown = collectRoutes(service.service.container).filter(({ edits }) => edits !== undefined);
    for (const route of shown) {
      const { responses } = paths[route.path.replaceAll(/:([A-Za-z]+)/g, '{$1}')][route.method];
      const answer = responses[200] ?? responses[201];
      const schema = answer?.content?.['application/json']?.schema?.$ref;
      // What is gone has no state that a later edit could go out from.
      const isGone = schema === '#/components/schemas/Deleted';
      if (answer?.content === undefined) continue;
      expect(Object.keys(answer.headers ?? {}).includes('ETag'), `${route.method} ${route.path}`).to.equal(!isGone);
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
    const stale = await make('removed');
    expect((await remove('/key-chain/removed', stale)).status).to.equal(409);
    const fresh = (await service.call('GET', '/key-chain/removed', { token })).headers.get('etag') ?? '';
    expect((await remove('/key-chain/removed', fresh)).status).to.equal(200);
    expect((await remove('/key-chain/removed', fresh)).status, 'gone').to.equal(404);
    const tenant = { id: 'brief', name: 'Brief' };
    const made = await service.call('POST', '/tenant', { token: root, json: tenant });
    const json = { name: 'Briefer' };
    expect((await service.call('PATCH', '/tenant/brief', { token: root, json })).status).to.equal(200);
    const headers = { 'If-Match': made.headers.get('etag') ?? '' };
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
    for (const bad of ['', 'unquoted', '"open', '"a" "b"', '"a",, "b"', ',"a"', Array(21).fill('"a"').join()]) {
      const answer = await send('PUT', '/session-config', { 'If-Match': bad }, {});
      expect(answer.status, bad).to.equal(400);
    }
    const date = new Date().toUTCString();
    expect((await send('PUT', '/session-config', { 'If-Unmodified-Since': date }, {})).status).to.equal(400);
    const nothing = { id: 'never-made', dcql_query: QUERY };
    const answer = await send('POST', '/verifier/config', { 'If-Match': '*' }, nothing);
    expect([answer.status, answer.body.detail]).to.deep.equal([
      409,
      'there is no object for If-Match; remove the header to create the object',
    ]);
  });

  it('reveals nothing about secrets by its tag', async () => {
    const { token } = world;
    const put = async (clientSecret: string) => {
      const upstream = { issuer: 'http://127.0.0.1:9', clientId: 'edited', clientSecret };
      const json = { display: [{ name: 'Issuer', locale: 'en' }], chainedAs: { upstream } };
      return (await service.call('POST', '/issuer/config', { token, json })).headers.get('etag');
    };
    const [one, two] = [await put(UPSTREAM_SECRET), await put('another secret')];
    expect(one).to.not.equal(two);
    const [, keyed] = /^"[^.]+\.([\w-]{43})"$/.exec(one ?? '') ?? [];
    expect(keyed, 'a code under a key of the service').to.not.equal(undefined);
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

/** What is written under one name and shown under another, or once only, with where it is found again. */
const ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  // Makes the tenant's first client, or changes its roles; the contract has it in requests alone.
  '/tenant': ['roles'],
  '/tenant/{id}': ['roles'],
  // Only its hash is kept.
  '/client': ['secret'],
  // `activeKey.alg`, and what the certificates say.
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
  // A login, and no resource.
  '/console/login': ['ticket'],
  // `hasClientSecret`, `hasPassword`
  '/registrar/config': ['clientSecret', 'password'],
};
/** What answers have beside the resource; who sends it back is not refused. */
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
  /** With everything that a value of it may be. */
  const alternatives = (schema: Schema): Schema[] => {
    const found = resolve(schema);
    const { anyOf = [], oneOf = [], allOf = [] } = found;
    return [found, ...[...anyOf, ...oneOf, ...allOf].flatMap(alternatives)];
  };
  /** Whether nothing is said of its members: what is kept as it came is shown as it came. */
  const isFree = ({ type, properties, additionalProperties, items, anyOf, oneOf, allOf }: Schema) => {
    if (additionalProperties !== undefined && additionalProperties !== false) return true;
    const isUnsaid = [properties, additionalProperties, items, anyOf, oneOf, allOf].every((each) => each === undefined);
    return isUnsaid && (type === undefined || type === 'object');
  };

  /** Paths of members of `written` that `shown` does not have. */
  function unshown(written: readonly Schema[], shown: readonly Schema[], at: string): string[] {
    const [bodies, views] = [written.flatMap(alternatives), shown.flatMap(alternatives)];
    if (views.some(isFree)) return [];
    const membersOf = (all: readonly Schema[], name: string) => all.flatMap(({ properties }) => properties?.[name] ?? []);
    const names = new Set(bodies.flatMap(({ properties = {} }) => Object.keys(properties)));
    const here = [...names].flatMap((name) => {
      const path = at === '' ? name : `${at}.${name}`;
      const seen = membersOf(views, name);
      return seen.length === 0 ? [path] : unshown(membersOf(bodies, name), seen, path);
    });
    const itemsOf = (all: readonly Schema[]) => all.flatMap(({ items }) => items ?? []);
    const [entries, listed] = [itemsOf(bodies), itemsOf(views)];
    return entries.length === 0 || listed.length === 0 ? here : [...here, ...unshown(entries, listed, `${at}[]`)];
  }
  const schemaOf = (media: Media | undefined) => media?.content?.['application/json']?.schema;
  /** What one of them looks like to who reads it. */
  function viewsOf(path: string): Schema[] {
    const base = path.replace(/\/import$/, '');
    const found = [base, ...Object.keys(paths).filter((other) => /^\/\{\w+\}$/.test(other.slice(base.length)) && other.startsWith(base))];
    return found.flatMap((place) => {
      const schema = schemaOf(paths[place]?.['get']?.responses['200']);
      if (schema === undefined) return [];
      const { items } = resolve(schema);
      return [items ?? schema];
    });
  }

  it('are all contained in its representation', () => {
    const compared: string[] = [];
    for (const [path, operations] of Object.entries(paths)) {
      if (path.startsWith('/{tenant}')) continue;
      for (const method of ['post', 'put', 'patch']) {
        const body = schemaOf(operations[method]?.requestBody);
        const views = viewsOf(path);
        if (body === undefined || views.length === 0) continue;
        compared.push(`${method} ${path}`);
        const missing = unshown([body], views, '').filter((member) => !READ_ONLY.test(member));
        const known = ELSEWHERE[path] ?? [];
        expect(
          missing.filter((member) => !known.includes(member)),
          `${method} ${path}`,
        ).to.deep.equal([]);
      }
    }
    expect(compared.map((each) => each.split(' ')[1])).to.include.members([
      ...['/tenant', '/client', '/key-chain', '/key-chain/import', '/issuer/config', '/issuer/credentials'],
      ...['/verifier/config', '/registrar/config', '/status-lists', '/trust-list', '/session-config'],
      ...['/status-list-config', '/webhook-secret', '/certs', '/key'],
    ]);
  });

  it('of a presentation configuration include the rules for signers', async () => {
    const { token } = await createTenant(service, 'acme');
    const call = (method: string, path: string, json?: object) => service.call(method, path, { token, ...(json && { json }) });
    const dcql_query = { credentials: [{ id: 'a', format: 'dc+sd-jwt', meta: { vct_values: ['urn:a'] } }] };
    const judged = { mdlProfile: 'none', certificateRevocation: 'if-available' };
    const made = await call('POST', '/verifier/config', { id: 'judged', dcql_query, ...judged });
    expect(made.body, made.text).to.include(judged);
    expect((await call('GET', '/verifier/config/judged')).body).to.include(judged);
    const reset = await call('PATCH', '/verifier/config/judged', { mdlProfile: null, certificateRevocation: null });
    expect(reset.body, reset.text).to.include({ mdlProfile: null, certificateRevocation: null });
    expect((await call('GET', '/verifier/config')).body[0]).to.include({ mdlProfile: null });
  });
});

/** What the service changes by itself, so that who read it a while ago need not know. */
const SHIFTING = [
  ...['updatedAt', 'usedEntries', 'availableEntries', 'expiresAt', 'cert', 'keyChain', 'sequenceNumber', 'jwt', 'key'],
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
    const seen: string[] = [];
    for (const route of collectRoutes(service.service.container)) {
      const { method, path, body, members = body, responses } = route;
      const view = responses[200];
      if (!['patch', 'put'].includes(method) || members === undefined || typeof view !== 'object') continue;
      const { params, json } = recipeOf(route).request(world.ids, 'fresh');
      const token = rolesOf(route)?.includes('tenants:manage') ? root : world.token;
      const address = addressOf(route, params);
      const write = (more: object) => service.call(method.toUpperCase(), address, { token, json: { ...(json as object), ...more } });
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

  it('may be sent back with the whole resource at every address', async () => {
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

  it('may be sent back for a key without usages', async () => {
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

  it('may be outdated if the service itself or another client changes it', async () => {
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
    expect((await call('PATCH', '/client/meanwhile', { roles: ['presentation:request'] })).status).to.equal(200);
    expect((await tenants(more)).status, 'changed meanwhile').to.equal(200);
    expect((await call('DELETE', '/client/meanwhile')).status).to.equal(200);
    expect((await tenants(more)).status, 'gone meanwhile').to.equal(200);
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
    const answer = await service.call('PATCH', '/client/nobody', {
      token: world.token,
      json: { roles: ['issuance:offer'], clientId: 'somebody' },
    });
    expect([answer.status, answer.body.code]).to.deep.equal([404, 'not_found']);
  });
});

/** What reading as many members takes anyway, with room for slow machines. */
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
    const members = Array.from({ length: 80_000 }, (_, index) => `"a${index}":1`);
    const sent = {
      address: `${service.address}/issuer/deferred/x/complete`,
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
      body: `{${members.join(',')}}`,
    };
    const { status, milliseconds } = await holds.measure(() => sent, LIMIT_MS);
    expect(status).to.equal(400);
    expect(milliseconds).to.be.below(LIMIT_MS);
  });
});
