import { expect } from 'chai';
import type { Route } from '../../adapters/http/route.ts';
import { collectRoutes } from '../../bootstrap/routes.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

/** What the contract publishes and this release has, under the paths that it publishes. */
const PUBLISHED = [
  ...['get /', 'get /health', 'post /oauth2/token', 'post /session/revoke', 'get /session/{id}/events'],
  ...['get /tenant', 'post /tenant', 'get /tenant/{id}', 'patch /tenant/{id}', 'delete /tenant/{id}'],
  ...['get /client', 'post /client', 'get /client/{id}', 'patch /client/{id}', 'delete /client/{id}'],
  ...['get /client/{id}/secret', 'post /client/{id}/rotate-secret'],
  ...[
    'get /certs',
    'post /certs',
    'get /certs/{certId}',
    'get /status-list-config',
    'put /status-list-config',
  ],
  ...['patch /certs/{certId}', 'delete /certs/{certId}', 'post /certs/{certId}/csr'],
  ...['get /key', 'post /key', 'get /key/{id}', 'delete /key/{id}'],
  ...['get /key-chain', 'post /key-chain', 'post /key-chain/import', 'get /key-chain/providers'],
  ...['get /key-chain/{id}', 'patch /key-chain/{id}', 'delete /key-chain/{id}'],
  ...['post /key-chain/{id}/rotate', 'post /key-chain/{id}/csr'],
  ...['get /session', 'get /session/{id}', 'delete /session/{id}'],
  ...['get /session-config', 'put /session-config', 'delete /session-config'],
  ...['get /issuer/config', 'post /issuer/config', 'get /issuer/credentials', 'post /issuer/credentials'],
  ...['get /issuer/credentials/{id}', 'patch /issuer/credentials/{id}', 'delete /issuer/credentials/{id}'],
  ...[
    'post /{tenant}/challenge',
    'post /{tenant}/par',
    'get /{tenant}/authorize',
    'post /{tenant}/authorize',
  ],
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

describe('the description of the service', () => {
  let service: TestService;

  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  it('names every route, published path and address', async () => {
    const answer = await service.call('GET', '/openapi.json');
    expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([200, 'application/json']);
    const { openapi, servers, paths, components } = answer.body;
    expect(openapi).to.match(/^3\.1\./);
    expect(servers).to.deep.equal([{ url: service.address }]);
    const described = Object.entries(paths as Record<string, object>).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method} ${path}`),
    );
    expect(described).to.include.members(PUBLISHED);
    const nameOf = ({ method, path }: Route) =>
      `${method} ${path.replaceAll(/:([A-Za-z]+)/g, (_, parameter: string) => `{${parameter}}`)}`;
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

  it('has examples that can be sent in the order of the walk', async () => {
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

  it('allows no query of a kind that is always refused', async () => {
    const { body } = await service.call('GET', '/openapi.json');
    const read = (path: readonly string[]) =>
      path.reduce<Record<string, unknown>>((value, name) => {
        const { $ref } = (value[name] ?? {}) as { $ref?: string };
        const target = $ref?.slice('#/components/schemas/'.length);
        return (target === undefined ? value[name] : body.components.schemas[target]) as typeof value;
      }, body);
    const operation = [
      'paths',
      '/verifier/config',
      'post',
      'requestBody',
      'content',
      'application/json',
      'schema',
    ];
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

  it('tells the roles of every protected route', async () => {
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

  it('is a page that runs nothing from elsewhere', async () => {
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
