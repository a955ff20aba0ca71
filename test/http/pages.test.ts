import { expect } from 'chai';
import { type Populated, populate } from '../support/populated.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

/** Every list, with what names an entry. Sessions and the audit log have suites of their own. */
const LISTS: readonly (readonly [path: string, name: string])[] = [
  ['/tenant', 'id'],
  ['/client', 'clientId'],
  ['/issuer/credentials', 'id'],
  ['/verifier/config', 'id'],
  ['/status-lists', 'id'],
  ['/key-chain', 'id'],
  ['/key-chain/providers', 'name'],
  ['/certs', 'id'],
  ['/key', 'id'],
  ['/trust-list', 'id'],
];

describe('Lists of the administration', () => {
  let service: TestService;
  let world: Populated;
  let root: string;

  before(async () => {
    service = await startTestService();
    world = await populate(service, 'acme');
    await populate(service, 'bravo');
    root = await service.rootToken();
    for (const clientId of ['one', 'two', 'three']) {
      const json = { clientId, roles: ['issuance:offer'] };
      expect((await service.call('POST', '/client', { token: world.token, json })).status).to.equal(201);
    }
  });
  after(() => service.close());

  const get = (path: string) =>
    service.call('GET', path, { token: path.includes('/tenant') ? root : world.token });
  const nextOf = (link: string | null) => /^<([^>]+)>; rel="next"$/.exec(link ?? '')?.[1];

  for (const [path, name] of LISTS) {
    it(`come whole, or in pages of either order: ${path}`, async () => {
      const whole = await get(path);
      expect(whole.headers.get('link'), 'all of it').to.equal(null);
      const names = (entries: Record<string, string>[]) => entries.map((entry) => entry[name] ?? '');
      const all = names(whole.body).toSorted();
      expect(all.length).to.be.greaterThan(0);
      for (const sort of ['asc', 'desc']) {
        const found: string[] = [];
        let pages = 0;
        for (let url: string | undefined = `${path}?limit=2&sort=${sort}`; url !== undefined; pages++) {
          const page = await get(url);
          expect(page.status, page.text).to.equal(200);
          expect(page.body.length).to.be.at.most(2);
          found.push(...names(page.body));
          url = nextOf(page.headers.get('link'));
          if (url !== undefined) expect(url.startsWith(`${service.address}${path}?`), url).to.equal(true);
        }
        expect(found).to.deep.equal(sort === 'asc' ? all : all.toReversed());
        expect(pages).to.equal(Math.ceil(all.length / 2));
      }
    });
  }

  it('go on where they were when an entry was deleted meanwhile', async () => {
    const first = await get('/client?limit=2');
    const last = first.body.at(-1).clientId;
    const rest = await get('/client?limit=500');
    const after = rest.body.slice(2).map(({ clientId }: { clientId: string }) => clientId);
    const gone = await service.call('DELETE', `/client/${last}`, { token: world.token });
    expect(gone.status, gone.text).to.equal(200);
    const next = await get(nextOf(first.headers.get('link')) ?? '');
    expect(next.body.map(({ clientId }: { clientId: string }) => clientId)).to.deep.equal(after.slice(0, 2));
  });

  it('lead from page to page with the filters that they have', async () => {
    const whole = await get('/issuer/deferred');
    expect(whole.body.length).to.be.greaterThan(0);
    const { sessionId } = whole.body[0];
    const page = await get(`/issuer/deferred?session=${sessionId}&limit=1`);
    expect(page.body).to.have.length(1);
    expect(page.headers.get('link')).to.equal(null);
    expect((await get(`/certs?keyId=${world.ids.keyChain}&limit=1`)).body).to.have.length(1);
  });

  it('refuse what is no page', async () => {
    for (const query of ['limit=0', 'limit=501', 'limit=x', 'sort=up', 'cursor=!', 'cursor=', 'offset=3']) {
      const answer = await get(`/key-chain?${query}`);
      expect([answer.status, answer.body.code], query).to.deep.equal([400, 'invalid_input']);
    }
  });
});
