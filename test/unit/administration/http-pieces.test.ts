import { expect } from 'chai';
import sinon from 'sinon';
import { z } from 'zod';
import { readClientCredentials } from '../../../adapters/http/oauth2/client-credentials.ts';
import { buildOpenApi } from '../../../adapters/http/openapi.ts';
import { readForm } from '../../../adapters/http/read-form.ts';
import { reply, route } from '../../../adapters/http/route.ts';
import {
  documentationPage,
  readDocumentationFile,
} from '../../../adapters/http/service/documentation-page.ts';
import { toHealthView } from '../../../adapters/http/service/service.routes.ts';
import { CheckHealth } from '../../../application/health/check-health.ts';
import { Draining } from '../../../application/health/draining.ts';
import { withKeyReferences } from '../../../domain/shared/older-names.ts';
import { readWritten } from '../../../domain/shared/read-written.ts';
import { aWorld, codeOf } from './world.ts';

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;

describe('Client credentials', () => {
  it('come in the header, percent-encoded or as they are, or in the body', () => {
    const expected = { clientId: 'a:b', secret: 'x+y%z' };
    expect(readClientCredentials(basic('a%3Ab:x%2By%25z'), {})).to.deep.equal(expected);
    expect(readClientCredentials(basic('a%3Ab:x+y%z'), {})).to.deep.equal(expected);
    expect(readClientCredentials(undefined, { client_id: 'a:b', client_secret: 'x+y%z' })).to.deep.equal(
      expected,
    );
    expect(readClientCredentials(basic('a:b').replace('Basic', 'basic'), { client_id: 'a' })).to.deep.equal({
      clientId: 'a',
      secret: 'b',
    });
  });

  it('are refused when they are missing, unreadable or contradict each other', async () => {
    const code = (header: string | undefined, body = {}) => codeOf(() => readClientCredentials(header, body));
    expect(await code(undefined, { client_id: 'a' })).to.equal('invalid_client');
    for (const header of ['Bearer abc', 'Basic', 'Basic ***', basic('no colon')]) {
      expect(await code(header)).to.equal('invalid_client');
    }
    expect(await code(basic('a:b'), { client_id: 'c' })).to.equal('invalid_request');
    expect(await code(basic('a:b'), { client_secret: 'c' })).to.equal('invalid_request');
  });
});

describe('A form', () => {
  it('has the parameters that say something, and none twice', async () => {
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
  const accepted = (body: unknown) => {
    const read = readWritten(Body, body);
    return 'data' in read ? read.data : read.errors[0]?.path;
  };

  it('are taken by either name', () => {
    const body = { certId: 'one', accessCertId: 'two', trustAnchors: [{ certId: 'three' }] };
    expect(accepted(body)).to.deep.equal({
      keyChainId: 'one',
      accessKeyChainId: 'two',
      trustAnchors: [{ keyChainId: 'three' }],
    });
    expect(accepted({ certId: 'one', keyChainId: 'one' })).to.deep.equal({ keyChainId: 'one' });
    expect(accepted({ certId: null })).to.deep.equal({ keyChainId: null });
  });

  it('are refused when the two names say different things', () => {
    expect(accepted({ certId: 'one', keyChainId: 'two' })).to.equal('certId');
    expect(accepted({ trustAnchors: [{ certId: 'a', keyChainId: 'b' }] })).to.equal('trustAnchors.0.certId');
    expect(accepted('text')).to.equal('');
  });

  it('are answered by both names', () => {
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

describe('Health', () => {
  it('tells what works and what does not, and runs once for all who ask at once', async () => {
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

  it('names key providers for operators alone', () => {
    const probes = [
      { name: 'database', up: true },
      { name: 'key-provider/house', up: true },
      { name: 'key-provider/hsm-vault-7', up: false },
    ];
    const viewFor = (showsNames: boolean) =>
      toHealthView(
        { healthy: true, degraded: true, probes },
        { version: '0.2.0', commit: null },
        { showsNames },
      );
    expect(viewFor(false).details).to.deep.equal({
      database: { status: 'up' },
      'key-providers': { status: 'down' },
    });
    expect(JSON.stringify(viewFor(false)))
      .to.not.include('house')
      .and.not.include('hsm');
    expect(viewFor(true).error).to.deep.equal({ 'key-provider/hsm-vault-7': { status: 'down' } });
  });

  it('asks what rests again when it says that something changed, also while it was asked', async () => {
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
    for (const said of [1, 1]) expect([await check.execute(), runs][1]).to.equal(said);
    change();
    for (const said of [2, 3, 3]) expect([await check.execute(), runs][1]).to.equal(said);
  });

  it('asks what rests between two answers once, whether it is up or down', async () => {
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

describe('The description of the interface', () => {
  const Thing = z.object({ id: z.string() }).meta({ id: 'Thing' });
  const routes = [
    route({
      method: 'post',
      path: '/thing/:id/turn-round',
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

  it('says of each route who may call it, what it takes and what it answers', () => {
    const document = buildOpenApi(routes, { publicUrl: 'https://id.example', version: '1' });
    const { paths } = document as { paths: Record<string, { post: Record<string, never> }> };
    const turn = paths['/thing/{id}/turn-round']?.post;
    expect(turn).to.deep.include({
      security: [{ bearer: [] }, { clientCredentials: [] }],
      'x-roles': ['issuance:manage'],
    });
    expect(turn).to.have.nested.property('requestBody.content.application/json.example.keyChainId', 'x');
    expect(turn).to.have.nested.property('parameters[0].name', 'id');
    expect(turn?.['responses']).to.have.all.keys(...'201 400 401 403 404 409 413 415 500 503'.split(' '));
    const token = paths['/{tenant}/token']?.post;
    expect(token).to.deep.include({ security: [] });
    expect(token?.['responses']).to.have.all.keys(...'200 400 404 413 500 503'.split(' '));
    const form = 'requestBody.content.application/x-www-form-urlencoded';
    expect(token).to.have.nested.property(form);
    expect(JSON.stringify(token?.['responses'])).to.include('ProtocolError');
  });

  it('is shown by a page without scripts of its own', async () => {
    expect(documentationPage('/base')).to.not.match(/<script(?! src="\/base\/docs\/[a-z-]+\.js")/);
    expect(await readDocumentationFile('package.json')).to.equal(undefined);
    expect(await readDocumentationFile('toString')).to.equal(undefined);
    expect((await readDocumentationFile('swagger-ui.css'))?.content.length).to.be.greaterThan(1_000);
  });
});
