import { expect } from 'chai';
import { type PopulatedTenant, populate } from '../support/populated.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

/** What names an entry, in the order in which it is looked for. */
const NAMES = ['sequence', 'transactionId', 'clientId', 'id', 'name', 'index'];

type Parameter = { readonly in: string; readonly name: string; readonly schema: object };
type Operation = {
  readonly parameters?: readonly Parameter[];
  readonly responses: Readonly<
    Record<string, { readonly content?: { readonly 'application/json'?: { readonly schema?: { type?: string } } } }>
  >;
};

describe('Lists of the administrative interface', () => {
  let service: TestService;
  let world: PopulatedTenant;
  let root: string;

  before(async () => {
    service = await startTestService();
    world = await populate(service, 'acme');
    await populate(service, 'bravo');
    root = await service.rootToken();
    await createTenant(service, 'removed');
    expect((await service.call('DELETE', '/tenant/removed', { token: root })).status).to.equal(200);
    for (const clientId of ['one', 'two', 'three']) {
      const json = { clientId, roles: ['issuance:offer'] };
      expect((await service.call('POST', '/client', { token: world.token, json })).status).to.equal(201);
    }
  });
  after(() => service.close());

  const get = (path: string) => service.call('GET', path, { token: /\/(tenant|settings)/.test(path) ? root : world.token });
  const nextOf = (link: string | null) => /^<([^>]+)>; rel="next"$/.exec(link ?? '')?.[1];

  /** The operations of the document whose answer is a list. */
  const listOperations = async () => {
    const { paths } = (await service.call('GET', '/openapi.json')).body as { paths: Record<string, { get?: Operation }> };
    return Object.entries(paths).flatMap(([path, { get: operation }]) => {
      const { schema } = operation?.responses['200']?.content?.['application/json'] ?? {};
      return operation !== undefined && schema?.type === 'array' ? [{ path, operation }] : [];
    });
  };
  const present = (path: string) => path.replace('{id}', path.startsWith('/session') ? world.ids.issuance : world.ids.trustList);

  it('accept the same parameters', async () => {
    const operations = await listOperations();
    expect(operations.map(({ path }) => path).toSorted()).to.deep.equal([
      ...['/audit-log', '/certs', '/client', '/issuer/credentials', '/issuer/deferred', '/key', '/key-chain'],
      ...['/key-chain/providers', '/session', '/session/{id}/statuses', '/settings', '/status-lists'],
      ...['/tenant', '/tenant-removal', '/trust-list'],
      ...['/trust-list/{id}/versions', '/trust/forecast', '/trust/lists', '/verifier/config'],
    ]);
    for (const { path, operation } of operations) {
      const schemaOf = (name: string) =>
        operation.parameters?.find((parameter) => parameter.in === 'query' && parameter.name === name)?.schema;
      expect(schemaOf('limit'), path).to.include({ type: 'integer', minimum: 1, maximum: 500 });
      expect(schemaOf('cursor'), path).to.include({ type: 'string' });
      expect(schemaOf('sort'), path).to.deep.include({ type: 'string', enum: ['asc', 'desc'] });
    }
  });

  it('are returned whole, or in pages of either order', async () => {
    for (const json of [{ description: 'Second' }, { description: 'Third' }])
      await service.call('PATCH', `/trust-list/${world.ids.trustList}`, { token: world.token, json });
    const lists = (await listOperations()).map(({ path }) => present(path));
    for (const path of lists) {
      const whole = await get(`${path}?limit=500`);
      expect(whole.headers.get('link'), `all of ${path}`).to.equal(null);
      const nameOf = (entry: Record<string, unknown>) => entry[NAMES.find((name) => name in entry) ?? ''];
      const all = whole.body.map(nameOf);
      expect(all.length, path).to.be.greaterThan(0);
      const orders: unknown[][] = [];
      for (const sort of ['asc', 'desc']) {
        const found: unknown[] = [];
        let pages = 0;
        for (let url: string | undefined = `${path}?limit=2&sort=${sort}`; url !== undefined; pages++) {
          const page = await get(url);
          expect(page.status, page.text).to.equal(200);
          expect(page.body.length).to.be.at.most(2);
          found.push(...page.body.map(nameOf));
          url = nextOf(page.headers.get('link'));
          if (url !== undefined) expect(url.startsWith(`${service.address}${path}?`), url).to.equal(true);
        }
        expect(found, path).to.have.members(all);
        expect(pages, path).to.equal(Math.ceil(all.length / 2));
        orders.push(found);
      }
      expect(orders[0], path).to.deep.equal(orders[1]?.toReversed());
    }
  });

  it('reject an unknown order', async () => {
    for (const { path } of await listOperations()) {
      const answer = await get(`${present(path)}?sort=up`);
      expect([answer.status, answer.body.code], path).to.deep.equal([400, 'invalid_input']);
    }
  });

  it('continue at the same place when an entry was deleted in the meantime', async () => {
    const first = await get('/client?limit=2');
    const last = first.body.at(-1).clientId;
    const rest = await get('/client?limit=500');
    const after = rest.body.slice(2).map(({ clientId }: { clientId: string }) => clientId);
    const gone = await service.call('DELETE', `/client/${last}`, { token: world.token });
    expect(gone.status, gone.text).to.equal(200);
    const next = await get(nextOf(first.headers.get('link')) ?? '');
    expect(next.body.map(({ clientId }: { clientId: string }) => clientId)).to.deep.equal(after.slice(0, 2));
  });

  it('link from page to page with the same filters', async () => {
    const whole = await get('/issuer/deferred');
    expect(whole.body.length).to.be.greaterThan(0);
    const { sessionId } = whole.body[0];
    const page = await get(`/issuer/deferred?session=${sessionId}&limit=1`);
    expect(page.body).to.have.length(1);
    expect(page.headers.get('link')).to.equal(null);
    expect((await get(`/certs?keyId=${world.ids.keyChain}&limit=1`)).body).to.have.length(1);
  });

  it('reject invalid page parameters', async () => {
    for (const query of ['limit=0', 'limit=501', 'limit=x', 'sort=up', 'cursor=!', 'cursor=', 'offset=3']) {
      const answer = await get(`/key-chain?${query}`);
      expect([answer.status, answer.body.code], query).to.deep.equal([400, 'invalid_input']);
    }
  });
});
