import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import type { Route } from '../../adapters/http/route.ts';
import { collectRoutes } from '../../bootstrap/wiring/routes.ts';
import { Backend } from '../support/backend.ts';
import { Issuer } from '../support/interactive-authorization.ts';
import { issue } from '../support/present.ts';
import { keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

/** What the contract publishes and this release has, under the paths that it publishes. */
const PUBLISHED = [
  ...['get /', 'get /health', 'post /oauth2/token', 'post /session/revoke', 'get /session/{id}/events'],
  ...['get /tenant', 'post /tenant', 'get /tenant/{id}', 'patch /tenant/{id}', 'delete /tenant/{id}'],
  ...['get /client', 'post /client', 'get /client/{id}', 'patch /client/{id}', 'delete /client/{id}'],
  ...['get /client/{id}/secret', 'post /client/{id}/rotate-secret'],
  ...['get /certs', 'post /certs', 'get /certs/{certId}', 'get /status-list-config', 'put /status-list-config'],
  ...['patch /certs/{certId}', 'delete /certs/{certId}', 'post /certs/{certId}/csr'],
  ...['get /key', 'post /key', 'get /key/{id}', 'delete /key/{id}'],
  ...['get /key-chain', 'post /key-chain', 'post /key-chain/import', 'get /key-chain/providers'],
  ...['get /key-chain/{id}', 'patch /key-chain/{id}', 'delete /key-chain/{id}'],
  ...['post /key-chain/{id}/rotate', 'post /key-chain/{id}/csr'],
  ...['get /session', 'get /session/{id}', 'delete /session/{id}'],
  ...['get /session-config', 'put /session-config', 'delete /session-config'],
  ...['get /issuer/config', 'post /issuer/config', 'get /issuer/credentials', 'post /issuer/credentials'],
  ...['get /issuer/credentials/{id}', 'patch /issuer/credentials/{id}', 'delete /issuer/credentials/{id}'],
  ...['post /{tenant}/challenge', 'post /{tenant}/par', 'get /{tenant}/authorize', 'post /{tenant}/authorize'],
  ...['post /{tenant}/chained-as/par', 'get /{tenant}/chained-as/authorize'],
  ...['get /{tenant}/chained-as/callback', 'post /{tenant}/chained-as/confirm'],
  ...['post /{tenant}/chained-as/token'],
  'get /{tenant}/chained-as/.well-known/jwks.json',
  'get /{tenant}/chained-as/.well-known/oauth-authorization-server',
  ...['post /{tenant}/deferred_credential', 'get /deferred_credential', 'post /{tenant}/notification'],
  ...['post /issuer/deferred/{transactionId}/complete', 'post /issuer/deferred/{transactionId}/fail'],
  ...['post /issuer/offer', 'post /verifier/offer', 'get /verifier/config', 'post /verifier/config'],
  'get /audit-log',
  ...['get /status-lists', 'post /status-lists', 'get /status-lists/{listId}'],
  ...['patch /status-lists/{listId}', 'delete /status-lists/{listId}'],
  ...['get /cache/stats', 'delete /cache', 'delete /cache/trust-list', 'delete /cache/status-list'],
  ...['get /trust/forecast', 'get /trust/lists', 'post /trust/lists/{id}/confirm-signer'],
  ...['get /trust-list', 'post /trust-list', 'get /trust-list/{id}', 'put /trust-list/{id}'],
  ...['patch /trust-list/{id}', 'delete /trust-list/{id}', 'get /trust-list/{id}/export'],
  ...['get /trust-list/{id}/versions', 'get /trust-list/{id}/versions/{versionId}'],
  'get /{tenant}/trust-list/{id}',
  ...['get /registrar/config', 'post /registrar/config', 'patch /registrar/config'],
  ...['delete /registrar/config', 'post /registrar/access-certificate'],
  'post /registrar/registration-certificate',
  ...['get /verifier/config/{id}', 'patch /verifier/config/{id}', 'delete /verifier/config/{id}'],
];

describe('The API document', () => {
  let service: TestService;

  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  it('contains every route, published path and address', async () => {
    const answer = await service.call('GET', '/openapi.json');
    expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([200, 'application/json']);
    const { openapi, servers, paths, components } = answer.body;
    expect(openapi).to.match(/^3\.1\./);
    expect(servers).to.deep.equal([{ url: service.address }]);
    const described = Object.entries(paths as Record<string, object>).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method} ${path}`),
    );
    expect(described).to.include.members(PUBLISHED);
    const nameOf = ({ method, path }: Route) => `${method} ${path.replaceAll(/:([A-Za-z]+)/g, (_, parameter: string) => `{${parameter}}`)}`;
    const served = collectRoutes(service.service.container).filter(({ tag }) => tag !== 'Service');
    expect(described).to.include.members(served.map(nameOf));
    const operations = Object.values(paths as Record<string, Record<string, { operationId: string }>>)
      .flatMap((item) => Object.values(item))
      .map(({ operationId }) => operationId);
    expect(new Set(operations).size, 'operation ids').to.equal(operations.length);
    const references = [...answer.text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)];
    expect(references).to.have.length.greaterThan(20);
    for (const [, name] of references) expect(components.schemas).to.have.property(name ?? '');
  });

  it('has examples that can be sent in the order of the walkthrough', async () => {
    const { paths } = (await service.call('GET', '/openapi.json')).body;
    const send = (path: string, token: string) => {
      const json = paths[path].post.requestBody.content['application/json'].example;
      return service.call('POST', path, { token, json });
    };
    const created = await send('/tenant', await service.rootToken());
    expect(created.status, created.text).to.equal(201);
    const [{ clientId, secret }] = created.body.clients;
    const token = await service.token(clientId, secret);
    for (const path of [
      ...['/issuer/config', '/issuer/credentials', '/issuer/offer', '/verifier/config', '/verifier/offer'],
      ...['/client', '/key-chain', '/trust-list', '/status-lists'],
    ]) {
      const answer = await send(path, token);
      expect(answer.status, `${path}: ${answer.text}`).to.equal(201);
    }
  });

  it('allows no query that is always rejected', async () => {
    const { body } = await service.call('GET', '/openapi.json');
    const read = (path: readonly string[]) =>
      path.reduce<Record<string, unknown>>((value, name) => {
        const { $ref } = (value[name] ?? {}) as { $ref?: string };
        const target = $ref?.slice('#/components/schemas/'.length);
        return (target === undefined ? value[name] : body.components.schemas[target]) as typeof value;
      }, body);
    const operation = ['paths', '/verifier/config', 'post', 'requestBody', 'content', 'application/json', 'schema'];
    for (const name of ['dcApiProtocols', 'furtherAccessKeyChainIds']) {
      const { anyOf = [{}], ...own } = read([...operation, 'properties', name]) as { anyOf?: object[] };
      expect({ ...anyOf[0], ...own }, name).to.have.property('uniqueItems', true);
    }
    const query = [...operation, 'properties', 'dcql_query', 'properties'];
    const credential = [...query, 'credentials', 'items', 'properties'];
    // OpenID4VP 1.0 section 7, and sections 6.1 and 6.2
    const path = read([...credential, 'claims', 'items', 'properties', 'path']);
    expect(path['allOf']).to.deep.equal([{ prefixItems: [{ type: 'string' }] }]);
    expect(read([...credential, 'claim_sets', 'items'])['uniqueItems']).to.equal(true);
    const options = read([...query, 'credential_sets', 'items', 'properties', 'options', 'items']);
    expect(options['uniqueItems']).to.equal(true);
  });

  it('names the roles of every protected route', async () => {
    const { paths } = (await service.call('GET', '/openapi.json')).body;
    for (const route of collectRoutes(service.service.container)) {
      if (typeof route.access === 'string') continue;
      const path = route.path.replaceAll(/:([A-Za-z]+)/g, '{$1}');
      const operation = paths[path][route.method];
      expect(operation['x-roles'], path).to.have.length.greaterThan(0);
      expect(operation.responses, path).to.include.keys('401', '403');
      expect(operation.security[0], path).to.have.property('bearer');
    }
  });

  it('is a page that runs no external scripts', async () => {
    const page = await service.call('GET', '/docs');
    expect([page.status, page.headers.get('content-type')]).to.deep.equal([200, 'text/html; charset=utf-8']);
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy).to.include("default-src 'none'").and.include("script-src 'self'");
    expect(policy).to.not.match(/unsafe|https?:|\*/);
    const assets = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, asset]) => asset ?? '');
    expect(assets).to.have.length.greaterThan(3);
    for (const asset of assets) {
      const { status, headers, text } = await service.call('GET', asset);
      expect(status, asset).to.equal(200);
      expect(headers.get('content-type'), asset).to.match(/^(text\/(css|javascript)|image\/png)/);
      expect(headers.get('x-content-type-options')).to.equal('nosniff');
      expect(text).to.have.length.greaterThan(100);
    }
    for (const path of ['/docs/package.json', '/docs/..%2fpackage.json', '/docs/constructor'])
      expect((await service.call('GET', path)).status, path).to.equal(404);
  });
});

const CARD = { id: 'card', config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] }, vct: 'urn:card:1' };

describe('webhook description', () => {
  let service: TestService;
  let backend: Backend;
  let tenant: { id: string; token: string };
  // biome-ignore lint/suspicious/noExplicitAny: a document of many shapes
  let document: any;

  before(async () => {
    backend = await Backend.start();
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
    const claimsWebhook = { url: `${backend.url}/claims` };
    const notificationWebhook = { url: `${backend.url}/notified` };
    await call('/issuer/credentials', { ...CARD, claimsWebhook, notificationWebhook });
    document = (await service.call('GET', '/openapi.json')).body;
  });
  after(async () => {
    await service.close();
    await backend.close();
  });
  beforeEach(() => backend.clearCalls());

  const call = async (path: string, json: object) => {
    const answer = await service.call('POST', path, { token: tenant.token, json });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const operation = (name: string) => document.webhooks[name].post;
  /** What is wrong with a value by a schema of the document; undefined for nothing. */
  const fault = (value: unknown, schema: object): string | undefined => {
    const ajv = new Ajv2020({ strict: false });
    const validate = ajv.compile({ ...schema, components: document.components });
    return validate(value) ? undefined : ajv.errorsText(validate.errors);
  };
  const requestOf = (name: string) => operation(name).requestBody.content['application/json'].schema;
  const answerOf = (name: string) => operation(name).responses['2XX'].content['application/json'].schema;

  it('contains all webhooks, with limits and headers', () => {
    expect(Object.keys(document.webhooks)).to.deep.equal(['claims', 'notification', 'presentation', 'webStep']);
    for (const name of Object.keys(document.webhooks)) {
      const { description, parameters } = operation(name);
      expect(description, name)
        .to.match(/10 seconds/)
        .and.match(/1 MiB/)
        .and.match(/never retried/);
      expect(parameters[0], name).to.deep.include({ name: 'Idempotency-Key', in: 'header', required: true });
      const signature = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];
      expect(parameters.slice(1).map((parameter: { name: string }) => parameter.name)).to.deep.equal(signature);
      expect(
        parameters.slice(1).some(({ required }: { required?: boolean }) => required),
        name,
      ).to.equal(false);
      expect(description, name).to.match(/signed/);
    }
  });

  it('matches the request of the claims webhook exactly', async () => {
    backend.on('/claims', { json: { card: { name: 'Ada' } } });
    await issue(service, tenant, 'card');
    const [asked] = backend.callsTo('/claims');
    expect(fault(asked?.body, requestOf('claims'))).to.equal(undefined);
    const name = requestOf('claims').$ref.split('/').at(-1);
    const { properties } = document.components.schemas[name];
    expect(properties).to.have.all.keys('reference', ...Object.keys(asked?.body));
    expect(fault({ ...asked?.body, session: undefined }, requestOf('claims'))).to.match(/session/);
  });

  it('matches the accepted answers of the claims webhook and not the rejected ones', () => {
    for (const good of [
      { card: { name: 'Ada' } },
      { card: { name: 'Ada' }, pass: { name: 'Ada', address: { street: 'x' } } },
      { deferred: true },
      { deferred: true, interval: 60 },
    ]) {
      expect(fault(good, answerOf('claims')), JSON.stringify(good)).to.equal(undefined);
    }
    for (const bad of [[{ name: 'x' }], { card: 'x' }, { deferred: true, interval: 1e9 }, { deferred: true, interval: 0 }, 'x']) {
      expect(fault(bad, answerOf('claims')), JSON.stringify(bad)).to.be.a('string');
    }
  });

  it('matches the calls of the notification webhook', async () => {
    backend.on('/claims', { json: { card: { name: 'Ada' } } });
    const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };
    const { uri } = await call('/issuer/offer', offer);
    const wallet = new RawWallet(service, tenant.id);
    const token = await wallet.accessToken(uri);
    const proof = keyProof(newKey(), wallet.issuer, await wallet.nonce());
    const body = { credential_configuration_id: 'card', proofs: { jwt: [proof] } };
    const issued = await wallet.request(token, 'card', { body });
    const told = await service.call('POST', '/acme/notification', {
      headers: wallet.authorization(token, { path: 'notification' }),
      json: { notification_id: issued.body.notification_id, event: 'credential_accepted', event_description: 'kept' },
    });
    expect(told.status, told.text).to.equal(204);
    const [delivered] = backend.callsTo('/notified');
    expect(delivered?.body.notification).to.include({ event: 'credential_accepted', eventDescription: 'kept' });
    expect(fault(delivered?.body, requestOf('notification'))).to.equal(undefined);
  });

  it('matches the calls of the presentation webhook and of a page before an issuance', async () => {
    const issuer = await Issuer.open();
    const url = (path: string) => `${issuer.backend.url}/${path}`;
    await issuer.addPresentationConfig('told', { webhook: { url: url('presented') } });
    await issuer.addBadge('friend', [{ type: 'openid4vp_presentation', presentationConfigId: 'told' }]);
    await issuer.addBadge('guest', [{ type: 'redirect_to_web', url: url('page?visit={auth_session}'), callbackUrl: url('confirm') }]);
    const held = await issuer.issueCredential();
    const begin = async (id: string) => {
      const wallet = issuer.wallet();
      return { wallet, answer: await wallet.begin((await issuer.offer(id)).uri, { scope: id }) };
    };

    const friend = await begin('friend');
    const asked = friend.wallet.expectPresentationStep(friend.answer);
    const presented = { vp_token: { card: [friend.wallet.bind(asked, held)] } };
    friend.wallet.expectCode(await friend.wallet.respond(asked, presented));
    const guest = await begin('guest');
    const { back } = await guest.wallet.visit(guest.wallet.expectWebStep(guest.answer));
    guest.wallet.codeFrom(back);

    const told = issuer.backend.callsTo('/presented')[0]?.body;
    expect(told.credentials[0]).to.have.keys(['id', 'values', 'issuer']);
    expect(fault(told, requestOf('presentation'))).to.equal(undefined);
    expect(fault(issuer.backend.callsTo('/confirm')[0]?.body, requestOf('webStep'))).to.equal(undefined);
    await issuer.close();
  });
});

type Node = Readonly<Record<string, unknown>>;
type Fault = (node: Node, options: readonly Node[], path: string) => boolean;

function resolveIn(document: Node, node: unknown): Node {
  const reference = (node as Node | undefined)?.['$ref'];
  if (typeof reference !== 'string') return (node ?? {}) as Node;
  return reference
    .slice(2)
    .split('/')
    .reduce<unknown>((at, part) => (at as Node)[part.replaceAll('~1', '/')], document) as Node;
}

/** Paths of all places of the document that `isFault` is true of; `options` are those of a union. */
function placesIn(document: Node, isFault: Fault): string[] {
  const places: string[] = [];
  const walk = (node: unknown, path: string): void => {
    if (typeof node !== 'object' || node === null) return;
    const { anyOf, oneOf } = node as { anyOf?: unknown; oneOf?: unknown };
    const options = [anyOf, oneOf].find(Array.isArray) ?? [];
    const resolved = options.map((option: unknown) => resolveIn(document, option));
    if (isFault(node as Node, resolved, path)) places.push(path);
    for (const [name, child] of Object.entries(node)) {
      if (name !== 'example' && name !== 'examples') walk(child, `${path}/${name}`);
    }
  };
  walk(document, '');
  return places;
}

const isMap = ({ type, properties }: Node): boolean => type === 'object' && properties === undefined;
const MAP = { type: 'object', additionalProperties: true };

/** Constructs that a generator fails at, or writes code of that does not compile, each with a schema that has it. */
const CONSTRUCTS: readonly { title: string; isFault: Fault; violation: Node }[] = [
  {
    title: 'one type for each header parameter, so that openapi-python-client keeps the operation',
    isFault: ({ in: place, schema }) => place === 'header' && typeof (schema as Node)['type'] !== 'string',
    violation: { Header: { in: 'header', schema: { anyOf: [{ type: 'string' }, { type: 'integer' }] } } },
  },
  {
    title: 'no null as one of three types, which openapi-generator for Python cannot read',
    isFault: (_, options) => options.length > 2 && options.some(({ type }) => type === 'null'),
    violation: { Three: { anyOf: [{ type: 'string' }, { type: 'integer' }, { type: 'null' }] } },
  },
  {
    title: 'no union within a union, which openapi-generator for Python cannot read together with null',
    isFault: ({ anyOf }) => Array.isArray(anyOf) && anyOf.some((option: Node) => option['anyOf'] && option['$ref'] === undefined),
    violation: { Nested: { anyOf: [{ anyOf: [{ type: 'string' }] }, { type: 'null' }] } },
  },
  {
    title: 'no conditions in allOf together with properties, where openapi-generator for Python cannot read null',
    isFault: ({ allOf, properties }) => Array.isArray(allOf) && properties !== undefined && allOf.some((option: Node) => !option['$ref']),
    violation: { Conditional: { type: 'object', properties: {}, allOf: [{ not: { required: ['a'] } }] } },
  },
  {
    title: 'no map as one of several types, for which openapi-generator writes Java that does not compile',
    isFault: (_, options) => options.filter(({ type }) => type !== 'null').length > 1 && options.some(isMap),
    violation: { Mixed: { anyOf: [MAP, { type: 'array', items: MAP }] } },
  },
  {
    title: 'no object or array by anyOf, for which generators write one class that is both',
    isFault: ({ anyOf }, options) =>
      anyOf !== undefined && options.some(({ type }) => type === 'object') && options.some(({ type }) => type === 'array'),
    violation: {
      Both: {
        anyOf: [
          { type: 'object', properties: {} },
          { type: 'array', items: {} },
        ],
      },
    },
  },
  {
    title: 'no empty schema of further properties, for which openapi-generator writes Go that does not compile',
    isFault: ({ additionalProperties: further }) => typeof further === 'object' && further !== null && Object.keys(further).length === 0,
    violation: { Empty: { type: 'object', additionalProperties: {} } },
  },
  {
    title: 'no property hasX together with x, which is a method in Go',
    isFault: ({ properties = {} }) =>
      Object.keys(properties as Node).some((name) =>
        Object.keys(properties as Node).some((other) => name === `has${other.charAt(0).toUpperCase()}${other.slice(1)}`),
      ),
    violation: { Doubled: { type: 'object', properties: { hasPassword: {}, password: {} } } },
  },
  {
    title: 'no schema NewX together with a schema X, which is a constructor in Go',
    isFault: (node, _, path) => path === '/components/schemas' && Object.keys(node).some((name) => node[`New${name}`] !== undefined),
    violation: { NewOther: { type: 'object' } },
  },
];

describe('the API document for client generators', () => {
  let service: TestService;
  let document: Node;

  before(async () => {
    service = await startTestService();
    document = (await service.call('GET', '/openapi.json')).body;
  });
  after(() => service.close());

  const resolve = (node: unknown): Node => resolveIn(document, node);
  const placesOf = (isFault: Fault): string[] => placesIn(document, isFault);

  for (const { title, isFault, violation } of CONSTRUCTS) {
    it(`has ${title}`, () => {
      expect(placesOf(isFault)).to.deep.equal([]);
    });

    it(`is reported when it violates the rule: ${title}`, () => {
      const schemas = { Other: { type: 'object', properties: {} } };
      const planted = { components: { schemas: { ...schemas, ...violation } } };
      expect(placesIn(planted, isFault)).to.not.be.empty;
    });
  }

  it('has tags for calls to backends that no operation of the service has, since generators write one file for each tag', () => {
    const tagsOf = (name: string) =>
      Object.values(document[name] as Record<string, Record<string, { readonly tags: string[] }>>)
        .flatMap((item) => Object.values(item))
        .flatMap(({ tags }) => tags);
    expect(tagsOf('paths')).to.not.include.members([...new Set(tagsOf('webhooks'))]);
  });

  it('has operation ids that are unique, camel case and end in no preposition', () => {
    const ids = Object.values(document['paths'] as Record<string, Record<string, { operationId: string }>>)
      .flatMap((item) => Object.values(item))
      .map(({ operationId }) => operationId);
    const isDescriptive = (id: string) => /^[a-z]+([A-Z][a-z0-9]*)*$/.test(id) && !/(For|Of|By|With)$/.test(id);
    expect(isDescriptive('fetchPresentationRequestFor')).to.equal(false);
    expect(ids.filter((id) => !isDescriptive(id))).to.deep.equal([]);
    expect(new Set(ids).size).to.equal(ids.length);
  });

  it('lists the formats of a DCQL query and the grant types of each token endpoint', () => {
    const text = JSON.stringify(document);
    const { paths } = document as { paths: Record<string, { post: { requestBody: { content: Node } } }> };
    const grantTypes = (path: string) =>
      Object.values(paths[path]?.post.requestBody.content ?? {}).map(
        (content) => (resolve((content as Node)['schema'])['properties'] as Record<string, Node>)['grant_type']?.['enum'],
      );
    const chained = ['authorization_code', 'refresh_token'];
    expect(grantTypes('/{tenant}/chained-as/token')).to.deep.equal([chained, chained]);
    expect(grantTypes('/{tenant}/token')[0]).to.include('urn:ietf:params:oauth:grant-type:pre-authorized_code');
    expect(text).to.include('A request that has both with different values is rejected with 400');
    const queries = placesOf(({ properties }) => {
      const { dcql_query: query } = (properties ?? {}) as Record<string, Node>;
      return query !== undefined && !JSON.stringify(resolve(query)).includes('"enum":["dc+sd-jwt","mso_mdoc"]');
    });
    expect(queries.filter((path) => path.includes('Input') || path.includes('Update'))).to.deep.equal([]);
  });
});
