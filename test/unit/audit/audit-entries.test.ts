import { expect } from 'chai';
import { AuditLogQuery, ListAuditEntries } from '../../../application/audit/audit-entries.ts';
import type { Caller } from '../../../application/caller.ts';
import { type AdministrationWorld, anAdministration, endOf } from '../administration/kit.ts';
import { ACME, ROOT } from '../administration/world.ts';

describe('The entries of the audit log', () => {
  let world: AdministrationWorld;
  let admin: Caller;
  const list = (query: object = {}, by: Caller = admin) =>
    new ListAuditEntries(world).execute(by, AuditLogQuery.parse(query));
  const briefly = async (query: object = {}, by?: Caller) =>
    (await list(query, by)).entries.map(({ action, kind, target }) => `${action} ${kind} ${target}`);
  const note = (kind: 'client' | 'trust-list', target: string, by: 'system' | Caller = 'system') =>
    world.store.forTenant(
      ACME,
      async ({ audit }) => audit.note({ action: 'changed', kind, target, changes: [] }),
      { by: by as 'system' },
    );

  beforeEach(async () => {
    world = await anAdministration();
    admin = world.caller(['clients:manage']);
    await world.store.prepare('three notes', async () => {
      await note('client', 'one');
      await note('trust-list', 'two', admin);
      await note('client', 'three');
    });
  });

  it('come newest first', async () => {
    const found = await briefly();
    expect(found.slice(0, 3)).to.deep.equal([
      'changed client three',
      'changed trust-list two',
      'changed client one',
    ]);
    expect(found.at(-1)).to.equal('created tenant acme');
  });

  it('come in pages, each with where the next one begins', async () => {
    const all = await briefly();
    const found: string[] = [];
    for (let cursor: string | undefined, first = true; first || cursor !== undefined; first = false) {
      const page = await list({ limit: 2, ...(cursor !== undefined && { cursor }) });
      expect(page.entries.length).to.be.within(1, 2);
      found.push(...page.entries.map(({ action, kind, target }) => `${action} ${kind} ${target}`));
      cursor = page.next;
    }
    expect(found).to.deep.equal(all);
    expect(await briefly({ sort: 'asc' })).to.deep.equal(all.toReversed());
    expect(await list({ limit: all.length })).to.not.have.property('next');
  });

  const filters: [object, string[]][] = [
    [{ kind: 'trust-list' }, ['changed trust-list two']],
    [{ target: 'one' }, ['changed client one']],
    [{ actor: 'acme-admin' }, ['changed trust-list two']],
    [{ kind: 'client', action: 'changed' }, ['changed client three', 'changed client one']],
    [{ kind: 'client', action: 'removed' }, []],
    [{ since: '2999-01-01T00:00:00Z' }, []],
    [{ until: '2000-01-01T00:00:00Z' }, []],
  ];
  for (const [query, wanted] of filters) {
    it(`are chosen by ${JSON.stringify(query)}`, async () => {
      expect(await briefly(query)).to.deep.equal(wanted);
    });
  }

  it('are those of the tenant for its clients, and of the service or any tenant for who manages tenants', async () => {
    const own = await briefly();
    expect(await briefly({ tenant: ACME })).to.deep.equal(own);
    expect(await briefly({ tenant: ACME }, ROOT)).to.deep.equal(own);
    const service = await briefly({}, ROOT);
    expect(service).to.include('created tenant acme').and.not.include('changed client one');
  });

  const refusals: [string, object, (() => Caller) | undefined, string][] = [
    ['another tenant', { tenant: 'other' }, undefined, 'not_found'],
    ['a tenant that is not there', { tenant: 'nobody' }, () => ROOT, 'not_found'],
    [
      'a client that is restricted to some credentials',
      {},
      () => world.caller(['clients:manage'], { allowedIssuanceConfigs: ['card'] }),
      'forbidden',
    ],
    [
      'a client that is restricted to some presentations',
      {},
      () => world.caller(['clients:manage'], { allowedPresentationConfigs: ['age'] }),
      'forbidden',
    ],
  ];
  for (const [what, query, by, end] of refusals) {
    it(`are refused to ${what}: ${end}`, async () => {
      expect(await endOf(list(query, by?.()))).to.equal(end);
    });
  }

  for (const cursor of ['x', '0', '-1', '1e3', '9'.repeat(16)]) {
    it(`do not begin at ${cursor}`, () => {
      const { success, error } = AuditLogQuery.safeParse({ cursor });
      expect([success, error?.issues.map(({ path }) => path.join('.'))]).to.deep.equal([false, ['cursor']]);
    });
  }
});
