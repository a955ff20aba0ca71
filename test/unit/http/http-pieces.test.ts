import { expect } from 'chai';
import sinon from 'sinon';
import { z } from 'zod';
import { readForm } from '../../../adapters/http/input/read-body.ts';
import { parseClientCredentials } from '../../../adapters/http/oauth/access-token.routes.ts';
import { buildOpenApi } from '../../../adapters/http/openapi/openapi.ts';
import { resourceRoutes } from '../../../adapters/http/resource-routes.ts';
import { type Find, type Route, reply, route } from '../../../adapters/http/route.ts';
import { documentationPage, readDocumentationFile } from '../../../adapters/http/service/documentation-page.ts';
import { toHealthView } from '../../../adapters/http/service/service.routes.ts';
import { CheckHealth } from '../../../application/health/check-health.ts';
import { Draining } from '../../../application/health/draining.ts';
import { CredentialConfigurationBody } from '../../../domain/issuance/configuration.ts';
import { IssuanceConfigurationBody } from '../../../domain/issuance/issuance-configuration.ts';
import { type EditedKind, RESOURCES } from '../../../domain/resources.ts';
import { withKeyReferences } from '../../../domain/shared/older-names.ts';
import { safeParseInput } from '../../../domain/shared/parse-input.ts';
import { PresentationConfigurationBody } from '../../../domain/verification/configuration.ts';
import { aWorld, codeOf } from '../administrators.ts';

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;

describe('client credentials', () => {
  it('are accepted in the header, percent-encoded or plain, or in the body', () => {
    const expected = { clientId: 'a:b', secret: 'x+y%z' };
    expect(parseClientCredentials(basic('a%3Ab:x%2By%25z'), {})).to.deep.equal(expected);
    expect(parseClientCredentials(basic('a%3Ab:x+y%z'), {})).to.deep.equal(expected);
    expect(parseClientCredentials(undefined, { client_id: 'a:b', client_secret: 'x+y%z' })).to.deep.equal(expected);
    expect(parseClientCredentials(basic('a:b').replace('Basic', 'basic'), { client_id: 'a' })).to.deep.equal({
      clientId: 'a',
      secret: 'b',
    });
  });

  it('are rejected when they are missing, unreadable or contradictory', async () => {
    const code = (header: string | undefined, body = {}) => codeOf(() => parseClientCredentials(header, body));
    expect(await code(undefined, { client_id: 'a' })).to.equal('invalid_client');
    for (const header of ['Bearer abc', 'Basic', 'Basic ***', basic('no colon')]) {
      expect(await code(header)).to.equal('invalid_client');
    }
    expect(await code(basic('a:b'), { client_id: 'c' })).to.equal('invalid_request');
    expect(await code(basic('a:b'), { client_secret: 'c' })).to.equal('invalid_request');
  });
});

describe('form parameters', () => {
  it('are returned when they are not empty, each once', async () => {
    expect({ ...readForm('code=c&state=&scope=a+b') }).to.deep.equal({ code: 'c', scope: 'a b' });
    for (const twice of ['code=c&code=c', 'code=c&code=', 'code=&code=c', 'code&code=c', 'code=&code=']) {
      expect(await codeOf(() => readForm(twice)), twice).to.equal('invalid_request');
    }
  });
});

describe('Key references', () => {
  const Body = z.object({
    keyChainId: z.string().nullable().optional(),
    accessKeyChainId: z.string().optional(),
    trustAnchors: z.array(z.object({ keyChainId: z.string() })).optional(),
  });
  const acceptsBody = (body: unknown) => {
    const read = safeParseInput(Body, body);
    return 'data' in read ? read.data : read.errors[0]?.path;
  };

  it('are accepted by either name', () => {
    const body = { certId: 'one', accessCertId: 'two', trustAnchors: [{ certId: 'three' }] };
    expect(acceptsBody(body)).to.deep.equal({ keyChainId: 'one', accessKeyChainId: 'two', trustAnchors: [{ keyChainId: 'three' }] });
    expect(acceptsBody({ certId: 'one', keyChainId: 'one' })).to.deep.equal({ keyChainId: 'one' });
    expect(acceptsBody({ certId: null })).to.deep.equal({ keyChainId: null });
  });

  it('are rejected if the two names have different values', () => {
    expect(acceptsBody({ certId: 'one', keyChainId: 'two' })).to.equal('certId');
    expect(acceptsBody({ trustAnchors: [{ certId: 'a', keyChainId: 'b' }] })).to.equal('trustAnchors.0.certId');
    expect(acceptsBody('text')).to.equal('');
  });

  it('are returned under both names', () => {
    expect(withKeyReferences({ id: 'x', keyChainId: 'one', accessKeyChainId: null })).to.deep.equal({
      id: 'x',
      keyChainId: 'one',
      certId: 'one',
      accessKeyChainId: null,
      accessCertId: null,
    });
    expect(withKeyReferences({ id: 'x' })).to.deep.equal({ id: 'x' });
  });
});

describe('health check', () => {
  it('reports working and failed probes, and runs once for concurrent callers', async () => {
    let runs = 0;
    const probes = [
      { name: 'database', check: async () => void runs++ },
      { name: 'broker', check: () => Promise.reject(new Error('secret address')) },
    ];
    const check = new CheckHealth({ probes, draining: new Draining(), log: aWorld().log });
    const [health] = await Promise.all([check.execute(), check.execute()]);
    expect(runs).to.equal(1);
    const view = toHealthView(health, { version: '0.2.0', commit: null }, { showsNames: false });
    expect(view).to.deep.equal({
      version: '0.2.0',
      commit: null,
      status: 'error',
      info: { database: { status: 'up' } },
      error: { broker: { status: 'down' } },
      details: { database: { status: 'up' }, broker: { status: 'down' } },
    });
    await check.execute();
    expect(runs).to.equal(2);
  });

  it('names key providers only for operators', () => {
    const probes = [
      { name: 'database', up: true },
      { name: 'key-provider/house', up: true },
      { name: 'key-provider/hsm-vault-7', up: false },
    ];
    const viewFor = (showsNames: boolean) =>
      toHealthView({ healthy: true, degraded: true, probes }, { version: '0.2.0', commit: null }, { showsNames });
    expect(viewFor(false).details).to.deep.equal({ database: { status: 'up' }, 'key-providers': { status: 'down' } });
    expect(JSON.stringify(viewFor(false)))
      .to.not.include('house')
      .and.not.include('hsm');
    expect(viewFor(true).error).to.deep.equal({ 'key-provider/hsm-vault-7': { status: 'down' } });
  });

  it('repeats a cached probe after a change, also after one during the probe', async () => {
    let change = () => {};
    let runs = 0;
    const probe = {
      ...{ name: 'lists', restMs: 10_000 },
      onChange: (changed: () => void) => {
        change = changed;
      },
      check: async () => {
        if (++runs === 2) change();
      },
    };
    const check = new CheckHealth({ probes: [probe], draining: new Draining(), log: aWorld().log });
    for (const state of [1, 1]) expect([await check.execute(), runs][1]).to.equal(state);
    change();
    for (const state of [2, 3, 3]) expect([await check.execute(), runs][1]).to.equal(state);
  });

  it('runs a cached probe once per interval, for success and failure', async () => {
    const timer = sinon.useFakeTimers({ toFake: ['performance'] });
    try {
      const runs = { up: 0, down: 0 };
      const probes = [
        { name: 'up', restMs: 10_000, check: async () => void runs.up++ },
        {
          ...{ name: 'down', restMs: 10_000 },
          check: async () => {
            runs.down++;
            throw new Error('refused');
          },
        },
      ];
      const check = new CheckHealth({ probes, draining: new Draining(), log: aWorld().log });
      const answers = [await check.execute(), await check.execute()];
      expect(answers[1]).to.deep.equal(answers[0]);
      timer.tick(9_999);
      await check.execute();
      expect(runs).to.deep.equal({ up: 1, down: 1 });
      timer.tick(1);
      await check.execute();
      expect(runs).to.deep.equal({ up: 2, down: 2 });
    } finally {
      timer.restore();
    }
  });
});

describe('interface description', () => {
  const Thing = z.object({ id: z.string() }).meta({ id: 'Thing' });
  const routes = [
    route({
      method: 'post',
      path: '/thing/:id/turn-round',
      operationId: 'turnThing',
      summary: 'Turn',
      tag: 'Things',
      surface: 'admin',
      access: { anyOf: ['issuance:manage'] },
      params: z.object({ id: z.string() }),
      body: z.object({ keyChainId: z.string() }),
      example: { keyChainId: 'x' },
      responses: { 201: Thing, 409: 'In use' },
      handle: () => reply(201, {}),
    }),
    route({
      method: 'post',
      path: '/:tenant/token',
      operationId: 'redeemCode',
      summary: 'Token',
      tag: 'Wallets',
      surface: 'oauth',
      access: 'public',
      body: z.object({ code: z.string() }),
      bodyKind: 'form',
      responses: { 200: 'Text' },
      handle: () => reply(200, {}),
    }),
  ];

  it('lists roles, input and output of each route', () => {
    const document = buildOpenApi(routes, { publicUrl: 'https://id.example', version: '1' });
    const { paths } = document as { paths: Record<string, { post: Record<string, never> }> };
    const operation = paths['/thing/{id}/turn-round']?.post;
    expect(operation).to.deep.include({ security: [{ bearer: [] }, { clientCredentials: [] }], 'x-roles': ['issuance:manage'] });
    expect(operation).to.have.nested.property('requestBody.content.application/json.example.keyChainId', 'x');
    expect(operation).to.have.nested.property('parameters[0].name', 'id');
    expect(operation?.['responses']).to.have.all.keys(...'201 400 401 403 404 409 413 415 500 503'.split(' '));
    const token = paths['/{tenant}/token']?.post;
    expect(token).to.deep.include({ security: [] });
    expect(token?.['responses']).to.have.all.keys(...'200 400 404 413 500 503'.split(' '));
    const form = 'requestBody.content.application/x-www-form-urlencoded';
    expect(token).to.have.nested.property(form);
    expect(JSON.stringify(token?.['responses'])).to.include('ProtocolError');
  });

  it('is shown by a page that runs only scripts of this service', async () => {
    expect(documentationPage('/base')).to.not.match(/<script(?! src="\/base\/docs\/[a-z-]+\.js")/);
    expect(await readDocumentationFile('package.json')).to.equal(undefined);
    expect(await readDocumentationFile('toString')).to.equal(undefined);
    expect((await readDocumentationFile('swagger-ui.css'))?.content.length).to.be.greaterThan(1_000);
  });
});

type Members = Readonly<Record<string, unknown>>;

/** Returns a document with `value` at the path. */
function documentWith(path: string, value: unknown): Members {
  const [name = '', ...rest] = path.split('.');
  return { id: 'one', [name]: rest.length === 0 ? value : documentWith(rest.join('.'), value) };
}

const display = [{ name: 'Acme', locale: 'en' }];
/** Complete documents of the kinds that have warnings. */
const FULL_DOCUMENTS: { readonly [kind in EditedKind]?: object } = {
  'issuance-configuration': IssuanceConfigurationBody.parse({ display }),
  'credential-configuration': CredentialConfigurationBody.parse({ id: 'one', config: { format: 'dc+sd-jwt', display } }),
  'presentation-configuration': PresentationConfigurationBody.parse({
    id: 'one',
    dcql_query: { credentials: [{ id: 'a', format: 'dc+sd-jwt', meta: { vct_values: ['urn:a'] } }] },
  }),
};

class FixedUseCase {
  result: unknown;
  async execute() {
    return this.result;
  }
}

/** Returns the responses of all routes of the kind for this document. */
async function responsesOf(kind: EditedKind, document: Members): Promise<readonly string[]> {
  const useCase = new FixedUseCase();
  const find = (() => useCase) as unknown as Find;
  const routes = resourceRoutes({
    ...{ kind, tag: 'Any', path: '/any', access: { anyOf: [] }, view: z.unknown() },
    params: z.object({ id: z.string() }),
    get: FixedUseCase as never,
    toView: (resource) => resource,
    stored: () => FULL_DOCUMENTS[kind] ?? {},
  });
  const described = { operationId: '', summary: '' };
  const route = { ...described, by: FixedUseCase as never, body: z.unknown(), example: {} };
  const families = [
    routes.list({ ...described, by: FixedUseCase as never }),
    routes.get(described),
    routes.create(route),
    routes.replace(route),
    routes.update(route),
  ];
  const all: readonly Route[] = families.flatMap((family) => family(find));
  return Promise.all(
    all.map(async (route, index) => {
      useCase.result = index === 0 ? [document] : document;
      const request = { caller: {}, params: { id: 'one' }, query: {}, body: {} };
      const reply = (await route.handle(request as never)) as unknown as { readonly json: unknown };
      const { warnings: _warnings, ...shown } = (index === 0 ? (reply.json as unknown[])[0] : reply.json) as Members;
      return JSON.stringify(shown);
    }),
  );
}

describe('resource routes', () => {
  const secrets = RESOURCES.flatMap((resource) =>
    'editablePart' in resource && 'secrets' in resource
      ? Object.keys(resource.secrets).map((path) => [resource.kind as EditedKind, path] as const)
      : [],
  );

  it('exist for kinds with secrets', () => {
    expect(secrets.length).to.be.above(5);
  });
  for (const [kind, path] of secrets) {
    it(`hide ${path} of a ${kind}, and show if it is empty`, async () => {
      const responses = await responsesOf(kind, documentWith(path, 'a secret'));
      expect(responses).to.have.length(5);
      expect(new Set(responses)).to.deep.equal(new Set([JSON.stringify(documentWith(path, '***'))]));
      for (const empty of [null, '']) {
        const document = documentWith(path, empty);
        expect(new Set(await responsesOf(kind, document))).to.deep.equal(new Set([JSON.stringify(document)]));
      }
    });
  }
});
