import { expect } from 'chai';
import { Cipher } from '../../application/ports/cipher.ts';
import { collectRoutes } from '../../bootstrap/routes.ts';
import { type Edit, editsOf, writer } from '../support/edits.ts';
import { created, type Populated, populate, UPSTREAM_SECRET } from '../support/populated.ts';
import { QUERY } from '../support/present.ts';
import { sharedRegistrar } from '../support/registrar.ts';
import { addressOf } from '../support/requests.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

const registrar = await sharedRegistrar();

describe('Who edits what somebody else changed meanwhile', () => {
  let service: TestService;
  let world: Populated;
  let root: string;
  let edits: readonly Edit[];

  before(async () => {
    service = await startTestService();
    world = await populate(service, 'edited');
    root = await service.rootToken();
    edits = editsOf(world.ids, registrar);
  });
  after(() => service.close());

  it('is told so, whatever it is, and changes nothing', async () => {
    for (const edit of edits) {
      const { read, write, tagOf } = writer(world, root, edit);
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

  it('is told so for every route that edits a single thing', async () => {
    const routes = collectRoutes(service.service.container).filter(({ edits }) => edits?.id !== undefined);
    const params = {
      ...world.ids,
      id: 'x',
      certId: world.ids.keyChain,
      listId: world.ids.statusList,
    };
    const covered = new Set(
      edits.flatMap(({ writes }) => writes.map(({ method, path }) => `${method} ${path}`)),
    );
    const { paths } = (await service.call('GET', '/openapi.json')).body;
    for (const route of routes) {
      const operation = paths[route.path.replaceAll(/:([A-Za-z]+)/g, '{$1}')][route.method];
      const headers = operation.parameters.filter((parameter: { in: string }) => parameter.in === 'header');
      expect(headers.map(({ name }: { name: string }) => name)).to.deep.equal(['If-Match']);
      expect(operation.responses).to.have.property('409');
      if (route.method === 'delete') continue;
      const matches = [...covered].some((known) => {
        const [method, path = ''] = known.split(' ');
        const pattern = new RegExp(
          `^${addressOf(route, { ...params, id: '[^/]+' }).replaceAll('%5B%5E%2F%5D%2B', '[^/]+')}$`,
        );
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
      expect(Object.keys(answer.headers ?? {}).includes('ETag'), `${route.method} ${route.path}`).to.equal(
        !isGone,
      );
    }
  });

  it('removes nothing that is another by now, and what it read', async () => {
    const { token } = world;
    const make = async (id: string) => {
      await created(service, token, '/key-chain', { id, usageType: 'signing' });
      const tag = (await service.call('GET', `/key-chain/${id}`, { token })).headers.get('etag') ?? '';
      const json = { description: 'Mine' };
      expect((await service.call('PATCH', `/key-chain/${id}`, { token, json })).status).to.equal(200);
      return tag;
    };
    const remove = (path: string, tag: string) =>
      service.call('DELETE', path, { token, headers: { 'If-Match': tag } });
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

  it('is refused where a condition would be of no use, or is none', async () => {
    const { token } = world;
    const send = (method: string, path: string, headers: Record<string, string>, json?: object) =>
      service.call(method, path, { token, headers, ...(json && { json }) });
    expect((await send('GET', '/session', { 'If-Match': '*' })).status).to.equal(400);
    expect(
      (await send('POST', '/client', { 'If-Match': '*' }, { clientId: 'x', roles: [] })).status,
    ).to.equal(400);
    for (const bad of [
      '',
      'unquoted',
      '"open',
      '"a" "b"',
      '"a",, "b"',
      ',"a"',
      Array(21).fill('"a"').join(),
    ]) {
      const answer = await send('PUT', '/session-config', { 'If-Match': bad }, {});
      expect(answer.status, bad).to.equal(400);
    }
    const date = new Date().toUTCString();
    expect((await send('PUT', '/session-config', { 'If-Unmodified-Since': date }, {})).status).to.equal(400);
    const nothing = { id: 'never-made', dcql_query: QUERY };
    const answer = await send('POST', '/verifier/config', { 'If-Match': '*' }, nothing);
    expect([answer.status, answer.body.detail]).to.deep.equal([
      409,
      'there is nothing here that If-Match could mean; leave it out to make something',
    ]);
  });

  it('learns nothing about secrets from a tag', async () => {
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
